// SPDX-License-Identifier: Apache-2.0
/// Step doubling: in the round with stride s, element t takes in element t - s. Every element is active in every round;
/// ceil(log2 T) rounds.
///
/// A warp holds whole rows of 32 consecutive elements, one above the other, a lane its place in each row. So a stride
/// below 32 is a step from lane to lane, and a larger one a step from row to row in the same lane. Both ways the rounds
/// have the two hazards of Kogge-Stone: an element must have been read by everybody before it is overwritten, and must
/// have been written before the next round reads it.
#pragma once

#include <polyscan/cuda/block/balanced_fold.cuh>
#include <polyscan/cuda/block/rows.cuh>
#include <polyscan/cuda/block/tile_scan.hpp>

namespace polyscan::cuda {

/// The rounds over N elements, in the registers of a group's threads.
template <class Group, class A, int N>
class kogge_stone_rounds {
    static constexpr bool is_one_warp = Group::warps == 1;
    // Large values, and those that would have to be unpacked, go through shared memory in every round.
    static constexpr bool shuffles = tuning::shuffles_rounds<A>;
    static_assert(shuffles || !is_one_warp);

public:
    using rows = rows_of<Group, A, N>;
    using values = typename rows::values;
    using buffers = shared_array<A, is_one_warp ? 1 : N>[2]; // one warp needs none

    /// The first `count` elements become prefixes. Returns the number of the buffer that nobody reads any more.
    template <bool Full, class Operator>
    __device__ static int run(const Operator& op, buffers& buffer, values& own, int count) {
        const int left = count - rows::place(0);
        int front = 0;
        if constexpr (shuffles) front = run_inside_warps<Full>(op, buffer, own, count, left);
        if constexpr (is_one_warp) {
#pragma unroll
            for (int d = 1; d < each; d *= 2)
#pragma unroll
                for (int k = each - 1; k > 0; --k) // downwards: row k - d is still as it was before the round
                    if (k >= d && (Full || rows::exists(k, left)))
                        own[k].value = polyscan::combine(op, own[k >= d ? k - d : 0].value, own[k].value);
        } else {
            // Across warps.
#pragma unroll 1
            for (int s = shuffles ? warp_size : 1; s < count; s *= 2) {
#pragma unroll
                for (int k = 0; k < each; ++k)
                    if (rows::exists(k, left - s)) buffer[front][rows::place(k)] = own[k].value;
                Group::sync(); // read after write: other warps wrote what this one reads
#pragma unroll
                for (int k = 0; k < each; ++k)
                    if (rows::place(k) >= s && (Full || rows::exists(k, left)))
                        own[k].value = polyscan::combine(op, buffer[front][rows::place(k) - s], own[k].value);
                // Write after read: the next round writes the other buffer, since not everybody has read this one yet.
                // When it is written again, everybody has passed the barrier in between.
                front = 1 - front;
            }
        }
        return front;
    }

private:
    static constexpr int each = rows::each;

    /// The rounds with strides below 32.
    template <bool Full, class Operator>
    __device__ static int run_inside_warps(const Operator& op, buffers& buffer, values& own, int count, int left) {
        int front = 0;
        slot<A> before; // the row before the warp's first: its rounds are repeated here, so that warps need not wait
        const bool has_before = !is_one_warp && Group::warp() > 0 && rows::place(0) - Group::lane() < count;
        if constexpr (!is_one_warp) {
            if (Full || rows::exists(each - 1, left)) buffer[front][rows::place(each - 1)] = own[each - 1].value;
            Group::sync(); // read after write: the warp before wrote the row
            if (has_before) before.value = buffer[front][rows::place(0) - warp_size];
            front = 1 - front;
        }
        // All lanes read before one of them writes: that is what a shuffle is.
#pragma unroll 1
        for (int s = 1; s < warp_size; s *= 2) {
            // The last lanes of a row have what the first lanes of the next one take in.
            const bool is_read_by_next_row = Group::lane() + s >= warp_size;
#pragma unroll
            for (int k = each - 1; k >= 0; --k) { // downwards: row k - 1 is still as it was before the round
                const A below = k > 0 ? own[k > 0 ? k - 1 : 0].value : before.value;
                const A earlier = shuffle_from(select(is_read_by_next_row, below, own[k].value), Group::lane() - s);
                if ((k > 0 || has_before || Group::lane() >= s) && (Full || rows::exists(k, left)))
                    own[k].value = polyscan::combine(op, earlier, own[k].value);
            }
            if constexpr (!is_one_warp) {
                const A earlier = shuffle_from(before.value, Group::lane() - s);
                if (has_before && Group::lane() >= s) before.value = polyscan::combine(op, earlier, before.value);
            }
        }
        return front;
    }
};

template <class KernelRequest, class Group>
class tile_scan<block::kogge_stone, KernelRequest, Group> {
    using A = typename KernelRequest::accumulator_type;

public:
    using group = Group;
    static constexpr int elements = static_cast<int>(shape_for<block::kogge_stone, A>.elements());

private:
    using rounds = kogge_stone_rounds<Group, A, elements>;

public:
    struct storage {
        typename rounds::buffers buffer;
        shared_array<A, 1> aggregate;
    };

    __device__ explicit tile_scan(storage& shared) : shared_(shared) {}

    __device__ void load(const KernelRequest& request, index_type first, int count) {
        own_.load(request, first, count);
    }

    template <class Publish>
    __device__ void scan(const KernelRequest& request, Publish publish) {
        if (own_.is_full())
            rounds::template run<true>(request.op, shared_.buffer, own_.all(), own_.count());
        else
            rounds::template run<false>(request.op, shared_.buffer, own_.all(), own_.count());
        own_.publish_last(shared_.aggregate, publish);
    }

    __device__ void store(const KernelRequest& request, const tile_entry<A>& entry) { own_.store(request, entry); }

    /// The aggregate of a full tile, by one warp.
    __device__ static A fold(const KernelRequest& request, index_type first) {
        return balanced_fold<elements>(request, first);
    }

private:
    storage& shared_;
    typename rounds::rows own_;
};

} // namespace polyscan::cuda
