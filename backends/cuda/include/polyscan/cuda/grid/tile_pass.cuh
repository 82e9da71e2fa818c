// SPDX-License-Identifier: Apache-2.0
/// The pass over a tile, written once: load, scan the tile, get the carry, combine, store. Grid algorithms differ in
/// the carry source that they hand in. The two levels meet in three calls:
///     source.begin(tile)                  by all threads, behind the tile's loads: other reads may be started
///     source.publish(tile, aggregate)     by the leader, as early as the tile's aggregate is known
///     source.entry(tile, aggregate)       by all threads: what comes before the tile
#pragma once

#include <cstdint>
#include <type_traits>

#include <polyscan/cuda/arch.cuh>
#include <polyscan/cuda/block/brent_kung.cuh>
#include <polyscan/cuda/block/coarse.cuh>
#include <polyscan/cuda/block/kogge_stone.cuh>
#include <polyscan/cuda/block/warp_shuffle.cuh>
#include <polyscan/cuda/request.cuh>

namespace polyscan::cuda {

template <class Scan, class KernelRequest, class Source>
__device__ void tile_pass(Scan& scan, const KernelRequest& request, index_type tile, Source& source) {
    using A = typename KernelRequest::accumulator_type;
    const index_type first = tile * Scan::elements;
    const index_type left = request.size() - first;
    const int count = left < Scan::elements ? static_cast<int>(left) : Scan::elements;

    scan.load(request, first, count);
    __syncwarp(); // begin may be an instruction of whole warps
    source.begin(tile);
    slot<A> aggregate; // the leader's
    scan.scan(request, [&](const A& known) {
        aggregate.value = known;
        source.publish(tile, known);
    });
    const tile_entry<A> entry = source.entry(tile, aggregate.value);
    scan.store(request, entry);
    if (Scan::group::is_leader()) store_total(request, first + count, entry.carry, aggregate.value);
}

/// By one warp, a hint: elements first, ..., until - 1 of an input in memory come into the L2 cache. Before
/// arch::wait_for_earlier_launch, too: what the earlier launch writes goes through that cache.
template <class KernelRequest>
__device__ void expect_elements(const KernelRequest& request, index_type first, index_type until) {
    if constexpr (std::is_pointer_v<typename KernelRequest::input_type>) {
        constexpr std::uintptr_t piece = sizeof(uint4);
        const auto from = reinterpret_cast<std::uintptr_t>(request.input + first);
        const auto to = reinterpret_cast<std::uintptr_t>(request.input + until);
        const std::uintptr_t start = (from + piece - 1) / piece * piece, end = to / piece * piece;
        if (start < end) arch::prefetch_to_l2(reinterpret_cast<const void*>(start), static_cast<unsigned>(end - start));
    }
}

/// How many threads scan a tile, and how many blocks shall fit a multiprocessor.
template <class Block, class A>
struct block_shape {
    static constexpr int most = static_cast<int>(shape_for<Block, A>.threads);
    static constexpr int threads = std::min(tuning::tile_threads, most);
    /// Where the carry of a tile is known before, or does not matter yet: all of a block, or each of its warps.
    static constexpr bool warp_has_tile = tuning::warp_has_tile<Block, A>();
    static constexpr int rescan_threads = std::min(tuning::rescan_threads<Block>, most);
    static constexpr int section_threads = warp_has_tile ? tuning::section_warps(sizeof(A)) * warp_size : threads;
    using rescan_group = std::conditional_t<warp_has_tile, lone_warp<rescan_threads>, thread_group<rescan_threads>>;
    using section_group = std::conditional_t<warp_has_tile, lone_warp<section_threads>, thread_group<section_threads>>;
    static constexpr int lone_threads = std::min(tuning::lone_threads<A>(), most);
    template <class KernelRequest>
    static constexpr int rescan_blocks_per_multiprocessor = tuning::rescan_blocks_per_multiprocessor<Block, A>();
    template <class KernelRequest>
    static constexpr int blocks_per_multiprocessor = tuning::tile_blocks_per_multiprocessor<Block, A>();
};
template <class A>
struct block_shape<block::warp_shuffle, A> {
    static constexpr int row = static_cast<int>(shape_for<block::warp_shuffle, A>.run);
    static constexpr int warps = 64 * std::min(row, warp_size) / warp_size; // that have a row of their own
    static constexpr int threads = std::min(tuning::row_threads, warps* warp_size);
    using rescan_group = thread_group<threads>;
    static constexpr int section_threads = threads;
    using section_group = thread_group<threads>;
    static constexpr int lone_threads = std::min(tuning::lone_row_threads, warps* warp_size);
    template <class KernelRequest>
    static constexpr int rescan_blocks_per_multiprocessor =
        tuning::row_blocks_per_multiprocessor<A, typename KernelRequest::input_element,
                                              typename KernelRequest::operator_type>();
    template <class KernelRequest>
    static constexpr int blocks_per_multiprocessor =
        tuning::row_blocks_per_multiprocessor<A, typename KernelRequest::input_element,
                                              typename KernelRequest::operator_type>();
};

/// By one thread: puts values[0], ..., values[count - 1] behind `sum`, from left to right, and calls visit(i, sum
/// before values[i]). Values are read a batch ahead, so that a sum waits for the sum before and not for a read.
template <class Operator, class A, class Visit>
__device__ A fold_in_order(const Operator& op, A sum, const A* values, int count, Visit visit) {
    constexpr int batch = tuning::fold_batch(sizeof(A));
    const int whole = count - count % batch;
    slot<A> next[batch];
    if (whole > 0) {
#pragma unroll
        for (int i = 0; i < batch; ++i) next[i].value = values[i];
    }
#pragma unroll 2 // two sets of registers in turn: moved from one to the other, values would be waited for
    for (int first = 0; first < whole; first += batch) {
        slot<A> now[batch];
#pragma unroll
        for (int i = 0; i < batch; ++i) now[i].value = next[i].value;
        const int ahead = first + batch < whole ? first + batch : first; // behind the last batch: any that is there
#pragma unroll
        for (int i = 0; i < batch; ++i) next[i].value = values[ahead + i];
#pragma unroll
        for (int i = 0; i < batch; ++i) {
            visit(first + i, sum);
            sum = polyscan::combine(op, sum, now[i].value);
        }
    }
    for (int i = whole; i < count; ++i) {
        const A value = values[i];
        visit(i, sum);
        sum = polyscan::combine(op, sum, value);
    }
    return sum;
}

/// What the leader tells the other threads once per tile.
template <class A>
struct notice_board {
    shared_array<A, 1> carry;
    std::uint32_t carry_present;
    std::uint32_t next; // number of the next ticket

    __device__ void put(const maybe<A>& before) {
        if (before.present) carry[0] = before.place.value;
        carry_present = before.present;
    }
    __device__ tile_entry<A> entry() const {
        tile_entry<A> result;
        if (carry_present) result.carry.set(carry[0]);
        result.previous = result.carry;
        return result;
    }
};

/// The dynamic shared memory of the block.
template <class Shared>
__device__ Shared& block_memory() {
    extern __shared__ uint4 polyscan_block_memory[];
    return reinterpret_cast<Shared&>(polyscan_block_memory);
}

template <class Shared>
inline constexpr std::size_t shared_bytes = [] {
    static_assert(sizeof(Shared) <= tuning::shared_memory_per_block);
    static_assert(alignof(Shared) <= alignof(uint4));
    return sizeof(Shared);
}();

} // namespace polyscan::cuda
