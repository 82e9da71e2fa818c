// SPDX-License-Identifier: Apache-2.0
/// The total of a scan under warp_shuffle and a left fold of tiles, without the scan. Blocks take tiles in order, fold
/// their rows and publish the aggregates; one warp of the grid folds those from left to right while the others read on,
/// so that no pass over the aggregates is left when the last tile has been read. One launch.
#pragma once

#include <cstdint>

#include <polyscan/cuda/backend.hpp>
#include <polyscan/cuda/block/balanced_fold.cuh>
#include <polyscan/cuda/grid/tile_pass.cuh>
#include <polyscan/cuda/launch.cuh>
#include <polyscan/cuda/published.cuh>
#include <polyscan/cuda/scan.cuh>
#include <polyscan/cuda/tickets.cuh>

namespace polyscan::cuda {

template <class KernelRequest>
struct reduce_kernel {
    using A = typename KernelRequest::accumulator_type;
    static constexpr tile_shape shape = shape_for<block::warp_shuffle, A>;
    static constexpr int rows = static_cast<int>(shape.threads);
    static constexpr int row = static_cast<int>(shape.run);
    static constexpr int run = row / warp_size; // elements of a row in one lane
    static constexpr int elements = rows * row;
    static constexpr int threads = tuning::row_threads + warp_size;
    using group = thread_group<tuning::row_threads, threads>;
    static constexpr int rows_each = rows / group::warps; // of a warp
    static_assert(row % warp_size == 0 && rows % group::warps == 0);

    struct shared {
        // Two of each in turn: a block begins with the next tile while its leader still works on this one.
        shared_array<A, rows> totals[2];
        std::uint32_t next[2];
        shared_array<A, row> last_row;
        shared_array<A, warp_size> aggregates; // of the folding warp
        ticket first;
    };
};

/// The fold of `length` elements of one row, fewer than a row, by one warp: balanced trees over the powers of two of
/// which the length consists, put together from the last, which is where Sklansky's tree leaves the last element.
template <class KernelRequest>
__device__ typename KernelRequest::accumulator_type
fold_partial_row(const KernelRequest& request, index_type first, int length,
                 shared_array<typename KernelRequest::accumulator_type, reduce_kernel<KernelRequest>::row>& v) {
    using A = typename KernelRequest::accumulator_type;
    const int lane = static_cast<int>(threadIdx.x) % warp_size;
    for (int i = lane; i < length; i += warp_size) v[i] = request.load(first + i);
    for (int s = 1; s < length; s *= 2) {
        __syncwarp(); // read after write: each level reads what other lanes have left
        for (int i = 2 * s - 1 + lane * 2 * s; i < length; i += warp_size * 2 * s)
            v[i] = polyscan::combine(request.op, A(v[i - s]), A(v[i]));
    }
    __syncwarp(); // read after write: every lane reads the roots
    A sum = v[length - 1];
    for (int end = length & (length - 1); end > 0; end &= end - 1)
        sum = polyscan::combine(request.op, A(v[end - 1]), sum);
    return sum;
}

/// The total of each row of the tile, by the warps of the group.
template <class KernelRequest>
__device__ void fold_rows(const KernelRequest& request, index_type first, int count,
                          typename reduce_kernel<KernelRequest>::shared& shared, int turn) {
    using kernel = reduce_kernel<KernelRequest>;
    using A = typename kernel::A;
    using group = typename kernel::group;
    constexpr int run = kernel::run;
    const int first_row = group::warp() * kernel::rows_each;
    if (count == kernel::elements) {
        slot<A> v[kernel::rows_each][run]; // all reads are under way before the first fold
#pragma unroll
        for (int k = 0; k < kernel::rows_each; ++k)
            request.template load_run<run>(first + (first_row + k) * kernel::row + group::lane() * run, v[k]);
#pragma unroll
        for (int k = 0; k < kernel::rows_each; ++k) {
            const A total = fold_lanes<warp_size>(request.op, fold_run(request.op, v[k]));
            if (group::lane() == 0) shared.totals[turn][first_row + k] = total;
        }
    } else {
        for (int k = 0; k < kernel::rows_each; ++k) {
            const int at = (first_row + k) * kernel::row;
            if (at >= count) return;
            slot<A> total;
            if (count - at >= kernel::row) {
                slot<A> v[run];
                request.template load_run<run>(first + at + group::lane() * run, v);
                total.value = fold_lanes<warp_size>(request.op, fold_run(request.op, v));
            } else {
                total.value = fold_partial_row(request, first + at, count - at, shared.last_row);
            }
            if (group::lane() == 0) shared.totals[turn][first_row + k] = total.value;
        }
    }
}

/// The left fold of the first `count` values behind `before`, in batches: a sum waits for the sum before it and not for
/// a read.
template <class Operator, class A, int N>
__device__ maybe<A> fold_values(const Operator& op, const maybe<A>& before, const shared_array<A, N>& values,
                                int count) {
    constexpr int batch = tuning::fold_batch(sizeof(A));
    maybe<A> sum = before;
    for (int first = 0; first < count; first += batch) {
        slot<A> next[batch];
#pragma unroll
        for (int i = 0; i < batch; ++i)
            if (first + i < count) next[i].value = values[first + i];
#pragma unroll
        for (int i = 0; i < batch; ++i)
            if (first + i < count) sum.set(cuda::combine(op, sum, next[i].value));
    }
    return sum;
}

/// By one warp: all aggregates in order. Whoever publishes one has drawn its ticket and waits for nobody.
template <class KernelRequest>
__device__ void fold_aggregates(const KernelRequest& request, const cells<typename KernelRequest::accumulator_type>& of,
                                index_type tiles, typename reduce_kernel<KernelRequest>::shared& shared) {
    using A = typename KernelRequest::accumulator_type;
    const int lane = static_cast<int>(threadIdx.x) % warp_size;
    const auto place = [&](index_type first) { return first + lane < tiles ? first + lane : tiles - 1; };
    maybe<A> sum = request.init;
    auto ahead = of.fetch(place(0));
    for (index_type first = 0; first < tiles; first += warp_size) {
        slot<A> value;
        if (of.decode(ahead, value) == tile_state::empty) of.wait(place(first), value); // it was read too early
        ahead = of.fetch(place(first + warp_size)); // on its way while these are folded
        shared.aggregates[lane] = value.value;
        __syncwarp(); // read after write: every lane reads all of them
        sum = fold_values(request.op, sum, shared.aggregates,
                          tiles - first < warp_size ? static_cast<int>(tiles - first) : warp_size);
        __syncwarp(); // write after read: the next ones take their places
    }
    if (lane == 0 && request.total != nullptr) *request.total = sum.place.value;
}

template <class KernelRequest>
__global__ void __launch_bounds__(reduce_kernel<KernelRequest>::threads, tuning::reduce_blocks_per_multiprocessor)
    reduce_tiles(const __grid_constant__ KernelRequest request, const ticket_counter counter) {
    using kernel = reduce_kernel<KernelRequest>;
    using A = typename kernel::A;
    using group = typename kernel::group;
    auto& shared = block_memory<typename kernel::shared>();

    if (group::is_leader()) shared.first = counter.draw();
    __syncthreads(); // read after write: everybody, the folding warp included, reads the first ticket
    const ticket first = shared.first;
    const index_type tiles = ceil_div(request.size(), index_type{kernel::elements});
    const cells<A> aggregates(counter.cells_memory(), first.epoch);
    const bool folds = first.number == 0; // this block's further warp is the folding one

    if (group::rank() >= group::count) {
        if (folds) {
            if (tiles > 0) fold_aggregates(request, aggregates, tiles, shared);
            __syncthreads(); // partner: below; the cells are not needed any more
        }
        return;
    }
    int turn = 0;
    for (index_type tile = first.number; tile < tiles; tile = shared.next[turn ^ 1]) {
        std::uint32_t next = 0;
        if (group::is_leader()) next = counter.draw().number; // on its way while the tile is read
        const index_type begin = tile * kernel::elements, left = request.size() - begin;
        const int count = left < kernel::elements ? static_cast<int>(left) : kernel::elements;
        fold_rows(request, begin, count, shared, turn);
        if (group::is_leader()) shared.next[turn] = next;
        group::sync(); // read after write: the leader reads the totals of all rows, everybody the next ticket
        if (group::is_leader()) {
            const maybe<A> aggregate =
                fold_values(request.op, maybe<A>(), shared.totals[turn], (count + kernel::row - 1) / kernel::row);
            aggregates.publish(tile, tile_state::aggregate, aggregate.place.value);
        }
        // No barrier: the next tile uses the other half, and this one again only after that tile's barrier.
        turn ^= 1;
    }
    if (folds) __syncthreads(); // partner: above
    if (!group::is_leader()) return;
    if (tiles == 0 && folds) store_empty_total(request);
    counter.retire(first.epoch);
}

template <scan_policy Policy, class Request>
    requires(has_reduce<Policy, Request>)
void backend::reduce(const Request& request) {
    if (request.size == 0) return scan<Policy>(request);
    check(cudaGetLastError(), "earlier work on the device");
    launcher on(*this);
    using kernel = reduce_kernel<kernel_request<Request>>;
    const index_type tiles = ceil_div(request.size, index_type{kernel::elements});
    on.launch_resident(reduce_tiles<kernel_request<Request>>, tiles, kernel::threads,
                       shared_bytes<typename kernel::shared>, kernel_request<Request>(request),
                       on.counter<typename Request::accumulator_type>(tiles));
}

} // namespace polyscan::cuda
