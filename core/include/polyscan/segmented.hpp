// SPDX-License-Identifier: Apache-2.0
/// Segmented scans: a scan of every segment of an input, in one call, however long or short the segments are.
///
///     std::vector<int> in{3, 1, 4, 1, 5, 9, 2, 6}, out(8);
///     polyscan::openmp::backend cpu;
///     const std::vector<char> heads{1, 0, 0, 1, 0, 1, 0, 0};
///     polyscan::inclusive_segmented_scan(cpu, in, polyscan::head_flags(heads), out);        // 3 4 8 1 6 9 11 17
///     polyscan::exclusive_segmented_scan(cpu, in, polyscan::head_flags(heads), out, 10);    // 10 13 14 10 11 10 19 21
///     const std::vector<int> offsets{2, 4, 4, 7};
///     polyscan::inclusive_segmented_scan(cpu, in, polyscan::segment_offsets(offsets), out); // _ _ 4 5 5 14 16 _
///
/// Arguments; those in brackets may be left out from the right:
///     inclusive_segmented_scan<Accumulator>(backend, in, segments, out [, op [, policy [, options...]]])
///     exclusive_segmented_scan<Accumulator>(backend, in, segments, out [, init [, op [, policy [, options...]]]])
/// Options: `with_init{value}` (inclusive), `with_transform{f}`.
///
/// Segments:
///  - `head_flags(view)`: as many numbers as elements; one that is not 0 begins a segment, and so does element 0.
///  - `segment_offsets(view)`: m + 1 ascending numbers; segment s is [offsets[s], offsets[s + 1]). Equal neighbours are
///    an empty segment. Elements before the first offset and from the last one on are in no segment, their outputs are
///    not written. No offset, or only one: no segment. Finding a head takes a search among the offsets; where many
///    calls have the same segments, flags are faster.
///
/// Operator, accumulator, errors: as in scan.hpp. The operator needs no identity but for exclusive scans without init.
/// The init is put before the first element of every segment: x becomes op(init, x) before anything else, and an
/// exclusive scan writes it at every head.
///
/// Bits: those of the policy's scan of the pairs {value, begins a segment} (`segmented`, `segmented_operator`), on
/// every backend. The tile shape is that of the pair.
///
/// In place is allowed: `out` may be `in` if their elements have the same size. Any other overlap is rejected.
///
/// J. Schwartz: "Ultracomputers" (1980); G. Blelloch: "Prefix sums and their applications" (1990).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <polyscan/indexed.hpp>
#include <polyscan/scan.hpp>

namespace polyscan {

/// A value, and whether a segment begins with it or with what it was folded from.
template <class T>
struct segmented {
    T value;
    /// 0 or 1. As wide as leaves no padding behind it, which compilers for GPUs would copy byte by byte.
    std::conditional_t<alignof(T) >= sizeof(std::uint64_t), std::uint64_t,
                       std::conditional_t<alignof(T) >= sizeof(std::uint32_t), std::uint32_t, bool>>
        head;
};

/// The operator on pairs that restarts at heads. Associative if the operator on values is.
template <class Operator>
struct segmented_operator {
    Operator op;

    template <class T>
    POLYSCAN_FUNCTION constexpr segmented<T> operator()(const segmented<T>& earlier, const segmented<T>& later) const {
        if (later.head) return later;
        return {polyscan::combine(op, earlier.value, later.value), earlier.head};
    }
};
template <class Operator, class T>
inline constexpr bool exactly_associative<segmented_operator<Operator>, segmented<T>> =
    exactly_associative<Operator, T>;

/// What `head_flags` makes.
template <class Iterator>
struct head_flags_t {
    counted_view<Iterator> flags;
};
/// What `segment_offsets` makes.
template <class Iterator>
struct segment_offsets_t {
    counted_view<Iterator> offsets;
};
/// See the head of this file.
template <class Flags>
auto head_flags(Flags&& flags) {
    const auto view = detail::as_counted(std::forward<Flags>(flags), "flags");
    using iterator = decltype(detail::read_only(view.begin));
    return head_flags_t<iterator>{{detail::read_only(view.begin), view.size, view.count}};
}
/// See the head of this file.
template <class Offsets>
auto segment_offsets(Offsets&& offsets) {
    const auto view = detail::as_counted(std::forward<Offsets>(offsets), "offsets");
    using iterator = decltype(detail::read_only(view.begin));
    if (view.size == detail::unknown_size)
        reject("offsets", "a bare pointer has no length; use polyscan::counted(pointer, n) or a span");
    if (view.count != nullptr) reject("offsets", "the run-time count is that of the first input");
    return segment_offsets_t<iterator>{{detail::read_only(view.begin), view.size}};
}

namespace detail {

// Heads: whether a segment begins at element i, and whether element i is in a segment.

template <class Flags>
struct flag_heads {
    Flags flags;
    POLYSCAN_FUNCTION bool operator()(index_type i) const { return i == 0 || static_cast<bool>(flags[i]); }
    POLYSCAN_FUNCTION bool in_segment(index_type) const { return true; }
};
template <class Offsets>
struct offset_heads {
    Offsets offsets;
    index_type count;
    /// The first offset that is not below i, or their number.
    POLYSCAN_FUNCTION index_type first_not_below(index_type i) const {
        index_type low = 0, high = count;
        while (low < high) {
            const index_type middle = low + (high - low) / 2;
            if (static_cast<index_type>(offsets[middle]) < i)
                low = middle + 1;
            else
                high = middle;
        }
        return low;
    }
    /// Where the last segment ends, something begins, too: what is in no segment is not combined with what is.
    POLYSCAN_FUNCTION bool operator()(index_type i) const {
        const index_type k = first_not_below(i);
        return i == 0 || (k < count && static_cast<index_type>(offsets[k]) == i);
    }
    POLYSCAN_FUNCTION bool in_segment(index_type i) const {
        return i >= static_cast<index_type>(offsets[0]) && i < static_cast<index_type>(offsets[count - 1]);
    }
};

template <class Input, class Flags>
auto heads_of(const counted_view<Input>& in, const head_flags_t<Flags>& segments) {
    return flag_heads<Flags>{further_input(segments.flags, "flags", in.size)};
}
template <class Input, class Offsets>
auto heads_of(const counted_view<Input>&, const segment_offsets_t<Offsets>& segments) {
    return offset_heads<Offsets>{segments.offsets.begin, segments.offsets.size};
}
template <class Flags>
memory memory_of_segments(const head_flags_t<Flags>& segments, index_type size) {
    return memory_of("flags", segments.flags.begin, size);
}
template <class Offsets>
memory memory_of_segments(const segment_offsets_t<Offsets>& segments, index_type) {
    return memory_of("offsets", segments.offsets.begin, segments.offsets.size);
}

/// Element i of a segmented scan. `Start`: the accumulator, or no_init_t.
template <class A, class Heads, class Input, class Transform, class Operator, class Start>
struct segmented_element {
    Heads heads;
    Input in;
    Transform transform;
    Operator op;
    Start start;

    POLYSCAN_FUNCTION segmented<A> operator()(index_type i) const {
        const bool head = heads(i);
        if constexpr (!std::is_same_v<Start, no_init_t>)
            if (head) return {combine(op, start, static_cast<A>(transform(in[i]))), true};
        return {static_cast<A>(transform(in[i])), head};
    }
};

/// Output i of an inclusive one.
template <class Heads, class Output>
struct store_segmented {
    Heads heads;
    Output out;
    template <class A>
    POLYSCAN_FUNCTION void operator()(index_type i, const segmented<A>& prefix) const {
        if (heads.in_segment(i)) put(out, i, prefix.value);
    }
};
/// Of an exclusive one, whose prefix at a head is that of another segment.
template <class A, class Heads, class Output>
struct store_segmented_exclusive {
    Heads heads;
    Output out;
    A start;
    POLYSCAN_FUNCTION void operator()(index_type i, const segmented<A>& before) const {
        if (heads.in_segment(i)) put(out, i, heads(i) ? start : before.value);
    }
};

template <scan_kind Kind, class Named, class Policy, class Backend, class Input, class Heads, class Output, class Init,
          class Operator, class... Options>
void segmented_scan(Backend& backend, const counted_view<Input>& source, const Heads& heads, const Output& target,
                    const Init& init, const Operator& op, const Options&... options) {
    static_assert(((is_init_option<Options> || is_transform_option<Options>) && ...),
                  "options are with_init and with_transform");
    static_assert((0 + ... + int(is_transform_option<Options>)) <= 1, "with_transform is given twice");
    const auto transform = find_transform(options...);
    using transform_type = std::remove_cv_t<decltype(transform)>;
    using element = element_of<Input, transform_type>;
    using out_element = std::remove_pointer_t<Output>;
    static_assert(callable_to_deduce<Named, Init, element, Operator>,
                  "the operator must be callable with two transformed input elements, on a const object, or the "
                  "accumulator type must be named: inclusive_segmented_scan<Accumulator>(...)");
    using A = typename accumulator<Named, Init, element, out_element, Operator>::type;
    require_accumulator<A, element, Operator>();
    constexpr bool has_init = !std::is_same_v<Init, no_init_t>;
    static_assert(Kind == scan_kind::inclusive || has_init || has_identity<Operator, A>,
                  "an exclusive scan needs an init, or an operator with an identity");

    using start_type = std::conditional_t<has_init, A, no_init_t>;
    const start_type start = static_cast<start_type>(init);
    const segmented_element<A, Heads, Input, transform_type, kept<Operator>, start_type> load{heads, source.begin,
                                                                                              transform, op, start};
    const index_range all{source.size, source.count};
    if constexpr (Kind == scan_kind::inclusive) {
        scan_indices<Policy, segmented<A>>(backend, all, load, store_segmented<Heads, Output>{heads, target},
                                           segmented_operator<kept<Operator>>{op}, Kind, std::nullopt);
    } else {
        const A at_heads = [&] {
            if constexpr (has_init)
                return start;
            else
                return identity_of<A>(op);
        }();
        scan_indices<Policy, segmented<A>>(
            backend, all, load, store_segmented_exclusive<A, Heads, Output>{heads, target, at_heads},
            segmented_operator<kept<Operator>>{op}, Kind, std::optional<segmented<A>>(segmented<A>{at_heads, true}));
    }
}

template <scan_kind Kind, class Named, class Policy, class Backend, class In, class Segments, class Out, class Init,
          class Operator, class... Options>
void segmented_scan_of(Backend& backend, In&& in, const Segments& segments, Out&& out, const Init& init,
                       const Operator& op, const Options&... options) {
    const auto source = first_input(std::forward<In>(in), "in");
    const auto target = output(std::forward<Out>(out), "out", source.size);
    const auto heads = heads_of(source, segments);
    const memory from = memory_of("in", source.begin, source.size), to = memory_of("out", target, source.size);
    check_apart(
        {to}, {in_place(to, from) ? memory{"in"} : from, memory_of_segments(segments, source.size), count_of(source)});
    if constexpr (requires { segments.offsets; })
        if (segments.offsets.size < 2) return;
    segmented_scan<Kind, Named, Policy>(backend, source, heads, target, init, op, options...);
}

} // namespace detail

/// out[i] = op(x_h, ..., x_i), h being the head of i's segment. See the head of this file.
template <class Accumulator = deduced, backend Backend, class In, class Segments, class Out, class Operator = plus,
          scan_policy Policy = default_policy, class... Options>
void inclusive_segmented_scan(Backend& backend, In&& in, const Segments& segments, Out&& out, const Operator& op = {},
                              const Policy& = {}, const Options&... options) {
    static_assert((0 + ... + int(detail::is_init_option<Options>)) <= 1, "with_init is given twice");
    detail::segmented_scan_of<scan_kind::inclusive, Accumulator, Policy>(
        backend, std::forward<In>(in), segments, std::forward<Out>(out), detail::find_init(options...), op, options...);
}

/// out[h] = init, out[i] = op(init, x_h, ..., x_{i-1}). Without init the operator's identity takes its place. See the
/// head of this file.
template <class Accumulator = deduced, backend Backend, class In, class Segments, class Out, class Init = no_init_t,
          class Operator = plus, scan_policy Policy = default_policy, class... Options>
void exclusive_segmented_scan(Backend& backend, In&& in, const Segments& segments, Out&& out, const Init& init = {},
                              const Operator& op = {}, const Policy& = {}, const Options&... options) {
    static_assert((!detail::is_init_option<Options> && ...), "exclusive_segmented_scan takes init as its argument");
    detail::segmented_scan_of<scan_kind::exclusive, Accumulator, Policy>(backend, std::forward<In>(in), segments,
                                                                         std::forward<Out>(out), init, op, options...);
}

} // namespace polyscan
