// SPDX-License-Identifier: Apache-2.0
/// Chained scan: wait for the left neighbour's running total, add the own, pass it on to the right. The chain takes one
/// hand-over after the other, so a block takes a section of consecutive tiles and hands over once: it folds the tiles
/// first, passes the total on, and then scans them. A section of one tile is scanned in a single pass.
#pragma once

#include <polyscan/cuda/grid/tile_pass.cuh>
#include <polyscan/cuda/launch.cuh>
#include <polyscan/cuda/published.cuh>
#include <polyscan/cuda/tickets.cuh>

namespace polyscan::cuda {

/// The leader's adjacent synchronisation. The other threads wait at a barrier.
template <class A>
struct neighbours {
    cells<A> totals; ///< of section s and everything before, init included
    maybe<A> init;

    __device__ maybe<A> from_left(index_type section) const {
        if (section == 0) return init;
        maybe<A> result;
        totals.wait(section - 1, result.place);
        result.present = true;
        return result;
    }
    __device__ void to_right(index_type section, const A& total) const {
        totals.publish(section, tile_state::carry, total);
    }
};

/// The carry source for sections of one tile.
template <class KernelRequest, class Group>
class domino_source {
    using A = typename KernelRequest::accumulator_type;

public:
    __device__ domino_source(const KernelRequest& request, notice_board<A>& board, const neighbours<A>& beside,
                             index_type tiles)
        : request_(request), board_(board), beside_(beside), tiles_(tiles) {}

    __device__ void begin(index_type) const {}
    __device__ void publish(index_type, const A&) {}
    __device__ tile_entry<A> entry(index_type tile, const A& aggregate) {
        // Write after read: the entry of the tile before was read before the barriers of this tile's scan.
        if (Group::is_leader()) {
            const maybe<A> carry = beside_.from_left(tile);
            if (tile + 1 < tiles_) beside_.to_right(tile, cuda::combine(request_.op, carry, aggregate));
            board_.put(carry);
        }
        Group::sync(); // read after write: everybody reads the carry
        return board_.entry();
    }

private:
    const KernelRequest& request_;
    notice_board<A>& board_;
    const neighbours<A>& beside_;
    index_type tiles_;
};

/// The carry source inside a section: the carries are all known.
template <class A, int N>
struct known_carries {
    index_type first_tile;
    maybe<A> first;
    const shared_array<A, N>& carries; ///< of the other tiles

    __device__ void begin(index_type) const {}
    __device__ void publish(index_type, const A&) const {}
    __device__ tile_entry<A> entry(index_type tile, const A&) const {
        tile_entry<A> result;
        result.carry = tile == first_tile ? first : maybe<A>(carries[static_cast<int>(tile - first_tile)]);
        result.previous = result.carry;
        return result;
    }
};

template <class Block, class KernelRequest>
struct domino_kernel {
    using A = typename KernelRequest::accumulator_type;
    using group = thread_group<block_shape<Block, A>::threads>;
    using scan_type = tile_scan<Block, KernelRequest, group>;
    static constexpr int blocks_per_multiprocessor = 1; // the chain is the limit, not the number of blocks
    using carries = shared_array<A, tuning::domino_section_tiles>;
    // Large accumulators leave no room for the sections' values beside a coarse tile: they go one tile at a time.
    static constexpr bool sections_fit =
        sizeof(typename scan_type::storage) + sizeof(carries) + 2 * sizeof(notice_board<A>) <=
        tuning::shared_memory_per_block;
    static constexpr int most_section_tiles = sections_fit ? tuning::domino_section_tiles : 1;
    struct shared {
        typename scan_type::storage scan;
        notice_board<A> board;
        ticket drawn;
        shared_array<A, most_section_tiles> section; // aggregates, then carries
    };
    static constexpr int section_tiles(index_type tiles) {
        int root = 1;
        while (root < most_section_tiles && index_type{root} * root < tiles) ++root;
        return root;
    }
};

/// By the leader: the carry and `count` aggregates, folded from left to right. With `keep`, what lies before an
/// aggregate replaces it. Aggregates are read in batches, so that a sum waits for the sum before and not for a read.
template <class Operator, class A, int N>
__device__ maybe<A> fold_section(const Operator& op, const maybe<A>& carry, shared_array<A, N>& aggregates, int count,
                                 bool keep) {
    maybe<A> running = carry;
    constexpr int batch = tuning::fold_batch(sizeof(A));
    for (int first = 0; first < count; first += batch) {
        slot<A> next[batch];
#pragma unroll
        for (int i = 0; i < batch; ++i)
            if (first + i < count) next[i].value = aggregates[first + i];
#pragma unroll
        for (int i = 0; i < batch; ++i) {
            if (first + i >= count) continue;
            if (keep && running.present) aggregates[first + i] = running.place.value;
            running.set(cuda::combine(op, running, next[i].value));
        }
    }
    return running;
}

template <class Block, class KernelRequest>
__device__ void scan_section(const KernelRequest& request, typename domino_kernel<Block, KernelRequest>::shared& shared,
                             typename domino_kernel<Block, KernelRequest>::scan_type& scan, index_type section,
                             int section_tiles, const neighbours<typename KernelRequest::accumulator_type>& beside,
                             index_type tiles) {
    using kernel = domino_kernel<Block, KernelRequest>;
    using A = typename kernel::A;
    using group = typename kernel::group;
    const index_type first_tile = section * section_tiles;
    const bool is_last = first_tile + section_tiles >= tiles;
    const int here = is_last ? static_cast<int>(tiles - first_tile) : section_tiles;
    const int folded = is_last ? here - 1 : here; // nobody needs the aggregate of the last tile, which may be partial

    for (int k = group::warp(); k < folded; k += group::warps) {
        const A aggregate = kernel::scan_type::fold(request, (first_tile + k) * kernel::scan_type::elements);
        if (group::lane() == 0) shared.section[k] = aggregate;
    }
    group::sync(); // read after write: the leader reads the aggregates
    if (group::is_leader()) {
        const maybe<A> carry = beside.from_left(section);
        if (!is_last)
            beside.to_right(section, fold_section(request.op, carry, shared.section, folded, false).place.value);
        // Off the chain: aggregates become carries, in place. The last tile's carry goes where no aggregate was.
        const maybe<A> before_last = fold_section(request.op, carry, shared.section, folded, true);
        if (is_last && here > 1) shared.section[here - 1] = before_last.place.value;
        shared.board.put(carry);
    }
    group::sync(); // read after write: everybody reads the carries
    known_carries<A, kernel::most_section_tiles> source{first_tile, shared.board.entry().carry, shared.section};
    for (int k = 0; k < here; ++k) tile_pass(scan, request, first_tile + k, source);
    group::sync(); // write after read: the next section's aggregates replace the carries
}

template <class Block, class KernelRequest>
__global__ void __launch_bounds__(domino_kernel<Block, KernelRequest>::group::count,
                                  domino_kernel<Block, KernelRequest>::blocks_per_multiprocessor)
    scan_domino(const __grid_constant__ KernelRequest request, const ticket_counter counter, const int section_tiles) {
    using kernel = domino_kernel<Block, KernelRequest>;
    using A = typename kernel::A;
    using group = typename kernel::group;
    auto& shared = block_memory<typename kernel::shared>();
    typename kernel::scan_type scan(shared.scan);
    const index_type tiles = ceil_div(request.size(), kernel::scan_type::elements);
    const index_type sections = ceil_div(tiles, index_type{section_tiles});

    for (;;) {
        if (group::is_leader()) shared.drawn = counter.draw();
        group::sync(); // read after write: everybody reads the ticket
        const ticket mine = shared.drawn;
        group::sync(); // write after read: before the leader draws again
        if (mine.number >= sections) {
            if (!group::is_leader()) return;
            if (tiles == 0 && mine.number == 0) store_empty_total(request);
            counter.retire(mine.epoch);
            return;
        }
        const neighbours<A> beside{cells<A>(counter.cells_memory(), mine.epoch), request.init};
        if (section_tiles > 1) {
            if constexpr (kernel::sections_fit)
                scan_section<Block>(request, shared, scan, mine.number, section_tiles, beside, tiles);
        } else {
            domino_source<KernelRequest, group> source(request, shared.board, beside, tiles);
            tile_pass(scan, request, mine.number, source);
        }
    }
}

template <class Block, class Request>
void run(policy<grid::domino, Block>, const Request& request, launcher& on) {
    using kernel = domino_kernel<Block, kernel_request<Request>>;
    using A = typename Request::accumulator_type;
    const index_type tiles = ceil_div(request.size, kernel::scan_type::elements);
    const int section_tiles = kernel::section_tiles(tiles);
    const index_type sections = ceil_div(tiles, section_tiles);
    on.launch_resident(scan_domino<Block, kernel_request<Request>>, sections, kernel::group::count,
                       shared_bytes<typename kernel::shared>, kernel_request<Request>(request), on.counter<A>(sections),
                       section_tiles);
}

} // namespace polyscan::cuda
