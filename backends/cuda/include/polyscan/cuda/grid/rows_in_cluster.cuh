// SPDX-License-Identifier: Apache-2.0
/// The prefix server's way for one tile, and from sm_90 on for up to 8: the blocks of one thread-block cluster share
/// their rows, a few for each warp, so that a tile need not wait until one multiprocessor has issued the instructions
/// of all its warps. Blocks send the totals of their rows into the shared memory of the blocks after them: no ticket,
/// no workspace. Then each warp folds what is before its rows, a tile in each lane: those of its own tile, and all of
/// each tile before, which is that tile's aggregate. The aggregates are folded from the left, as the server does.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include <polyscan/cuda/arch.cuh>
#include <polyscan/cuda/grid/tile_pass.cuh>
#include <polyscan/cuda/launch.cuh>
#include <polyscan/cuda/tuning.hpp>

namespace polyscan::cuda {

/// `Warps` consecutive warps of the grid have a tile; the next ones have the next.
template <int Warps>
struct warps_of_tile {
    static constexpr int warps = Warps, count = Warps * warp_size;
    static constexpr bool has_offsets_in_registers = true;
    __device__ static int of_block() { return static_cast<int>(blockDim.x) / warp_size; }
    __device__ static int before_block() { return static_cast<int>(blockIdx.x) * of_block(); }
    __device__ static int number() { return before_block() + static_cast<int>(threadIdx.x) / warp_size; }
    __device__ static int tile() { return number() / Warps; }
    __device__ static int warp() { return number() % Warps; } // of the tile
    __device__ static int lane() { return static_cast<int>(threadIdx.x) % warp_size; }
};

/// `Clusters`: the blocks of a cluster may share a tile.
template <class KernelRequest, bool Clusters>
struct cluster_kernel {
    using A = typename KernelRequest::accumulator_type;
    static constexpr tile_shape tree = shape_for<block::warp_shuffle, A>;
    static constexpr int side_by_side = warp_size / std::min(static_cast<int>(tree.run), warp_size); // rows in a warp
    static constexpr int rows = static_cast<int>(tree.threads);
    static constexpr int each = std::max(tuning::rows_of_warp(Clusters), side_by_side); // rows of a warp
    using group = warps_of_tile<rows / each>;
    using scan_type = tile_scan<block::warp_shuffle, KernelRequest, group>;
    static constexpr int elements = each * static_cast<int>(tree.run); // of a warp
    static constexpr index_type warps(index_type n) { return std::max(ceil_div(n, elements), index_type{1}); }
    static constexpr index_type most_elements =
        scan_type::elements * index_type{Clusters ? tuning::most_tiles_in_cluster : 1};
    /// What a warp sends.
    static constexpr std::size_t sent_bytes = each * sizeof(typename scan_type::total_type);
    using word = std::conditional_t<sent_bytes % sizeof(std::uint64_t) == 0, std::uint64_t, std::uint32_t>;

    /// The lanes that fold tiles read from different banks.
    struct place {
        typename scan_type::storage scan;
        uint4 apart;
    };
    struct shared {
        place tile[tuning::most_tiles_in_cluster];
        arch::phase_barrier landed; ///< the totals of all blocks before
    };
};

/// By a warp whose totals are there: to all later blocks that have elements, each lane to another one.
template <class Kernel>
__device__ void send_totals(const typename Kernel::scan_type::storage& from, arch::phase_barrier& landed, int size) {
    using group = typename Kernel::group;
    using word = typename Kernel::word;
    const int later = static_cast<int>(blockIdx.x) + 1 + group::lane();
    if (later * group::of_block() * Kernel::elements >= size) return;
    const auto* const mine = reinterpret_cast<const word*>(&from.totals[group::warp() * Kernel::each]);
#pragma unroll
    for (std::size_t i = 0; i < Kernel::sent_bytes / sizeof(word); ++i)
        arch::send_to_block(mine + i, mine[i], landed, later);
}

/// In lane t: the fold of the rows of tile t, from the left; of the warp's own tile, and in all lanes after that, the
/// fold of the rows before the warp's own, if there are any.
template <class Kernel, class Operator>
__device__ typename Kernel::A fold_tile_of_lane(const Operator& op, const typename Kernel::shared& shared) {
    using A = typename Kernel::A;
    using total = typename Kernel::scan_type::total_type;
    constexpr int batch = tuning::fold_batch(sizeof(A));
    constexpr std::size_t alignment =
        std::min(sizeof(uint4), std::size_t{1} << std::countr_zero(batch * sizeof(total)));
    struct alignas(std::max(alignment, alignof(total))) batch_of_totals { // in the widest reads
        total of[batch];
    };
    const int lane = Kernel::group::lane(), tile = Kernel::group::tile();
    const int before = Kernel::group::warp() * Kernel::each, whole = before - before % batch;
    const int own = lane < tile ? Kernel::rows : whole; // rows of this lane's tile, in whole batches
    const int most = tile > 0 ? Kernel::rows : whole;
    const auto* const totals = reinterpret_cast<const batch_of_totals*>(&shared.tile[min(lane, tile)].scan.totals[0]);
    const batch_of_totals rest = totals[whole / batch]; // of the warp's own tile
    slot<A> sum;
    constexpr auto pieces =
        static_cast<int>(std::bit_floor(std::max<std::size_t>(1, tuning::totals_at_once / sizeof(batch_of_totals))));
#pragma unroll 1
    for (int first = 0; first < most; first += pieces * batch) {
        batch_of_totals read[pieces];
#pragma unroll
        for (int k = 0; k < pieces; ++k) read[k] = totals[first / batch + k];
#pragma unroll
        for (int k = 0; k < pieces; ++k) {
            if (first + k * batch >= own) continue; // for a whole batch: sums wait for sums only
#pragma unroll
            for (int i = 0; i < batch; ++i) {
                const bool is_first = first == 0 && k == 0 && i == 0;
                sum.value = is_first ? read[k].of[i].value : polyscan::combine(op, sum.value, read[k].of[i].value);
            }
        }
    }
    if (lane >= tile) {
#pragma unroll
        for (int i = 0; i < batch; ++i)
            if (i < before - whole)
                sum.value =
                    whole == 0 && i == 0 ? rest.of[i].value : polyscan::combine(op, sum.value, rest.of[i].value);
    }
    return sum.value;
}

/// Times are short here: what can be worked out before the launch before this one has ended is.
template <class KernelRequest>
__global__ void __launch_bounds__(tuning::cluster_warps* warp_size, 1)
    scan_in_cluster(const __grid_constant__ KernelRequest request) {
    using kernel = cluster_kernel<KernelRequest, arch::compiles_clusters>;
    using A = typename kernel::A;
    using group = typename kernel::group;
    auto& shared = block_memory<typename kernel::shared>();
    const bool has_others = gridDim.x > 1;
    if (has_others) {
        if (threadIdx.x == 0) {
            shared.landed.begin(1);
            arch::publish_barriers();
        }
        __syncwarp(); // arrivals are those of whole warps
        arch::cluster_arrive();
    }
    if (request.count != nullptr) arch::wait_for_earlier_launch(); // which may have written it
    const int size = static_cast<int>(request.size()), tile = group::tile();
    const int first = tile * kernel::scan_type::elements, mine = group::number() * kernel::elements;
    typename kernel::scan_type scan(shared.tile[tile].scan);
    const int known = scan.take(first, min(size - first, kernel::scan_type::elements));
    const bool has_rows = mine < size;
    if (has_rows) expect_elements(request, mine, min(mine + kernel::elements, size));
    arch::wait_for_earlier_launch(known);
    if (has_rows) scan.load(request);
    if (has_others) {
        __syncwarp();         // the same
        arch::cluster_wait(); // every block has started, and its barrier is there
        if (threadIdx.x == 0)
            shared.landed.arrive_and_expect(group::before_block() * static_cast<unsigned>(kernel::sent_bytes));
    }
    if (group::before_block() * kernel::elements >= size) { // a live count has left nothing to this block
        if (size == 0 && blockIdx.x == 0 && threadIdx.x == 0) store_empty_total(request);
        return;
    }
    if (has_rows) {
        scan.scan_rows_alone(request);
        __syncwarp(); // read after write: each lane sends the totals that others have put there
        send_totals<kernel>(shared.tile[tile].scan, shared.landed, size);
    }
    __syncthreads(); // read after write: every warp reads the totals of this block's
    if (!has_rows) return;
    if (blockIdx.x > 0) shared.landed.wait(0); // read after write: what the blocks before have sent
    const A fold = fold_tile_of_lane<kernel>(request.op, shared);
    tile_entry<A> entry;
    entry.carry = request.init;
    if (tile > 0) {
#pragma unroll
        for (int k = 0; k < tuning::most_tiles_in_cluster - 1; ++k) {
            const A aggregate = shuffle_from(fold, k); // all are under way before the first is used
            if (k < tile) entry.carry.set(cuda::combine(request.op, entry.carry, aggregate));
        }
    }
    entry.previous = entry.carry;
    slot<A> sum;
    sum.value = shuffle_from(fold, tile);
    scan.put_offsets_alone(request, sum);
    scan.store(request, entry);
    if (mine + kernel::elements >= size && group::lane() == 0) store_total(request, size, entry.carry, sum.value);
}

/// Whether the scan has few enough tiles, and then launches it.
template <class Request>
bool run_in_cluster(const Request& request, launcher& on) {
    using kernel_request = cuda::kernel_request<Request>;
    const auto scan = scan_in_cluster<kernel_request>;
    constexpr int threads = tuning::cluster_warps * warp_size;
    const auto launch = [&]<bool Clusters>(cluster_kernel<kernel_request, Clusters>) {
        using kernel = cluster_kernel<kernel_request, Clusters>;
        constexpr std::size_t bytes = shared_bytes<typename kernel::shared>;
        if (request.size > kernel::most_elements) return false;
        const index_type warps = kernel::warps(request.size);
        index_type each = Clusters ? tuning::least_cluster_warps : tuning::cluster_warps;
        const int most = Clusters ? on.largest_cluster(scan, threads, bytes, tuning::most_cluster_blocks) : 1;
        while (ceil_div(warps, each) > most)
            if ((each *= 2) > tuning::cluster_warps) return false;
        const index_type blocks = ceil_div(warps, each);
        on.launch_cluster(scan, blocks, static_cast<int>(std::min(warps, each)) * warp_size, bytes,
                          kernel_request(request));
        return true;
    };
    return on.has_clusters(reinterpret_cast<const void*>(scan)) ? launch(cluster_kernel<kernel_request, true>{})
                                                                : launch(cluster_kernel<kernel_request, false>{});
}

} // namespace polyscan::cuda
