// SPDX-License-Identifier: Apache-2.0
/// The prefix server's way for so few tiles that starting its pipeline would take longer than the scan: a block for
/// each tile, all in one thread-block cluster. Each block writes its aggregate into the shared memory of the blocks
/// after it and folds those that it received: a left fold, as the server's. No ticket, no workspace, one barrier of the
/// cluster between a tile's scan and its stores. One tile needs no cluster, and runs on every architecture.
#pragma once

#include <polyscan/cuda/arch.cuh>
#include <polyscan/cuda/grid/single_block.cuh>
#include <polyscan/cuda/grid/tile_pass.cuh>
#include <polyscan/cuda/launch.cuh>

namespace polyscan::cuda {

/// The carry source of a block in a cluster. All blocks of the cluster take part, also those without a tile.
template <class KernelRequest, class Group>
class cluster_source {
    using A = typename KernelRequest::accumulator_type;

public:
    using aggregates = shared_array<A, tuning::most_tiles_in_cluster>; ///< of the tiles before this block's

    __device__ cluster_source(const KernelRequest& request, notice_board<A>& board, aggregates& received, int blocks)
        : request_(request), board_(board), received_(received), blocks_(blocks) {}

    __device__ void begin(index_type) const {
        if (blocks_ > 1) arch::cluster_wait(); // every block has started: its shared memory is there
    }
    __device__ void publish(index_type tile, const A& aggregate) const {
        for (int later = static_cast<int>(tile) + 1; later < blocks_; ++later)
            arch::store_to_block(&received_[static_cast<int>(tile)], later, aggregate);
    }
    /// For a block without a tile.
    __device__ void skip() const {
        if (blocks_ == 1) return;
        arch::cluster_wait();
        exchange();
    }
    __device__ tile_entry<A> entry(index_type tile, const A&) const {
        if (blocks_ > 1) exchange();
        if (Group::is_leader()) {
            maybe<A> carry = request_.init;
            for (int k = 0; k < static_cast<int>(tile); ++k)
                carry.set(cuda::combine(request_.op, carry, A(received_[k])));
            board_.put(carry);
        }
        Group::sync(); // read after write: everybody reads the carry
        return board_.entry();
    }

private:
    __device__ static void exchange() {
        __syncwarp();           // arrivals are those of whole warps
        arch::cluster_arrive(); // read after write: the aggregates that this block sent
        arch::cluster_wait();
    }

    const KernelRequest& request_;
    notice_board<A>& board_;
    aggregates& received_;
    int blocks_;
};

template <class KernelRequest>
struct few_tiles_kernel {
    using A = typename KernelRequest::accumulator_type;
    using group = thread_group<block_shape<block::warp_shuffle, A>::lone_threads>;
    using scan_type = tile_scan<block::warp_shuffle, KernelRequest, group>;
    using source_type = cluster_source<KernelRequest, group>;
    struct shared {
        typename scan_type::storage scan;
        notice_board<A> board;
        alignas(16) typename source_type::aggregates received;
    };
};

template <class KernelRequest>
__global__ void __launch_bounds__(few_tiles_kernel<KernelRequest>::group::count, 1)
    scan_few_tiles(const __grid_constant__ KernelRequest request) {
    using kernel = few_tiles_kernel<KernelRequest>;
    auto& shared = block_memory<typename kernel::shared>();
    if (gridDim.x > 1) arch::cluster_arrive();
    typename kernel::scan_type scan(shared.scan);
    typename kernel::source_type source(request, shared.board, shared.received, static_cast<int>(gridDim.x));
    const index_type tiles = ceil_div(request.size(), scan.elements);
    if (blockIdx.x < tiles) {
        tile_pass(scan, request, blockIdx.x, source);
    } else {
        source.skip();
        if (tiles == 0 && blockIdx.x == 0 && kernel::group::is_leader()) store_empty_total(request);
    }
}

/// Whether the launch has few enough tiles, and then launches it.
template <class Request>
bool run_few_tiles(const Request& request, launcher& on) {
    using kernel = few_tiles_kernel<kernel_request<Request>>;
    const auto function = scan_few_tiles<kernel_request<Request>>;
    const index_type tiles = ceil_div(request.size, kernel::scan_type::elements);
    if (on.limits_blocks()) return false; // a test of the pipeline with few blocks
    if (tiles > 1 &&
        (tiles > tuning::most_tiles_in_cluster || !on.has_clusters(reinterpret_cast<const void*>(function))))
        return false;
    on.launch_cluster(function, tiles, kernel::group::count, shared_bytes<typename kernel::shared>,
                      kernel_request<Request>(request));
    return true;
}

} // namespace polyscan::cuda
