// SPDX-License-Identifier: Apache-2.0
/// The default block algorithm on rows of pairs {value, head}, on a processor's vectors: segmented scans, scans and
/// reductions by key over numbers, with the library's own operators. For other types and operators the pairs go the way
/// of any struct (tile_kernels.hpp).
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include <polyscan/by_key.hpp>
#include <polyscan/host/tile_kernels.hpp>
#include <polyscan/segmented.hpp>

namespace polyscan::host {

/// Where a scan of pairs stands in a tile: the fold of the tile's earlier rows and, where nothing has begun since, what
/// comes before the tile.
template <class T>
struct segmented_state {
    T offset{};
    T carry{};
    bool has_offset = false;
    bool has_carry = false;
    bool head = false; ///< a segment has begun in the tile
};

template <class Heads>
inline constexpr bool has_byte_flags = false;
template <class Flag>
inline constexpr bool has_byte_flags<polyscan::detail::flag_heads<const Flag*>> =
    std::is_integral_v<Flag> && sizeof(Flag) == 1;
template <class Heads>
inline constexpr bool has_plain_keys = false;
template <class Key>
inline constexpr bool has_plain_keys<polyscan::detail::key_heads<const Key*, equal_to>> = std::is_arithmetic_v<Key>;

/// The heads of [first, first + length), one after the other.
template <class Heads>
std::uint64_t other_head_bits(const Heads& heads, index_type first, int length) {
    std::uint64_t bits = 0;
    for (int i = 0; i < length; ++i) bits |= std::uint64_t{heads(first + i) ? 1u : 0u} << i;
    return bits;
}
/// One search for all of them.
template <class Offsets>
std::uint64_t other_head_bits(const polyscan::detail::offset_heads<Offsets>& heads, index_type first, int length) {
    std::uint64_t bits = first == 0 ? 1 : 0;
    for (index_type k = heads.first_not_below(first); k < heads.count; ++k) {
        const auto offset = static_cast<index_type>(heads.offsets[k]);
        if (offset >= first + length) break;
        bits |= std::uint64_t{1} << (offset - first);
    }
    return bits;
}

/// What the kernels read, from the element function of a request.
template <class Transform>
struct segmented_source {
    static constexpr bool is_known = false;
};
template <class A, class Heads, class Input, class Transform, class Operator, class Start>
struct segmented_source<polyscan::detail::segmented_element<A, Heads, Input, Transform, Operator, Start>> {
    static constexpr bool is_known = true;
    using value_type = A;
    using operator_type = Operator;
    static constexpr bool is_plain = std::is_same_v<Input, const A*> && std::is_same_v<Transform, no_transform>;
    static constexpr bool has_start = !std::is_same_v<Start, no_init_t>;

    explicit segmented_source(
        const polyscan::detail::segmented_element<A, Heads, Input, Transform, Operator, Start>& element)
        : heads(element.heads), in(element.in), transform(element.transform), start(element.start) {}

    A value(index_type i) const { return static_cast<A>(transform(in[i])); }

    Heads heads;
    Input in;
    Transform transform;
    Start start;
};
template <class A, class Heads, class Input, class Transform>
struct segmented_source<polyscan::detail::run_element<A, Heads, Input, Transform>> {
    static constexpr bool is_known = true;
    using value_type = A;
    static constexpr bool is_plain = std::is_same_v<Input, const A*> && std::is_same_v<Transform, no_transform>;
    static constexpr bool has_start = false;

    explicit segmented_source(const polyscan::detail::run_element<A, Heads, Input, Transform>& element)
        : heads(element.heads), in(element.in), transform(element.transform) {}

    A value(index_type i) const { return static_cast<A>(transform(in[i])); }

    Heads heads;
    Input in;
    Transform transform;
};

/// Asks for the memory of elements [first, last).
template <class Source>
[[gnu::always_inline]] inline void prefetch_segmented(const Source& in, index_type first, index_type last) {
    if constexpr (std::is_pointer_v<decltype(in.in)>)
        for (index_type i = first; i < last; i += 64 / static_cast<index_type>(sizeof(*in.in)))
            __builtin_prefetch(in.in + i, 0, 2);
    if constexpr (requires { *in.heads.flags; }) {
        if constexpr (std::is_pointer_v<decltype(in.heads.flags)>)
            for (index_type i = first; i < last; i += 64 / static_cast<index_type>(sizeof(*in.heads.flags)))
                __builtin_prefetch(in.heads.flags + i, 0, 2);
    } else if constexpr (requires { *in.heads.keys; }) {
        if constexpr (std::is_pointer_v<decltype(in.heads.keys)>)
            for (index_type i = first; i < last; i += 64 / static_cast<index_type>(sizeof(*in.heads.keys)))
                __builtin_prefetch(in.heads.keys + i, 0, 2);
    }
}

/// Values that the kernels take: words of 4 and 8 bytes.
template <class T>
concept segmented_value =
    (std::integral<T> || std::same_as<T, float> || std::same_as<T, double>) && (sizeof(T) == 4 || sizeof(T) == 8);

} // namespace polyscan::host

#if POLYSCAN_HOST_VECTORS

#define POLYSCAN_HOST_KERNELS <polyscan/host/segmented_rows.inl>
#include <polyscan/host/instruction_sets.inl>

namespace polyscan::host {

/// Scans `count` full rows of `Length` pairs from element `first` on. Prefixes go to `out`, unless that is null; the
/// heads of row r to bits of `heads_out[r]`. Meanwhile the memory of as many elements from `fetched` on is asked for.
template <int Length, class Source, class Operator, class T>
void scan_segmented_rows(const Operator& op, const Source& in, index_type first, int count, T* out,
                         std::uint64_t* heads_out, segmented_state<T>& state, index_type fetched = -1) {
#if defined(POLYSCAN_HOST_DISPATCH)
    switch (used_instruction_set) {
    case instruction_set::avx512:
        return avx512::segmented_rows::scan_rows<Length>(op, in, first, count, out, heads_out, state, fetched);
    case instruction_set::avx2:
        return avx2::segmented_rows::scan_rows<Length>(op, in, first, count, out, heads_out, state, fetched);
    default: break;
    }
#endif
    as_compiled::segmented_rows::scan_rows<Length>(op, in, first, count, out, heads_out, state, fetched);
}

/// The heads alone of `count` full rows.
template <int Length, class Source>
void find_segment_heads(const Source& in, index_type first, int count, std::uint64_t* heads_out) {
#if defined(POLYSCAN_HOST_DISPATCH)
    switch (used_instruction_set) {
    case instruction_set::avx512: return avx512::segmented_rows::find_heads<Length>(in, first, count, heads_out);
    case instruction_set::avx2: return avx2::segmented_rows::find_heads<Length>(in, first, count, heads_out);
    default: break;
    }
#endif
    as_compiled::segmented_rows::find_heads<Length>(in, first, count, heads_out);
}

/// scan_segmented_rows for the `length` pairs of a row that is not full, one operation after the other.
template <class Source, class Operator, class T>
void scan_short_segmented_row(const Operator& op, const Source& in, index_type first, int length, T* out,
                              std::uint64_t& heads_out, segmented_state<T>& state) {
    std::uint64_t heads = other_head_bits(in.heads, first, length);
    heads_out = heads;
    const auto has = [&](int i) { return (heads >> i & 1) != 0; };
    for (int i = 0; i < length; ++i) {
        out[i] = in.value(first + i);
        if constexpr (Source::has_start)
            if (has(i)) out[i] = combine(op, in.start, out[i]);
    }
    for (int s = 1; s < length; s *= 2)
        for (int i = 0; i < length; ++i) {
            const int lower = (i & ~(2 * s - 1)) + s - 1;
            if ((i & s) == 0 || has(i)) continue;
            out[i] = combine(op, T(out[lower]), T(out[i]));
            if (has(lower)) heads |= std::uint64_t{1} << i;
        }
    if (state.has_offset)
        for (int i = 0; i < length; ++i)
            if (!has(i)) out[i] = combine(op, state.offset, T(out[i]));
    state.offset = out[length - 1];
    state.has_offset = true;
    if (state.has_carry && !state.head)
        for (int i = 0; i < length; ++i)
            if (!has(i)) out[i] = combine(op, state.carry, T(out[i]));
    state.head = state.head || has(length - 1);
}

} // namespace polyscan::host

#endif // POLYSCAN_HOST_VECTORS
