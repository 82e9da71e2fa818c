// SPDX-License-Identifier: Apache-2.0
/// Each thread scans a run of consecutive elements sequentially, Kogge-Stone scans the run totals, and what lies before
/// a run is put before its elements. A thread holds its runs in registers. Neighbouring threads have neighbouring runs,
/// which they read and write as words of 16 bytes: a warp accesses whole lines.
#pragma once

#include <polyscan/cuda/block/kogge_stone.cuh>

namespace polyscan::cuda {

template <class KernelRequest, class Group>
class tile_scan<block::coarse, KernelRequest, Group> {
    using A = typename KernelRequest::accumulator_type;
    static constexpr tile_shape shape = shape_for<block::coarse, A>;
    static constexpr int runs = static_cast<int>(shape.threads);
    static constexpr int run = static_cast<int>(shape.run);
    using rounds = kogge_stone_rounds<Group, A, runs>;
    static constexpr int each = rounds::rows::each; // runs of a thread

public:
    using group = Group;
    static constexpr int elements = runs * run;
    struct storage {
        typename rounds::buffers totals;
        shared_array<A, 1> last_total; // of the last run, by itself
    };

    __device__ explicit tile_scan(storage& shared) : shared_(shared) {}

    __device__ void load(const KernelRequest& request, index_type first, int count) {
        first_ = first;
        count_ = count;
        if (count == elements) {
#pragma unroll
            for (int k = 0; k < each; ++k) request.template load_run<run>(first + begin(k), v_[k]);
        } else {
#pragma unroll
            for (int k = 0; k < each; ++k)
#pragma unroll
                for (int e = 0; e < run; ++e)
                    if (exists(k, e)) v_[k][e].value = request.load(first + begin(k) + e);
        }
    }

    template <class Publish>
    __device__ void scan(const KernelRequest& request, Publish publish) {
        const int present = (count_ + run - 1) / run; // runs; the last one may be shorter
        Group::sync(); // write after read: totals of the tile before were read when it was published and stored
        typename rounds::values total;
#pragma unroll
        for (int k = 0; k < each; ++k) {
            total[k].value = v_[k][0].value;
#pragma unroll
            for (int e = 1; e < run; ++e) {
                if (!exists(k, e)) continue;
                total[k].value = polyscan::combine(request.op, total[k].value, v_[k][e].value);
                v_[k][e].value = total[k].value;
            }
            if (rounds::rows::place(k) == present - 1) shared_.last_total[0] = total[k].value;
        }
        free_ = rounds::template run<false>(request.op, shared_.totals, total, present);
#pragma unroll
        for (int k = 0; k < each; ++k)
            if (exists(k, 0)) shared_.totals[free_][rounds::rows::place(k)] = total[k].value;
        Group::sync(); // read after write: the leader and store() read totals of other threads
        if (Group::is_leader()) {
            const A last = shared_.last_total[0];
            publish(present == 1 ? last : polyscan::combine(request.op, A(shared_.totals[free_][present - 2]), last));
        }
    }

    /// For an exclusive scan, one place further on.
    __device__ void store(const KernelRequest& request, const tile_entry<A>& entry) {
#pragma unroll
        for (int k = 0; k < each; ++k) {
            if (!exists(k, 0)) continue;
            if (rounds::rows::place(k) > 0)
                put_before(request.op, A(shared_.totals[free_][rounds::rows::place(k) - 1]), k);
            if (entry.carry.present) put_before(request.op, entry.carry.place.value, k);
            const index_type first = first_ + begin(k);
            if (!request.exclusive && exists(k, run - 1)) {
                request.store_run(first, v_[k]);
                continue;
            }
            const int shift = request.exclusive ? 1 : 0;
#pragma unroll
            for (int e = 0; e < run; ++e)
                if (exists(k, e + shift)) request.store(first + e + shift, v_[k][e].value);
        }
        if (request.exclusive && Group::is_leader()) request.store(first_, entry.previous.place.value);
    }

    /// The aggregate of a full tile, by one warp: op(Kogge-Stone over all runs but the last, the last run). That
    /// Kogge-Stone prefix is a balanced tree over `runs` places of which the first is empty.
    __device__ static A fold(const KernelRequest& request, index_type first) {
        const int lane = static_cast<int>(threadIdx.x) % warp_size;
        constexpr int chunks = runs / warp_size;
        constexpr int at_once = tuning::shuffles_rounds<A> ? tuning::fold_batch(sizeof(A)) : 1;
        static_assert(chunks >= 1 && chunks <= warp_size);
        maybe<A> mine; // lane c, c + chunks, ...: the fold of places 32 c, ..., 32 c + 31; place p has run p - 1
#pragma unroll at_once
        for (int c = 0; c < chunks; ++c) {
            const int place = c * warp_size + lane;
            maybe<A> value;
            if (place > 0) value.set(fold_sequentially(request, first + index_type{place - 1} * run));
            value = fold_places<warp_size>(request.op, value);
            if (lane % chunks == c) mine = value;
        }
        mine = fold_places<chunks>(request.op, mine);
        const A last = fold_sequentially(request, first + index_type{runs - 1} * run);
        return cuda::combine(request.op, mine, last);
    }

private:
    /// Where the thread's k-th run begins in the tile.
    __device__ static int begin(int k) { return rounds::rows::place(k) * run; }
    /// Worked out afresh each time, as in rows_of.
    __device__ bool exists(int k, int e) const {
        int left = count_ - begin(0);
        asm volatile("" : "+r"(left));
        return k * warp_size * run + e < left;
    }
    template <class Operator>
    __device__ void put_before(const Operator& op, const A& earlier, int k) {
#pragma unroll
        for (int e = 0; e < run; ++e)
            if (exists(k, e)) v_[k][e].value = polyscan::combine(op, earlier, v_[k][e].value);
    }

    __device__ static A fold_sequentially(const KernelRequest& request, index_type begin) {
        slot<A> v[run];
        request.template load_run<run>(begin, v);
        A prefix = v[0].value;
#pragma unroll
        for (int i = 1; i < run; ++i) prefix = polyscan::combine(request.op, prefix, v[i].value);
        return prefix;
    }

    /// fold_lanes where the first place of all may be empty.
    template <int lanes, class Operator>
    __device__ static maybe<A> fold_places(const Operator& op, maybe<A> value) {
        const int lane = static_cast<int>(threadIdx.x) % warp_size;
#pragma unroll
        for (int distance = 1; distance < lanes; distance *= 2) {
            maybe<A> earlier, later;
            earlier.place.value = shuffle_xor(value.place.value, distance);
            earlier.present = __shfl_xor_sync(whole_warp, value.present, distance) != 0;
            later = value;
            if ((lane & distance) == 0) {
                later = earlier;
                earlier = value;
            }
            value = later;
            if (later.present) value.place.value = cuda::combine(op, earlier, later.place.value);
        }
        return value;
    }

    storage& shared_;
    slot<A> v_[each][run];
    index_type first_ = 0;
    int count_ = 0;
    int free_ = 0; ///< the buffer of the rounds that has their result
};

} // namespace polyscan::cuda
