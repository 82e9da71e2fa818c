// SPDX-License-Identifier: Apache-2.0
/// The server of segmented scans and reductions by key: warps that fold the aggregates of tiles from the left, afresh
/// from each that has a head, and hand out carries.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>

#include <polyscan/cuda/arch.cuh>
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

/// Warps take windows of tiles in turn, of which each lane has `Cells::each` neighbouring ones. A warp does beforehand
/// what does not depend on earlier windows: it waits for aggregates, folds them from the first head on, and lays those
/// before it out. Then it waits for its turn, when the sum before its window has come from the warp before. Between
/// that and the sum before the next window lies one operation for each tile of a window without heads, and nothing
/// else: this chain bounds the whole grid. Carries are published after that. Cells of the warp's next window are on
/// their way.
///
/// A window of which tiles are missing is served in parts after a while, so one running block is enough.
///
/// `Cells`, by a lane, for a tile:
///     image fetch(tile)
///     bool decode(tile, image, value, heads)         whether the aggregate is there, its fold and its number of heads
///     void publish(tile, value, heads, has_head)     what comes after the tile: the fold, and heads up to there
template <bool Exact, class Cells, class Operator, class A>
class carry_server {
    static constexpr int most = tuning::server_warps;
    static constexpr int each = Cells::each, window = each * warp_size;
    static constexpr int quad_bytes = each * static_cast<int>(sizeof(A));
    static constexpr int unit = std::min(quad_bytes, static_cast<int>(sizeof(uint4)));
    static constexpr int ahead = tuning::quads_ahead(quad_bytes);
    using word = detail::word_of_size<unit>;
    static constexpr int words = quad_bytes / unit;
    struct quad {
        word part[words];
        __device__ void unpack(slot<A> (&v)[each]) const { std::memcpy(static_cast<void*>(v), part, quad_bytes); }
        __device__ void pack(const slot<A> (&v)[each]) { std::memcpy(part, static_cast<const void*>(v), quad_bytes); }
    };
    using quads = quad[warp_size + ahead]; // of a window, and some that are read in vain
    /// What is before a window.
    struct notice {
        arch::phase_barrier is_there; ///< ends a phase for each window of the warp but the first of all
        slot<A> sum;
        index_type heads;
    };

public:
    class room {
        friend carry_server;
        quads values_; ///< of one that serves alone
        notice before_[most];
        std::uint32_t next_;           ///< the first tile of the window whose turn it is
        arch::phase_barrier left_off_; ///< ends its phase when the warps that take turns leave the rest to one

    public:
        /// By one thread, before a barrier of the block.
        __device__ void begin() {
            for (notice& one : before_) one.is_there.begin(1);
            left_off_.begin(1);
            next_ = 0;
        }
        /// By one thread, of another warp than those that serve. Once.
        __device__ void leave_off() { left_off_.arrive(); }
        __device__ bool is_left_off() const { return left_off_.has_ended(0); }
    };

    /// Memory for warps that take turns: of a block that does nothing else there is enough.
    using values_of_many = quads[most];

    /// By a warp: number `me` of as many as take turns, all of `tuning::server_warps` or one.
    __device__ carry_server(const Cells& cells, const Operator& op, room& shared, values_of_many& many, int me, int of)
        : cells_(cells), op_(op), shared_(shared), values_(of == 1 ? shared.values_ : many[me]), me_(me), of_(of) {}

    /// Until all tiles are served, or the warps leave off. One alone goes on where several have left off.
    __device__ void serve(std::uint32_t tiles) {
        const std::uint32_t needed = max(tiles, 1u) - 1; // nobody needs the aggregate of the last tile
        const auto stride = static_cast<std::uint32_t>(of_) * window;
        std::uint32_t base = static_cast<std::uint32_t>(me_) * window;
        if (of_ == 1) {
            base = shared_.next_;
            if (base > 0) take_over(shared_.before_[base / window % most]);
        }
        if (base >= needed) return;
        unsigned parity = 0;
        fetch(base, needed);
        for (; base < needed; base += stride) {
            const int size = static_cast<int>(min(std::uint32_t{window}, needed - base));
            bool is_turn = of_ == 1 || base == 0;
            int looks = 0;
            for (int done = 0; done < size;) {
                const int reached = min(size, decode(base));
                const bool is_whole = reached == size;
                fetch(is_whole ? base + stride : base, needed);
                if (!is_whole && (++looks < tuning::looks_before_part_of_window || reached == done)) {
                    if (of_ > 1 && __any_sync(whole_warp, shared_.is_left_off())) return;
                    continue;
                }
                fold_own(reached);
                if (!is_turn) {
                    const notice& before = shared_.before_[me_];
                    bool has_come = false;
                    do {
                        has_come = before.is_there.has_ended(parity);
                    } while (!has_come && is_whole && !shared_.is_left_off());
                    is_turn = __all_sync(whole_warp, has_come);
                    if (!is_turn && is_whole) return; // left off
                    if (!is_turn) continue;
                    take_over(before);
                    parity ^= 1;
                }
                hand_out(base, done, reached, is_whole && base + window < needed);
                done = reached;
                looks = 0;
            }
        }
    }

private:
    __device__ static int lane() { return static_cast<int>(threadIdx.x) % warp_size; }
    __device__ void take_over(const notice& before) {
        sum_ = before.sum.value;
        if constexpr (Cells::counts) heads_before_ = before.heads;
    }
    /// Lanes without a tile read the last one: no branch stands between the read and what follows.
    __device__ void fetch(std::uint32_t base, std::uint32_t needed) {
#pragma unroll
        for (int i = 0; i < each; ++i) image_[i] = cells_.fetch(min(base + lane() * each + i, needed - 1));
    }
    /// What has been fetched; the number of tiles of the window before the first that is not there.
    __device__ int decode(std::uint32_t base) {
        unsigned known = 0;
        headed_ = 0;
#pragma unroll
        for (int i = 0; i < each; ++i) {
            int heads = 0;
            if (cells_.decode(base + lane() * each + i, image_[i], fold_[i], heads)) known |= 1u << i;
            if (heads > 0) headed_ |= 1u << i;
            if constexpr (Cells::counts) heads_[i] = heads;
        }
        const unsigned partly = ~__ballot_sync(whole_warp, known == (1u << each) - 1);
        const int own = __ffs(static_cast<int>(~known)) - 1;
        const int first = partly == 0 ? 0 : __ffs(static_cast<int>(partly)) - 1;
        const int there = shuffle_from(own, first);
        return partly == 0 ? window : first * each + there;
    }
    __device__ bool is_reached(int i, int reached) const { return lane() * each + i < reached; }

    /// What needs nothing from outside the window.
    __device__ void fold_own(int reached) {
        unsigned has = headed_; // or is not reached: nothing combines with it
#pragma unroll
        for (int i = 0; i < each; ++i) {
            has |= is_reached(i, reached) ? 0u : 1u << i;
            if (!is_reached(i, reached)) fold_[i].value = A{};
        }
        open_ = __ffs(static_cast<int>(has | 1u << each)) - 1;
#pragma unroll
        for (int i = 1; i < each; ++i)
            // Of an exact operator, those before the first head, too: they are folded once more, as a whole.
            if ((has >> i & 1) == 0 && (Exact || i > open_))
                fold_[i].value = polyscan::combine(op_, fold_[i - 1].value, fold_[i].value);
        const unsigned with_heads = __ballot_sync(whole_warp, has != 0);
        first_head_ = with_heads == 0 ? warp_size : __ffs(static_cast<int>(with_heads)) - 1;
        if constexpr (Exact) {
            total_.value = scan_from_heads(op_, fold_[each - 1].value, with_heads);
            before_.value = shuffle_up(total_.value, 1);
            if (lane() > first_head_) put_before_open();
        } else {
            if (first_head_ > 0) {
                __syncwarp(); // write after read: lanes have read the values of the chain before
                values_[lane()].pack(fold_);
            }
            pass_on();
            total_.value = fold_[each - 1].value;
            __syncwarp(); // read after write: the chain reads all values
        }
        total_.value = shuffle_from(total_.value, warp_size - 1);
        if constexpr (Cells::counts) {
            int own = 0;
#pragma unroll
            for (int i = 0; i < each; ++i) own += is_reached(i, reached) ? heads_[i] : 0;
            int up_to = own;
#pragma unroll
            for (int d = 1; d < warp_size; d *= 2) {
                const int earlier = shuffle_up(up_to, d);
                if (lane() >= d) up_to += earlier;
            }
            count_ = shuffle_from(up_to, warp_size - 1);
            count_before_ = up_to - own;
        }
    }
    /// Behind the window's first head: from lane to lane, all heads at once.
    __device__ void pass_on() {
        bool ends = open_ < each; // the fold up to the lane's end is known
        bool waits = open_ > 0 && lane() > first_head_;
        while (__any_sync(whole_warp, waits)) {
            const unsigned lanes = __ballot_sync(whole_warp, ends);
            before_.value = shuffle_up(fold_[each - 1].value, 1);
            if (waits && (lanes >> (lane() - 1) & 1) != 0) {
                put_before_open();
                waits = false;
                ends = true;
            }
        }
    }
    /// Puts what comes before the lane before those of its tiles that are open to the left.
    __device__ void put_before_open() {
#pragma unroll
        for (int i = 0; i < each; ++i)
            if (i < open_)
                fold_[i].value = polyscan::combine(
                    op_, Exact || i == 0 ? before_.value : fold_[i > 0 ? i - 1 : 0].value, fold_[i].value);
    }

    /// `sum_` is what comes before the window until all of it is known. Afresh from there in each part.
    __device__ void hand_out(std::uint32_t base, int done, int reached, bool passes_on) {
        slot<A> sum = total_; // before the next window
        if (first_head_ == warp_size) {
            if constexpr (Exact)
                sum.value = polyscan::combine(op_, sum_, total_.value);
            else
                sum.value = chain<true>(warp_size);
        }
        if (passes_on && of_ > 1) {
            __syncwarp(); // write after read: all lanes have read what is before this window
            if (lane() == 0) {
                notice& next = shared_.before_[me_ + 1 == of_ ? 0 : me_ + 1];
                next.sum = sum;
                if constexpr (Cells::counts) next.heads = heads_before_ + count_;
                shared_.next_ = base + window;
                next.is_there.arrive();
            }
        }
        // What is before the first head.
        if (lane() <= first_head_) {
            if constexpr (Exact) before_.value = lane() == 0 ? sum_ : polyscan::combine(op_, sum_, before_.value);
        }
        if constexpr (!Exact)
            if (first_head_ < warp_size) chain<false>(first_head_ + 1);
        if (lane() <= first_head_) put_before_open();
        index_type heads = Cells::counts ? heads_before_ + count_before_ : 0;
#pragma unroll
        for (int i = 0; i < each; ++i) {
            const int at = lane() * each + i;
            if constexpr (Cells::counts) heads += heads_[i];
            if (at >= done && at < reached) cells_.publish(base + at, fold_[i].value, heads, (headed_ >> i & 1) != 0);
        }
        if (passes_on && of_ == 1) {
            sum_ = sum.value;
            if constexpr (Cells::counts) heads_before_ += count_;
        }
    }

    /// What comes before each of the first `lanes` lanes, and after them. By all lanes alike: each keeps what it needs.
    template <bool All>
    __device__ A chain(int lanes) {
        constexpr int unrolled = All ? warp_size / ahead / 4 : 1;
        A sum = sum_;
        quad next[ahead];
#pragma unroll
        for (int q = 0; q < ahead; ++q) next[q] = values_[q]; // reads do not wait for sums
#pragma unroll unrolled
        for (int first = 0; first < (All ? warp_size : lanes); first += ahead)
#pragma unroll
            for (int q = 0; q < ahead; ++q) {
                slot<A> v[each];
                next[q].unpack(v);
                next[q] = values_[first + q + ahead];
                if (first + q == lane()) before_.value = sum;
#pragma unroll
                for (int i = 0; i < each; ++i) sum = polyscan::combine(op_, sum, v[i].value);
            }
        return sum;
    }

    const Cells& cells_;
    const Operator& op_;
    room& shared_;
    quads& values_;
    int me_, of_;
    typename Cells::image image_[each];
    slot<A> fold_[each];  ///< of the lane's tiles
    int heads_[each];     ///< their numbers of heads
    unsigned headed_ = 0; ///< which of them have some
    int open_ = 0;        ///< how many are before the first that has
    int first_head_ = 0;  ///< the first lane with a head
    slot<A> before_;      ///< what comes before the lane
    slot<A> total_;       ///< from the window's last head on; without a head, of an exact operator, of all
    A sum_{};             ///< before the window; tile 0 begins with a head
    index_type heads_before_ = 0;
    int count_ = 0;        ///< heads of the window,
    int count_before_ = 0; ///< and before the lane
};

} // namespace polyscan::cuda
