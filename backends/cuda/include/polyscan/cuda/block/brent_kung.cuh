// SPDX-License-Identifier: Apache-2.0
/// A reduction tree up, a distribution tree down: 2 T operations in 2 log2(T) - 1 rounds. Fewer operations than
/// Kogge-Stone, but most of the threads idle in most of the rounds.
#pragma once

#include <polyscan/cuda/block/balanced_fold.cuh>
#include <polyscan/cuda/block/tile_scan.hpp>

namespace polyscan::cuda {

/// Shared memory serves 128 bytes at once, 32 banks of 4. A round accesses every 2 s-th element, which would be the
/// same few banks for all threads; one unused place after every 128 bytes spreads them.
template <class A>
struct bank_spread {
    static constexpr int bank_row_bytes = 128;
    static constexpr int every = bank_row_bytes / static_cast<int>(sizeof(A));

    __host__ __device__ static constexpr int place(int i) { return i + i / every; }
    static constexpr int places(int n) { return place(n - 1) + 1; }
};

template <class KernelRequest, class Group>
class tile_scan<block::brent_kung, KernelRequest, Group> {
    using A = typename KernelRequest::accumulator_type;
    using spread = bank_spread<A>;

public:
    static constexpr int elements = static_cast<int>(shape_for<block::brent_kung, A>.elements());
    struct storage {
        shared_array<A, spread::places(elements)> values;
    };

    __device__ explicit tile_scan(storage& shared) : shared_(shared) {}

    __device__ void load(const KernelRequest& request, index_type first, int count) {
        first_ = first;
        count_ = count;
        Group::sync(); // write after read: the tile before may still be stored from this buffer
        load_tile<Group, elements>(request, first, count, [&](int t, int, const A& value) { at(t) = value; });
        Group::sync(); // read after write: the first round reads what other threads loaded
    }

    template <class Publish>
    __device__ void scan(const KernelRequest& request, Publish publish) {
        // Up: the right end of every block of 2 s elements takes in the right end of its left half. Thread k has node
        // (k + 1) * 2 s - 1: the active threads are the first ones, whole warps fall idle.
        for (int s = 1; s < count_; s *= 2) {
            for (int i = (Group::rank() + 1) * 2 * s - 1; i < count_; i += Group::count * 2 * s)
                at(i) = polyscan::combine(request.op, at(i - s), at(i));
            Group::sync(); // read after write: the next round reads nodes of this one
        }
        // Down: what is complete at the right end of a block goes to the middle of the next block.
        for (int s = elements / 4; s >= 1; s /= 2) {
            for (int i = (Group::rank() + 1) * 2 * s - 1; i + s < count_; i += Group::count * 2 * s)
                at(i + s) = polyscan::combine(request.op, at(i), at(i + s));
            Group::sync(); // read after write, as above. No round writes what it reads elsewhere: one buffer will do
        }
        if (Group::is_leader()) publish(at(count_ - 1));
    }

    __device__ void store(const KernelRequest& request, const tile_entry<A>& entry) const {
        store_outputs_of(request, first_, count_, entry, Group::rank(), Group::count,
                         [&](int t) -> const A& { return at(t); });
    }

    /// The aggregate of a full tile, by one warp.
    __device__ static A fold(const KernelRequest& request, index_type first) {
        return balanced_fold<elements>(request, first);
    }

private:
    __device__ A& at(int i) const { return shared_.values[spread::place(i)]; }

    storage& shared_;
    index_type first_ = 0;
    int count_ = 0;
};

} // namespace polyscan::cuda
