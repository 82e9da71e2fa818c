// SPDX-License-Identifier: Apache-2.0
/// What the verbs beside scan are made of: scans over the numbers 0, 1, 2, ..., whose elements and whose outputs are
/// functions of the index, and the checks of their arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <polyscan/backend.hpp>
#include <polyscan/error.hpp>
#include <polyscan/function.hpp>
#include <polyscan/operators.hpp>
#include <polyscan/request.hpp>
#include <polyscan/scan.hpp>
#include <polyscan/view.hpp>

namespace polyscan {

/// The numbers from `value` on. An input that lies nowhere:
///     polyscan::inclusive_scan(gpu, polyscan::counted(polyscan::index_iterator(), n), out);   // 0 1 3 6 10 ...
struct index_iterator {
    using difference_type = index_type;
    using value_type = index_type;
    using reference = index_type;
    using pointer = void;
    using iterator_category = std::input_iterator_tag; // a reference that is no reference is no more, before C++20
    using iterator_concept = std::random_access_iterator_tag;

    index_type value = 0;

    POLYSCAN_FUNCTION constexpr index_type operator*() const { return value; }
    POLYSCAN_FUNCTION constexpr index_type operator[](index_type i) const { return value + i; }
    POLYSCAN_FUNCTION constexpr index_iterator& operator+=(index_type n) {
        value += n;
        return *this;
    }
    POLYSCAN_FUNCTION constexpr index_iterator& operator-=(index_type n) { return *this += -n; }
    POLYSCAN_FUNCTION constexpr index_iterator& operator++() { return *this += 1; }
    POLYSCAN_FUNCTION constexpr index_iterator& operator--() { return *this += -1; }
    POLYSCAN_FUNCTION constexpr index_iterator operator++(int) { return {value++}; }
    POLYSCAN_FUNCTION constexpr index_iterator operator--(int) { return {value--}; }
    POLYSCAN_FUNCTION friend constexpr index_iterator operator+(index_iterator at, index_type n) {
        return {at.value + n};
    }
    POLYSCAN_FUNCTION friend constexpr index_iterator operator+(index_type n, index_iterator at) { return at + n; }
    POLYSCAN_FUNCTION friend constexpr index_iterator operator-(index_iterator at, index_type n) { return at + -n; }
    POLYSCAN_FUNCTION friend constexpr index_type operator-(index_iterator a, index_iterator b) {
        return a.value - b.value;
    }
    friend constexpr auto operator<=>(const index_iterator&, const index_iterator&) = default;
};
static_assert(std::random_access_iterator<index_iterator>);

/// a == b, on every backend.
struct equal_to {
    template <class T, class U>
    POLYSCAN_FUNCTION constexpr bool operator()(const T& a, const U& b) const {
        return static_cast<bool>(a == b);
    }
};

namespace detail {

/// Element i of an output, a pointer or a function_output.
template <class T, class Value>
POLYSCAN_FUNCTION void put(T* out, index_type i, const Value& value) {
    out[i] = static_cast<T>(value);
}
template <class Function, class Value>
POLYSCAN_FUNCTION void put(const function_output<Function>& out, index_type i, const Value& value) {
    out.function(i, value);
}

/// The output of a scan of which only the total is wanted.
struct dropped {
    template <class T>
    POLYSCAN_FUNCTION void operator()(index_type, const T&) const {}
};

/// An argument as the checks see it: bytes of memory, or none where it is an iterator or a function.
struct memory {
    const char* argument;
    const void* data = nullptr;
    std::uint64_t bytes = 0;
};
template <class Iterator>
memory memory_of(const char* argument, const Iterator& first, index_type size) {
    if constexpr (std::is_pointer_v<Iterator>) {
        if (first == nullptr && size > 0) reject(argument, "is null although it has elements");
        return {argument, first, bytes_of<std::iter_value_t<Iterator>>(size)};
    } else {
        return {argument};
    }
}

/// How many elements an output of which a part is filled has for certain: room for all of the input, or, where a bare
/// pointer does not say that, for the first one.
template <class Out>
constexpr index_type certain_room(index_type size) {
    return std::is_pointer_v<std::remove_cvref_t<Out>> && size > 1 ? 1 : size;
}

/// Nothing that is written lies in anything else of the call.
inline void check_apart(std::initializer_list<memory> written, std::initializer_list<memory> read) {
    for (const memory& w : written)
        for (const memory& r : read)
            if (overlap(w.data, w.bytes, r.data, r.bytes))
                reject(w.argument, std::string("overlaps ") + r.argument + "; it must share no byte with it");
    for (const memory& a : written)
        for (const memory& b : written)
            if (&a < &b && overlap(a.data, a.bytes, b.data, b.bytes))
                reject(b.argument, std::string("overlaps ") + a.argument + "; it must share no byte with it");
}
/// The exception: an output that takes the place of an input, element by element.
inline bool in_place(const memory& out, const memory& in) {
    if (out.data == nullptr || out.data != in.data) return false;
    if (out.bytes != in.bytes) reject(out.argument, "in place needs input and output elements of the same size");
    return true;
}
template <class Iterator>
memory count_of(const counted_view<Iterator>& view) {
    return {"count", view.count, view.count == nullptr ? 0 : sizeof(index_type)};
}

/// The first input says how many elements there are.
template <class T>
auto first_input(T&& source, const char* argument) {
    const auto view = as_counted(std::forward<T>(source), argument);
    static_assert(!is_function_output<std::remove_cv_t<decltype(view.begin)>>, "a function is for outputs");
    if (view.size == unknown_size)
        reject(argument, "a bare pointer has no length; use polyscan::counted(pointer, n) or a span");
    return counted_view<decltype(read_only(view.begin))>{read_only(view.begin), view.size, view.count};
}
/// A further one has as many, at least.
template <class T>
auto further_input(T&& source, const char* argument, index_type size) {
    const auto view = as_counted(std::forward<T>(source), argument);
    static_assert(!is_function_output<std::remove_cv_t<decltype(view.begin)>>, "a function is for outputs");
    if (view.count != nullptr) reject(argument, "the run-time count is that of the first input");
    if (view.size != unknown_size && view.size < size)
        reject(argument,
               "has " + std::to_string(view.size) + " elements, fewer than the input's " + std::to_string(size));
    return read_only(view.begin);
}
/// An output has room for `size` elements, if that is known. Memory or a function.
template <class T>
auto output(T&& target, const char* argument, index_type size) {
    const auto view = as_counted(std::forward<T>(target), argument);
    using iterator = std::remove_cv_t<decltype(view.begin)>;
    static_assert(is_function_output<iterator> ||
                      (std::is_pointer_v<iterator> && !std::is_const_v<std::remove_pointer_t<iterator>>),
                  "the output must be contiguous, writable memory, or polyscan::to_function(f)");
    if (view.count != nullptr) reject(argument, "a run-time count is for inputs");
    if (view.size != unknown_size && view.size < size)
        reject(argument,
               "has " + std::to_string(view.size) + " elements, fewer than the input's " + std::to_string(size));
    return view.begin;
}

/// The elements of a scan over indices.
struct index_range {
    index_type size;
    const index_type* count; ///< or null: read when the work runs
};

template <class Policy, class A, class Backend, class Load, class Sink, class Operator>
void scan_indices(Backend& backend, index_range range, const Load& load, const Sink& sink, const Operator& op,
                  scan_kind kind, std::optional<A> init, A* total = nullptr) {
    static_assert(Backend::template supports<Policy>, "this backend does not have this policy");
    std::optional<A> empty_total = init;
    backend.template scan<Policy>(scan_request<A, index_iterator, function_output<Sink>, Operator, Load>{
        index_iterator{}, function_output<Sink>{sink}, range.size, op, load, std::move(init), kind, total,
        std::move(empty_total), range.count});
}

/// *to = value, in the order of the backend's work.
template <class Policy, class Backend, class T>
void write_one(Backend& backend, T* to, const T& value) {
    backend.template scan<Policy>(scan_request<T, const T*, T*, plus>{
        nullptr, nullptr, 0, {}, {}, std::nullopt, scan_kind::inclusive, to, value});
}

} // namespace detail
} // namespace polyscan
