// SPDX-License-Identifier: Apache-2.0
/// The tile pass of the default block algorithm over pairs {value, head}: segmented scans, scans by key and reductions
/// by key of numbers, with the library's own operators. Values go through the processor's vectors, heads through words
/// of bits (host/segmented_kernels.hpp); outputs through a stage in the first-level cache to their places.
#pragma once

#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>

#include <polyscan/by_key.hpp>
#include <polyscan/host/past_caches.hpp>
#include <polyscan/host/segmented_kernels.hpp>
#include <polyscan/openmp/grid/tile_pass.hpp>
#include <polyscan/segmented.hpp>

namespace polyscan::openmp {

namespace detail {

template <class Operator>
struct value_operator {
    using type = void;
};
template <class Operator>
struct value_operator<segmented_operator<Operator>> {
    using type = Operator;
};
template <class Operator>
struct value_operator<run_operator<Operator>> {
    using type = Operator;
};

/// Elements that are in a segment.
struct extent {
    index_type first = 0;
    index_type last = std::numeric_limits<index_type>::max();
};
template <class Heads>
extent in_segments(const Heads&) {
    return {};
}
template <class Offsets>
extent in_segments(const polyscan::detail::offset_heads<Offsets>& heads) {
    // No element lies before 0, and differences to elements must not overflow.
    const auto within = [&](index_type k) {
        return std::max<index_type>(static_cast<index_type>(heads.offsets[k]), 0);
    };
    return {within(0), within(heads.count - 1)};
}

/// Where the outputs of a segmented scan go, some rows at a time.
template <class T, int Length, class Sink>
struct segmented_delivery {
    static constexpr bool is_known = false;
};

// What the two kinds of segmented scan share: outputs that stand in a row.
template <class Output>
void send(const Output& out, index_type first, const auto* from, index_type count, extent in, bool past_caches) {
    using value_type = std::remove_cvref_t<decltype(*from)>;
    const index_type skipped = std::clamp<index_type>(in.first - first, 0, count);
    const index_type end = std::clamp<index_type>(in.last - first, skipped, count);
    if constexpr (std::is_same_v<Output, value_type*>) {
        const std::size_t bytes = static_cast<std::size_t>(end - skipped) * sizeof(value_type);
        if (past_caches)
            host::copy_past_caches(out + first + skipped, from + skipped, bytes);
        else
            std::memcpy(out + first + skipped, from + skipped, bytes);
    } else {
        for (index_type i = skipped; i < end; ++i) polyscan::detail::put(out, first + i, from[i]);
    }
}

template <class T, int Length, class Heads, class Output>
struct segmented_delivery<T, Length, polyscan::detail::store_segmented<Heads, Output>> {
    static constexpr bool is_known = true;
    static constexpr int output_bytes = sizeof(T);

    segmented_delivery(const polyscan::detail::store_segmented<Heads, Output>& sink, const auto&)
        : out_(sink.out), in_(in_segments(sink.heads)) {}

    /// Elements [first, first + count), a row's heads in a word; `prefix[-1]` is the prefix before them.
    void deliver(index_type first, index_type count, const T* prefix, const std::uint64_t*, index_type,
                 bool past_caches) {
        send(out_, first, prefix, count, in_, past_caches);
    }

private:
    Output out_;
    extent in_;
};

template <class T, int Length, class Heads, class Output>
struct segmented_delivery<T, Length, polyscan::detail::store_segmented_exclusive<T, Heads, Output>> {
    static constexpr bool is_known = true;
    static constexpr int output_bytes = sizeof(T);
    static constexpr index_type most = 1024;

    segmented_delivery(const polyscan::detail::store_segmented_exclusive<T, Heads, Output>& sink, const auto&)
        : out_(sink.out), start_(sink.start), in_(in_segments(sink.heads)) {}

    void deliver(index_type first, index_type count, const T* prefix, const std::uint64_t* heads, index_type,
                 bool past_caches) {
        std::memcpy(shifted_, prefix - 1, static_cast<std::size_t>(count) * sizeof(T));
        for (index_type row = 0; row * Length < count; ++row)
            for (std::uint64_t left = heads[row]; left != 0; left &= left - 1)
                shifted_[row * Length + std::countr_zero(left)] = start_;
        send(out_, first, shifted_, count, in_, past_caches);
    }

private:
    Output out_;
    T start_;
    extent in_;
    alignas(64) T shifted_[most];
};

/// Of a reduction by key: as its sink, with a word of heads for a row.
template <class T, int Length, class Keys, class Heads, class KeysOut, class Output>
struct segmented_delivery<T, Length, polyscan::detail::store_runs<Keys, Heads, KeysOut, Output>> {
    static constexpr bool is_known = true;
    static constexpr int output_bytes = 0; // how many is not known; by default few

    segmented_delivery(const polyscan::detail::store_runs<Keys, Heads, KeysOut, Output>& sink, const auto& request)
        : sink_(sink), size_(request.size) {}

    /// `run` heads lie before `first`.
    void deliver(index_type first, index_type count, const T* prefix, const std::uint64_t* heads, index_type run,
                 bool) {
        for (index_type row = 0; row * Length < count; ++row) {
            const index_type at = first + row * Length;
            const int length = static_cast<int>(std::min<index_type>(Length, count - row * Length));
            const bool is_last = at + length == size_;
            const std::uint64_t next = is_last || sink_.heads(at + length) ? 1 : 0;
            std::uint64_t head = heads[row], end = head >> 1 | next << (length - 1);
            for (index_type place = run; head != 0; head &= head - 1, ++place)
                polyscan::detail::put(sink_.keys_out, place, sink_.keys[at + std::countr_zero(head)]);
            // The first end is that of the run which the first head ends, or begins.
            index_type place = run - 1 + static_cast<index_type>(heads[row] & 1);
            for (; end != 0; end &= end - 1, ++place)
                polyscan::detail::put(sink_.out, place, prefix[row * Length + std::countr_zero(end)]);
            run += std::popcount(heads[row]);
            if (is_last && sink_.count != nullptr) *sink_.count = run;
        }
    }

private:
    const polyscan::detail::store_runs<Keys, Heads, KeysOut, Output>& sink_;
    index_type size_;
};

template <class T>
segmented<T> pair_of(std::type_identity<segmented<T>>, const T& value, bool head, index_type) {
    return {value, head};
}
template <class T>
run_value<T> pair_of(std::type_identity<run_value<T>>, const T& value, bool, index_type heads) {
    return {heads, value};
}
template <class T>
index_type heads_before(const segmented<T>&) {
    return 0;
}
template <class T>
index_type heads_before(const run_value<T>& pair) {
    return pair.heads;
}

template <class Request>
concept on_segmented_rows = requires {
    requires host::segmented_source<typename Request::transform_type>::is_known;
    requires host::segmented_value<typename host::segmented_source<typename Request::transform_type>::value_type>;
    requires host::takes_anything<typename value_operator<typename Request::operator_type>::type>;
    requires host::row_length<typename Request::accumulator_type> == 32 ||
                     host::row_length<typename Request::accumulator_type> == 64;
    requires segmented_delivery<typename host::segmented_source<typename Request::transform_type>::value_type,
                                static_cast<int>(host::row_length<typename Request::accumulator_type>),
                                decltype(Request::output.function)>::is_known;
};

} // namespace detail

#if POLYSCAN_HOST_VECTORS

template <class Request>
    requires(host::vectorisable<typename Request::accumulator_type> && detail::on_segmented_rows<Request>)
class tile_pass<block::warp_shuffle, Request> : public buffered_pass<block::warp_shuffle, Request> {
    using base = buffered_pass<block::warp_shuffle, Request>;
    using cut = tiling<block::warp_shuffle, Request>;
    using source = host::segmented_source<typename Request::transform_type>;
    using T = typename source::value_type;
    using base::request;

public:
    using typename base::value_type;

    explicit tile_pass(const Request& r) : base(r), in_(r.transform), delivery_(r.output.function, r) {
        const std::size_t bytes = static_cast<std::size_t>(r.size) * (2 * sizeof(T));
        past_caches_ = delivery::output_bytes > 0 && bytes > host::last_level_bytes();
    }
    ~tile_pass() {
        if (past_caches_) host::order_past_caches();
    }
    tile_pass(const tile_pass&) = delete;
    tile_pass& operator=(const tile_pass&) = delete;

    /// What lies before the last head of a tile is not in its aggregate: mostly, little is to be folded.
    value_type reduce(index_type t) {
        const index_type first = t * cut::tile;
        int row = tile_rows;
        index_type heads = 0;
        bool found = false;
        int from = 0; // the row of the last head
        std::array<std::uint64_t, part_rows> bits;
        while (row > 0 && (!found || counts_heads)) {
            const int begin = row - part_rows;
            host::find_segment_heads<length>(in_, first + begin * length, part_rows, bits.data());
            for (; row > begin; --row) {
                const std::uint64_t here = bits[static_cast<std::size_t>(row - 1 - begin)];
                if constexpr (counts_heads) heads += std::popcount(here);
                if (here != 0 && !found) {
                    found = true;
                    from = row - 1;
                }
                if (found && !counts_heads) break;
            }
        }
        host::segmented_state<T> state;
        for (int r = from; r < tile_rows; r += part_rows)
            host::scan_segmented_rows<length>(request().op.op, in_, first + r * length,
                                              std::min(part_rows, tile_rows - r), static_cast<T*>(nullptr), bits.data(),
                                              state);
        return detail::pair_of(std::type_identity<value_type>{}, state.offset, found, heads);
    }

    value_type scan_and_store(index_type t, const std::optional<value_type>& carry) {
        return scan_and_store(t, carry, carry);
    }
    /// The same where the last output of the tile before is not the carry.
    value_type scan_and_store(index_type t, const std::optional<value_type>& carry,
                              const std::optional<value_type>& before) {
        const index_type first = t * cut::tile, count = std::min(cut::tile, request().size - first);
        begin(carry, before);
        for (index_type i = 0; i < count;) i += scan_part(first + i, count - i);
        return finish(carry, first + count);
    }
    template <class Receiver>
    value_type scan_and_store(index_type t, const std::optional<value_type>& carry, tile_ahead ahead,
                              Receiver aggregate) {
        aggregate(reduce(ahead.tile));
        following_ = ahead.next_section * cut::tile;
        if (past_caches_ && ahead.following != tile_ahead::no_tile) {
            const index_type end = std::min((ahead.following + 1) * cut::tile, request().size);
            host::prefetch_segmented(in_, end - tail_rows * length, end); // of the next tile to be folded
        }
        const value_type last = scan_and_store(t, carry);
        following_ = no_section;
        return last;
    }

private:
    static constexpr int length = static_cast<int>(host::row_length<value_type>);
    static constexpr int tile_rows = static_cast<int>(cut::tile / length);
    using delivery = detail::segmented_delivery<T, length, decltype(Request::output.function)>;
    /// Rows of a part that is delivered at once: 2 KiB of outputs, which stay in the first-level cache.
    static constexpr int part_rows = static_cast<int>(2048 / (length * sizeof(T)));
    static_assert(tile_rows % part_rows == 0);
    static constexpr bool counts_heads = std::is_same_v<value_type, run_value<T>>;
    /// How far ahead memory is asked for: half a tile of plain numbers, which is what covers the time that it takes.
    static constexpr index_type far = 16384 / sizeof(T);
    /// Rows at the end of a tile that mostly hold its last head.
    static constexpr int tail_rows = 4;
    static constexpr index_type no_section = -1;

    /// What comes `far` elements after element i, in this section or the thread's next one; negative: nothing.
    index_type fetched_after(index_type i) const {
        constexpr index_type section = cut::section_tiles * cut::tile;
        if (!past_caches_) return -1;
        const index_type end = (i / section + 1) * section, at = i + far;
        if (at < end) return at + part_rows * length <= request().size ? at : -1;
        return following_ == no_section ? -1 : following_ + (at - end);
    }

    void begin(const std::optional<value_type>& carry, const std::optional<value_type>& before) {
        state_ = {};
        state_.has_carry = carry.has_value();
        if (carry) state_.carry = carry->value;
        heads_ = carry ? detail::heads_before(*carry) : 0;
        if (before) prefix()[-1] = before->value;
    }
    /// Scans and delivers a part of the `left` elements from `first` on; returns its length.
    index_type scan_part(index_type first, index_type left) {
        std::uint64_t heads[part_rows];
        const int rows = static_cast<int>(std::min<index_type>(part_rows, left / length));
        index_type count = index_type{rows} * length;
        if (rows > 0)
            host::scan_segmented_rows<length>(request().op.op, in_, first, rows, prefix(), heads, state_,
                                              fetched_after(first));
        if (rows < part_rows && left > count) {
            const int rest = static_cast<int>(left - count); // less than a row
            host::scan_short_segmented_row(request().op.op, in_, first + count, rest, prefix() + count, heads[rows],
                                           state_);
            count = left;
        }
        delivery_.deliver(first, count, prefix(), heads, heads_, past_caches_);
        if constexpr (counts_heads)
            for (index_type row = 0; row * length < count; ++row) heads_ += std::popcount(heads[row]);
        prefix()[-1] = prefix()[count - 1];
        return count;
    }
    value_type finish(const std::optional<value_type>& carry, index_type end) {
        bool head = state_.head;
        if constexpr (requires { carry->head; }) head = head || (carry && carry->head);
        const value_type last = detail::pair_of(std::type_identity<value_type>{}, prefix()[-1], head, heads_);
        if (request().total != nullptr && end == request().size) *request().total = last;
        return last;
    }

    T* prefix() { return stage_ + lead; }

    static constexpr int lead = 64 / static_cast<int>(sizeof(T)); // what lies before the prefixes, and their alignment
    const source in_;
    delivery delivery_;
    bool past_caches_;
    host::segmented_state<T> state_;
    index_type following_ = no_section; ///< the first element of the section after this one
    index_type heads_ = 0;
    alignas(64) T stage_[static_cast<std::size_t>(lead + part_rows * length)] = {};
};

#endif // POLYSCAN_HOST_VECTORS

} // namespace polyscan::openmp
