// SPDX-License-Identifier: Apache-2.0
/// One block walks over the tiles and keeps the running total.
#pragma once

#include <polyscan/cuda/grid/tile_pass.cuh>
#include <polyscan/cuda/launch.cuh>

namespace polyscan::cuda {

/// The leader holds the running total.
template <class KernelRequest, class Group>
class running_total {
    using A = typename KernelRequest::accumulator_type;

public:
    __device__ running_total(const KernelRequest& request, notice_board<A>& board)
        : request_(request), board_(board), total_(request.init) {}

    __device__ void begin(index_type) const {}
    __device__ void publish(index_type, const A&) {}
    __device__ tile_entry<A> entry(index_type, const A& aggregate) {
        // Write after read: the entry of the tile before was read before the barriers of this tile's scan.
        if (Group::is_leader()) {
            board_.put(total_);
            total_.set(cuda::combine(request_.op, total_, aggregate));
        }
        Group::sync(); // read after write: everybody reads the carry
        return board_.entry();
    }

private:
    const KernelRequest& request_;
    notice_board<A>& board_;
    maybe<A> total_;
};

template <class Block, class KernelRequest>
struct single_block_kernel {
    using A = typename KernelRequest::accumulator_type;
    using group = thread_group<block_shape<Block, A>::lone_threads>;
    using scan_type = tile_scan<Block, KernelRequest, group>;
    struct shared {
        typename scan_type::storage scan;
        notice_board<A> board;
    };
};

template <class Block, class KernelRequest>
__global__ void __launch_bounds__(single_block_kernel<Block, KernelRequest>::group::count, 1)
    scan_single_block(const __grid_constant__ KernelRequest request) {
    using kernel = single_block_kernel<Block, KernelRequest>;
    auto& shared = block_memory<typename kernel::shared>();
    typename kernel::scan_type scan(shared.scan);
    running_total<KernelRequest, typename kernel::group> source(request, shared.board);
    const index_type tiles = ceil_div(request.size(), scan.elements);
    for (index_type tile = 0; tile < tiles; ++tile) tile_pass(scan, request, tile, source);
    if (tiles == 0 && kernel::group::is_leader()) store_empty_total(request);
}

template <class Block, class Request>
void run(policy<grid::single_block, Block>, const Request& request, launcher& on) {
    using kernel = single_block_kernel<Block, kernel_request<Request>>;
    on.launch(scan_single_block<Block, kernel_request<Request>>, 1, kernel::group::count,
              shared_bytes<typename kernel::shared>, kernel_request<Request>(request));
}

} // namespace polyscan::cuda
