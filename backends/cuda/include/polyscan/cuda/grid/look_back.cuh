// SPDX-License-Identifier: Apache-2.0
/// Decoupled look-back: a tile publishes its aggregate, looks back over the tiles before it to the nearest published
/// carry, folds the aggregates from there on, and publishes its own carry. The fold starts at the nearest carry and
/// goes from left to right: it gives the strict left fold of all aggregates, however far back that carry was.
#pragma once

#include <polyscan/cuda/grid/tile_pass.cuh>
#include <polyscan/cuda/launch.cuh>
#include <polyscan/cuda/published.cuh>
#include <polyscan/cuda/tickets.cuh>

namespace polyscan::cuda {

template <class KernelRequest, class Group>
class look_back_source {
    using A = typename KernelRequest::accumulator_type;
    static constexpr int window = tuning::look_back_window(sizeof(A));
    static constexpr int cells_per_lane = window / warp_size;

public:
    using window_values = shared_array<A, window>;

    __device__ look_back_source(const KernelRequest& request, notice_board<A>& board, window_values& values,
                                const ticket_counter& counter, std::uint32_t epoch, index_type tiles)
        : request_(request), board_(board), values_(values), counter_(counter), cells_(counter.cells_memory(), epoch),
          tiles_(tiles) {}

    __device__ void begin(index_type) const {}
    __device__ void publish(index_type tile, const A& aggregate) {
        // Tile 0 knows its carry at once. Nobody looks at the last tile.
        if (tile + 1 == tiles_) return;
        if (tile == 0)
            cells_.publish(tile, tile_state::carry, cuda::combine(request_.op, request_.init, aggregate));
        else
            cells_.publish(tile, tile_state::aggregate, aggregate);
    }

    __device__ tile_entry<A> entry(index_type tile, const A& aggregate) {
        // Write after read: the entry of the tile before was read before the barriers of this tile's scan.
        if (Group::warp() == 0) {
            const maybe<A> carry = tile == 0 ? request_.init : look_back(tile);
            if (Group::is_leader()) {
                if (tile > 0 && tile + 1 < tiles_)
                    cells_.publish(tile, tile_state::carry, cuda::combine(request_.op, carry, aggregate));
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
    /// By one warp; the carry is the leader's. The window is the `window` tiles before `tile`; lane l has those that
    /// are l + 1, l + 33, ... places back. Some tile of it gets its carry in time: the nearest one whose predecessors
    /// are done.
    __device__ maybe<A> look_back(index_type tile) {
        maybe<A> carry;
        for (;;) {
            int nearest = window + 1; // distance of the nearest carry
            int missing = window + 1; // distance of the nearest tile that has published nothing
#pragma unroll
            for (int c = 0; c < cells_per_lane; ++c) {
                const int distance = c * warp_size + Group::lane() + 1;
                slot<A> value;
                tile_state state = tile_state::empty;
                if (distance <= tile) state = cells_.read(tile - distance, value);
                if (state != tile_state::empty) values_[window - distance] = value.value;
                const unsigned carries = __ballot_sync(whole_warp, state == tile_state::carry);
                const unsigned empties = __ballot_sync(whole_warp, state == tile_state::empty);
                if (nearest > window && carries != 0) nearest = c * warp_size + __ffs(carries);
                if (missing > window && empties != 0) missing = c * warp_size + __ffs(empties);
                if (nearest <= window || missing <= window) break;
            }
            if (nearest < missing) {
                __syncwarp(); // read after write: the leader reads what the lanes found
                if (Group::is_leader()) carry.set(fold(nearest));
                return carry;
            }
            __syncwarp(); // write after write: the next look writes the same places
        }
    }

    /// From the nearest carry on, left to right.
    __device__ A fold(int nearest) const {
        A sum = values_[window - nearest];
#pragma unroll 4
        for (int distance = nearest - 1; distance >= 1; --distance)
            sum = polyscan::combine(request_.op, sum, values_[window - distance]);
        return sum;
    }

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

template <class Block, class Request>
void run(policy<grid::look_back, Block>, const Request& request, launcher& on) {
    using kernel = look_back_kernel<Block, kernel_request<Request>>;
    const index_type tiles = ceil_div(request.size, kernel::scan_type::elements);
    on.launch_resident(scan_look_back<Block, kernel_request<Request>>, tiles, kernel::group::count,
                       shared_bytes<typename kernel::shared>, kernel_request<Request>(request),
                       on.counter<typename Request::accumulator_type>(tiles));
}

} // namespace polyscan::cuda
