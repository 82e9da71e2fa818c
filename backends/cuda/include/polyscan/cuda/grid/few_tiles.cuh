// SPDX-License-Identifier: Apache-2.0
/// The prefix server's way for so few tiles that starting its pipeline would take longer than the scan: a block for
/// each tile, and no server. A block hands its aggregate to the blocks after it and folds those that it receives: a
/// left fold, as the server's.
///
/// Up to 8 tiles are scanned by the blocks of one thread-block cluster, which write aggregates into each other's shared
/// memory: no ticket, no workspace, one barrier of the cluster between a tile's scan and its stores. One tile needs no
/// cluster, and runs like that on every architecture.
///
/// Up to a tile for each multiprocessor, aggregates go through cells in the workspace, which each block reads itself:
/// two ways through the L2 cache, where a server takes three. Here tiles are drawn: a block waits for aggregates of
/// tiles that were drawn before its own, and nothing waits before it publishes; so one running block is enough.
#pragma once

#include <algorithm>

#include <polyscan/cuda/arch.cuh>
#include <polyscan/cuda/grid/prefix_server.cuh>
#include <polyscan/cuda/grid/single_block.cuh>
#include <polyscan/cuda/grid/tile_pass.cuh>
#include <polyscan/cuda/launch.cuh>
#include <polyscan/cuda/tickets.cuh>

namespace polyscan::cuda {

/// The carry source of a block that has one tile.
template <class KernelRequest, class Group>
class earlier_tiles {
    using A = typename KernelRequest::accumulator_type;

public:
    /// Of the tiles before this block's.
    using aggregates = shared_array<A, std::max(tuning::most_tiles_in_cluster, tuning::most_tiles_each)>;

    __device__ earlier_tiles(const KernelRequest& request, notice_board<A>& board, aggregates& received,
                             const server_cells<A>& cells, bool in_cluster)
        : request_(request), board_(board), received_(received), cells_(cells), in_cluster_(in_cluster) {}

    __device__ void begin(index_type) const {
        if (in_cluster_) arch::cluster_wait(); // every block has started: its shared memory is there
    }
    __device__ void publish(index_type tile, const A& aggregate) const {
        if (in_cluster_) {
            for (int later = static_cast<int>(tile) + 1; later < static_cast<int>(gridDim.x); ++later)
                arch::store_to_block(&received_[static_cast<int>(tile)], later, aggregate);
        } else if (tile + 1 < cells_.tiles()) {
            cells_.publish_aggregate(tile, aggregate);
        }
    }
    /// For a block of a cluster that has no tile.
    __device__ void skip() const {
        if (!in_cluster_) return;
        arch::cluster_wait();
        exchange();
    }
    __device__ tile_entry<A> entry(index_type tile, const A&) const {
        if (in_cluster_)
            exchange();
        else if (Group::warp() == 0)
            receive(static_cast<int>(tile));
        if (Group::is_leader()) board_.put(carry(static_cast<int>(tile)));
        Group::sync(); // read after write: everybody reads the carry
        return board_.entry();
    }

private:
    __device__ static void exchange() {
        __syncwarp();           // arrivals are those of whole warps
        arch::cluster_arrive(); // read after write: the aggregates that this block sent
        arch::cluster_wait();
    }

    /// By one warp: the aggregates of all tiles before this one. They come at about the same time, so reads of several
    /// are under way at once.
    __device__ void receive(int tile) const {
        constexpr int each = tuning::aggregates_awaited;
        for (int first = Group::lane(); __any_sync(whole_warp, first < tile); first += each * warp_size) {
            unsigned missing = 0;
#pragma unroll
            for (int i = 0; i < each; ++i)
                if (first + i * warp_size < tile) missing |= 1u << i;
            while (__any_sync(whole_warp, missing != 0)) {
                typename server_cells<A>::image seen[each];
#pragma unroll
                for (int i = 0; i < each; ++i)
                    if ((missing >> i & 1) != 0) seen[i] = cells_.fetch_aggregate(first + i * warp_size);
#pragma unroll
                for (int i = 0; i < each; ++i) {
                    slot<A> value;
                    if ((missing >> i & 1) == 0 || !cells_.decode(seen[i], value)) continue;
                    received_[first + i * warp_size] = value.value;
                    missing &= ~(1u << i);
                }
            }
        }
        __syncwarp(); // read after write: the leader folds what all lanes received
    }

    /// By the leader. Reads are ahead of the chain of sums.
    __device__ maybe<A> carry(int tile) const {
        constexpr int batch = sizeof(A) <= sizeof(std::uint64_t) ? warp_size : tuning::fold_batch(sizeof(A));
        maybe<A> sum = request_.init;
        int k = 0;
        if (tile > 0) sum.set(cuda::combine(request_.op, sum, A(received_[k++])));
#pragma unroll 1
        for (; k + batch <= tile; k += batch) {
            slot<A> next[batch];
#pragma unroll
            for (int i = 0; i < batch; ++i) next[i].value = received_[k + i];
#pragma unroll
            for (int i = 0; i < batch; ++i)
                sum.place.value = polyscan::combine(request_.op, sum.place.value, next[i].value);
        }
#pragma unroll 1
        for (; k < tile; ++k) sum.place.value = polyscan::combine(request_.op, sum.place.value, A(received_[k]));
        return sum;
    }

    const KernelRequest& request_;
    notice_board<A>& board_;
    aggregates& received_;
    const server_cells<A>& cells_;
    bool in_cluster_;
};

template <class KernelRequest>
struct few_tiles_kernel {
    using A = typename KernelRequest::accumulator_type;
    using group = thread_group<block_shape<block::warp_shuffle, A>::lone_threads>;
    using scan_type = tile_scan<block::warp_shuffle, KernelRequest, group>;
    using source_type = earlier_tiles<KernelRequest, group>;
    struct shared {
        typename scan_type::storage scan;
        notice_board<A> board;
        alignas(16) typename source_type::aggregates received;
        ticket drawn;
    };
    static constexpr index_type tiles(index_type n) { return ceil_div(n, scan_type::elements); }
};

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
/// A block of several, which are no cluster, draws its tile.
template <class KernelRequest>
__device__ ticket draw_tile(const ticket_counter& counter, ticket& drawn) {
    using kernel = few_tiles_kernel<KernelRequest>;
    if (kernel::group::is_leader()) drawn = counter.draw();
    kernel::group::sync(); // read after write: everybody reads the ticket
    // Not by the leader, who has aggregates to publish.
    if (threadIdx.x + 1 == blockDim.x && !ticket_counter::wraps(drawn.epoch)) counter.retire(drawn.epoch);
    return drawn;
}

/// `counter` is null where the blocks are one cluster, or one block.
template <class KernelRequest>
__global__ void __launch_bounds__(few_tiles_kernel<KernelRequest>::group::count, 1)
    scan_few_tiles(const __grid_constant__ KernelRequest request, const ticket_counter counter) {
    using kernel = few_tiles_kernel<KernelRequest>;
    using A = typename kernel::A;
    if (request.count != nullptr) arch::wait_for_earlier_launch(); // which may have written it
    auto& shared = block_memory<typename kernel::shared>();
    const bool draws = counter.header != nullptr, in_cluster = !draws && gridDim.x > 1;
    if (in_cluster) arch::cluster_arrive();
    if (draws) expect_tile(request);
    arch::wait_for_earlier_launch();
    const ticket mine = draws ? draw_tile<KernelRequest>(counter, shared.drawn) : ticket{blockIdx.x, 0};
    typename kernel::scan_type scan(shared.scan);
    const index_type tiles = kernel::tiles(request.size());
    const server_cells<A> cells(counter, mine.epoch, tiles);
    typename kernel::source_type source(request, shared.board, shared.received, cells, in_cluster);
    if (mine.number < tiles) {
        tile_pass(scan, request, mine.number, source);
    } else {
        source.skip();
        if (tiles == 0 && mine.number == 0 && kernel::group::is_leader()) store_empty_total(request);
    }
    // Retiring clears the cells when epochs wrap. This block's leader has published, and its warp has read.
    if (draws && ticket_counter::wraps(mine.epoch) && kernel::group::is_leader()) counter.retire(mine.epoch);
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
    const auto function = scan_few_tiles<kernel_request<Request>>;
    const index_type tiles = kernel::tiles(request.size);
    if (on.limits_blocks()) return false; // a test of the pipeline with few blocks
    constexpr std::size_t bytes = shared_bytes<typename kernel::shared>;
    if (tiles == 1 ||
        (tiles <= tuning::most_tiles_in_cluster && on.has_clusters(reinterpret_cast<const void*>(function)))) {
        on.launch_cluster(function, tiles, kernel::group::count, bytes, kernel_request<Request>(request),
                          ticket_counter{});
    } else if (tiles <= std::min<index_type>(tuning::most_tiles_each,
                                             on.resident_blocks(function, kernel::group::count, bytes))) {
        on.launch(function, tiles, kernel::group::count, bytes, kernel_request<Request>(request),
                  on.counter<typename Request::accumulator_type>(tiles));
    } else {
        return false;
    }
    return true;
}

} // namespace polyscan::cuda
