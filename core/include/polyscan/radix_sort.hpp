// SPDX-License-Identifier: Apache-2.0
/// A stable sort of numbers: digit by digit, from the lowest to the highest.
///
///     std::vector<int> in{3, -1, 4, 1, -5}, out(5);
///     polyscan::openmp::backend cpu;
///     polyscan::radix_sort(cpu, in, out);                                       // -5 -1 1 3 4
///     polyscan::radix_sort(cpu, in, out, polyscan::sort_order::descending);     // 4 3 1 -1 -5
///
///     std::vector<unsigned> keys{2, 1, 2, 0}, keys_out(4);
///     std::vector<char> values{'a', 'b', 'c', 'd'}, values_out(4);
///     polyscan::radix_sort_by_key(cpu, keys, values, keys_out, values_out);     // 0 1 2 2, d b a c
///
/// Arguments, in this order; those in brackets may be left out from the right:
///     radix_sort(backend, in, out [, order [, bits]])
///     radix_sort_by_key(backend, keys, values, keys_out, values_out [, order [, bits]])
///
/// Keys: integers of any width, bool, float, double, half and bfloat16, in contiguous memory. Values: any trivially
/// copyable type. Elements whose keys are equal keep their order, ascending and descending; so the result is the same
/// bits on every backend. -0 equals +0, and every NaN equals every NaN, whatever its sign and payload; a NaN is greater
/// than any number: the last in ascending and the first in descending order. The bits of a key are not changed.
///
/// `bits` compares a part of the key only: `bit_range{begin, end}` are the bits [begin, end) of the key in the form
/// that orders it as an unsigned number: an unsigned integer as it is, a signed one with the sign bit inverted, a
/// floating-point number with the sign bit inverted where that is 0, and all bits where it is 1 (and -0 as +0, NaN as
/// all ones). A sort takes a pass for every 8 bits. No bits: a copy.
///     polyscan::radix_sort(cpu, in, out, polyscan::sort_order::ascending, polyscan::bit_range{0, 12});
///
/// Lengths: what is not the first input has at least as many elements as that. In place is allowed, for keys and for
/// values: both start at the same address. Any other overlap is rejected. The number of elements may stand in the
/// backend's memory (`counted(in, capacity, count)`, view.hpp).
///
/// A sort needs a second copy of keys and values, in memory that belongs to the backend object and stays with it
/// (backend.hpp, `scratch`). std::invalid_argument for a broken contract, before anything is written.
///
/// By counts, their scan and a move for each digit: M. Zagha, G. Blelloch, "Radix sort for vector multiprocessors"
/// (1991).
#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include <polyscan/backend.hpp>
#include <polyscan/error.hpp>
#include <polyscan/function.hpp>
#include <polyscan/half.hpp>
#include <polyscan/indexed.hpp>
#include <polyscan/scan.hpp>
#include <polyscan/tile.hpp>

namespace polyscan {

/// Smallest or greatest key first.
enum class sort_order { ascending, descending };

/// Bits [begin, end) of a key. See the head of this file.
struct bit_range {
    static constexpr int all = -1;
    int begin = 0;
    int end = all;
};

namespace detail {

template <class Key>
inline constexpr bool is_floating_key = std::is_same_v<Key, float> || std::is_same_v<Key, double> ||
                                        std::is_same_v<Key, half> || std::is_same_v<Key, bfloat16>;
template <class Key>
concept sortable_key = (std::integral<Key> && sizeof(Key) <= sizeof(std::uint64_t)) || is_floating_key<Key>;

template <std::size_t bytes>
struct unsigned_of;
template <>
struct unsigned_of<1> : std::type_identity<std::uint8_t> {};
template <>
struct unsigned_of<2> : std::type_identity<std::uint16_t> {};
template <>
struct unsigned_of<4> : std::type_identity<std::uint32_t> {};
template <>
struct unsigned_of<8> : std::type_identity<std::uint64_t> {};

/// What keys are compared as.
template <class Key>
using key_bits = typename unsigned_of<sizeof(Key)>::type;

/// The bits of +infinity.
template <class Key>
inline constexpr key_bits<Key> infinity_bits = std::is_same_v<Key, double>  ? static_cast<key_bits<Key>>(0x7ffull << 52)
                                               : std::is_same_v<Key, float> ? static_cast<key_bits<Key>>(0xffull << 23)
                                               : std::is_same_v<Key, half>  ? static_cast<key_bits<Key>>(0x7c00)
                                                                            : static_cast<key_bits<Key>>(0x7f80);

/// a comes before b if, and only if, ordered_bits(a) < ordered_bits(b).
template <sortable_key Key>
POLYSCAN_FUNCTION constexpr key_bits<Key> ordered_bits(const Key& key) {
    using bits_type = key_bits<Key>;
    constexpr auto sign = static_cast<bits_type>(bits_type{1} << (8 * sizeof(Key) - 1));
    const auto bits = std::bit_cast<bits_type>(key);
    if constexpr (is_floating_key<Key>) {
        const auto magnitude = static_cast<bits_type>(bits & ~sign);
        if (magnitude > infinity_bits<Key>) return static_cast<bits_type>(~bits_type{0});
        if (magnitude == 0) return sign;
        return static_cast<bits_type>((bits & sign) != 0 ? ~bits : bits | sign);
    } else if constexpr (std::is_signed_v<Key>) {
        return static_cast<bits_type>(bits ^ sign);
    } else {
        return bits;
    }
}

/// Bits of a digit, and the number of its values.
inline constexpr int digit_bits = 8;
inline constexpr int digit_values = 1 << digit_bits;

/// A key's digit in one pass.
template <class Key>
struct digit_of {
    key_bits<Key> flip; ///< all ones for a descending order
    int shift;
    unsigned mask;

    POLYSCAN_FUNCTION constexpr unsigned operator()(const Key& key) const {
        using word = std::conditional_t<(sizeof(Key) > sizeof(std::uint32_t)), std::uint64_t, std::uint32_t>;
        return static_cast<unsigned>(static_cast<word>(ordered_bits(key) ^ flip) >> shift) & mask;
    }
};

/// The order of a sort, checked.
template <class Key>
struct key_order {
    static constexpr int most_passes = static_cast<int>(sizeof(Key)); // a digit is a byte
    static_assert(digit_bits == 8);

    key_bits<Key> flip;
    int begin, end;

    key_order(sort_order order, bit_range bits)
        : flip(order == sort_order::descending ? static_cast<key_bits<Key>>(~key_bits<Key>{0}) : key_bits<Key>{0}),
          begin(bits.begin), end(bits.end == bit_range::all ? 8 * static_cast<int>(sizeof(Key)) : bits.end) {
        constexpr int width = 8 * static_cast<int>(sizeof(Key));
        if (begin < 0 || begin > width) reject("bits", "begin must lie in [0, " + std::to_string(width) + "]");
        if (end < begin || end > width)
            reject("bits", "end must lie in [begin, " + std::to_string(width) + "], the number of bits of the key");
    }

    int passes() const { return (end - begin + digit_bits - 1) / digit_bits; }
    digit_of<Key> digit(int pass) const {
        const int shift = begin + digit_bits * pass;
        return {flip, shift, (1u << std::min(digit_bits, end - shift)) - 1};
    }
};

/// In the place of a value type: there are keys only.
struct no_value {};

/// One sort, checked: what the verbs hand to a backend. Keys (values) and their outputs are the same memory or apart.
template <class Key, class Value>
struct sort_request {
    using key_type = Key;
    using value_type = Value;
    static constexpr bool has_values = !std::is_same_v<Value, no_value>;
    /// Bytes of a value in memory.
    static constexpr std::size_t value_bytes = has_values ? sizeof(Value) : 0;

    const Key* keys;
    Key* keys_out;
    const Value* values;
    Value* values_out;
    index_type size;
    const index_type* count; ///< or null: the number of elements is read when the work runs
    key_order<Key> order;

    bool in_place() const { return keys == keys_out || (has_values && values == values_out); }
};

/// Keys and, with them, values.
template <class Key, class Value>
struct sort_elements {
    Key* keys;
    Value* values;

    POLYSCAN_FUNCTION void move(index_type to, const Key& key, const sort_elements<const Key, const Value>& source,
                                index_type from) const {
        keys[to] = key;
        if constexpr (!std::is_same_v<Value, no_value>) values[to] = source.values[from];
    }
    POLYSCAN_FUNCTION sort_elements<const Key, const Value> read_only() const { return {keys, values}; }
};

// --- a sort for any backend, of its scan and for_each ----------------------------------------------------------------

/// Elements that one call of for_each's function counts or moves, in order.
inline constexpr index_type sort_tile = 1024;

/// How many elements of the tile have each digit: counts[digit * tiles + tile].
template <class Key>
struct count_digits {
    const Key* keys;
    index_type size;
    const index_type* count;
    digit_of<Key> digit;
    index_type* counts;
    index_type tiles;

    POLYSCAN_FUNCTION void operator()(index_type tile) const {
        const index_type n = live_count(size, count);
        for (int d = 0; d < digit_values; ++d) counts[d * tiles + tile] = 0;
        const index_type first = tile * sort_tile, end = first + sort_tile < n ? first + sort_tile : n;
        for (index_type i = first; i < end; ++i) ++counts[static_cast<index_type>(digit(keys[i])) * tiles + tile];
    }
};

/// Puts the tile's elements where they belong: the first of a digit to places[digit * tiles + tile], and so on.
template <class Key, class Value>
struct move_by_digit {
    sort_elements<const Key, const Value> from;
    sort_elements<Key, Value> to;
    index_type size;
    const index_type* count;
    digit_of<Key> digit;
    index_type* places;
    index_type tiles;

    POLYSCAN_FUNCTION void operator()(index_type tile) const {
        const index_type n = live_count(size, count);
        const index_type first = tile * sort_tile, end = first + sort_tile < n ? first + sort_tile : n;
        for (index_type i = first; i < end; ++i) {
            const Key key = from.keys[i];
            to.move(places[static_cast<index_type>(digit(key)) * tiles + tile]++, key, from, i);
        }
    }
};

template <class Key, class Value>
struct copy_elements {
    sort_elements<const Key, const Value> from;
    sort_elements<Key, Value> to;
    index_type size;
    const index_type* count;

    POLYSCAN_FUNCTION void operator()(index_type i) const {
        if (i < live_count(size, count)) to.move(i, from.keys[i], from, i);
    }
};

/// `offset` rounded up to where anything may begin.
constexpr index_type aligned_offset(index_type offset) { return ceil_div(offset, 128) * 128; }

/// What every backend's scratch memory is aligned to.
inline constexpr std::size_t scratch_alignment = 64;
/// The bytes of a value that asks for more.
template <std::size_t size>
struct alignas(scratch_alignment) opaque_value {
    std::byte bytes[size];
};
/// What a sort moves for a Value.
template <class Value>
using moved_value = std::conditional_t<(alignof(Value) > scratch_alignment), opaque_value<sizeof(Value)>, Value>;

/// A pass reads one copy of the elements and writes the other, and the last one writes the output: so an odd number of
/// passes starts from a copy where the input is the output.
template <class Backend, class Key, class Value>
void sort_with_for_each(Backend& backend, const sort_request<Key, Value>& request) {
    const int passes = request.order.passes();
    const sort_elements<const Key, const Value> input{request.keys, request.values};
    const sort_elements<Key, Value> output{request.keys_out, request.values_out};
    const index_type n = request.size;
    if (passes == 0) {
        if (request.keys != request.keys_out || (request.has_values && request.values != request.values_out))
            backend.for_each(n, copy_elements<Key, Value>{input, output, n, request.count});
        return;
    }
    const index_type tiles = ceil_div(n, sort_tile);
    const index_type counts_bytes = aligned_offset(digit_values * tiles * static_cast<index_type>(sizeof(index_type)));
    const index_type keys_bytes = aligned_offset(n * static_cast<index_type>(sizeof(Key)));
    const bool needs_copy = passes > 1 || request.in_place();
    auto memory = backend.template scratch<unsigned char>(
        counts_bytes +
        (needs_copy ? keys_bytes + n * static_cast<index_type>(sort_request<Key, Value>::value_bytes) : 0));
    auto* const counts = reinterpret_cast<index_type*>(memory.data());
    const sort_elements<Key, Value> copy{reinterpret_cast<Key*>(memory.data() + counts_bytes),
                                         reinterpret_cast<Value*>(memory.data() + counts_bytes + keys_bytes)};

    sort_elements<const Key, const Value> from = input;
    if (request.in_place() && passes % 2 == 1) {
        backend.for_each(n, copy_elements<Key, Value>{input, copy, n, request.count});
        from = copy.read_only();
    }
    for (int pass = 0; pass < passes; ++pass) {
        const sort_elements<Key, Value> to = (passes - pass) % 2 == 1 ? output : copy;
        const digit_of<Key> digit = request.order.digit(pass);
        backend.for_each(tiles, count_digits<Key>{from.keys, n, request.count, digit, counts, tiles});
        exclusive_scan<index_type>(backend, counted(static_cast<const index_type*>(counts), digit_values * tiles),
                                   counts);
        backend.for_each(tiles, move_by_digit<Key, Value>{from, to, n, request.count, digit, counts, tiles});
        from = to.read_only();
    }
}

template <class Backend, class Key, class Value>
void sort(Backend& backend, const sort_request<Key, Value>& request) {
    if (request.size == 0) return;
    if constexpr (requires { backend.radix_sort(request); }) {
        backend.radix_sort(request);
    } else {
        static_assert(runs_functions<Backend>,
                      "radix_sort needs a backend with for_each and scratch, or with a radix_sort of its own");
        sort_with_for_each(backend, request);
    }
}

/// Memory with elements of a type that is known: what a sort reads.
template <class Iterator>
void require_memory(const Iterator&) {
    static_assert(std::is_pointer_v<Iterator>, "radix_sort takes contiguous memory");
}

} // namespace detail

/// out = the elements of in, sorted. See the head of this file.
template <backend Backend, class In, class Out>
void radix_sort(Backend& backend, In&& in, Out&& out, sort_order order = sort_order::ascending, bit_range bits = {}) {
    const auto source = detail::first_input(std::forward<In>(in), "in");
    const auto target = detail::output(std::forward<Out>(out), "out", source.size);
    detail::require_memory(source.begin);
    detail::require_memory(target);
    using key_type = std::remove_pointer_t<std::remove_cv_t<decltype(target)>>;
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(*source.begin)>, key_type>,
                  "input and output have elements of the same type");
    static_assert(detail::sortable_key<key_type>, "keys are integers, float, double, half or bfloat16");
    const detail::key_order<key_type> checked(order, bits);

    const detail::memory from = detail::memory_of("in", source.begin, source.size);
    const detail::memory to = detail::memory_of("out", target, source.size);
    if (detail::in_place(to, from))
        detail::check_apart({to}, {detail::count_of(source)});
    else
        detail::check_apart({to}, {from, detail::count_of(source)});
    detail::sort(backend, detail::sort_request<key_type, detail::no_value>{source.begin, target, nullptr, nullptr,
                                                                           source.size, source.count, checked});
}

/// keys_out = the keys, sorted, and values_out = the values in the order of their keys. See the head of this file.
template <backend Backend, class Keys, class Values, class KeysOut, class ValuesOut>
void radix_sort_by_key(Backend& backend, Keys&& keys, Values&& values, KeysOut&& keys_out, ValuesOut&& values_out,
                       sort_order order = sort_order::ascending, bit_range bits = {}) {
    const auto source = detail::first_input(std::forward<Keys>(keys), "keys");
    const auto source_values = detail::further_input(std::forward<Values>(values), "values", source.size);
    const auto target = detail::output(std::forward<KeysOut>(keys_out), "keys_out", source.size);
    const auto target_values = detail::output(std::forward<ValuesOut>(values_out), "values_out", source.size);
    detail::require_memory(source.begin);
    detail::require_memory(source_values);
    detail::require_memory(target);
    detail::require_memory(target_values);
    using key_type = std::remove_pointer_t<std::remove_cv_t<decltype(target)>>;
    using value_type = std::remove_pointer_t<std::remove_cv_t<decltype(target_values)>>;
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(*source.begin)>, key_type> &&
                      std::is_same_v<std::remove_cvref_t<decltype(*source_values)>, value_type>,
                  "inputs and outputs have elements of the same type");
    static_assert(detail::sortable_key<key_type>, "keys are integers, float, double, half or bfloat16");
    static_assert(std::is_trivially_copyable_v<value_type>, "values are trivially copyable");
    const detail::key_order<key_type> checked(order, bits);

    const detail::memory from = detail::memory_of("keys", source.begin, source.size);
    const detail::memory from_values = detail::memory_of("values", source_values, source.size);
    const detail::memory to = detail::memory_of("keys_out", target, source.size);
    const detail::memory to_values = detail::memory_of("values_out", target_values, source.size);
    // What is in place has no further relation to its own input.
    const detail::memory apart = detail::in_place(to, from) ? detail::memory{"keys"} : from;
    const detail::memory apart_values =
        detail::in_place(to_values, from_values) ? detail::memory{"values"} : from_values;
    detail::check_apart({to}, {apart, from_values, detail::count_of(source)});
    detail::check_apart({to_values}, {from, apart_values, detail::count_of(source)});
    detail::check_apart({to, to_values}, {});
    using moved = detail::moved_value<value_type>;
    detail::sort(backend, detail::sort_request<key_type, moved>{
                              source.begin, target, reinterpret_cast<const moved*>(source_values),
                              reinterpret_cast<moved*>(target_values), source.size, source.count, checked});
}

} // namespace polyscan
