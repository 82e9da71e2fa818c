// SPDX-License-Identifier: Apache-2.0
/// The total of a scan under warp_shuffle and a left fold of tiles, without the scan. Blocks take tiles in order, fold
/// their rows and publish the aggregates; warps of one block fold those from left to right while the others read on, so
/// that no pass over the aggregates is left when the last tile has been read. One launch.
#pragma once

#include <cstdint>

#include <polyscan/cuda/arch.cuh>
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
    static constexpr int fold_warps = tuning::reduce_fold_warps;
    static constexpr int threads = tuning::row_threads + fold_warps * warp_size;
    using group = thread_group<tuning::row_threads, threads>;
    static constexpr int rows_each = rows / group::warps; // of a warp
    static constexpr int batch = tuning::reduce_batch<A>;
    static constexpr int window = warp_size * tuning::reduce_cells_at_once<A>;
    static_assert(row % warp_size == 0 && rows % group::warps == 0);

    struct shared {
        // Two of each in turn: a block begins with the next tile while its leader still works on this one.
        alignas(sizeof(uint4)) shared_array<A, rows> totals[2];
        std::uint32_t next[2];
        shared_array<A, row> last_row;
        /// Of a folding warp: its window, and what is before it.
        struct part {
            alignas(sizeof(uint4)) shared_array<A, window> aggregates;
            shared_array<A, 1> sum;
            arch::phase_barrier is_turn; ///< ends a phase for each window but the first of all
        } parts[fold_warps];
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

/// The rows of a whole tile that a warp folds, on their way to its registers.
template <class KernelRequest>
struct warp_rows {
    using kernel = reduce_kernel<KernelRequest>;
    using A = typename kernel::A;
    using group = typename kernel::group;
    slot<A> v[kernel::rows_each][kernel::run];

    /// All reads are under way when it returns.
    __device__ void load(const KernelRequest& request, index_type first) {
#pragma unroll
        for (int k = 0; k < kernel::rows_each; ++k)
            request.template load_run<kernel::run>(
                first + (group::warp() * kernel::rows_each + k) * kernel::row + group::lane() * kernel::run, v[k]);
    }
    /// Their totals, each by a balanced tree.
    __device__ void fold(const KernelRequest& request, shared_array<A, kernel::rows>& totals) {
#pragma unroll
        for (int k = 0; k < kernel::rows_each; ++k) {
            const A total = fold_lanes<warp_size>(request.op, fold_run(request.op, v[k]));
            if (group::lane() == 0) totals[group::warp() * kernel::rows_each + k] = total;
        }
    }
};

/// The same for the last tile, which may end anywhere.
template <class KernelRequest>
__device__ void
fold_partial_tile(const KernelRequest& request, index_type first, int count,
                  shared_array<typename KernelRequest::accumulator_type, reduce_kernel<KernelRequest>::rows>& totals,
                  typename reduce_kernel<KernelRequest>::shared& shared) {
    using kernel = reduce_kernel<KernelRequest>;
    using A = typename kernel::A;
    using group = typename kernel::group;
#pragma unroll 1
    for (int k = 0; k < kernel::rows_each; ++k) {
        const int row = group::warp() * kernel::rows_each + k, at = row * kernel::row;
        if (at >= count) return;
        slot<A> total;
        if (count - at >= kernel::row) {
            slot<A> v[kernel::run];
            request.template load_run<kernel::run>(first + at + group::lane() * kernel::run, v);
            total.value = fold_lanes<warp_size>(request.op, fold_run(request.op, v));
        } else {
            total.value = fold_partial_row(request, first + at, count - at, shared.last_row);
        }
        if (group::lane() == 0) totals[row] = total.value;
    }
}

/// The left fold of the first `count` values, at least one, behind `before`, in batches: a sum waits for the sum before
/// it and not for a read.
template <class Operator, class A, int N>
__device__ A fold_values(const Operator& op, const maybe<A>& before, const shared_array<A, N>& values, int count,
                         int from = 0) {
    constexpr int batch = tuning::reduce_batch<A>;
    constexpr bool in_words = batch * sizeof(A) % sizeof(uint4) == 0;
    struct alignas(in_words ? sizeof(uint4) : alignof(A)) batch_values {
        slot<A> of[batch];
    };
    const auto read = [&](int i) { return *reinterpret_cast<const batch_values*>(&values[i]); };
    count += from;
    slot<A> sum;
    int done = from; // at the beginning of a batch
    if (before.present) {
        sum.value = before.place.value;
    } else {
        sum.value = values[0];
        done = batch < count ? batch : count;
#pragma unroll 1
        for (int i = 1; i < done; ++i) sum.value = polyscan::combine(op, sum.value, A(values[i]));
    }
    if (done + batch <= count) {
        batch_values next = read(done);
        for (done += batch; done + batch <= count; done += batch) {
            const batch_values now = next;
            next = read(done);
#pragma unroll
            for (int i = 0; i < batch; ++i) sum.value = polyscan::combine(op, sum.value, now.of[i].value);
        }
#pragma unroll
        for (int i = 0; i < batch; ++i) sum.value = polyscan::combine(op, sum.value, next.of[i].value);
    }
#pragma unroll 1
    for (; done < count; ++done) sum.value = polyscan::combine(op, sum.value, A(values[done]));
    return sum.value;
}

/// By several warps: all aggregates in order. They take windows in turn; the sum goes from warp to warp. Whoever
/// publishes an aggregate has drawn its ticket and waits for nobody.
template <class KernelRequest>
__device__ void fold_aggregates(const KernelRequest& request, const cells<typename KernelRequest::accumulator_type>& of,
                                std::uint32_t tiles, typename reduce_kernel<KernelRequest>::shared& shared, int me) {
    using kernel = reduce_kernel<KernelRequest>;
    using A = typename kernel::A;
    constexpr int each = kernel::window / warp_size;
    constexpr bool exact = exactly_associative<typename KernelRequest::operator_type, A>;
    constexpr std::uint32_t window = kernel::window, stride = kernel::fold_warps * window;
    const int lane = static_cast<int>(threadIdx.x) % warp_size;
    auto& mine = shared.parts[me];
    // The lane's cell k of a window. Where every order of association gives the same bits, a lane has neighbours.
    const auto place = [&](int k) { return exact ? lane * each + k : k * warp_size + lane; };
    typename cells<A>::image seen[each];
    const auto fetch = [&](std::uint32_t first) {
#pragma unroll
        for (int k = 0; k < each; ++k) seen[k] = of.fetch(min(first + place(k), tiles - 1)); // no branch before a read
    };
    maybe<A> sum = request.init;
    unsigned parity = 0;
    std::uint32_t first = static_cast<unsigned>(me) * window;
    if (first < tiles) fetch(first);
    for (; first < tiles; first += stride) {
        const int size = static_cast<int>(min(window, tiles - first));
        bool is_turn = first == 0;
        for (int done = 0; done < size;) {
            slot<A> value[each];
            int reached = kernel::window; // the first that is missing
#pragma unroll
            for (int k = each - 1; k >= 0; --k) {
                const bool known = of.decode(seen[k], value[k]) != tile_state::empty;
                if (known) mine.aggregates[place(k)] = value[k].value;
                if constexpr (exact) {
                    if (!known) reached = place(k);
                } else {
                    const unsigned missing = ~__ballot_sync(whole_warp, known);
                    if (missing != 0) reached = k * warp_size + __ffs(static_cast<int>(missing)) - 1;
                }
            }
            if constexpr (exact) reached = __reduce_min_sync(whole_warp, reached);
            // Whole batches, but at the end.
            reached = reached < size ? reached / kernel::batch * kernel::batch : size;
            fetch(reached == size ? first + stride : first); // on their way while these are folded
            const bool as_tree = exact && done == 0 && reached == kernel::window;
            slot<A> total;
            if (as_tree) total.value = fold_lanes<warp_size>(request.op, fold_run(request.op, value));
            if (!is_turn) {
                // A window that is not whole is folded in parts, as soon as it is its turn.
                if (reached < size && __shfl_sync(whole_warp, static_cast<int>(mine.is_turn.has_ended(parity)), 0) == 0)
                    continue;
                mine.is_turn.wait(parity);
                parity ^= 1;
                is_turn = true;
                sum.set(mine.sum[0]);
            }
            if (as_tree) {
                sum.set(cuda::combine(request.op, sum, total.value));
            } else if (reached > done) {
                __syncwarp(); // read after write: every lane reads all of them
                sum.set(fold_values(request.op, sum, mine.aggregates, reached - done, done));
            }
            done = reached;
            __syncwarp(); // write after read: the next ones take their places; and the sum before
        }
        if (lane == 0) {
            if (first + window < tiles) {
                auto& next = shared.parts[me + 1 == kernel::fold_warps ? 0 : me + 1];
                next.sum[0] = sum.place.value;
                next.is_turn.arrive();
            } else if (request.total != nullptr) {
                *request.total = sum.place.value;
            }
        }
    }
}

template <class KernelRequest>
__global__ void __launch_bounds__(reduce_kernel<KernelRequest>::threads, tuning::reduce_blocks_per_multiprocessor)
    reduce_tiles(const __grid_constant__ KernelRequest request, const ticket_counter counter) {
    using kernel = reduce_kernel<KernelRequest>;
    using A = typename kernel::A;
    using group = typename kernel::group;
    auto& shared = block_memory<typename kernel::shared>();

    if (group::is_leader()) {
        shared.first = counter.draw();
        for (auto& part : shared.parts) part.is_turn.begin(1);
    }
    __syncthreads(); // read after write: everybody, the folding warps included, reads the first ticket
    const ticket first = shared.first;
    const index_type tiles = ceil_div(request.size(), index_type{kernel::elements});
    const cells<A> aggregates(counter.cells_memory(), first.epoch);
    const bool folds = first.number == 0; // this block's further warp is the folding one

    if (group::rank() >= group::count) {
        if (!folds) return;
        const int me = group::warp() - group::warps;
        if (tiles > 0)
            fold_aggregates(request, aggregates, static_cast<std::uint32_t>(tiles), shared, me);
        else if (me == 0 && group::lane() == 0)
            store_empty_total(request);
        // The one with the last window has seen all others fold.
        if (me != static_cast<int>((max(tiles, index_type{1}) - 1) / kernel::window % kernel::fold_warps)) return;
        // It has read the last cell, so it retires for its block: whose leader draws a ticket for the last time before
        // it publishes its last tile, which this warp has seen.
        if (group::lane() == 0) counter.retire(first.epoch);
        return;
    }
    const auto publish = [&](index_type tile, int count, int turn) {
        const int rows = (count + kernel::row - 1) / kernel::row;
        aggregates.publish(tile, tile_state::aggregate, fold_values(request.op, maybe<A>(), shared.totals[turn], rows));
    };
    int turn = 0;
    index_type before = -1; // the tile whose rows have been folded, but not their totals
    for (index_type tile = first.number; tile < tiles; tile = shared.next[turn ^ 1]) {
        std::uint32_t next = 0;
        if (group::is_leader()) next = counter.draw().number; // on its way while the tile is read
        const index_type begin = tile * kernel::elements, left = request.size() - begin;
        const int count = left < kernel::elements ? static_cast<int>(left) : kernel::elements;
        warp_rows<KernelRequest> rows;
        if (count == kernel::elements) rows.load(request, begin);
        // While those reads are under way. Only the last tile is not whole, and nothing comes behind it.
        if (group::is_leader() && before >= 0) publish(before, kernel::elements, turn ^ 1);
        if (count == kernel::elements)
            rows.fold(request, shared.totals[turn]);
        else
            fold_partial_tile(request, begin, count, shared.totals[turn], shared);
        if (group::is_leader()) shared.next[turn] = next;
        // Read after write: the leader reads the totals of all rows, everybody the next ticket. The next tile uses the
        // other half of both, and this one again only after that tile's barrier.
        group::sync();
        before = tile;
        turn ^= 1;
    }
    if (!group::is_leader()) return;
    if (before >= 0) {
        const index_type left = request.size() - before * kernel::elements;
        publish(before, left < kernel::elements ? static_cast<int>(left) : kernel::elements, turn ^ 1);
    }
    if (!folds) counter.retire(first.epoch);
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
