// SPDX-License-Identifier: Apache-2.0
/// Rows of at most 640 bytes, mostly 512. A lane holds 16 bytes of a row in registers; Sklansky's tree runs first
/// inside the lane, then across the lanes by shuffles. The row totals of a tile are folded from the left by one thread.
///
/// A row of large elements has fewer than 32 of them: then a warp holds several rows side by side.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include <polyscan/cuda/block/balanced_fold.cuh>
#include <polyscan/cuda/block/tile_scan.hpp>
#include <polyscan/cuda/tuning.hpp>

namespace polyscan::cuda {

template <class KernelRequest, class Group>
class tile_scan<block::warp_shuffle, KernelRequest, Group> {
    using A = typename KernelRequest::accumulator_type;
    static constexpr tile_shape shape = shape_for<block::warp_shuffle, A>;
    static constexpr int rows = static_cast<int>(shape.threads);
    static constexpr int row = static_cast<int>(shape.run);
    static constexpr int lanes = std::min(row, warp_size);           // of a row
    static constexpr int run = row / lanes;                          // elements of a row in one lane
    static constexpr int rows_at_once = warp_size / lanes;           // side by side in a warp
    static constexpr int step = warp_size * run;                     // elements that a warp holds side by side
    static constexpr int steps = rows / rows_at_once / Group::warps; // how often, one below the other
    static_assert(steps >= 1 && steps * rows_at_once * Group::warps == rows);

public:
    using group = Group;
    static constexpr int elements = rows * row;
    /// Blocks of a cluster send it in whole words.
    union alignas(std::max(alignof(A), alignof(std::uint32_t))) total_type {
        A value;
        __device__ total_type() {}
    };
    struct storage {
        alignas(16) shared_array<total_type, rows> totals; // of each row
        shared_array<A, rows> offsets;                     // fold of the totals of the rows before; row 0 has none
    };

    __device__ explicit tile_scan(storage& shared) : shared_(&shared) {}

    __device__ void load(const KernelRequest& request, index_type first, int count) {
        take(first, count);
        load(request);
    }
    /// The same in two steps, of which the first touches no memory. All that it works out goes into its result, which
    /// is not the least int (arch::wait_for_earlier_launch).
    __device__ int take(index_type first, int count) {
        first_ = first + place(0);
        count_ = count;
        left_ = count - place(0);
        whole_ = (Group::warp() + 1) * (steps * step) <= count;
        return left_ ^ static_cast<int>(first_ & 0xffff);
    }
    __device__ void load(const KernelRequest& request) {
        if (whole_ && request.template loads_words<run>()) {
#pragma unroll
            for (int k = 0; k < steps; ++k) request.load_words(first_ + k * step, v_[k]);
        } else {
#pragma unroll
            for (int k = 0; k < steps; ++k)
#pragma unroll
                for (int e = 0; e < run; ++e) {
                    if constexpr (takes_anything) v_[k][e].value = A{};
                    if (present(k, e)) v_[k][e].value = request.load(first_ + k * step + e);
                }
        }
    }

    template <class Publish>
    __device__ void scan(const KernelRequest& request, Publish publish) {
        if (has_rows()) scan_existing_rows(request.op);
        Group::sync(); // read after write: the leader reads the totals of all rows
        if (Group::is_leader()) publish(fold_totals(request.op));
        Group::sync(); // read after write: everybody reads the leader's offsets
        // Else store() does it, with the carry.
        if constexpr (!regroups<KernelRequest>)
            if (has_rows()) put_existing_offsets(request.op);
    }
    /// The same in pieces, by warps that tell each other more than that. First the rows, whose totals are in the
    /// storage then.
    __device__ void scan_rows_alone(const KernelRequest& request) { scan_existing_rows(request.op); }
    /// `sum` is the fold of the rows before the warp's own, if there are any; and then of those, too.
    __device__ void put_offsets_alone(const KernelRequest& request, slot<A>& sum) {
        const int first = Group::warp() * (steps * rows_at_once);
        slot<A> total[steps * rows_at_once];
#pragma unroll
        for (int i = 0; i < steps * rows_at_once; ++i) total[i].value = shared_->totals[first + i].value;
#pragma unroll
        for (int k = 0; k < steps; ++k)
#pragma unroll
            for (int i = 0; i < rows_at_once; ++i) {
                const int r = first + k * rows_at_once + i;
                if (r * row >= count_) break;
                if (r == row_of(k)) offset_[k].value = sum.value;
                const A& own = total[k * rows_at_once + i].value;
                sum.value = r == 0 ? own : polyscan::combine(request.op, sum.value, own);
            }
        if constexpr (!regroups<KernelRequest>) put_existing_offsets(request.op);
    }

    /// A tile that was put aside, each thread's elements in places of its own.
    struct aside {
        alignas(16) unsigned char bytes[steps][Group::count][run * sizeof(A)];
    };
    /// The scanned tile goes there, and the one that was there comes back, of which `take` has been told. The storage
    /// of the one comes with it.
    __device__ void exchange(aside& other, storage& shared) {
        constexpr std::size_t alignment =
            std::min<std::size_t>(16, std::size_t{1} << std::countr_zero(run * sizeof(A)));
#pragma unroll
        for (int k = 0; k < steps; ++k) {
            void* const place = __builtin_assume_aligned(other.bytes[k][Group::rank()], alignment);
            slot<A> back[run];
            std::memcpy(static_cast<void*>(back), place, sizeof back);
            std::memcpy(place, static_cast<const void*>(v_[k]), sizeof back);
#pragma unroll
            for (int e = 0; e < run; ++e) v_[k][e].value = back[e].value;
        }
        shared_ = &shared;
    }

    __device__ void store(const KernelRequest& request, const tile_entry<A>& entry) {
        if (!has_rows()) return;
        if (is_whole())
            store_rows<true>(request, entry);
        else
            store_rows<false>(request, entry);
    }

    /// The aggregate of a full tile, by one warp: the last element of Sklansky's tree is a balanced tree.
    __device__ static A fold(const KernelRequest& request, index_type first) {
        slot<A> sum;
#pragma unroll 4
        for (int k = 0; k < rows / rows_at_once; ++k) {
            slot<A> v[run];
            request.load_run(first + k * step + Group::lane() * run, v);
            const A total = fold_lanes<lanes>(request.op, fold_run(request.op, v));
#pragma unroll
            for (int r = 0; r < rows_at_once; ++r) {
                const A next = lanes == warp_size ? total : shuffle_from(total, r * lanes);
                sum.value = k + r == 0 ? next : polyscan::combine(request.op, sum.value, next);
            }
        }
        return sum.value;
    }

private:
    template <class Request>
    static constexpr bool is_exact = exactly_associative<typename Request::operator_type, A>;
    /// Exact operators put the carry before the offset of a row, and both before its elements: one operation less.
    /// (Where a tile is put aside, its offsets are in it by then: its registers are others' meanwhile.)
    template <class Request>
    static constexpr bool regroups = is_exact<Request> && !requires { Group::puts_aside; };
    /// Then absent elements are not asked for: anything stands in their places, and nothing that exists depends on
    /// them.
    static constexpr bool takes_anything = detail::takes_anything<typename KernelRequest::operator_type, A>;

    /// Where this lane's k-th run starts in the tile.
    __device__ static int place(int k) { return Group::warp() * (steps * step) + Group::lane() * run + k * step; }
    __device__ static int row_of(int k) {
        return Group::warp() * (steps * rows_at_once) + Group::lane() / lanes + k * rows_at_once;
    }
    /// Where a tile is much smaller than the block, the warps that have none of it take no time from the others.
    __device__ bool has_rows() const { return Group::warp() * (steps * step) < count_; }
    /// Elements need not be asked whether they exist.
    __device__ bool is_whole() const { return takes_anything || whole_; }
    /// Element e of the lane's k-th run exists. One comparison with a constant: `left_` counts from the lane's first.
    /// Worked out afresh each time: kept for later, the answers for all elements would take as many registers as they
    /// do.
    __device__ bool present(int k, int e) const {
        int left = left_;
        asm volatile("" : "+r"(left));
        return k * step + e < left;
    }

    /// This lane's k-th run becomes op(earlier, run), element by element. Absent elements stay as they are.
    template <bool Full, class Operator>
    __device__ void put_before(const Operator& op, const A& earlier, int k) {
#pragma unroll
        for (int e = 0; e < run; ++e)
            if (Full || present(k, e)) v_[k][e].value = polyscan::combine(op, earlier, v_[k][e].value);
    }
    template <class Operator>
    __device__ void put_existing_offsets(const Operator& op) {
        if (is_whole())
            put_offsets_before<true>(op);
        else
            put_offsets_before<false>(op);
    }
    template <bool Full, class Operator>
    __device__ void put_offsets_before(const Operator& op) {
#pragma unroll
        for (int k = 0; k < steps; ++k)
            if (row_of(k) > 0 && (Full || present(k, 0))) put_before<Full>(op, offset(k), k);
    }

    /// The fold of the rows before the lane's k-th, of which there are some.
    __device__ A offset(int k) const {
        if constexpr (requires { Group::has_offsets_in_registers; })
            return offset_[k].value;
        else
            return shared_->offsets[row_of(k)];
    }
    template <bool Full>
    __device__ void store_rows(const KernelRequest& request, const tile_entry<A>& entry) {
#pragma unroll
        for (int k = 0; k < steps; ++k) {
            if constexpr (regroups<KernelRequest>) {
                const maybe<A> before = before_row(request.op, entry, k);
                if (before.present) put_before<Full>(request.op, before.place.value, k);
            } else {
                if (entry.carry.present) put_before<Full>(request.op, entry.carry.place.value, k);
            }
            if (request.exclusive) shift(request.op, entry, k);
        }
        if (whole_ && request.template stores_words<run>()) {
#pragma unroll
            for (int k = 0; k < steps; ++k) request.store_words(first_ + k * step, v_[k]);
        } else {
#pragma unroll
            for (int k = 0; k < steps; ++k)
#pragma unroll
                for (int e = 0; e < run; ++e)
                    if (present(k, e)) request.store(first_ + k * step + e, v_[k][e].value);
        }
    }

    template <class Operator>
    __device__ void scan_existing_rows(const Operator& op) {
        if (is_whole())
            scan_rows<true>(op);
        else
            scan_rows<false>(op);
    }
    template <bool Full, class Operator>
    __device__ void scan_rows(const Operator& op) {
        // Inside the lane. An absent element is not combined; what it would take in may be absent too.
#pragma unroll
        for (int s = 1; s < run; s *= 2)
#pragma unroll
            for (int k = 0; k < steps; ++k)
#pragma unroll
                for (int e = 0; e < run; ++e)
                    if ((e & s) != 0 && (Full || present(k, e)))
                        v_[k][e].value = polyscan::combine(op, v_[k][(e & ~(2 * s - 1)) + s - 1].value, v_[k][e].value);
        if constexpr (is_exact<KernelRequest> && run > 1)
            scan_lanes<Full>(op);
        else
            scan_halves<Full>(op);
        put_totals<Full>();
    }

    /// Across lanes, where grouping does not matter: the totals of runs are scanned, and put before the runs.
    template <bool Full, class Operator>
    __device__ void scan_lanes(const Operator& op) {
        const int lane = Group::lane() % lanes;
        slot<A> total[steps];
#pragma unroll
        for (int k = 0; k < steps; ++k) total[k].value = v_[k][run - 1].value;
#pragma unroll
        for (int d = 1; d < lanes; d *= 2)
#pragma unroll
            for (int k = 0; k < steps; ++k) {
                const A earlier = shuffle_up(total[k].value, d);
                if (lane >= d && (Full || present(k, run - 1)))
                    total[k].value = polyscan::combine(op, earlier, total[k].value);
            }
#pragma unroll
        for (int k = 0; k < steps; ++k) {
            const A before = shuffle_up(total[k].value, 1);
            if (lane > 0) put_before<Full>(op, before, k);
        }
    }
    /// -0 + x is x: then no addition is predicated, which would cost a move. It takes registers, which others lack.
    template <bool Full, class Operator>
    static constexpr bool adds_zero = Full && std::is_floating_point_v<A> && std::is_same_v<Operator, plus> &&
                                      requires { Group::has_offsets_in_registers; };
    /// Across lanes, in the policy's tree.
    template <bool Full, class Operator>
    __device__ void scan_halves(const Operator& op) {
        // The upper half of every group of 2 d lanes takes in the last element of the lower half.
#pragma unroll
        for (int d = 1; d < lanes; d *= 2) {
            constexpr int at_once = std::min(steps, tuning::rows_at_once<A>);
#pragma unroll
            for (int first = 0; first < steps; first += at_once) {
                slot<A> below[at_once];
#pragma unroll
                for (int k = 0; k < at_once; ++k)
                    below[k].value = shuffle_from(v_[first + k][run - 1].value, d - 1, 2 * d);
                const bool is_upper = (Group::lane() & d) != 0;
                if constexpr (adds_zero<Full, Operator>) {
#pragma unroll
                    for (int k = 0; k < at_once; ++k)
                        put_before<Full>(op, is_upper ? below[k].value : A(-0.0), first + k);
                } else if (is_upper) {
#pragma unroll
                    for (int k = 0; k < at_once; ++k) put_before<Full>(op, below[k].value, first + k);
                }
            }
        }
    }

    /// The total of a row is its last element that exists: the last of the row, or the last of all.
    template <bool Full>
    __device__ void put_totals() {
        constexpr bool none_absent = Full && !takes_anything;
#pragma unroll
        for (int k = 0; k < steps; ++k)
            if (Group::lane() % lanes == lanes - 1 && (none_absent || present(k, run - 1)))
                shared_->totals[row_of(k)].value = v_[k][run - 1].value;
        if (!none_absent && count_ % row != 0) {
#pragma unroll
            for (int k = 0; k < steps; ++k)
#pragma unroll
                for (int e = 0; e < run; ++e)
                    if (left_ == k * step + e + 1) shared_->totals[row_of(k)].value = v_[k][e].value;
        }
    }
    /// By the leader: the offset of every row, and the aggregate.
    template <class Operator>
    __device__ A fold_totals(const Operator& op) {
        const int present = (count_ + row - 1) / row;
        A sum = shared_->totals[0].value;
        if (present == rows) {
            // Batches: the reads of one do not wait for its sums.
            constexpr int batch = tuning::fold_batch(sizeof(A));
#pragma unroll 1
            for (int r = 0; r < rows; r += batch) {
                slot<A> next[batch];
#pragma unroll
                for (int i = 0; i < batch; ++i) next[i].value = shared_->totals[r + i].value;
#pragma unroll
                for (int i = 0; i < batch; ++i) {
                    if (i == 0 && r == 0) continue; // row 0 has no offset
                    shared_->offsets[r + i] = sum;
                    sum = polyscan::combine(op, sum, next[i].value);
                }
            }
        } else {
            for (int r = 1; r < present; ++r) {
                shared_->offsets[r] = sum;
                sum = polyscan::combine(op, sum, shared_->totals[r].value);
            }
        }
        return sum;
    }

    /// The output before the lane's k-th row: op(carry, offset of the row).
    template <class Operator>
    __device__ maybe<A> before_row(const Operator& op, const tile_entry<A>& entry, int k) const {
        if (row_of(k) == 0 || !present(k, 0)) return entry.carry;
        return maybe<A>(cuda::combine(op, entry.carry, offset(k)));
    }

    /// The outputs of the k-th run move one place on. Lane 0 takes the output before the warp's first row of that step.
    /// One run at a time: all at once, old and new ones would need twice the registers.
    template <class Operator>
    __device__ void shift(const Operator& op, const tile_entry<A>& entry, int k) {
        slot<A> before;
        before.value = shuffle_up(v_[k][run - 1].value, 1);
        if (Group::lane() == 0 && present(k, 0))
            before.value = row_of(k) == 0 ? entry.previous.place.value : cuda::combine(op, entry.carry, offset(k));
#pragma unroll
        for (int e = run - 1; e > 0; --e) v_[k][e].value = v_[k][e - 1].value;
        v_[k][0].value = before.value;
    }

    storage* shared_;
    slot<A> v_[steps][run];
    slot<A> offset_[steps]; ///< where the group has them in registers
    index_type first_ = 0;  ///< this lane's first element
    int count_ = 0;
    bool whole_ = false; ///< all elements of this warp's rows exist
    int left_ = 0;       ///< of the tile from this lane's first element on
};

} // namespace polyscan::cuda
