// SPDX-License-Identifier: Apache-2.0
/// A reduction tree up, a distribution tree down: 2 T operations in 2 log2(T) - 1 rounds. Fewer operations than
/// Kogge-Stone, but most of the lanes idle in most of the rounds.
///
/// A warp holds whole rows of 32 consecutive elements, one above the other, a lane its place in each row. Strides below
/// 32 are steps from lane to lane. Larger ones join the ends of rows: a tree of its own over the totals of the rows, of
/// which there are at most 32, for one warp. Nothing is at a stride in shared memory, so there are no bank conflicts.
#pragma once

#include <polyscan/cuda/block/balanced_fold.cuh>
#include <polyscan/cuda/block/rows.cuh>
#include <polyscan/cuda/block/tile_scan.hpp>

namespace polyscan::cuda {

template <class KernelRequest, class Group>
class tile_scan<block::brent_kung, KernelRequest, Group> {
    using A = typename KernelRequest::accumulator_type;

public:
    using group = Group;
    static constexpr int elements = static_cast<int>(shape_for<block::brent_kung, A>.elements());

private:
    using tile_rows = rows_of<Group, A, elements>;
    static constexpr bool is_one_warp = Group::warps == 1;
    static constexpr int rows = elements / warp_size; // of the tile
    static constexpr int last_lane = warp_size - 1;
    static_assert(rows <= warp_size);

public:
    struct storage {
        shared_array<A, is_one_warp ? 1 : rows> ends; // of the rows: their totals, then their prefixes
        shared_array<A, 1> aggregate;
    };

    __device__ explicit tile_scan(storage& shared) : shared_(shared) {}

    __device__ void load(const KernelRequest& request, index_type first, int count) {
        own_.load(request, first, count);
    }

    template <class Publish>
    __device__ void scan(const KernelRequest& request, Publish publish) {
        const auto exists = [&](int k) { return own_.exists(k); };
        // Up, inside the rows.
#pragma unroll 1
        for (int s = 1; s < warp_size; s *= 2)
#pragma unroll
            for (int k = 0; k < tile_rows::each; ++k) up(request.op, s, exists(k), own_[k]);
        join_rows(request.op);
        // Down, inside the rows. What is complete before a row is the end of the row before.
        slot<A> before[tile_rows::each];
#pragma unroll
        for (int k = 0; k < tile_rows::each; ++k) {
            if constexpr (is_one_warp) {
                if (k > 0) before[k].value = shuffle_from(own_[k > 0 ? k - 1 : 0], last_lane);
            } else {
                if (tile_rows::row(k) > 0 && exists(k)) before[k].value = shared_.ends[tile_rows::row(k) - 1];
                if (Group::lane() == last_lane && exists(k)) own_[k] = shared_.ends[tile_rows::row(k)];
            }
        }
#pragma unroll 1
        for (int s = warp_size / 2; s >= 1; s /= 2)
#pragma unroll
            for (int k = 0; k < tile_rows::each; ++k) {
                down(request.op, s, exists(k), own_[k]);
                if (Group::lane() == s - 1 && tile_rows::row(k) > 0 && exists(k))
                    own_[k] = polyscan::combine(request.op, before[k].value, own_[k]);
            }
        own_.publish_last(shared_.aggregate, publish);
    }

    __device__ void store(const KernelRequest& request, const tile_entry<A>& entry) { own_.store(request, entry); }

    /// The aggregate of a full tile, by one warp.
    __device__ static A fold(const KernelRequest& request, index_type first) {
        return balanced_fold<elements>(request, first);
    }

private:
    /// The right end of every block of 2 s lanes takes in the right end of its left half. All lanes read before one
    /// writes: that is what a shuffle is.
    template <class Operator>
    __device__ static void up(const Operator& op, int s, bool exists, A& value) {
        const A earlier = shuffle_up(value, s);
        if ((Group::lane() & (2 * s - 1)) == 2 * s - 1 && exists) value = polyscan::combine(op, earlier, value);
    }
    /// What is complete at the right end of a block goes to the middle of the next block.
    template <class Operator>
    __device__ static void down(const Operator& op, int s, bool exists, A& value) {
        const A earlier = shuffle_up(value, s);
        if ((Group::lane() & (2 * s - 1)) == s - 1 && Group::lane() >= s && exists)
            value = polyscan::combine(op, earlier, value);
    }

    /// The strides from 32 on: up and down over the ends of the whole rows.
    template <class Operator>
    __device__ void join_rows(const Operator& op) {
        if constexpr (is_one_warp) {
            const bool is_end = Group::lane() == last_lane;
#pragma unroll
            for (int d = 1; d < rows; d *= 2)
#pragma unroll
                for (int k = 0; k < rows; ++k)
                    if ((k & (2 * d - 1)) == 2 * d - 1 && is_end && own_.exists(k))
                        own_[k] = polyscan::combine(op, own_[k >= d ? k - d : 0], own_[k]);
#pragma unroll
            for (int d = rows / 4; d >= 1; d /= 2)
#pragma unroll
                for (int k = 0; k < rows; ++k)
                    if ((k & (2 * d - 1)) == d - 1 && k >= d && is_end && own_.exists(k))
                        own_[k] = polyscan::combine(op, own_[k >= d ? k - d : 0], own_[k]);
        } else {
#pragma unroll
            for (int k = 0; k < tile_rows::each; ++k)
                if (Group::lane() == last_lane && own_.exists(k)) shared_.ends[tile_rows::row(k)] = own_[k];
            Group::sync(); // read after write: the first warp reads the ends of all rows
            if (Group::warp() == 0) {
                const int whole = own_.count() / warp_size;
                slot<A> end;
                if (Group::lane() < whole) end.value = shared_.ends[Group::lane()];
#pragma unroll 1
                for (int s = 1; s < rows; s *= 2) up(op, s, Group::lane() < whole, end.value);
#pragma unroll 1
                for (int s = rows / 4; s >= 1; s /= 2) down(op, s, Group::lane() < whole, end.value);
                if (Group::lane() < whole) shared_.ends[Group::lane()] = end.value;
            }
            Group::sync(); // read after write: everybody reads the prefixes at the ends of rows
        }
    }

    storage& shared_;
    tile_rows own_;
};

} // namespace polyscan::cuda
