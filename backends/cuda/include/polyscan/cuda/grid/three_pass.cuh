// SPDX-License-Identifier: Apache-2.0
/// Reduce, scan the aggregates, rescan: tile aggregates are computed, scanned by the same algorithm, recursively until
/// one tile holds them, and put before a second scan of each tile. Reads the data twice and writes them once.
#pragma once

#include <polyscan/cuda/grid/single_block.cuh>
#include <polyscan/cuda/grid/tile_pass.cuh>
#include <polyscan/cuda/launch.cuh>

namespace polyscan::cuda {

/// The carries of a level: scanned aggregates, from the level above. A level of one tile has none.
template <class A>
struct scanned_aggregates {
    const A* aggregates = nullptr; ///< of each tile but the last
    const A* scanned = nullptr;    ///< their inclusive prefixes, without init
};

template <class KernelRequest>
class from_level_above {
    using A = typename KernelRequest::accumulator_type;

public:
    __device__ from_level_above(const KernelRequest& request, const scanned_aggregates<A>& above)
        : request_(request), above_(above) {}

    /// The carry is read before the tile, whose loads and rounds cover the time that it takes.
    __device__ void begin(index_type tile) {
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
    using group = thread_group<block_shape<Block, A>::rescan_threads>;
    using scan_type = tile_scan<Block, KernelRequest, group>;
    static constexpr int blocks_per_multiprocessor =
        block_shape<Block, A>::template blocks_per_multiprocessor<KernelRequest>;
    using fold_group = thread_group<tuning::row_threads>;
    using fold_type = tile_scan<Block, KernelRequest, fold_group>;
    struct shared {
        typename scan_type::storage scan;
    };
};

/// Pass 1: the aggregate of each full tile, a warp each. Nobody needs the last tile's. `needed`, where not null,
/// receives the number of aggregates, for a call that learns its size only now.
template <class Block, class KernelRequest>
__global__ void __launch_bounds__(three_pass_kernel<Block, KernelRequest>::fold_group::count, 1)
    fold_tiles(const __grid_constant__ KernelRequest request, typename KernelRequest::accumulator_type* aggregates,
               index_type* needed) {
    using kernel = three_pass_kernel<Block, KernelRequest>;
    using group = typename kernel::fold_group;
    const index_type tiles = ceil_div(request.size(), kernel::fold_type::elements) - 1;
    if (needed != nullptr && blockIdx.x == 0 && threadIdx.x == 0) *needed = tiles;
    for (index_type tile = index_type{blockIdx.x} * group::warps + group::warp(); tile < tiles;
         tile += index_type{gridDim.x} * group::warps) {
        const auto aggregate = kernel::fold_type::fold(request, tile * kernel::fold_type::elements);
        if (group::lane() == 0) aggregates[tile] = aggregate;
    }
}

/// Pass 3: scan each tile, behind its carry.
template <class Block, class KernelRequest>
__global__ void __launch_bounds__(three_pass_kernel<Block, KernelRequest>::group::count,
                                  three_pass_kernel<Block, KernelRequest>::blocks_per_multiprocessor)
    rescan_tiles(const __grid_constant__ KernelRequest request,
                 const __grid_constant__ scanned_aggregates<typename KernelRequest::accumulator_type> above) {
    using kernel = three_pass_kernel<Block, KernelRequest>;
    auto& shared = block_memory<typename kernel::shared>();
    typename kernel::scan_type scan(shared.scan);
    from_level_above<KernelRequest> source(request, above);
    const index_type tiles = ceil_div(request.size(), scan.elements);
    for (index_type tile = blockIdx.x; tile < tiles; tile += gridDim.x) tile_pass(scan, request, tile, source);
    if (tiles == 0 && blockIdx.x == 0 && kernel::group::is_leader()) store_empty_total(request);
}

/// Scratch of a call: for the levels above `size` elements, aggregates and their prefixes, level by level; and the
/// number of each level's elements, for calls that learn their size late.
template <class A>
struct three_pass_scratch {
    static constexpr int most_levels = 64; // a level has at most half of the elements below it

    index_type* counts;
    A* values;

    template <class Block>
    static constexpr std::size_t bytes(index_type size) {
        constexpr index_type elements = shape_for<Block, A>.elements();
        index_type count = 0;
        while (size > elements) {
            size = ceil_div(size, elements) - 1; // nothing needs the last aggregate
            count += 2 * size;
        }
        return count == 0 ? 0 : most_levels * sizeof(index_type) + static_cast<std::size_t>(count) * sizeof(A);
    }
    explicit three_pass_scratch(unsigned char* memory)
        : counts(reinterpret_cast<index_type*>(memory)),
          values(reinterpret_cast<A*>(memory + most_levels * sizeof(index_type))) {}
};

/// Scans one level.
template <class Block, class Request>
void three_pass_level(const Request& request, three_pass_scratch<typename Request::accumulator_type> scratch,
                      launcher& on) {
    using A = typename Request::accumulator_type;
    using kernel = three_pass_kernel<Block, kernel_request<Request>>;
    const index_type tiles = ceil_div(request.size, kernel::scan_type::elements);
    if (tiles == 1) { // the top of the recursion: one block with all its threads
        run(policy<grid::single_block, Block>{}, request, on);
        return;
    }
    const index_type needed = tiles - 1;
    A* const aggregates = scratch.values;
    A* const scanned = aggregates + needed;
    index_type* const live = request.count == nullptr ? nullptr : scratch.counts;
    scratch.counts += 1;
    scratch.values += 2 * needed;
    on.launch(fold_tiles<Block, kernel_request<Request>>, ceil_div(needed, kernel::fold_group::warps),
              kernel::fold_group::count, 0, kernel_request<Request>(request), aggregates, live);
    three_pass_level<Block>(
        scan_request<A, const A*, A*, typename Request::operator_type>{
            aggregates, scanned, needed, request.op, {}, {}, scan_kind::inclusive, nullptr, {}, live},
        scratch, on);
    on.launch(rescan_tiles<Block, kernel_request<Request>>, tiles, kernel::group::count,
              shared_bytes<typename kernel::shared>, kernel_request<Request>(request),
              scanned_aggregates<A>{aggregates, scanned});
}

template <class Block, class Request>
void run(policy<grid::three_pass, Block>, const Request& request, launcher& on) {
    using A = typename Request::accumulator_type;
    const std::size_t bytes = three_pass_scratch<A>::template bytes<Block>(request.size);
    three_pass_level<Block>(request, three_pass_scratch<A>(on.scratch(bytes)), on);
}

} // namespace polyscan::cuda
