// SPDX-License-Identifier: Apache-2.0
/// The elements of a tile in the registers of a group: a warp holds whole rows of 32 consecutive elements, one above
/// the other, and a lane its place in each row.
#pragma once

#include <polyscan/cuda/request.cuh>

namespace polyscan::cuda {

template <class Group, class A, int N>
class rows_of {
public:
    static constexpr int each = N / Group::count; // rows of a warp
    static_assert(each * Group::count == N);

    /// Where the thread's k-th element is in the tile, and the number of its row.
    __device__ static int place(int k) { return row(k) * warp_size + Group::lane(); }
    __device__ static int row(int k) { return Group::warp() * each + k; }

    /// Whether the thread's k-th element exists, where `left` elements do from its first on. Worked out afresh each
    /// time: kept for later, the answers for all elements would take as many registers as they do.
    __device__ static bool exists(int k, int left) {
        asm volatile("" : "+r"(left));
        return k * warp_size < left;
    }
    __device__ bool exists(int k) const { return exists(k, left_); }
    __device__ int count() const { return count_; }
    __device__ bool is_full() const { return count_ == N; }

    __device__ A& operator[](int k) { return value_[k].value; }
    using values = slot<A>[each];
    __device__ values& all() { return value_; }

    /// Neighbours by neighbouring lanes, all reads of a thread under way at once.
    template <class KernelRequest>
    __device__ void load(const KernelRequest& request, index_type first, int count) {
        first_ = first;
        count_ = count;
        left_ = count - place(0);
        const index_type mine = first + place(0);
        if (is_full()) {
#pragma unroll
            for (int k = 0; k < each; ++k) value_[k].value = request.load(mine + k * warp_size);
        } else {
#pragma unroll
            for (int k = 0; k < each; ++k)
                if (exists(k)) value_[k].value = request.load(mine + k * warp_size);
        }
    }

    /// The leader publishes the last element, which is the tile's aggregate once the elements are prefixes. It is given
    /// to the leader in `place`, which nobody uses until the group's next barrier but one.
    template <class Publish>
    __device__ void publish_last(shared_array<A, 1>& place, Publish publish) const {
        if constexpr (Group::warps == 1) {
            slot<A> last;
            last.value = value_[each - 1].value;
            if (!is_full()) {
#pragma unroll
                for (int k = 0; k < each - 1; ++k)
                    last.value = select(k == (count_ - 1) / warp_size, A(value_[k].value), A(last.value));
            }
            const A aggregate = shuffle_from(last.value, count_ - 1);
            if (Group::is_leader()) publish(aggregate);
        } else {
#pragma unroll
            for (int k = 0; k < each; ++k)
                if (rows_of::place(k) == count_ - 1) place[0] = value_[k].value;
            Group::sync(); // read after write: the leader reads it
            if (Group::is_leader()) publish(A(place[0]));
        }
    }

    /// op(carry, element); for an exclusive scan, one place further on.
    template <class KernelRequest>
    __device__ void store(const KernelRequest& request, const tile_entry<A>& entry) {
        if (entry.carry.present) {
#pragma unroll
            for (int k = 0; k < each; ++k)
                if (exists(k))
                    value_[k].value = polyscan::combine(request.op, entry.carry.place.value, value_[k].value);
        }
        const int shift = request.exclusive ? 1 : 0;
        const index_type mine = first_ + place(0) + shift;
#pragma unroll
        for (int k = 0; k < each; ++k)
            if (exists(k, left_ - shift)) request.store(mine + k * warp_size, value_[k].value);
        if (request.exclusive && Group::is_leader()) request.store(first_, entry.previous.place.value);
    }

private:
    values value_;
    index_type first_ = 0;
    int count_ = 0;
    int left_ = 0; ///< of the tile from the thread's first element on
};

} // namespace polyscan::cuda
