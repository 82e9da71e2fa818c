// SPDX-License-Identifier: Apache-2.0
/// The public verbs.
///
///     std::vector<int> in{3, 1, 4, 1, 5}, out(5);
///     polyscan::openmp::backend cpu;
///     polyscan::inclusive_scan(cpu, in, out);                        // 3 4 8 9 14
///     polyscan::exclusive_scan(cpu, in, out, 10);                    // 10 13 14 18 19
///     polyscan::inclusive_scan(cpu, in, out, polyscan::maximum{});   // 3 3 4 4 5
///
/// Arguments, in this order; those in brackets may be left out from the right:
///     inclusive_scan<Accumulator>(backend, in, out [, op [, policy [, options...]]])
///     exclusive_scan<Accumulator>(backend, in, out [, init [, op [, policy [, options...]]]])
/// Options: `with_init{value}` (inclusive), `with_transform{f}`, `total_to{pointer}`.
///
///  - Input and output: see view.hpp. The output holds at least as many elements as the input.
///  - Aliasing: in place is allowed, that is, both start at the same address and their elements have the same size. Any
///    other overlap is rejected, as is a total inside either, or where a run-time count is read.
///  - Operator: associative on the accumulator type, `op(earlier, later)`; it need not be commutative, and only
///    exclusive scans without init need an identity. For floating point the association is fixed by the policy.
///  - Accumulator: the type named by the caller; else, with init, `std::common_type_t<Init, Out>` where both are
///    numbers, else `Init`; without init `std::common_type_t<decltype(op(x, x)), Out>`, x being a transformed input
///    element. Inputs are converted to it before the first operation, so sums of uint8_t into uint64_t do not wrap at
///    256.
///  - Empty input: nothing is read or written, except that a total receives the init or the operator's identity, if
///    there is one.
///  - Errors: std::invalid_argument for a broken contract (before anything is written), polyscan::backend_error when
///    the backend fails. What an operator, a transform or an output function throws on the host passes through; the
///    outputs are then unspecified, and the backend works as before. Work may still be under way on return where a
///    backend is asynchronous (backend.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <polyscan/backend.hpp>
#include <polyscan/error.hpp>
#include <polyscan/operators.hpp>
#include <polyscan/policy.hpp>
#include <polyscan/request.hpp>
#include <polyscan/view.hpp>

namespace polyscan {

/// Stands in the place of an init: the scan starts with the first element (inclusive) or the operator's identity
/// (exclusive).
struct no_init_t {};
/// To be written where an init would stand.
inline constexpr no_init_t no_init{};

/// Option: the value that comes before the first element.
template <class T>
struct with_init {
    T value;
};
template <class T>
with_init(T) -> with_init<T>;

/// Option: a unary function applied to each input element before the first operation.
template <class Function>
struct with_transform {
    Function function;
};
template <class Function>
with_transform(Function) -> with_transform<Function>;

/// Option: where the total (the last inclusive output, init included) goes. The pointer must be writable by the
/// backend, and its type must be the accumulator.
template <class T>
struct total_to {
    T* pointer;
};
template <class T>
total_to(T*) -> total_to<T>;

/// Stands in the place of an accumulator type: take it from the rule above.
struct deduced;

namespace detail {

template <class T>
inline constexpr bool is_init_option = false;
template <class T>
inline constexpr bool is_init_option<with_init<T>> = true;
template <class T>
inline constexpr bool is_transform_option = false;
template <class F>
inline constexpr bool is_transform_option<with_transform<F>> = true;
template <class T>
inline constexpr bool is_total_option = false;
template <class T>
inline constexpr bool is_total_option<total_to<T>> = true;
template <class T>
inline constexpr bool is_option = is_init_option<T> || is_transform_option<T> || is_total_option<T>;

inline const no_init_t& find_init() { return no_init; }
inline const auto& find_init(const auto& option, const auto&... more) {
    if constexpr (is_init_option<std::remove_cvref_t<decltype(option)>>)
        return option.value;
    else
        return find_init(more...);
}

inline auto find_transform() { return no_transform{}; }
inline auto find_transform(const auto& option, const auto&... more) {
    if constexpr (is_transform_option<std::remove_cvref_t<decltype(option)>>)
        return option.function;
    else
        return find_transform(more...);
}

template <class Accumulator>
Accumulator* find_total() {
    return nullptr;
}
template <class Accumulator>
Accumulator* find_total(const auto& option, const auto&... more) {
    if constexpr (is_total_option<std::remove_cvref_t<decltype(option)>>) {
        static_assert(std::is_same_v<std::remove_cvref_t<decltype(option.pointer)>, Accumulator*>,
                      "total_to needs a pointer to the accumulator type");
        return option.pointer;
    } else {
        return find_total<Accumulator>(more...);
    }
}

// A transformed input element, by value. Iterators may return proxies, which refer to the element; kept as
// accumulators, they would write it.
template <class Input, class Transform>
struct transformed {
    using type = std::decay_t<std::invoke_result_t<const Transform&, std::iter_reference_t<const Input>>>;
};
template <class Input>
struct transformed<Input, no_transform> {
    using type = std::iter_value_t<Input>;
};
template <class Input, class Transform>
using element_of = typename transformed<Input, Transform>::type;

template <class A, class B>
struct common_or_first {
    using type = A;
};
template <class A, class B>
    requires requires { typename std::common_type_t<A, B>; }
struct common_or_first<A, B> {
    using type = std::common_type_t<A, B>;
};

template <class Named, class Init, class Element, class Out, class Operator>
struct accumulator {
    using type = Named;
};
template <class Init, class Element, class Out, class Operator>
struct accumulator<deduced, Init, Element, Out, Operator> {
    using type = typename std::conditional_t<std::is_arithmetic_v<Init> && std::is_arithmetic_v<Out>,
                                             common_or_first<Init, Out>, std::type_identity<Init>>::type;
};
template <class Element, class Out, class Operator>
    requires std::is_invocable_v<const Operator&, const Element&, const Element&>
struct accumulator<deduced, no_init_t, Element, Out, Operator> {
    using type =
        typename common_or_first<std::decay_t<std::invoke_result_t<const Operator&, const Element&, const Element&>>,
                                 Out>::type;
};

// Without a named type or an init, the accumulator is what the operator makes of two elements.
template <class Named, class Init, class Element, class Operator>
inline constexpr bool callable_to_deduce = !std::is_same_v<Named, deduced> || !std::is_same_v<Init, no_init_t> ||
                                           std::is_invocable_v<const Operator&, const Element&, const Element&>;

// What a call keeps of an operator or a predicate: of a function, a pointer to it.
template <class Callable>
using kept = std::decay_t<Callable>;

// What every verb asks of an accumulator.
template <class A, class Element, class Operator>
constexpr void require_accumulator() {
    static_assert(std::is_copy_constructible_v<A>, "the accumulator must be copyable");
    static_assert(std::is_invocable_v<const Operator&, const A&, const A&>,
                  "the operator must be callable with two accumulators, on a const object");
    static_assert(std::is_convertible_v<Element, A> || std::is_constructible_v<A, Element>,
                  "input elements must convert to the accumulator type");
}

// Of elements that are said to be somewhere. Where that is more than memory has, all of it: such a call overlaps.
template <class T>
constexpr std::uint64_t bytes_of(index_type size) {
    constexpr std::uint64_t all = std::numeric_limits<std::uint64_t>::max();
    const auto elements = static_cast<std::uint64_t>(size);
    return elements > all / sizeof(T) ? all : elements * sizeof(T);
}

// Byte ranges [a, a + a_bytes) and [b, b + b_bytes) share a byte.
inline bool overlap(const void* a, std::uint64_t a_bytes, const void* b, std::uint64_t b_bytes) {
    const auto x = reinterpret_cast<std::uintptr_t>(a);
    const auto y = reinterpret_cast<std::uintptr_t>(b);
    return a_bytes > 0 && b_bytes > 0 && (x < y ? y - x < a_bytes : x - y < b_bytes);
}

// What an output function writes is its author's affair.
template <class Input, class Function, class Accumulator>
void check_memory(Input input, const function_output<Function>&, index_type size, Accumulator* total) {
    if (size == 0) return;
    if constexpr (std::is_pointer_v<Input>) {
        using in_element = std::remove_pointer_t<Input>;
        if (input == nullptr) reject("in", "is null although it has elements");
        if (total != nullptr && overlap(input, bytes_of<in_element>(size), total, sizeof(Accumulator)))
            reject("total", "lies inside the input");
    }
}

template <class Input, class Out, class Accumulator>
void check_memory(Input input, Out* output, index_type size, Accumulator* total) {
    if (size == 0) return;
    using out_element = Out;
    if (output == nullptr) reject("out", "is null although the input has elements");
    if constexpr (std::is_pointer_v<Input>) {
        using in_element = std::remove_pointer_t<Input>;
        if (input == nullptr) reject("in", "is null although it has elements");
        const bool in_place = static_cast<const void*>(input) == static_cast<const void*>(output);
        if (in_place && sizeof(in_element) != sizeof(out_element))
            reject("out", "in place needs input and output elements of the same size");
        if (!in_place && overlap(input, bytes_of<in_element>(size), output, bytes_of<out_element>(size)))
            reject("out", "overlaps the input; it must start at the same address or share no byte with it");
        if (total != nullptr && overlap(input, bytes_of<in_element>(size), total, sizeof(Accumulator)))
            reject("total", "lies inside the input");
    }
    if (total != nullptr && overlap(output, bytes_of<out_element>(size), total, sizeof(Accumulator)))
        reject("total", "lies inside the output");
}

template <scan_kind Kind, class Named, class Policy, class Backend, class In, class Out, class Init, class Operator,
          class... Options>
void scan(Backend& backend, In&& in, Out&& out, const Init& init, const Operator& op, const Options&... options) {
    static_assert((is_option<Options> && ...), "options are with_init, with_transform and total_to");
    static_assert((0 + ... + int(is_transform_option<Options>)) <= 1, "with_transform is given twice");
    static_assert((0 + ... + int(is_total_option<Options>)) <= 1, "total_to is given twice");

    const auto source = as_counted(std::forward<In>(in), "in");
    const auto target = as_counted(std::forward<Out>(out), "out");
    static_assert(!is_function_output<std::remove_cv_t<decltype(source.begin)>>, "a function is for outputs");
    if (target.count != nullptr) reject("out", "a run-time count is for inputs");
    if (source.size == unknown_size)
        reject("in", "a bare pointer has no length; use polyscan::counted(pointer, n) or a span");
    if (target.size != unknown_size && target.size < source.size)
        reject("out", "has " + std::to_string(target.size) + " elements, fewer than the input's " +
                          std::to_string(source.size));

    using output_iterator = std::remove_cv_t<decltype(target.begin)>;
    static_assert(is_function_output<output_iterator> ||
                      (std::is_pointer_v<output_iterator> && !std::is_const_v<std::remove_pointer_t<output_iterator>>),
                  "the output must be contiguous, writable memory, or polyscan::to_function(f)");
    auto input = read_only(source.begin);
    auto transform = find_transform(options...);
    using element = element_of<decltype(input), decltype(transform)>;
    using out_element = std::remove_pointer_t<output_iterator>;
    static_assert(callable_to_deduce<Named, Init, element, Operator>,
                  "the operator must be callable with two transformed input elements, on a const object, or the "
                  "accumulator type must be named: inclusive_scan<Accumulator>(...)");
    using accumulator_type = typename accumulator<Named, Init, element, out_element, Operator>::type;
    require_accumulator<accumulator_type, element, Operator>();
    static_assert(Backend::template supports<Policy>, "this backend does not have this policy");

    constexpr bool starts_with_identity = std::is_same_v<Init, no_init_t> && has_identity<Operator, accumulator_type>;
    static_assert(Kind == scan_kind::inclusive || !std::is_same_v<Init, no_init_t> || starts_with_identity,
                  "an exclusive scan needs an init, or an operator with an identity");
    // Functions, so that the values come about where they belong: copying them just made costs as much as a short scan.
    const auto start = [&]() -> std::optional<accumulator_type> {
        if constexpr (!std::is_same_v<Init, no_init_t>)
            return static_cast<accumulator_type>(init);
        else if constexpr (starts_with_identity && Kind == scan_kind::exclusive)
            return identity_of<accumulator_type>(op);
        else
            return std::nullopt;
    };
    const auto empty_total = [&]() -> std::optional<accumulator_type> {
        if constexpr (starts_with_identity)
            return identity_of<accumulator_type>(op);
        else
            return start();
    };

    accumulator_type* total = find_total<accumulator_type>(options...);
    check_memory(input, target.begin, source.size, total);
    if constexpr (!is_function_output<output_iterator>)
        if (source.count != nullptr &&
            overlap(target.begin, bytes_of<out_element>(source.size), source.count, sizeof(index_type)))
            reject("count", "lies inside the output");
    if (source.count != nullptr && total != nullptr &&
        overlap(total, sizeof(accumulator_type), source.count, sizeof(index_type)))
        reject("total", "lies where the count is read");
    backend.template scan<Policy>(
        scan_request<accumulator_type, decltype(input), output_iterator, kept<Operator>, decltype(transform)>{
            input, target.begin, source.size, op, std::move(transform), start(), Kind, total, empty_total(),
            source.count});
}

} // namespace detail

/// out[i] = op(x_0, ..., x_i), folded in the order that the policy fixes. See the head of this file.
template <class Accumulator = deduced, backend Backend, class In, class Out, class Operator = plus,
          scan_policy Policy = default_policy, class... Options>
void inclusive_scan(Backend& backend, In&& in, Out&& out, const Operator& op = {}, const Policy& = {},
                    const Options&... options) {
    static_assert((0 + ... + int(detail::is_init_option<Options>)) <= 1, "with_init is given twice");
    detail::scan<scan_kind::inclusive, Accumulator, Policy>(backend, std::forward<In>(in), std::forward<Out>(out),
                                                            detail::find_init(options...), op, options...);
}

/// out[0] = init, out[i] = op(init, x_0, ..., x_{i-1}). Without init the operator's identity takes its place; an
/// operator without identity then does not compile. See the head of this file.
template <class Accumulator = deduced, backend Backend, class In, class Out, class Init = no_init_t,
          class Operator = plus, scan_policy Policy = default_policy, class... Options>
void exclusive_scan(Backend& backend, In&& in, Out&& out, const Init& init = {}, const Operator& op = {},
                    const Policy& = {}, const Options&... options) {
    static_assert((!detail::is_init_option<Options> && ...), "exclusive_scan takes init as its fourth argument");
    detail::scan<scan_kind::exclusive, Accumulator, Policy>(backend, std::forward<In>(in), std::forward<Out>(out), init,
                                                            op, options...);
}

} // namespace polyscan
