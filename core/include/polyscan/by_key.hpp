// SPDX-License-Identifier: Apache-2.0
/// Scans and reductions by key: neighbours with equal keys are a segment (a run).
///
///     std::vector<int> keys{7, 7, 7, 2, 2, 7, 7, 7}, in{3, 1, 4, 1, 5, 9, 2, 6}, out(8), runs(8), sums(8);
///     polyscan::index_type count = 0;
///     polyscan::openmp::backend cpu;
///     polyscan::inclusive_scan_by_key(cpu, keys, in, out);                     // 3 4 8 1 6 9 11 17
///     polyscan::exclusive_scan_by_key(cpu, keys, in, out, 10);                 // 10 13 14 10 11 10 19 21
///     polyscan::reduce_by_key(cpu, keys, in, runs, sums, &count);              // 7 2 7; 8 6 17; count 3
///     polyscan::run_length_encode(cpu, keys, runs, sums, &count);              // 7 2 7; 3 2 3; count 3
///
/// Arguments; those in brackets may be left out from the right:
///     inclusive_scan_by_key<Accumulator>(backend, keys, in, out [, op [, equal [, policy [, options...]]]])
///     exclusive_scan_by_key<Accumulator>(backend, keys, in, out [, init [, op [, equal [, policy [, options...]]]]])
///     reduce_by_key<Accumulator>(backend, keys, in, keys_out, out, count [, op [, equal [, policy [, options...]]]])
///     run_length_encode(backend, keys, keys_out, lengths, count [, equal [, policy]])
/// Options: `with_init{value}` (inclusive_scan_by_key), `with_transform{f}` (of elements of `in`; scans and
/// reductions).
///
/// `equal` is an equivalence; it sees neighbours only. The scans are segmented scans (segmented.hpp) whose segments are
/// runs: what is said there about init, bits and in place (out may be in) holds. Keys are never overwritten.
///
/// reduce_by_key writes the first key and the fold of each run, run after run; `count`, memory of the backend or null,
/// receives the number of runs. Bits: those of the policy's scan of the pairs {heads so far, value} (`run_value`,
/// `run_operator`). The outputs have room for all of the input, or are pointers, of which only as many elements are
/// written as there are runs. Nothing that is written may overlap anything that is read (behind a pointer, only the
/// first element is checked). The keys say how many elements there are, and `in` has as many. Empty input: `count`
/// receives 0.
#pragma once

#include <optional>
#include <type_traits>
#include <utility>

#include <polyscan/indexed.hpp>
#include <polyscan/scan.hpp>
#include <polyscan/segmented.hpp>

namespace polyscan {

/// The heads of runs so far, and the fold from the last of them on.
template <class T>
struct run_value {
    index_type heads;
    T value;
};

/// Counts heads, and restarts the fold at them. Associative if the operator on values is.
template <class Operator>
struct run_operator {
    Operator op;

    template <class T>
    POLYSCAN_FUNCTION constexpr run_value<T> operator()(const run_value<T>& earlier, const run_value<T>& later) const {
        if (later.heads > 0) return {earlier.heads + later.heads, later.value};
        return {earlier.heads, polyscan::combine(op, earlier.value, later.value)};
    }
};
template <class Operator, class T>
inline constexpr bool exactly_associative<run_operator<Operator>, run_value<T>> = exactly_associative<Operator, T>;

namespace detail {

template <class Keys, class Equal>
struct key_heads {
    Keys keys;
    Equal equal;
    POLYSCAN_FUNCTION bool operator()(index_type i) const {
        return i == 0 || !static_cast<bool>(equal(keys[i - 1], keys[i]));
    }
    POLYSCAN_FUNCTION bool in_segment(index_type) const { return true; }
};

/// The transform of an input that does not matter.
struct one {
    template <class T>
    POLYSCAN_FUNCTION constexpr index_type operator()(const T&) const {
        return 1;
    }
};

template <class A, class Heads, class Input, class Transform>
struct run_element {
    Heads heads;
    Input in;
    Transform transform;
    POLYSCAN_FUNCTION run_value<A> operator()(index_type i) const {
        return {heads(i) ? 1 : 0, static_cast<A>(transform(in[i]))};
    }
};

/// A run's key is written at its head, its fold and the number of runs where the next one begins or nothing follows.
template <class Keys, class Heads, class KeysOut, class Output>
struct store_runs {
    Keys keys;
    Heads heads;
    KeysOut keys_out;
    Output out;
    index_range all;
    index_type* count;

    template <class A>
    POLYSCAN_FUNCTION void operator()(index_type i, const run_value<A>& prefix) const {
        const index_type run = prefix.heads - 1;
        if (heads(i)) put(keys_out, run, keys[i]);
        const bool is_last = i + 1 == live_count(all.size, all.count);
        if (is_last || heads(i + 1)) put(out, run, prefix.value);
        if (is_last && count != nullptr) *count = prefix.heads;
    }
};

template <scan_kind Kind, class Named, class Policy, class Backend, class Keys, class In, class Out, class Init,
          class Operator, class Equal, class... Options>
void scan_by_key(Backend& backend, Keys&& keys, In&& in, Out&& out, const Init& init, const Operator& op,
                 const Equal& equal, const Options&... options) {
    const auto names = first_input(std::forward<Keys>(keys), "keys");
    const auto values = further_input(std::forward<In>(in), "in", names.size);
    const auto target = output(std::forward<Out>(out), "out", names.size);
    const memory from = memory_of("in", values, names.size), to = memory_of("out", target, names.size);
    check_apart(
        {to}, {in_place(to, from) ? memory{"in"} : from, memory_of("keys", names.begin, names.size), count_of(names)});
    segmented_scan<Kind, Named, Policy>(
        backend, counted_view<std::remove_cv_t<decltype(values)>>{values, names.size, names.count},
        key_heads<std::remove_cv_t<decltype(names.begin)>, kept<Equal>>{names.begin, equal}, target, init, op,
        options...);
}

template <class Named, class Policy, class Backend, class Keys, class Values, class KeysOut, class Out, class Operator,
          class Equal, class Transform>
void reduce_runs(Backend& backend, const counted_view<Keys>& keys, const Values& values, const KeysOut& keys_out,
                 index_type keys_room, const Out& out, index_type room, index_type* count, const Operator& op,
                 const Equal& equal, const Transform& transform) {
    using element = element_of<Values, Transform>;
    static_assert(callable_to_deduce<Named, no_init_t, element, Operator>,
                  "the operator must be callable with two transformed input elements, on a const object, or the "
                  "accumulator type must be named: reduce_by_key<Accumulator>(...)");
    using A = typename accumulator<Named, no_init_t, element, std::remove_pointer_t<Out>, Operator>::type;
    require_accumulator<A, element, Operator>();
    check_apart({memory_of("keys_out", keys_out, keys_room), memory_of("out", out, room),
                 memory{"count", count, count == nullptr ? 0 : sizeof(index_type)}},
                {memory_of("keys", keys.begin, keys.size), memory_of("in", values, keys.size), count_of(keys)});
    // The last element knows the number of runs. Where there may be none, the number is there before.
    if (count != nullptr && (keys.size == 0 || keys.count != nullptr)) write_one<Policy>(backend, count, index_type{0});
    if (keys.size == 0) return;
    using heads_type = key_heads<Keys, kept<Equal>>;
    const heads_type heads{keys.begin, equal};
    const index_range all{keys.size, keys.count};
    scan_indices<Policy, run_value<A>>(
        backend, all, run_element<A, heads_type, Values, Transform>{heads, values, transform},
        store_runs<Keys, heads_type, KeysOut, Out>{keys.begin, heads, keys_out, out, all, count},
        run_operator<kept<Operator>>{op}, scan_kind::inclusive, std::nullopt);
}

} // namespace detail

/// out[i] = op(x_h, ..., x_i), h being the first of the run of equal keys around i. See the head of this file.
template <class Accumulator = deduced, backend Backend, class Keys, class In, class Out, class Operator = plus,
          class Equal = equal_to, scan_policy Policy = default_policy, class... Options>
void inclusive_scan_by_key(Backend& backend, Keys&& keys, In&& in, Out&& out, const Operator& op = {},
                           const Equal& equal = {}, const Policy& = {}, const Options&... options) {
    static_assert((0 + ... + int(detail::is_init_option<Options>)) <= 1, "with_init is given twice");
    detail::scan_by_key<scan_kind::inclusive, Accumulator, Policy>(
        backend, std::forward<Keys>(keys), std::forward<In>(in), std::forward<Out>(out), detail::find_init(options...),
        op, equal, options...);
}

/// out[h] = init, out[i] = op(init, x_h, ..., x_{i-1}). Without init the operator's identity takes its place. See the
/// head of this file.
template <class Accumulator = deduced, backend Backend, class Keys, class In, class Out, class Init = no_init_t,
          class Operator = plus, class Equal = equal_to, scan_policy Policy = default_policy, class... Options>
void exclusive_scan_by_key(Backend& backend, Keys&& keys, In&& in, Out&& out, const Init& init = {},
                           const Operator& op = {}, const Equal& equal = {}, const Policy& = {},
                           const Options&... options) {
    static_assert((!detail::is_init_option<Options> && ...), "exclusive_scan_by_key takes init as its argument");
    detail::scan_by_key<scan_kind::exclusive, Accumulator, Policy>(
        backend, std::forward<Keys>(keys), std::forward<In>(in), std::forward<Out>(out), init, op, equal, options...);
}

/// The first key and the fold of every run of equal keys. See the head of this file.
template <class Accumulator = deduced, backend Backend, class Keys, class In, class KeysOut, class Out,
          class Operator = plus, class Equal = equal_to, scan_policy Policy = default_policy, class... Options>
void reduce_by_key(Backend& backend, Keys&& keys, In&& in, KeysOut&& keys_out, Out&& out, index_type* count,
                   const Operator& op = {}, const Equal& equal = {}, const Policy& = {}, const Options&... options) {
    static_assert((detail::is_transform_option<Options> && ...), "the option is with_transform");
    static_assert(sizeof...(Options) <= 1, "with_transform is given twice");
    const auto names = detail::first_input(std::forward<Keys>(keys), "keys");
    detail::reduce_runs<Accumulator, Policy>(
        backend, names, detail::further_input(std::forward<In>(in), "in", names.size),
        detail::output(std::forward<KeysOut>(keys_out), "keys_out", names.size),
        detail::certain_room<KeysOut>(names.size), detail::output(std::forward<Out>(out), "out", names.size),
        detail::certain_room<Out>(names.size), count, op, equal, detail::find_transform(options...));
}

/// The first key and the length of every run of equal keys. See the head of this file.
template <backend Backend, class Keys, class KeysOut, class Lengths, class Equal = equal_to,
          scan_policy Policy = default_policy>
void run_length_encode(Backend& backend, Keys&& keys, KeysOut&& keys_out, Lengths&& lengths, index_type* count,
                       const Equal& equal = {}, const Policy& = {}) {
    const auto names = detail::first_input(std::forward<Keys>(keys), "keys");
    detail::reduce_runs<index_type, Policy>(
        backend, names, index_iterator{}, detail::output(std::forward<KeysOut>(keys_out), "keys_out", names.size),
        detail::certain_room<KeysOut>(names.size),
        detail::output(std::forward<Lengths>(lengths), "lengths", names.size),
        detail::certain_room<Lengths>(names.size), count, plus{}, equal, detail::one{});
}

} // namespace polyscan
