// SPDX-License-Identifier: Apache-2.0
/// Reduce, scan the aggregates, rescan: tile aggregates are computed, scanned by the same algorithm, recursively until
/// one tile holds them, and put before a second scan of each tile. Reads the data twice and writes them once.
#pragma once

#include <polyscan/cuda/arch.cuh>
#include <polyscan/cuda/grid/single_block.cuh>
#include <polyscan/cuda/grid/tile_pass.cuh>
#include <polyscan/cuda/launch.cuh>

namespace polyscan::cuda {

/// The carries of a level: scanned aggregates, from the level above. A level of one tile has none.
template <class A>
struct scanned_aggregates {
    const A* aggregates = nullptr; ///< of each tile but the last
    const A* scanned = nullptr;    ///< their inclusive prefixes, without init
    bool is_inner = false;         ///< the level itself scans aggregates
};

template <class KernelRequest>
class from_level_above {
    using A = typename KernelRequest::accumulator_type;

public:
    __device__ from_level_above(const KernelRequest& request, const scanned_aggregates<A>& above)
        : request_(request), above_(above) {}

    /// The carry is read behind the tile, whose rounds cover the time that it takes.
    __device__ void begin(index_type tile) {
        arch::wait_for_earlier_launch(); // the prefixes are there; the tile itself has been since pass 1 waited
        entry_.carry = carry(tile);
        entry_.previous = entry_.carry;
        // The last output of the tile before was op(its carry, its aggregate), which rounds differently.
        if (request_.exclusive && tile > 0)
            entry_.previous.set(cuda::combine(request_.op, carry(tile - 1), above_.aggregates[tile - 1]));
    }
    __device__ void publish(index_type, const A&) const {}
    __device__ tile_entry<A> entry(index_type, const A&) const { return entry_; }

private:
    /// Tile 0 has no predecessor: it never looks at index -1.
    __device__ maybe<A> carry(index_type tile) const {
        if (tile == 0) return request_.init;
        return maybe<A>(cuda::combine(request_.op, request_.init, above_.scanned[tile - 1]));
    }

    const KernelRequest& request_;
    const scanned_aggregates<A>& above_;
    tile_entry<A> entry_;
};

template <class Block, class KernelRequest>
struct three_pass_kernel {
    using A = typename KernelRequest::accumulator_type;
    using group = typename block_shape<Block, A>::rescan_group;
    using scan_type = tile_scan<Block, KernelRequest, group>;
    static constexpr int blocks_per_multiprocessor =
        block_shape<Block, A>::template rescan_blocks_per_multiprocessor<KernelRequest>;
    using fold_group = thread_group<block_shape<Block, A>::threads>;
    using fold_type = tile_scan<Block, KernelRequest, fold_group>;
    struct shared {
        typename scan_type::storage scan[group::groups];
    };
    // The level above.
    using aggregates_request = kernel_request<scan_request<A, const A*, A*, typename KernelRequest::operator_type>>;
    using top_type = tile_scan<Block, aggregates_request, fold_group>;
    struct top_shared {
        typename top_type::storage scan;
        bool is_last;
    };
};

/// The carry source of a tile without a carry.
template <class A>
struct nothing_before {
    __device__ void begin(index_type) const {}
    __device__ void publish(index_type, const A&) const {}
    __device__ tile_entry<A> entry(index_type, const A&) const { return {}; }
};

/// Pass 1: the aggregate of each full tile, a warp each. Nobody needs the last tile's. `needed`, where not null,
/// receives the number of aggregates, for a call that learns its size only now.
///
/// Where the aggregates fit one tile, pass 2 needs no launch: the block that finishes last scans them. `finished`, then
/// not null, is zero before the launch and after it.
template <class Block, class KernelRequest>
__global__ void __launch_bounds__(three_pass_kernel<Block, KernelRequest>::fold_group::count, 1)
    fold_tiles(const __grid_constant__ KernelRequest request, typename KernelRequest::accumulator_type* aggregates,
               index_type* needed, unsigned* finished,
               const __grid_constant__ typename three_pass_kernel<Block, KernelRequest>::aggregates_request above) {
    using kernel = three_pass_kernel<Block, KernelRequest>;
    using group = typename kernel::fold_group;
    arch::wait_for_earlier_launch(); // the elements are there
    const index_type tiles = ceil_div(request.size(), kernel::fold_type::elements) - 1;
    if (needed != nullptr && blockIdx.x == 0 && threadIdx.x == 0) *needed = tiles;
    for (index_type tile = index_type{blockIdx.x} * group::warps + group::warp(); tile < tiles;
         tile += index_type{gridDim.x} * group::warps) {
        const auto aggregate = kernel::fold_type::fold(request, tile * kernel::fold_type::elements);
        if (group::lane() == 0) aggregates[tile] = aggregate;
    }
    if (finished == nullptr) return;

    auto& shared = block_memory<typename kernel::top_shared>();
    __threadfence(); // partner: the fence below; this thread's aggregates come before its block's arrival
    group::sync();   // every thread of the block has passed its fence
    if (group::is_leader()) shared.is_last = atomicAdd(finished, 1u) + 1 == gridDim.x;
    group::sync(); // read after write: everybody reads whether it is the last block
    if (!shared.is_last) return;
    __threadfence(); // partner: the fence above, in every other block
    if (group::is_leader()) *finished = 0;
    if (above.size() == 0) return;
    typename kernel::top_type scan(shared.scan);
    nothing_before<typename kernel::A> source;
    tile_pass(scan, above, 0, source);
}

/// Pass 3: scan each tile, behind its carry.
template <class Block, class KernelRequest>
__global__ void __launch_bounds__(three_pass_kernel<Block, KernelRequest>::group::block_threads,
                                  three_pass_kernel<Block, KernelRequest>::blocks_per_multiprocessor)
    rescan_tiles(const __grid_constant__ KernelRequest request,
                 const __grid_constant__ scanned_aggregates<typename KernelRequest::accumulator_type> above) {
    using kernel = three_pass_kernel<Block, KernelRequest>;
    using group = typename kernel::group;
    auto& shared = block_memory<typename kernel::shared>();
    typename kernel::scan_type scan(shared.scan[group::index()]);
    from_level_above<KernelRequest> source(request, above);
    if (above.is_inner) arch::wait_for_earlier_launch(); // the elements are aggregates
    const index_type tiles = ceil_div(request.size(), scan.elements);
    // From the last tile to the first: pass 1 has left the end of the data in the cache.
    for (index_type i = index_type{blockIdx.x} * group::groups + group::index(); i < tiles;
         i += index_type{gridDim.x} * group::groups)
        tile_pass(scan, request, tiles - 1 - i, source);
    // By a block without a tile, too: whoever waits for this launch takes its end for that of the call.
    arch::wait_for_earlier_launch();
    if (tiles == 0 && blockIdx.x == 0 && threadIdx.x == 0) store_empty_total(request);
}

/// Scratch of a call: for the levels above `size` elements, aggregates and their prefixes, level by level; the number
/// of each level's elements, for calls that learn their size late; and how many blocks have finished a pass 1.
template <class A>
struct three_pass_scratch {
    static constexpr int most_levels = 64; // a level has at most half of the elements below it
    struct header {
        index_type counts[most_levels];
        alignas(uint4) unsigned finished; // zero between launches, as the region is when it is new
    };

    index_type* counts;
    unsigned* finished;
    A* values;

    template <class Block>
    static constexpr std::size_t bytes(index_type size) {
        constexpr index_type elements = shape_for<Block, A>.elements();
        index_type count = 0;
        while (size > elements) {
            size = ceil_div(size, elements) - 1; // nothing needs the last aggregate
            count += 2 * size;
        }
        return count == 0 ? 0 : sizeof(header) + static_cast<std::size_t>(count) * sizeof(A);
    }
    explicit three_pass_scratch(unsigned char* memory)
        : counts(reinterpret_cast<header*>(memory)->counts), finished(&reinterpret_cast<header*>(memory)->finished),
          values(reinterpret_cast<A*>(memory + sizeof(header))) {}
};

/// Scans one level of more than one tile. The outermost reads the caller's data, inner ones what the call wrote.
template <class Block, class Request>
void three_pass_level(const Request& request, three_pass_scratch<typename Request::accumulator_type> scratch,
                      bool is_inner, launcher& on) {
    using A = typename Request::accumulator_type;
    using kernel = three_pass_kernel<Block, kernel_request<Request>>;
    using aggregates_request = scan_request<A, const A*, A*, typename Request::operator_type>;
    const kernel_request<Request> level(request);
    const index_type tiles = ceil_div(request.size, kernel::scan_type::elements);
    const index_type needed = tiles - 1;
    A* const aggregates = scratch.values;
    A* const scanned = aggregates + needed;
    index_type* const live = request.count == nullptr ? nullptr : scratch.counts;
    scratch.counts += 1;
    scratch.values += 2 * needed;
    const aggregates_request above{aggregates,           scanned, needed, request.op, {}, {},
                                   scan_kind::inclusive, nullptr, {},     live};

    const bool is_top = needed <= kernel::top_type::elements;
    const auto fold = fold_tiles<Block, kernel_request<Request>>;
    const index_type blocks = ceil_div(needed, kernel::fold_group::warps);
    const std::size_t memory = is_top ? shared_bytes<typename kernel::top_shared> : 0;
    unsigned* const finished = is_top ? scratch.finished : nullptr;
    on.launch(fold, blocks, kernel::fold_group::count, memory, level, aggregates, live, finished,
              kernel_request<aggregates_request>(above));
    if (!is_top) three_pass_level<Block>(above, scratch, true, on);
    on.launch(rescan_tiles<Block, kernel_request<Request>>, ceil_div(tiles, kernel::group::groups),
              kernel::group::block_threads, shared_bytes<typename kernel::shared>, level,
              scanned_aggregates<A>{aggregates, scanned, is_inner});
}

template <class Block, class Request>
void run(policy<grid::three_pass, Block>, const Request& request, launcher& on) {
    using A = typename Request::accumulator_type;
    if (request.size <= shape_for<Block, A>.elements()) { // one block with all its threads
        run(policy<grid::single_block, Block>{}, request, on);
        return;
    }
    const std::size_t bytes = three_pass_scratch<A>::template bytes<Block>(request.size);
    three_pass_level<Block>(request, three_pass_scratch<A>(on.scratch(bytes)), false, on.overlaps());
}

} // namespace polyscan::cuda
