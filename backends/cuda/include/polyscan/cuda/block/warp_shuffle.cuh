// SPDX-License-Identifier: Apache-2.0
/// Rows of 512 bytes. A lane holds 16 bytes of a row in registers; Sklansky's tree runs first inside the lane, then
/// across the lanes by shuffles. The row totals of a tile are folded from the left by one thread.
///
/// A row of large elements has fewer than 32 of them: then a warp holds several rows side by side.
#pragma once

#include <algorithm>

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
    struct storage {
        shared_array<A, rows> totals;  // of each row
        shared_array<A, rows> offsets; // fold of the totals of the rows before; row 0 has none
    };

    __device__ explicit tile_scan(storage& shared) : shared_(shared) {}

    __device__ void load(const KernelRequest& request, index_type first, int count) {
        first_ = first;
        count_ = count;
        left_ = count - place(0);
        whole_ = (Group::warp() + 1) * (steps * step) <= count;
        if (whole_) {
#pragma unroll
            for (int k = 0; k < steps; ++k) request.load_run(first + place(k), v_[k]);
        } else {
#pragma unroll
            for (int k = 0; k < steps; ++k)
#pragma unroll
                for (int e = 0; e < run; ++e)
                    if (present(k, e)) v_[k][e].value = request.load(first + place(k) + e);
        }
    }

    template <class Publish>
    __device__ void scan(const KernelRequest& request, Publish publish) {
        if (whole_)
            scan_rows<true>(request.op);
        else
            scan_rows<false>(request.op);
        Group::sync(); // read after write: the leader reads the totals of all rows
        if (Group::is_leader()) publish(fold_totals(request.op));
        Group::sync();                            // read after write: everybody reads the leader's offsets
        if constexpr (!regroups<KernelRequest>) { // else store() does it, with the carry
            if (whole_)
                put_offsets_before<true>(request.op);
            else
                put_offsets_before<false>(request.op);
        }
    }

    __device__ void store(const KernelRequest& request, const tile_entry<A>& entry) {
        if (whole_)
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
    /// Exact operators put the carry before the offset of a row, and both before its elements: one operation less.
    template <class Request>
    static constexpr bool regroups = exactly_associative<typename Request::operator_type, A>;

    /// Where this lane's k-th run starts in the tile.
    __device__ static int place(int k) { return Group::warp() * (steps * step) + Group::lane() * run + k * step; }
    __device__ static int row_of(int k) {
        return Group::warp() * (steps * rows_at_once) + Group::lane() / lanes + k * rows_at_once;
    }
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
    template <bool Full, class Operator>
    __device__ void put_offsets_before(const Operator& op) {
#pragma unroll
        for (int k = 0; k < steps; ++k)
            if (row_of(k) > 0 && (Full || present(k, 0))) put_before<Full>(op, A(shared_.offsets[row_of(k)]), k);
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
            if constexpr (Full) {
                request.store_run(first_ + place(k), v_[k]);
            } else {
#pragma unroll
                for (int e = 0; e < run; ++e)
                    if (present(k, e)) request.store(first_ + place(k) + e, v_[k][e].value);
            }
        }
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
        // Across lanes: the upper half of every group of 2 d lanes takes in the last element of the lower half.
#pragma unroll
        for (int d = 1; d < lanes; d *= 2) {
            constexpr int at_once = std::min(steps, tuning::rows_at_once<A>);
#pragma unroll
            for (int first = 0; first < steps; first += at_once) {
                slot<A> below[at_once];
#pragma unroll
                for (int k = 0; k < at_once; ++k)
                    below[k].value = shuffle_from(v_[first + k][run - 1].value, d - 1, 2 * d);
                if ((Group::lane() & d) != 0) {
#pragma unroll
                    for (int k = 0; k < at_once; ++k) put_before<Full>(op, below[k].value, first + k);
                }
            }
        }
        // The total of a row is its last element that exists.
#pragma unroll
        for (int k = 0; k < steps; ++k) {
            if constexpr (Full) {
                if (Group::lane() % lanes == lanes - 1) shared_.totals[row_of(k)] = v_[k][run - 1].value;
            } else {
                // The last of the row, or the last of all.
#pragma unroll
                for (int e = 0; e < run; ++e)
                    if (present(k, e) && ((e == run - 1 && Group::lane() % lanes == lanes - 1) || !present(k, e + 1)))
                        shared_.totals[row_of(k)] = v_[k][e].value;
            }
        }
    }

    /// By the leader: the offset of every row, and the aggregate.
    template <class Operator>
    __device__ A fold_totals(const Operator& op) {
        const int present = (count_ + row - 1) / row;
        A sum = shared_.totals[0];
        if (present == rows) {
            // Batches: the reads of one do not wait for its sums.
            constexpr int batch = tuning::fold_batch(sizeof(A));
#pragma unroll 1
            for (int r = 0; r < rows; r += batch) {
                slot<A> next[batch];
#pragma unroll
                for (int i = 0; i < batch; ++i) next[i].value = shared_.totals[r + i];
#pragma unroll
                for (int i = 0; i < batch; ++i) {
                    if (i == 0 && r == 0) continue; // row 0 has no offset
                    shared_.offsets[r + i] = sum;
                    sum = polyscan::combine(op, sum, next[i].value);
                }
            }
        } else {
            for (int r = 1; r < present; ++r) {
                shared_.offsets[r] = sum;
                sum = polyscan::combine(op, sum, shared_.totals[r]);
            }
        }
        return sum;
    }

    /// The output before the lane's k-th row: op(carry, offset of the row).
    template <class Operator>
    __device__ maybe<A> before_row(const Operator& op, const tile_entry<A>& entry, int k) const {
        if (row_of(k) == 0 || !present(k, 0)) return entry.carry;
        return maybe<A>(cuda::combine(op, entry.carry, A(shared_.offsets[row_of(k)])));
    }

    /// The outputs of the k-th run move one place on. Lane 0 takes the output before the warp's first row of that step.
    /// One run at a time: all at once, old and new ones would need twice the registers.
    template <class Operator>
    __device__ void shift(const Operator& op, const tile_entry<A>& entry, int k) {
        slot<A> before;
        before.value = shuffle_up(v_[k][run - 1].value, 1);
        if (Group::lane() == 0 && present(k, 0))
            before.value = row_of(k) == 0 ? entry.previous.place.value
                                          : cuda::combine(op, entry.carry, A(shared_.offsets[row_of(k)]));
#pragma unroll
        for (int e = run - 1; e > 0; --e) v_[k][e].value = v_[k][e - 1].value;
        v_[k][0].value = before.value;
    }

    storage& shared_;
    slot<A> v_[steps][run];
    index_type first_ = 0;
    int count_ = 0;
    bool whole_ = false; ///< all elements of this warp's rows exist
    int left_ = 0;       ///< of the tile from this lane's first element on
};

} // namespace polyscan::cuda
