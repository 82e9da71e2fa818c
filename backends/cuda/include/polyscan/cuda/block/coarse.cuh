// SPDX-License-Identifier: Apache-2.0
/// Each thread scans a run of consecutive elements sequentially, Kogge-Stone scans the run totals, and what lies before
/// a run is put before its elements. Loads and stores go through shared memory, where neighbouring threads access
/// neighbouring elements.
#pragma once

#include <polyscan/cuda/block/brent_kung.cuh>
#include <polyscan/cuda/block/kogge_stone.cuh>

namespace polyscan::cuda {

template <class KernelRequest, class Group>
class tile_scan<block::coarse, KernelRequest, Group> {
    using A = typename KernelRequest::accumulator_type;
    static constexpr tile_shape shape = shape_for<block::coarse, A>;
    static constexpr int runs = static_cast<int>(shape.threads);
    static constexpr int run = static_cast<int>(shape.run);
    // Threads read their runs at a distance of `run` elements; spread them over the banks where there is room.
    static constexpr bool spreads = sizeof(A) <= sizeof(std::uint64_t);
    using spread = bank_spread<A>;

public:
    static constexpr int elements = runs * run;
    struct storage {
        shared_array<A, spreads ? spread::places(elements) : elements> values;
        shared_array<A, runs> totals[2];
    };

    __device__ explicit tile_scan(storage& shared) : shared_(shared) {}

    __device__ void load(const KernelRequest& request, index_type first, int count) {
        first_ = first;
        count_ = count;
        Group::sync(); // write after read: the tile before may still be stored from this buffer
        load_tile<Group, elements>(request, first, count, [&](int t, int, const A& value) { at(t) = value; });
        Group::sync(); // read after write: a run was loaded by several threads
    }

    template <class Publish>
    __device__ void scan(const KernelRequest& request, Publish publish) {
        const int present = (count_ + run - 1) / run; // runs; the last one may be shorter
        own_values<Group, A, runs> total;
#pragma unroll
        for (int k = 0; k < std::extent_v<decltype(total)>; ++k) {
            const int r = Group::rank() + k * Group::count;
            if (r >= present) continue;
            const int begin = r * run;
            const int end = begin + run < count_ ? begin + run : count_;
            A prefix = at(begin);
            for (int i = begin + 1; i < end; ++i) {
                prefix = polyscan::combine(request.op, prefix, at(i));
                at(i) = prefix;
            }
            shared_.totals[0][r] = prefix;
            total[k].value = prefix;
        }
        Group::sync(); // read after write: round 1 reads the totals of other threads; store() reads their runs
        front_ = kogge_stone_rounds<Group>(request.op, shared_.totals, total, present);
        if (Group::is_leader()) publish(local(request, count_ - 1));
    }

    __device__ void store(const KernelRequest& request, const tile_entry<A>& entry) const {
        store_outputs_of(request, first_, count_, entry, Group::rank(), Group::count,
                         [&](int t) { return local(request, t); });
    }

    /// The aggregate of a full tile, by one warp: op(Kogge-Stone over all runs but the last, the last run). That
    /// Kogge-Stone prefix is a balanced tree over `runs` places of which the first is empty.
    __device__ static A fold(const KernelRequest& request, index_type first) {
        const int lane = static_cast<int>(threadIdx.x) % warp_size;
        constexpr int chunks = runs / warp_size;
        static_assert(chunks >= 1 && chunks <= warp_size);
        maybe<A> mine; // lane c, c + chunks, ...: the fold of places 32 c, ..., 32 c + 31; place p has run p - 1
#pragma unroll 2
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
    __device__ A& at(int i) const { return shared_.values[spreads ? spread::place(i) : i]; }

    __device__ A local(const KernelRequest& request, int i) const {
        return i < run ? at(i) : polyscan::combine(request.op, shared_.totals[front_][i / run - 1], at(i));
    }

    __device__ static A fold_sequentially(const KernelRequest& request, index_type begin) {
        A prefix = request.load(begin);
        for (int i = 1; i < run; ++i) prefix = polyscan::combine(request.op, prefix, request.load(begin + i));
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
    index_type first_ = 0;
    int count_ = 0;
    int front_ = 0; ///< the buffer with the prefixes of the totals
};

} // namespace polyscan::cuda
