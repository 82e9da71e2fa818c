// SPDX-License-Identifier: Apache-2.0
/// Decoupled look-back: a tile publishes its aggregate, looks back over the tiles before it to the nearest published
/// carry, folds the aggregates from there on, and publishes its own carry. The fold starts at the nearest carry and
/// goes from left to right: it gives the strict left fold of all aggregates, however far back that carry was.
///
/// A block either waits for its tile's carry, or puts the tile aside and scans its next one meanwhile.
#pragma once

#include <algorithm>

#include <polyscan/cuda/arch.cuh>
#include <polyscan/cuda/grid/tile_pass.cuh>
#include <polyscan/cuda/launch.cuh>
#include <polyscan/cuda/published.cuh>
#include <polyscan/cuda/tickets.cuh>

namespace polyscan::cuda {

/// The `window` tiles before a tile, by one warp, which has `registers_free` if it has no tile itself.
template <class KernelRequest, int window, bool registers_free>
class look_back_window {
    using A = typename KernelRequest::accumulator_type;
    static constexpr int cells_per_lane = window / warp_size;

public:
    using values = shared_array<A, window>;

    /// The carry, which is lane 0's. Lane l has the tiles that are l + 1, l + 33, ... places back. Some tile of the
    /// window gets its carry in time: the nearest one whose predecessors are done.
    __device__ static maybe<A> look_back(const KernelRequest& request, const cells<A>& cells, values& seen,
                                         index_type tile) {
        const int lane = static_cast<int>(threadIdx.x) % warp_size;
        maybe<A> carry;
        for (;;) {
            int nearest = window + 1; // distance of the nearest carry
            int missing = window + 1; // distance of the nearest tile that has published nothing
#pragma unroll
            for (int c = 0; c < cells_per_lane; ++c) {
                const int distance = c * warp_size + lane + 1;
                slot<A> value;
                tile_state state = tile_state::empty;
                if (distance <= tile) state = cells.read(tile - distance, value);
                if (state != tile_state::empty) seen[window - distance] = value.value;
                const unsigned carries = __ballot_sync(whole_warp, state == tile_state::carry);
                const unsigned empties = __ballot_sync(whole_warp, state == tile_state::empty);
                if (nearest > window && carries != 0) nearest = c * warp_size + __ffs(carries);
                if (missing > window && empties != 0) missing = c * warp_size + __ffs(empties);
                if (nearest <= window || missing <= window) break;
            }
            if (nearest < missing) {
                __syncwarp(); // read after write: lane 0 reads what the lanes found
                if (lane == 0) carry.set(fold(request, seen, nearest));
                return carry;
            }
            __syncwarp(); // write after write: the next look writes the same places
        }
    }

private:
    /// From the nearest carry on, left to right.
    __device__ static A fold(const KernelRequest& request, const values& seen, int nearest) {
        A sum = seen[window - nearest];
        if constexpr (registers_free) {
            sum = fold_in_order(request.op, sum, &seen[window - nearest + 1], nearest - 1, [](int, const A&) {});
        } else {
#pragma unroll 4
            for (int distance = nearest - 1; distance >= 1; --distance)
                sum = polyscan::combine(request.op, sum, seen[window - distance]);
        }
        return sum;
    }
};

/// Tile 0 knows its carry at once. Nobody looks at the last tile.
template <class KernelRequest, class A>
__device__ void publish_aggregate(const KernelRequest& request, const cells<A>& cells, index_type tile,
                                  index_type tiles, const A& aggregate) {
    if (tile + 1 == tiles) return;
    if (tile == 0)
        cells.publish(tile, tile_state::carry, cuda::combine(request.op, request.init, aggregate));
    else
        cells.publish(tile, tile_state::aggregate, aggregate);
}
template <class KernelRequest, class A>
__device__ void publish_carry(const KernelRequest& request, const cells<A>& cells, index_type tile, index_type tiles,
                              const maybe<A>& carry, const A& aggregate) {
    if (tile > 0 && tile + 1 < tiles)
        cells.publish(tile, tile_state::carry, cuda::combine(request.op, carry, aggregate));
}

template <class KernelRequest, class Group>
class look_back_source {
    using A = typename KernelRequest::accumulator_type;
    using window = look_back_window<KernelRequest, tuning::look_back_window(sizeof(A)), false>;

public:
    using window_values = typename window::values;

    __device__ look_back_source(const KernelRequest& request, notice_board<A>& board, window_values& values,
                                const ticket_counter& counter, std::uint32_t epoch, index_type tiles)
        : request_(request), board_(board), values_(values), counter_(counter), cells_(counter.cells_memory(), epoch),
          tiles_(tiles) {}

    __device__ void begin(index_type) const {}
    __device__ void publish(index_type tile, const A& aggregate) {
        publish_aggregate(request_, cells_, tile, tiles_, aggregate);
    }

    __device__ tile_entry<A> entry(index_type tile, const A& aggregate) {
        // Write after read: the entry of the tile before was read before the barriers of this tile's scan.
        if (Group::warp() == 0) {
            const maybe<A> carry = tile == 0 ? request_.init : window::look_back(request_, cells_, values_, tile);
            if (Group::is_leader()) {
                publish_carry(request_, cells_, tile, tiles_, carry, aggregate);
                board_.put(carry);
            }
        }
        Group::sync(); // read after write: everybody reads the carry
        return board_.entry();
    }

    /// The number of the next tile, when this one has been stored: a block that held a ticket while it stores would
    /// keep the aggregate back that others look for.
    __device__ index_type next() {
        if (Group::is_leader()) board_.next = counter_.draw().number;
        Group::sync(); // read after write: everybody reads the ticket. It is overwritten after the next tile's barriers
        return board_.next;
    }

private:
    const KernelRequest& request_;
    notice_board<A>& board_;
    window_values& values_;
    const ticket_counter& counter_;
    cells<A> cells_;
    index_type tiles_;
};

template <class Block, class KernelRequest>
struct look_back_kernel {
    using A = typename KernelRequest::accumulator_type;
    using group = thread_group<block_shape<Block, A>::threads>;
    using scan_type = tile_scan<Block, KernelRequest, group>;
    using source_type = look_back_source<KernelRequest, group>;
    static constexpr int blocks_per_multiprocessor =
        block_shape<Block, A>::template blocks_per_multiprocessor<KernelRequest>;
    struct shared {
        typename scan_type::storage scan;
        notice_board<A> board;
        ticket first;
        typename source_type::window_values window;
    };
};

template <class Block, class KernelRequest>
__global__ void __launch_bounds__(look_back_kernel<Block, KernelRequest>::group::count,
                                  look_back_kernel<Block, KernelRequest>::blocks_per_multiprocessor)
    scan_look_back(const __grid_constant__ KernelRequest request, const ticket_counter counter) {
    using kernel = look_back_kernel<Block, KernelRequest>;
    using group = typename kernel::group;
    auto& shared = block_memory<typename kernel::shared>();
    typename kernel::scan_type scan(shared.scan);
    const index_type tiles = ceil_div(request.size(), kernel::scan_type::elements);

    if (group::is_leader()) shared.first = counter.draw();
    group::sync(); // read after write: everybody reads the first ticket
    const ticket first = shared.first;
    typename kernel::source_type source(request, shared.board, shared.window, counter, first.epoch, tiles);
    for (index_type tile = first.number; tile < tiles; tile = source.next()) tile_pass(scan, request, tile, source);
    if (!group::is_leader()) return;
    if (tiles == 0 && first.number == 0) store_empty_total(request);
    counter.retire(first.epoch);
}

/// Where the block algorithm can put a tile aside: a warp of its own looks back, and meanwhile the others load and scan
/// the next tile, whose aggregate is published before this one's carry is waited for. So a block that waits holds no
/// ticket whose aggregate others look for.
template <class Block, class KernelRequest>
struct look_back_aside_kernel {
    using A = typename KernelRequest::accumulator_type;
    static constexpr int scan_threads = block_shape<Block, A>::threads;
    static constexpr int threads = scan_threads + warp_size;
    struct group : thread_group<scan_threads, threads> {
        static constexpr bool puts_aside = true;
    };
    using scan_type = tile_scan<Block, KernelRequest, group>;
    using window = look_back_window<KernelRequest, tuning::look_back_window_aside, true>;
    /// What the scanning warps and the one that looks back tell each other of a tile. Two tiles take turns.
    struct hand_over {
        arch::phase_barrier published; ///< the tile's number and aggregate are there, and the carry before was read
        arch::phase_barrier carried;   ///< its carry is there
        std::uint32_t tile;            ///< the tiles' number or more: the end
        shared_array<A, 1> aggregate;
        notice_board<A> board;
    };
    struct shared {
        typename scan_type::storage scan[2];
        alignas(16) typename window::values seen;
        hand_over turn[2];
        ticket first;
        std::uint32_t next;
        typename scan_type::aside aside;
    };
    static constexpr int blocks_per_multiprocessor =
        std::min(tuning::aside_blocks_per_multiprocessor<A, typename KernelRequest::operator_type>(),
                 arch::blocks_of(sizeof(shared)));
};

/// A tile's carry, when it is there. One lane of each warp reads it.
template <class HandOver>
__device__ auto carry_from(const HandOver& then, unsigned parity) {
    using A = decltype(then.board.entry().carry.place.value);
    maybe<A> carry;
    if (threadIdx.x % warp_size == 0) {
        then.carried.wait(parity);
        carry = then.board.entry().carry;
    }
    carry.present = __shfl_sync(whole_warp, carry.present, 0);
    carry.place.value = shuffle_from(carry.place.value, 0);
    return carry;
}

/// The role of the warp that looks back.
template <class Kernel, class KernelRequest, class A>
__device__ void look_back_for(const KernelRequest& request, typename Kernel::shared& shared, const cells<A>& cells,
                              index_type tiles) {
    const bool is_first_lane = threadIdx.x % warp_size == 0;
    for (unsigned turn = 0;; ++turn) {
        typename Kernel::hand_over& now = shared.turn[turn % 2];
        now.published.wait(turn / 2 % 2);
        const index_type tile = now.tile;
        if (tile >= tiles) return;
        const maybe<A> carry = tile == 0 ? request.init : Kernel::window::look_back(request, cells, shared.seen, tile);
        if (is_first_lane) {
            publish_carry(request, cells, tile, tiles, carry, A(now.aggregate[0]));
            now.board.put(carry);
            now.carried.arrive();
        }
        __syncwarp(); // write after read: the next look writes what lane 0 has folded
    }
}

template <class Block, class KernelRequest>
__global__ void __launch_bounds__(look_back_aside_kernel<Block, KernelRequest>::threads,
                                  look_back_aside_kernel<Block, KernelRequest>::blocks_per_multiprocessor)
    scan_look_back_aside(const __grid_constant__ KernelRequest request, const ticket_counter counter) {
    using kernel = look_back_aside_kernel<Block, KernelRequest>;
    using A = typename kernel::A;
    using group = typename kernel::group;
    constexpr index_type elements = kernel::scan_type::elements;
    auto& shared = block_memory<typename kernel::shared>();
    if (threadIdx.x == 0) {
        for (auto& turn : shared.turn) {
            turn.published.begin(group::warps);
            turn.carried.begin(1);
        }
        shared.first = counter.draw();
    }
    __syncthreads(); // read after write: everybody reads the ticket and uses the barriers
    const index_type size = request.size(), tiles = ceil_div(size, elements);
    const ticket first = shared.first;
    const cells<A> cells(counter.cells_memory(), first.epoch);
    if (group::rank() >= group::count) {
        look_back_for<kernel>(request, shared, cells, tiles);
        return;
    }
    typename kernel::scan_type scan(shared.scan[0]);
    const auto count_of = [&](index_type t) { return static_cast<int>(min(size - t * elements, elements)); };
    index_type tile = first.number, waiting = -1;
    unsigned parity = 0;
    for (unsigned turn = 0;; turn ^= 1) {
        typename kernel::hand_over& now = shared.turn[turn];
        const bool goes_on = tile < tiles;
        if (goes_on) {
            scan.load(request, tile * elements, count_of(tile));
            scan.scan(request, [&](const A& aggregate) {
                publish_aggregate(request, cells, tile, tiles, aggregate);
                now.aggregate[0] = aggregate;
            });
        }
        if (group::is_leader()) now.tile = static_cast<std::uint32_t>(tile);
        if (group::lane() == 0) now.published.arrive();
        scan.exchange(shared.aside, shared.scan[turn ^ 1]);
        std::uint32_t drawn = 0; // the leader's
        if (waiting < 0) {
            if (group::is_leader() && goes_on) drawn = counter.draw().number;
        } else {
            typename kernel::hand_over& then = shared.turn[turn ^ 1];
            scan.take(waiting * elements, count_of(waiting));
            tile_entry<A> entry;
            entry.carry = entry.previous = carry_from(then, parity);
            // Not before the carry is there; on its way while the tile is stored.
            if (group::is_leader() && goes_on) drawn = counter.draw().number;
            scan.store(request, entry);
            if (group::is_leader())
                store_total(request, waiting * elements + count_of(waiting), entry.carry, A(then.aggregate[0]));
            parity ^= turn ^ 1;
        }
        if (!goes_on) break;
        if (group::is_leader()) shared.next = drawn;
        group::sync(); // read after write: everybody reads the ticket. It is overwritten after the next tile's barriers
        waiting = tile;
        tile = shared.next;
    }
    if (!group::is_leader()) return;
    if (tiles == 0 && first.number == 0) store_empty_total(request);
    counter.retire(first.epoch);
}

template <class Block, class Request>
void run(policy<grid::look_back, Block>, const Request& request, launcher& on) {
    using A = typename Request::accumulator_type;
    using kernel = look_back_kernel<Block, kernel_request<Request>>;
    const index_type tiles = ceil_div(request.size, kernel::scan_type::elements);
    if constexpr (tuning::puts_aside<Block, A, typename Request::operator_type>) {
        using aside = look_back_aside_kernel<Block, kernel_request<Request>>;
        on.launch_resident(scan_look_back_aside<Block, kernel_request<Request>>, tiles, aside::threads,
                           shared_bytes<typename aside::shared>, kernel_request<Request>(request),
                           on.counter<A>(tiles));
    } else {
        on.launch_resident(scan_look_back<Block, kernel_request<Request>>, tiles, kernel::group::count,
                           shared_bytes<typename kernel::shared>, kernel_request<Request>(request),
                           on.counter<A>(tiles));
    }
}

} // namespace polyscan::cuda
