// SPDX-License-Identifier: Apache-2.0
/// The prefix server's way for so few tiles that starting its pipeline would take longer than the scan, and more than
/// rows_in_cluster.cuh takes: a block for each tile, up to the number of resident blocks, and no server. Aggregates go
/// through cells in the workspace, which each block reads itself, and folds from the left, as the server does: two ways
/// through the L2 cache, where a server takes three. Tiles are drawn: a block waits for aggregates of tiles that were
/// drawn before its own, and nothing waits before it publishes; so one running block is enough.
#pragma once

#include <algorithm>
#include <cstdint>

#include <polyscan/cuda/arch.cuh>
#include <polyscan/cuda/grid/prefix_server.cuh>
#include <polyscan/cuda/grid/rows_in_cluster.cuh>
#include <polyscan/cuda/grid/tile_pass.cuh>
#include <polyscan/cuda/launch.cuh>
#include <polyscan/cuda/tickets.cuh>

namespace polyscan::cuda {

template <class KernelRequest>
struct few_tiles_kernel {
    using A = typename KernelRequest::accumulator_type;
    using group = thread_group<block_shape<block::warp_shuffle, A>::lone_threads>;
    using scan_type = tile_scan<block::warp_shuffle, KernelRequest, group>;
    static constexpr index_type tiles(index_type n) { return ceil_div(n, scan_type::elements); }

    struct shared {
        typename scan_type::storage scan;
        alignas(16) shared_array<A, tuning::most_tiles_each> received;
        notice_board<A> board;
        ticket drawn;
    };
};

/// The aggregates of the tiles before this one come at about the same time: each thread waits for one. Then the leader
/// folds them.
template <class KernelRequest>
__device__ tile_entry<typename KernelRequest::accumulator_type>
receive_carry(const KernelRequest& request, typename few_tiles_kernel<KernelRequest>::shared& shared,
              const server_cells<typename KernelRequest::accumulator_type>& cells, int tile) {
    using A = typename KernelRequest::accumulator_type;
    using group = typename few_tiles_kernel<KernelRequest>::group;
    for (int earlier = group::rank(); earlier < tile; earlier += group::count) {
        slot<A> value;
        while (!cells.decode(cells.fetch_aggregate(earlier), value)) {
        }
        shared.received[earlier] = value.value;
    }
    group::sync(); // read after write: the leader folds what all have received
    if (group::is_leader()) {
        maybe<A> carry = request.init;
        if (tile > 0) {
            const A start = cuda::combine(request.op, carry, A(shared.received[0]));
            carry.set(fold_in_order(request.op, start, &shared.received[1], tile - 1, [](int, const A&) {}));
        }
        shared.board.put(carry);
    }
    group::sync(); // read after write: everybody reads the carry
    return shared.board.entry();
}

/// Each block draws its tile.
template <class KernelRequest>
__global__ void __launch_bounds__(few_tiles_kernel<KernelRequest>::group::count,
                                  tuning::few_tiles_blocks<typename KernelRequest::accumulator_type>)
    scan_few_tiles(const __grid_constant__ KernelRequest request, const ticket_counter counter) {
    using kernel = few_tiles_kernel<KernelRequest>;
    using A = typename kernel::A;
    using group = typename kernel::group;
    if (request.count != nullptr) arch::wait_for_earlier_launch(); // which may have written it
    auto& shared = block_memory<typename kernel::shared>();
    // All blocks' tiles are on their way while tickets are drawn, whichever block draws which.
    const index_type likely = index_type{blockIdx.x} * kernel::scan_type::elements;
    if (group::warp() == 1)
        expect_elements(request, likely, min(likely + kernel::scan_type::elements, request.capacity));
    arch::wait_for_earlier_launch();
    if (group::is_leader()) shared.drawn = counter.draw();
    group::sync(); // read after write: everybody reads the ticket
    const ticket mine = shared.drawn;
    const bool wraps = ticket_counter::wraps(mine.epoch);
    // Not by the leader, who has aggregates to fold.
    if (group::rank() + 1 == group::count && !wraps) counter.retire(mine.epoch);
    const index_type size = request.size(), tiles = kernel::tiles(size);
    if (mine.number < tiles) {
        const server_cells<A> cells(counter, mine.epoch, tiles);
        const int tile = static_cast<int>(mine.number);
        const index_type first = index_type{tile} * kernel::scan_type::elements;
        const int count = static_cast<int>(min(size - first, index_type{kernel::scan_type::elements}));
        typename kernel::scan_type scan(shared.scan);
        scan.load(request, first, count);
        slot<A> aggregate; // the leader's
        scan.scan(request, [&](const A& known) {
            aggregate.value = known;
            if (tile + 1 < tiles) cells.publish_aggregate(tile, known);
        });
        const tile_entry<A> entry = receive_carry(request, shared, cells, tile);
        scan.store(request, entry);
        if (group::is_leader()) store_total(request, first + count, entry.carry, aggregate.value);
    } else if (tiles == 0 && mine.number == 0 && group::is_leader()) {
        store_empty_total(request);
    }
    if (!wraps) return;
    group::sync(); // write after read: retiring clears the cells when epochs wrap
    if (group::is_leader()) counter.retire(mine.epoch);
}

/// Cells that scans of up to n elements may need.
template <class Request>
constexpr index_type few_tiles_cells(index_type n) {
    return std::min<index_type>(few_tiles_kernel<kernel_request<Request>>::tiles(n), tuning::most_tiles_each);
}

/// Whether the launch has few enough tiles, and then launches it.
template <class Request>
bool run_few_tiles(const Request& request, launcher& on) {
    using kernel = few_tiles_kernel<kernel_request<Request>>;
    const auto drawn = scan_few_tiles<kernel_request<Request>>;
    const index_type tiles = kernel::tiles(request.size);
    if (on.limits_blocks()) return false; // a test of the pipeline with few blocks
    if (run_in_cluster(request, on)) return true;
    constexpr std::size_t bytes = shared_bytes<typename kernel::shared>;
    if (tiles > std::min<index_type>(tuning::most_tiles_each, on.resident_blocks(drawn, kernel::group::count, bytes)))
        return false;
    on.launch(drawn, tiles, kernel::group::count, bytes, kernel_request<Request>(request),
              on.counter<typename Request::accumulator_type>(tiles));
    return true;
}

} // namespace polyscan::cuda
