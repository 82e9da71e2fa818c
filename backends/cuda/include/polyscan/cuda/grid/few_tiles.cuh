// SPDX-License-Identifier: Apache-2.0
/// The prefix server's way for so few tiles that starting its pipeline would take longer than the scan: a block for
/// each tile, and no server. A block hands its aggregate to the blocks after it and folds those that it receives: a
/// left fold, as the server's.
///
/// Up to 8 tiles are scanned by the blocks of one thread-block cluster, which send aggregates into each other's shared
/// memory: no ticket, no workspace. One tile needs no cluster, and runs like that on every architecture.
///
/// Up to a tile for each resident block, aggregates go through cells in the workspace, which each block reads itself:
/// two ways through the L2 cache, where a server takes three. Here tiles are drawn: a block waits for aggregates of
/// tiles that were drawn before its own, and nothing waits before it publishes; so one running block is enough.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>

#include <polyscan/cuda/arch.cuh>
#include <polyscan/cuda/grid/prefix_server.cuh>
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

    /// An aggregate that one block of a cluster sends to another, word by word.
    struct sent {
        std::uint32_t word[(sizeof(A) + sizeof(std::uint32_t) - 1) / sizeof(std::uint32_t)];
    };
    struct cluster_shared {
        typename scan_type::storage scan;
        alignas(16) sent received[tuning::most_tiles_in_cluster]; ///< of the tiles before this block's
        arch::phase_barrier landed;
    };
    struct shared {
        typename scan_type::storage scan;
        alignas(16) shared_array<A, tuning::most_tiles_each> received;
        notice_board<A> board;
        ticket drawn;
    };
};

/// One tile, or a cluster with a tile in each block. Times are short here: what can be worked out before the launch
/// before this one has ended is, and a tile of few rows is scanned by few warps.
template <class KernelRequest>
__global__ void __launch_bounds__(few_tiles_kernel<KernelRequest>::group::count, 1)
    scan_in_cluster(const __grid_constant__ KernelRequest request) {
    using kernel = few_tiles_kernel<KernelRequest>;
    using A = typename kernel::A;
    using group = typename kernel::group;
    using sent = typename kernel::sent;
    auto& shared = block_memory<typename kernel::cluster_shared>();
    const int tile = static_cast<int>(blockIdx.x);
    const bool has_others = gridDim.x > 1;
    if (has_others) {
        if (group::is_leader()) {
            shared.landed.begin(1);
            arch::publish_barriers();
        }
        __syncwarp(); // arrivals are those of whole warps
        arch::cluster_arrive();
    }
    if (request.count != nullptr) arch::wait_for_earlier_launch(); // which may have written it
    const index_type size = request.size(), first = index_type{tile} * kernel::scan_type::elements;
    const int tiles = static_cast<int>(kernel::tiles(size));
    const int count = static_cast<int>(min(size - first, index_type{kernel::scan_type::elements}));
    typename kernel::scan_type scan(shared.scan);
    arch::wait_for_earlier_launch(scan.take(first, count));
    if (tile < tiles) scan.load(request);
    if (has_others) {
        __syncwarp();         // the same
        arch::cluster_wait(); // every block has started, and its barrier is there
        if (group::is_leader()) shared.landed.arrive_and_expect(static_cast<unsigned>(tile * sizeof(sent)));
    }
    if (tile >= tiles) {
        if (tiles == 0 && tile == 0 && group::is_leader()) store_empty_total(request);
        return;
    }
    bool has_last_row = false;
    slot<A> aggregate;
    scan.scan_alone(request, [&](const A& known) {
        has_last_row = true;
        aggregate.value = known;
        sent value{};
        std::memcpy(&value, &known, sizeof(A));
        const int later = tile + 1 + group::lane(); // each lane to another block
        if (later >= tiles) return;
#pragma unroll
        for (std::size_t i = 0; i < std::size(value.word); ++i)
            arch::send_to_block(&shared.received[tile].word[i], value.word[i], shared.landed, later);
    });
    tile_entry<A> entry;
    entry.carry = request.init;
    if (tile > 0) {
        shared.landed.wait(0); // read after write: what the blocks before have sent
#pragma unroll
        for (int k = 0; k < tuning::most_tiles_in_cluster - 1; ++k) {
            slot<A> before;
            std::memcpy(static_cast<void*>(&before.value), &shared.received[k], sizeof(A));
            if (k < tile) entry.carry.set(cuda::combine(request.op, entry.carry, before.value));
        }
    }
    entry.previous = entry.carry;
    scan.store(request, entry);
    if (has_last_row && group::lane() == 0) store_total(request, first + count, entry.carry, aggregate.value);
}

/// Fetches a tile into the L2 cache: all blocks' tiles are on their way while tickets are drawn, whichever block draws
/// which.
template <class KernelRequest>
__device__ void expect_tile(const KernelRequest& request) {
    using kernel = few_tiles_kernel<KernelRequest>;
    if constexpr (std::is_pointer_v<typename KernelRequest::input_type>) {
        constexpr index_type piece = sizeof(uint4);
        const index_type first = index_type{blockIdx.x} * kernel::scan_type::elements;
        const auto from = reinterpret_cast<std::uintptr_t>(request.input + first);
        const auto until = reinterpret_cast<std::uintptr_t>(request.input +
                                                            min(first + kernel::scan_type::elements, request.capacity));
        const std::uintptr_t start = (from + piece - 1) / piece * piece, end = until / piece * piece;
        if (kernel::group::warp() == 1 && start < end)
            arch::prefetch_to_l2(reinterpret_cast<const void*>(start), static_cast<unsigned>(end - start));
    }
}
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
    expect_tile(request);
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
    const auto in_cluster = scan_in_cluster<kernel_request<Request>>;
    const auto drawn = scan_few_tiles<kernel_request<Request>>;
    const index_type tiles = kernel::tiles(request.size);
    if (on.limits_blocks()) return false; // a test of the pipeline with few blocks
    constexpr std::size_t bytes = shared_bytes<typename kernel::shared>;
    if (tiles == 1 ||
        (tiles <= tuning::most_tiles_in_cluster && on.has_clusters(reinterpret_cast<const void*>(in_cluster)))) {
        on.launch_cluster(in_cluster, tiles, kernel::group::count, shared_bytes<typename kernel::cluster_shared>,
                          kernel_request<Request>(request));
    } else if (tiles <=
               std::min<index_type>(tuning::most_tiles_each, on.resident_blocks(drawn, kernel::group::count, bytes))) {
        on.launch(drawn, tiles, kernel::group::count, bytes, kernel_request<Request>(request),
                  on.counter<typename Request::accumulator_type>(tiles));
    } else {
        return false;
    }
    return true;
}

} // namespace polyscan::cuda
