// SPDX-License-Identifier: Apache-2.0
/// Chained scan: wait for the left neighbour's running total, add the own, pass it on to the right. The chain takes one
/// hand-over after the other, so a block takes a section of consecutive tiles and hands over once: it folds the tiles
/// first, passes the total on, and then scans them.
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
    using group = thread_group<block_shape<Block, A>::section_threads>;
    using rescan_group = typename block_shape<Block, A>::section_group; // all of the block, or each of its warps
    using scan_type = tile_scan<Block, KernelRequest, rescan_group>;
    static constexpr int most_section_tiles = tuning::most_section_tiles(sizeof(A));
    struct shared {
        typename scan_type::storage scan[rescan_group::groups];
        notice_board<A> board;
        ticket drawn;
        shared_array<A, most_section_tiles> section; // aggregates, then carries
    };
    /// Hand-overs, one after the other, and the tiles of a section take about the same time.
    static constexpr int section_tiles(index_type tiles) {
        const double square = static_cast<double>(tiles) * tuning::handover_in_tiles(rescan_group::groups > 1);
        int root = 1;
        while (root < most_section_tiles && static_cast<double>(root) * root < square) ++root;
        return root;
    }
};

/// By the leader: the carry and `count` aggregates, folded from left to right. With `keep`, what lies before an
/// aggregate replaces it.
template <class Operator, class A, int N>
__device__ maybe<A> fold_section(const Operator& op, const maybe<A>& carry, shared_array<A, N>& aggregates, int count,
                                 bool keep) {
    if (count == 0) return carry;
    const A* const values = &aggregates[0];
    const int first = carry.present ? 0 : 1; // with nothing before it, the first aggregate is a prefix as it is
    const A start = carry.present ? carry.place.value : *values;
    if (!keep) return maybe<A>(fold_in_order(op, start, values + first, count - first, [](int, const A&) {}));
    return maybe<A>(fold_in_order(op, start, values + first, count - first,
                                  [&](int i, const A& before) { aggregates[first + i] = before; }));
}

template <class Block, class KernelRequest>
__device__ void scan_section(const KernelRequest& request, typename domino_kernel<Block, KernelRequest>::shared& shared,
                             typename domino_kernel<Block, KernelRequest>::scan_type& scan, index_type section,
                             int section_tiles, const neighbours<typename KernelRequest::accumulator_type>& beside,
                             index_type tiles) {
    using kernel = domino_kernel<Block, KernelRequest>;
    using A = typename kernel::A;
    using group = typename kernel::group;
    using rescan_group = typename kernel::rescan_group;
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
        // The chain: from the carry's arrival to the next one's departure. Exact operators fold before it arrives.
        constexpr bool is_exact = exactly_associative<typename KernelRequest::operator_type, A>;
        maybe<A> total;
        if (is_exact && !is_last) total = fold_section(request.op, maybe<A>(), shared.section, folded, false);
        const maybe<A> carry = beside.from_left(section);
        if (!is_last) {
            if (is_exact)
                total.set(cuda::combine(request.op, carry, total.place.value));
            else
                total = fold_section(request.op, carry, shared.section, folded, false);
            beside.to_right(section, total.place.value);
        }
        // Off the chain: aggregates become carries, in place. The last tile's carry goes where no aggregate was.
        const maybe<A> before_last = fold_section(request.op, carry, shared.section, folded, true);
        if (is_last && here > 1) shared.section[here - 1] = before_last.place.value;
        shared.board.put(carry);
    }
    group::sync(); // read after write: everybody reads the carries
    known_carries<A, kernel::most_section_tiles> source{first_tile, shared.board.entry().carry, shared.section};
    for (int k = rescan_group::index(); k < here; k += rescan_group::groups)
        tile_pass(scan, request, first_tile + k, source);
    group::sync(); // write after read: the next section's aggregates replace the carries
}

template <class Block, class KernelRequest>
__global__ void __launch_bounds__(domino_kernel<Block, KernelRequest>::group::count, 1)
    scan_domino(const __grid_constant__ KernelRequest request, const ticket_counter counter, const int section_tiles) {
    using kernel = domino_kernel<Block, KernelRequest>;
    using A = typename kernel::A;
    using group = typename kernel::group;
    auto& shared = block_memory<typename kernel::shared>();
    typename kernel::scan_type scan(shared.scan[kernel::rescan_group::index()]);
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
        scan_section<Block>(request, shared, scan, mine.number, section_tiles, beside, tiles);
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
