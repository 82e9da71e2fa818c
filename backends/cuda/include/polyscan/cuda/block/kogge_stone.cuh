// SPDX-License-Identifier: Apache-2.0
/// Step doubling: in the round with stride s, element t takes in element t - s. Every element is active in every round;
/// ceil(log2 T) rounds.
#pragma once

#include <type_traits>

#include <polyscan/cuda/block/balanced_fold.cuh>
#include <polyscan/cuda/block/tile_scan.hpp>

namespace polyscan::cuda {

/// Elements t = rank + k * threads of a thread, in registers.
template <class Group, class A, int N>
using own_values = slot<A>[(N + Group::count - 1) / Group::count];

/// Rounds over buffer[0][0, count), whose elements each thread has in `own` too; the prefixes are in `own` afterwards,
/// and in the buffer whose number is returned. Two buffers: a round reads one and writes the other, so nobody
/// overwrites a value that another thread has yet to read (write after read), and one barrier a round is enough.
template <class Group, class Operator, class A, int N>
__device__ int kogge_stone_rounds(const Operator& op, shared_array<A, N> (&buffer)[2], own_values<Group, A, N>& own,
                                  int count) {
    constexpr int each = std::extent_v<own_values<Group, A, N>>;
    int front = 0;
    for (int s = 1; s < count; s *= 2) {
#pragma unroll
        for (int k = 0; k < each; ++k) {
            const int t = Group::rank() + k * Group::count;
            if (t >= s && t < count) own[k].value = polyscan::combine(op, buffer[front][t - s], own[k].value);
        }
#pragma unroll
        for (int k = 0; k < each; ++k) { // after all reads, so that none waits for a write before it
            const int t = Group::rank() + k * Group::count;
            if (t < count) buffer[1 - front][t] = own[k].value;
        }
        // Read after write: the next round reads what this one wrote. Write after read: it overwrites what this one
        // read.
        Group::sync();
        front = 1 - front;
    }
    return front;
}

template <class KernelRequest, class Group>
class tile_scan<block::kogge_stone, KernelRequest, Group> {
    using A = typename KernelRequest::accumulator_type;

public:
    static constexpr int elements = static_cast<int>(shape_for<block::kogge_stone, A>.elements());
    struct storage {
        shared_array<A, elements> buffer[2];
    };

    __device__ explicit tile_scan(storage& shared) : shared_(shared) {}

    __device__ void load(const KernelRequest& request, index_type first, int count) {
        first_ = first;
        count_ = count;
        Group::sync(); // write after read: the tile before may still be stored from these buffers
        load_tile<Group, elements>(request, first, count, [&](int t, int k, const A& value) {
            shared_.buffer[0][t] = value;
            own_[k].value = value;
        });
        Group::sync(); // read after write: round 1 reads what other threads loaded
    }

    template <class Publish>
    __device__ void scan(const KernelRequest& request, Publish publish) {
        front_ = kogge_stone_rounds<Group>(request.op, shared_.buffer, own_, count_);
        if (Group::is_leader()) publish(shared_.buffer[front_][count_ - 1]);
    }

    __device__ void store(const KernelRequest& request, const tile_entry<A>& entry) const {
        if (!request.exclusive) { // every thread has what it stores
#pragma unroll
            for (int k = 0; k < std::extent_v<decltype(own_)>; ++k) {
                const int t = Group::rank() + k * Group::count;
                if (t < count_) request.store(first_ + t, combine(request.op, entry.carry, own_[k].value));
            }
            return;
        }
        store_outputs_of(request, first_, count_, entry, Group::rank(), Group::count,
                         [&](int t) -> const A& { return shared_.buffer[front_][t]; });
    }

    /// The aggregate of a full tile, by one warp.
    __device__ static A fold(const KernelRequest& request, index_type first) {
        return balanced_fold<elements>(request, first);
    }

private:
    storage& shared_;
    own_values<Group, A, elements> own_;
    index_type first_ = 0;
    int count_ = 0;
    int front_ = 0; ///< the buffer with the prefixes
};

} // namespace polyscan::cuda
