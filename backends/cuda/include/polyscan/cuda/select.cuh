// SPDX-License-Identifier: Apache-2.0
/// Compaction in one launch. A block reads a tile once, counts what is selected by ballots, looks back for what earlier
/// tiles have selected, and meanwhile brings its own together in shared memory, from where they leave without gaps.
/// Counts are whole numbers: sums may be formed in any order.
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

template <class Request>
struct select_kernel {
    using T = std::remove_cvref_t<decltype(std::declval<const Request&>().in[0])>;
    using group = thread_group<tuning::select_threads>;
    static constexpr int each = tuning::select_elements(sizeof(T)); // of a thread
    static constexpr int of_warp = each * warp_size;
    static constexpr int elements = each * group::count;
    struct shared {
        shared_array<T, elements> chosen;
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

template <class Request>
__global__ void __launch_bounds__(select_kernel<Request>::group::count)
    select_elements(const __grid_constant__ Request request, const ticket_counter counter) {
    using kernel = select_kernel<Request>;
    using T = typename kernel::T;
    using group = typename kernel::group;
    constexpr int each = kernel::each;
    auto& shared = block_memory<typename kernel::shared>();

    if (group::is_leader()) shared.first = counter.draw();
    group::sync(); // read after write: everybody reads the first ticket
    const ticket first = shared.first;
    const index_type size = live_count(request.size, request.live);
    const index_type tiles = ceil_div(size, index_type{kernel::elements});
    const cells<index_type> counts(counter.cells_memory(), first.epoch);

    for (index_type tile = first.number; tile < tiles; tile = shared.next) {
        const index_type begin = tile * kernel::elements + group::warp() * kernel::of_warp + group::lane();
        slot<T> value[each];
#pragma unroll
        for (int k = 0; k < each; ++k)
            if (begin + k * warp_size < size) value[k].value = request.in[begin + k * warp_size];
        unsigned chosen[each]; // by the lanes of this warp
        int here = 0;
#pragma unroll
        for (int k = 0; k < each; ++k) {
            const index_type i = begin + k * warp_size;
            chosen[k] = __ballot_sync(whole_warp, i < size && request.test.of(i, value[k].value));
            here += __popc(chosen[k]);
        }
        // Write after read: the counts of the tile before were read before its last barrier.
        if (group::lane() == 0) shared.counts[group::warp()] = here;
        group::sync(); // read after write: everybody reads the counts; and, write after read, what the tile before had
                       // brought together has left
        int place = 0, total = 0;
#pragma unroll
        for (int w = 0; w < group::warps; ++w) {
            if (w == group::warp()) place = total;
            total += shared.counts[w];
        }
        if (group::is_leader()) counts.publish(tile, tile == 0 ? tile_state::carry : tile_state::aggregate, total);
        const unsigned lanes_before = (1u << group::lane()) - 1;
#pragma unroll
        for (int k = 0; k < each; ++k) {
            if ((chosen[k] >> group::lane() & 1) != 0)
                shared.chosen[place + __popc(chosen[k] & lanes_before)] = value[k].value;
            place += __popc(chosen[k]);
        }
        if (group::warp() == 0) {
            const index_type before = tile == 0 ? 0 : selected_before(counts, tile);
            if (group::is_leader()) {
                if (tile > 0) counts.publish(tile, tile_state::carry, before + total);
                if (tile + 1 == tiles && request.count != nullptr) *request.count = before + total;
                // Write after read: those of the tile before were read before this tile's first barrier.
                shared.before = before;
                shared.next = counter.draw().number;
            }
        }
        group::sync(); // read after write: everybody reads the chosen elements, their place and the next ticket
        const index_type before = shared.before;
        for (int i = group::rank(); i < total; i += group::count)
            polyscan::detail::put(request.out, before + i, shared.chosen[i]);
    }
    if (!group::is_leader()) return;
    if (tiles == 0 && first.number == 0 && request.count != nullptr) *request.count = 0;
    counter.retire(first.epoch);
}

template <class Request>
    requires(has_select<Request>)
void backend::select(const Request& request) {
    check(cudaGetLastError(), "earlier work on the device");
    launcher on(*this);
    using kernel = select_kernel<Request>;
    // Without elements there is still a count to be written.
    const index_type tiles = std::max<index_type>(1, ceil_div(request.size, index_type{kernel::elements}));
    on.launch_resident(select_elements<Request>, tiles, kernel::group::count, shared_bytes<typename kernel::shared>,
                       request, on.counter<index_type>(tiles));
}

} // namespace polyscan::cuda
