// SPDX-License-Identifier: Apache-2.0
/// Compaction in one launch. A block reads a tile once; each warp finds by ballots what is selected and brings it
/// together in shared memory, from where it leaves without gaps when a look back has told what earlier tiles have
/// selected. Counts are whole numbers: sums may be formed in any order. A partition is a count and the same launch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <polyscan/cuda/backend.hpp>
#include <polyscan/cuda/grid/tile_pass.cuh>
#include <polyscan/cuda/launch.cuh>
#include <polyscan/cuda/published.cuh>
#include <polyscan/cuda/tickets.cuh>
#include <polyscan/select.hpp>

namespace polyscan::cuda {

template <class T>
struct select_shape {
    using group = thread_group<tuning::select_threads>;
    static constexpr int each = tuning::select_elements(sizeof(T)); // of a thread
    static constexpr int of_warp = each * warp_size;
    static constexpr int elements = each * group::count;
    /// One at least: without elements there is still a count to be written.
    static constexpr index_type tiles(index_type n) {
        return std::max<index_type>(1, ceil_div(n, index_type{elements}));
    }
    /// Of the tiles, or of those of the reduction by which a partition counts: so that one piece of workspace does for
    /// both.
    static constexpr index_type cells_needed(index_type n) {
        return std::max(tiles(n), ceil_div(n, shape_for<block::warp_shuffle, index_type>.elements()));
    }
};

template <class Request>
struct select_kernel : select_shape<std::remove_cvref_t<decltype(std::declval<const Request&>().in[0])>> {
    using T = std::remove_cvref_t<decltype(std::declval<const Request&>().in[0])>;
    using typename select_shape<T>::group;
    using select_shape<T>::of_warp;
    struct shared {
        shared_array<T, of_warp> chosen[group::warps]; // by each warp
        int counts[group::warps];
        index_type before;
        ticket first;
        std::uint32_t next;
    };
};

/// By one warp: what tiles 0, ..., tile - 1 have selected. Lane l has the tile that is l + 1 places back. Whoever is
/// waited for has drawn its ticket earlier, so it is running.
__device__ inline index_type selected_before(const cells<index_type>& counts, index_type tile) {
    const int lane = static_cast<int>(threadIdx.x) % warp_size;
    index_type sum = 0;
    for (index_type nearest = tile - 1;; nearest -= warp_size) {
        const index_type at = nearest - lane;
        slot<index_type> value(0);
        const bool is_carry = at < 0 || counts.wait(at, value) == tile_state::carry;
        const unsigned carries = __ballot_sync(whole_warp, is_carry);
        const int last = carries == 0 ? warp_size - 1 : __ffs(static_cast<int>(carries)) - 1;
        sum += fold_lanes<warp_size>(plus{}, lane <= last ? value.value : index_type{0});
        if (carries != 0) return sum;
    }
}

/// `Both`: a partition. The others follow the selected ones, whose number *request.count is.
template <bool Both, class Request>
__global__ void __launch_bounds__(select_kernel<Request>::group::count,
                                  tuning::select_blocks(sizeof(typename select_kernel<Request>::T), Both))
    select_elements(const __grid_constant__ Request request, const ticket_counter counter) {
    using kernel = select_kernel<Request>;
    using T = typename kernel::T;
    using group = typename kernel::group;
    constexpr int each = kernel::each, of_warp = kernel::of_warp;
    auto& shared = block_memory<typename kernel::shared>();

    if (group::is_leader()) shared.first = counter.draw();
    group::sync(); // read after write: everybody reads the first ticket
    const ticket first = shared.first;
    const index_type size = live_count(request.size, request.live);
    const index_type tiles = ceil_div(size, index_type{kernel::elements});
    const cells<index_type> counts(counter.cells_memory(), first.epoch);
    auto& chosen = shared.chosen[group::warp()];
    const unsigned lanes_before = (1u << group::lane()) - 1;

    for (index_type tile = first.number; tile < tiles; tile = shared.next) {
        // The warp's elements; the thread's element k is there if k * 32 < left.
        const index_type begin = tile * kernel::elements + group::warp() * of_warp, rest = size - begin;
        const index_type own = begin + group::lane();
        const int length = rest < of_warp ? static_cast<int>(rest) : of_warp; // negative where there are none
        const int left = length - group::lane();
        slot<T> value[each];
#pragma unroll
        for (int k = 0; k < each; ++k)
            if (k * warp_size < left) value[k].value = request.in[own + k * warp_size];
        // The warp brings its own together: the selected from the front, the others from the back.
        int here = 0; // selected by the warp
        __syncwarp(); // write after read: what the tile before had brought together has left
#pragma unroll
        for (int k = 0; k < each; ++k) {
            const bool is_there = k * warp_size < left;
            const bool is_chosen = is_there && request.test.of(own + k * warp_size, value[k].value);
            const unsigned lanes = __ballot_sync(whole_warp, is_chosen);
            const int place = here + __popc(lanes & lanes_before);
            if (is_chosen)
                chosen[place] = value[k].value;
            else if (Both && is_there)
                chosen[of_warp - 1 - (k * warp_size + group::lane() - place)] = value[k].value;
            here += __popc(lanes);
        }
        // Write after read: the counts of the tile before were read before its second barrier.
        if (group::lane() == 0) shared.counts[group::warp()] = here;
        group::sync(); // read after write: everybody reads the counts
        int place = 0, total = 0;
#pragma unroll
        for (int w = 0; w < group::warps; ++w) {
            if (w == group::warp()) place = total;
            total += shared.counts[w];
        }
        std::uint32_t next = 0; // the leader's
        if (group::warp() == 0) {
            if (group::is_leader()) counts.publish(tile, tile == 0 ? tile_state::carry : tile_state::aggregate, total);
            const index_type before = tile == 0 ? 0 : selected_before(counts, tile);
            if (group::is_leader()) {
                if (tile > 0) counts.publish(tile, tile_state::carry, before + total);
                if (!Both && tile + 1 == tiles && request.count != nullptr) *request.count = before + total;
                // Write after read: that of the tile before was read before its last barrier.
                shared.before = before;
                // Not earlier: later tiles wait for whoever holds a ticket and does not count.
                next = counter.draw().number; // on its way while the elements leave
            }
        }
        group::sync(); // read after write: everybody reads what comes before the tile, and lanes what others have
                       // chosen
        const index_type to = shared.before + place;
        for (int i = group::lane(); i < here; i += warp_size) polyscan::detail::put(request.out, to + i, chosen[i]);
        if constexpr (Both) {
            const index_type behind = *request.count + (begin - to);
            for (int i = group::lane(); i < length - here; i += warp_size)
                polyscan::detail::put(request.out, behind + i, chosen[of_warp - 1 - i]);
        }
        if (group::is_leader()) shared.next = next;
        group::sync(); // read after write: everybody reads the next ticket
    }
    if (!group::is_leader()) return;
    if (!Both && tiles == 0 && first.number == 0 && request.count != nullptr) *request.count = 0;
    counter.retire(first.epoch);
}

/// Bytes of a caller's workspace that a selection from, or a partition of, up to `n` elements of T takes, beside what
/// other calls take.
template <class T>
constexpr std::size_t select_workspace_bytes(index_type n) {
    return workspace::bytes_for(launcher::region_bytes<index_type>(select_shape<T>::cells_needed(n)));
}

namespace detail {

template <bool Both, class Request>
void start_selection(backend& on_backend, const Request& request) {
    launcher on(on_backend);
    using kernel = select_kernel<Request>;
    on.launch_resident(select_elements<Both, Request>, kernel::tiles(request.size), kernel::group::count,
                       shared_bytes<typename kernel::shared>, request,
                       on.counter<index_type>(kernel::cells_needed(request.size)));
}

} // namespace detail

template <class Request>
    requires(has_select<Request>)
void backend::select(const Request& request) {
    check(cudaGetLastError(), "earlier work on the device");
    detail::start_selection<false>(*this, request);
}

template <class Request>
    requires(has_select<Request>)
void backend::partition(const Request& request) {
    // Where the others go is known when all are counted.
    polyscan::detail::sum_indices<default_policy>(*this, polyscan::detail::index_range{request.size, request.live},
                                                  polyscan::detail::selection<decltype(request.test)>{request.test},
                                                  request.count);
    detail::start_selection<true>(*this, request);
}

} // namespace polyscan::cuda
