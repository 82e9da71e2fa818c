// SPDX-License-Identifier: Apache-2.0
/// The server of segmented scans and reductions by key: one warp that folds the aggregates of tiles from the left,
/// afresh from each that has a head, and hands out carries.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>

#include <polyscan/cuda/request.cuh>
#include <polyscan/cuda/tuning.hpp>
#include <polyscan/cuda/value.cuh>
#include <polyscan/operators.hpp>
#include <polyscan/tile.hpp>

namespace polyscan::cuda {

/// The last head at or before this lane, or -1; `heads` has a bit a lane.
__device__ inline int last_head_at(unsigned heads) {
    const unsigned lane = threadIdx.x % warp_size;
    return 31 - __clz(static_cast<int>(heads & ((2u << lane) - 1)));
}

/// By a warp, where grouping does not matter: the fold of the lanes' values from the last head on up to each lane.
template <class Operator, class A>
__device__ A scan_from_heads(const Operator& op, A value, unsigned heads) {
    const int lane = static_cast<int>(threadIdx.x) % warp_size, from = max(last_head_at(heads), 0);
#pragma unroll
    for (int d = 1; d < warp_size; d *= 2) {
        const A earlier = shuffle_up(value, d);
        if (lane - d >= from) value = polyscan::combine(op, earlier, value);
    }
    return value;
}

/// A lane has `Cells::each` neighbouring tiles of a window, so that what a window takes besides its sums is shared by
/// many tiles; the cells of the window, or of the next one, are on their way while sums are formed. Carries are handed
/// out as far as the aggregates reach, so one running block is enough.
///
/// `Cells`, by a lane, for a tile:
///     image fetch(tile)
///     bool decode(tile, image, value, heads)         whether the aggregate is there, its fold and its number of heads
///     void publish(tile, value, heads, own_heads)    what comes after the tile: the fold, and heads up to there
template <bool Exact, class Cells, class Operator, class A>
class carry_server {
    static constexpr int each = Cells::each, window = each * warp_size;
    static constexpr int quad_bytes = each * static_cast<int>(sizeof(A));
    static constexpr int unit = std::min(quad_bytes, static_cast<int>(sizeof(uint4)));
    using word = detail::word_of_size<unit>;
    static constexpr int words = quad_bytes / unit;
    struct quad {
        word part[words];
        __device__ void unpack(slot<A> (&v)[each]) const { std::memcpy(static_cast<void*>(v), part, quad_bytes); }
        __device__ void pack(const slot<A> (&v)[each]) { std::memcpy(part, static_cast<const void*>(v), quad_bytes); }
    };

public:
    /// Values of a window, and one more that is read in vain.
    struct room {
        quad values[warp_size + 1];
    };

    __device__ carry_server(const Cells& cells, const Operator& op, room& shared)
        : cells_(cells), op_(op), shared_(shared) {}

    __device__ void serve(index_type tiles) {
        const index_type needed = tiles - 1; // nobody needs the aggregate of the last tile
        if (needed <= 0) return;
        fetch(0, needed);
        for (index_type base = 0; base < needed; base += window) {
            const int size = static_cast<int>(min(index_type{window}, needed - base));
            known_ = 0;
            for (int done = 0; done < size;) {
#pragma unroll
                for (int i = 0; i < each; ++i)
                    if ((known_ >> i & 1) == 0 &&
                        cells_.decode(base + lane() * each + i, image_[i], value_[i], heads_[i]))
                        known_ |= 1u << i;
                const int reached = min(size, leading());
                fetch(reached == size ? base + window : base, needed);
                if (reached > done) hand_out(base, done, reached);
                done = reached;
            }
            heads_before_ += count_;
        }
    }

private:
    __device__ static int lane() { return static_cast<int>(threadIdx.x) % warp_size; }
    /// Lanes without a tile read the last one: no branch stands between the read and what follows.
    __device__ void fetch(index_type base, index_type needed) {
#pragma unroll
        for (int i = 0; i < each; ++i) image_[i] = cells_.fetch(min(base + lane() * each + i, needed - 1));
    }
    /// Tiles of the window before the first that is not known.
    __device__ int leading() const {
        const unsigned partly = ~__ballot_sync(whole_warp, known_ == (1u << each) - 1);
        const int own = __ffs(static_cast<int>(~known_)) - 1;
        const int first = partly == 0 ? 0 : __ffs(static_cast<int>(partly)) - 1;
        const int there = shuffle_from(own, first);
        return partly == 0 ? window : first * each + there;
    }

    __device__ void hand_out(index_type base, int done, int reached) {
        const auto is_reached = [&](int i) { return lane() * each + i < reached; };
        unsigned has = 0; // a head, or is not reached: nothing combines with it
#pragma unroll
        for (int i = 0; i < each; ++i) has |= !is_reached(i) || heads_[i] > 0 ? 1u << i : 0u;
        slot<A> fold[each];
#pragma unroll
        for (int i = 0; i < each; ++i) fold[i].value = is_reached(i) ? value_[i].value : A{};
        if constexpr (Exact)
            fold_exact(fold, has);
        else
            fold_in_order(fold, has, done, reached);
        index_type heads = 0;
        if constexpr (Cells::counts) {
            int own = 0;
#pragma unroll
            for (int i = 0; i < each; ++i) own += is_reached(i) ? heads_[i] : 0;
            int up_to = own;
#pragma unroll
            for (int d = 1; d < warp_size; d *= 2) {
                const int earlier = shuffle_up(up_to, d);
                if (lane() >= d) up_to += earlier;
            }
            count_ = shuffle_from(up_to, warp_size - 1);
            heads = heads_before_ + (up_to - own);
        }
#pragma unroll
        for (int i = 0; i < each; ++i) {
            const int at = lane() * each + i;
            heads += heads_[i];
            if (at >= done && at < reached) cells_.publish(base + at, fold[i].value, heads, heads_[i]);
        }
        if constexpr (Exact) {
            // What comes before the window is needed until all of it is known.
            const A last = shuffle_from(fold[each - 1].value, warp_size - 1);
            if (reached == window) sum_ = last;
        }
    }
    /// Afresh for the whole window: that takes few steps.
    __device__ void fold_exact(slot<A> (&fold)[each], unsigned has) {
        // In the lane, then the totals of lanes, then what comes before the lane to those that are open to the left.
        const unsigned lanes_with_heads = __ballot_sync(whole_warp, has != 0);
#pragma unroll
        for (int i = 1; i < each; ++i)
            if ((has >> i & 1) == 0) fold[i].value = polyscan::combine(op_, fold[i - 1].value, fold[i].value);
        const A total = scan_from_heads(op_, fold[each - 1].value, lanes_with_heads);
        const A left = shuffle_up(total, 1);
        const int head = last_head_at(lanes_with_heads & ~(1u << lane()));
        slot<A> before;
        before.value = lane() > 0 ? left : sum_;
        if (lane() > 0 && head < 0) before.value = polyscan::combine(op_, sum_, left);
        const int open = __ffs(static_cast<int>(has | 1u << each)) - 1;
#pragma unroll
        for (int i = 0; i < each; ++i)
            if (i < open) fold[i].value = polyscan::combine(op_, before.value, fold[i].value);
    }
    /// From the lane on that has the first tile to be served, of which `sum_` comes before the first. By lane 0.
    __device__ void fold_in_order(slot<A> (&fold)[each], unsigned has, int done, int reached) {
        unsigned heads[each]; // by the lanes
        unsigned any = 0, all = whole_warp;
#pragma unroll
        for (int i = 0; i < each; ++i) {
            heads[i] = __ballot_sync(whole_warp, (has >> i & 1) != 0);
            any |= heads[i];
            all &= heads[i];
        }
        const int first = done / each, last = (reached - 1) / each, whole = reached / each; // lanes
        if (all == whole_warp) {
            // Every fold is the tile's own.
            if (whole > 0) sum_ = shuffle_from(fold[each - 1].value, whole - 1);
            return;
        }
        unsigned without = ~__ballot_sync(whole_warp, has != 0 || lane() < first); // lanes without a head, then
        int longest = 0;                                                           // the longest row of them
        for (; without != 0 && longest <= tuning::lanes_passed_on; ++longest) without &= without << 1;
        if (without == 0) {
            pass_on(fold, lane() < first ? (1u << each) - 1 : has, first);
            if (whole > first) sum_ = shuffle_from(fold[each - 1].value, whole - 1);
            return;
        }
        shared_.values[lane()].pack(fold);
        __syncwarp();  // read after write: lane 0 reads all values
        slot<A> start; // what comes before the lane that is not served as a whole
        if (lane() == 0) {
            const unsigned served = (last + 1 < warp_size ? (1u << (last + 1)) - 1 : whole_warp) & ~((1u << first) - 1);
            A sum = sum_;
            start.value = sum;
            quad next = shared_.values[first];
            const auto pass = [&](auto is_head) {
#pragma unroll tuning::lanes_at_once
                for (int l = first; l <= last; ++l) {
                    slot<A> v[each];
                    next.unpack(v);
                    next = shared_.values[l + 1]; // does not wait for the sums
                    start.value = sum;
#pragma unroll
                    for (int i = 0; i < each; ++i) {
                        sum = is_head(i, l) ? v[i].value : polyscan::combine(op_, sum, v[i].value);
                        v[i].value = sum;
                    }
                    quad folded;
                    folded.pack(v);
                    shared_.values[l] = folded;
                }
            };
            if ((any & served) == 0)
                pass([](int, int) { return false; });
            else
                pass([&](int i, int l) { return (heads[i] >> l & 1) != 0; });
            if (last < whole) start.value = sum;
        }
        __syncwarp(); // read after write: everybody reads its folds
        sum_ = shuffle_from(start.value, 0);
        shared_.values[lane()].unpack(fold);
        __syncwarp(); // write after read: the next values
    }

    /// Where few lanes in a row have no head: from lane to lane, all heads at once. `sum_` comes before lane `first`.
    __device__ void pass_on(slot<A> (&fold)[each], unsigned has, int first) const {
        const int open = __ffs(static_cast<int>(has | 1u << each)) - 1;
#pragma unroll
        for (int i = 1; i < each; ++i)
            if (i > open && (has >> i & 1) == 0)
                fold[i].value = polyscan::combine(op_, fold[i - 1].value, fold[i].value);
        bool ends = open < each; // the fold up to the lane's end is known
        bool waits = open > 0;   // for what comes before the lane
        while (__any_sync(whole_warp, waits)) {
            const unsigned lanes = __ballot_sync(whole_warp, ends);
            slot<A> before;
            before.value = shuffle_up(fold[each - 1].value, 1);
            if (lane() == first) before.value = sum_;
            if (waits && (lane() == first || (lanes >> (lane() - 1) & 1) != 0)) {
#pragma unroll
                for (int i = 0; i < each; ++i)
                    if (i < open)
                        fold[i].value = polyscan::combine(op_, i == 0 ? before.value : fold[i > 0 ? i - 1 : 0].value,
                                                          fold[i].value);
                waits = false;
                ends = true;
            }
        }
    }

    const Cells& cells_;
    const Operator& op_;
    room& shared_;
    typename Cells::image image_[each];
    slot<A> value_[each];
    int heads_[each];
    unsigned known_ = 0;
    A sum_{};                     ///< before the window, or before the lane that is next; tile 0 begins with a head
    index_type heads_before_ = 0; ///< before the window
    int count_ = 0;               ///< heads of the window
};

} // namespace polyscan::cuda
