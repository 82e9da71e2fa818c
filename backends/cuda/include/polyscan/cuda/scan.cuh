// SPDX-License-Identifier: Apache-2.0
/// A call's way to its kernels.
#pragma once

#include <type_traits>

#include <polyscan/cuda/backend.hpp>
#include <polyscan/cuda/grid/domino.cuh>
#include <polyscan/cuda/grid/look_back.cuh>
#include <polyscan/cuda/grid/prefix_pipeline.cuh>
#include <polyscan/cuda/grid/prefix_server.cuh>
#include <polyscan/cuda/grid/run_tiles.cuh>
#include <polyscan/cuda/grid/segmented_tiles.cuh>
#include <polyscan/cuda/grid/single_block.cuh>
#include <polyscan/cuda/grid/three_pass.cuh>
#include <polyscan/cuda/launch.cuh>

namespace polyscan::cuda {

namespace detail {

template <class A>
__global__ void write_value(const __grid_constant__ maybe<A> value, A* to) {
    *to = value.place.value;
}

template <class Unused>
__global__ void probe() {}

inline availability check_image() {
    cudaFuncAttributes attributes{};
    const cudaError_t status = cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(&probe<void>));
    static_cast<void>(cudaGetLastError());
    if (status == cudaSuccess) return {};
    return availability::no(std::string("the program has no code for this device: ") + cudaGetErrorString(status));
}
inline const bool image_check_is_set = (image_check = &check_image, true);

/// Bytes of what a call's cells hold.
template <class Policy, class Request>
constexpr std::size_t published_bytes() {
    if constexpr (std::is_same_v<Policy, default_policy> && has_segmented_tiles<Request>)
        return sizeof(typename segmented_request<Request>::value_type);
    else
        return sizeof(typename Request::accumulator_type);
}

template <class Policy, class Request>
constexpr std::size_t call_bytes(index_type n) {
    using A = typename Request::accumulator_type;
    using grid_type = typename Policy::grid_type;
    if constexpr (std::is_same_v<Policy, default_policy> && has_segmented_tiles<Request>) {
        using parts = segmented_request<Request>;
        return launcher::region_bytes<typename parts::value_type>(2 * segmented_shape<typename parts::work>::tiles(n));
    } else if constexpr (std::is_same_v<Policy, default_policy> && has_run_tiles<Request>) {
        return launcher::region_bytes<A>(2 * runs_shape<typename runs_request<Request>::work>::tiles(n));
    }
    const index_type tiles = ceil_div(n, shape_for<typename Policy::block_type, A>.elements());
    if constexpr (std::is_same_v<Policy, policy<grid::prefix_server, block::warp_shuffle>> && has_pipeline<Request>) {
        return launcher::region_bytes<A>(pipeline_cells<Request>(n));
    } else if constexpr (std::is_same_v<grid_type, grid::single_block>) {
        return 0;
    } else if constexpr (std::is_same_v<grid_type, grid::three_pass>) {
        return three_pass_scratch<A>::template bytes<typename Policy::block_type>(n);
    } else if constexpr (std::is_same_v<grid_type, grid::domino>) {
        using kernel = domino_kernel<typename Policy::block_type, kernel_request<Request>>;
        return launcher::region_bytes<A>(ceil_div(tiles, kernel::section_tiles(tiles)));
    } else {
        return launcher::region_bytes<A>(std::is_same_v<grid_type, grid::prefix_server> ? 2 * tiles : tiles);
    }
}

} // namespace detail

template <scan_policy Policy, class Request>
void backend::scan(const Request& request) {
    using A = typename Request::accumulator_type;
    static_assert(std::is_trivially_copyable_v<A> && std::is_copy_assignable_v<A>,
                  "device code needs trivially copyable, assignable accumulators");
    static_assert(sizeof(A) <= largest_accumulator, "device code takes accumulators up to 64 bytes");
    static_assert(alignof(A) <= 16, "device code takes accumulators aligned to at most 16 bytes");
    // What failed before this call is not this call's failure.
    check(cudaGetLastError(), "earlier work on the device");
    launcher on(*this);
    if (request.size > 0) {
        run(std::remove_cvref_t<Policy>{}, request, on);
    } else if (request.total != nullptr && request.empty_total) {
        on.launch(detail::write_value<A>, 1, 1, 0, maybe<A>(*request.empty_total), request.total);
    }
}

template <scan_policy Policy, class Request>
constexpr std::size_t backend::workspace_bytes(index_type n) {
    const std::size_t bytes = detail::call_bytes<Policy, Request>(n);
    return bytes == 0 ? 0 : workspace::bytes_for(bytes);
}

template <scan_policy Policy, class Request>
void backend::reserve(index_type n) {
    const std::size_t bytes = detail::call_bytes<Policy, Request>(n);
    constexpr bool plain = std::is_same_v<typename Policy::grid_type, grid::three_pass>;
    constexpr region which = plain ? region::scratch : region_for(detail::published_bytes<Policy, Request>());
    if (bytes > 0) memory().get(which, bytes, stream_);
}

} // namespace polyscan::cuda
