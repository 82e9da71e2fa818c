// SPDX-License-Identifier: Apache-2.0
/// What the verbs accept as input and output, reduced to an iterator and a length:
///  - contiguous ranges (std::vector, std::array, std::span, ...): their data pointer;
///  - other random-access ranges with a size, as input only (std::views::iota, transformed views, ...);
///  - rank-1 views with `data_handle()` (std::mdspan) or `data()` and `extent(0)` (Kokkos::View), stride 1;
///  - `counted(iterator, n)`: any random-access iterator and a length; device pointers go this way;
///  - `counted(iterator, capacity, count)`, as input only: how many elements there are is read from the backend's
///    memory when the work runs, so that it may be the result of an earlier call that is still under way;
///  - a bare pointer, as output only: its length cannot be checked;
///  - `to_function(f)`, as output only: f(i, value) is called instead of a store.
#pragma once

#include <concepts>
#include <iterator>
#include <limits>
#include <memory>
#include <ranges>
#include <type_traits>
#include <utility>

#include <polyscan/error.hpp>
#include <polyscan/request.hpp>
#include <polyscan/tile.hpp>

namespace polyscan {

/// An iterator and a number of elements, or the most that there can be and the place where the number will stand.
template <class Iterator>
struct counted_view {
    Iterator begin;
    index_type size;
    const index_type* count = nullptr;
};

namespace detail {
// Not negative, of whatever type sizes have: some views count in 128 bits.
template <class Size>
index_type size_of(const Size& size, const char* argument) {
    if constexpr (sizeof(Size) >= sizeof(index_type))
        if (size > static_cast<Size>(std::numeric_limits<index_type>::max()))
            reject(argument, "the number of elements must be less than 2^63");
    return static_cast<index_type>(size);
}
} // namespace detail

/// `n` elements from `first`, which may be a pointer into any memory that the backend can reach, or a random-access
/// iterator that the backend's device can dereference.
template <std::random_access_iterator Iterator>
counted_view<Iterator> counted(Iterator first, std::integral auto n) {
    if (std::cmp_less(n, 0)) reject("counted", "the number of elements must not be negative");
    return {first, detail::size_of(n, "counted")};
}

/// min(capacity, *count) elements from `first`. `count` is memory of the backend, read when the work runs; it lies
/// outside the output. Below zero counts as zero.
///     polyscan::inclusive_scan(gpu, polyscan::counted(in, 1 << 20, selected), out);   // no wait for *selected
template <std::random_access_iterator Iterator>
counted_view<Iterator> counted(Iterator first, std::integral auto capacity, const index_type* count) {
    if (count == nullptr) reject("count", "is null");
    counted_view<Iterator> result = counted(first, capacity);
    result.count = count;
    return result;
}

/// Output by function: f(i, value) is called once for every output i, in any order and perhaps at once, where the
/// backend runs. It must not read what another call of it writes.
///     const auto backwards = [=](polyscan::index_type i, int v) { out[n - 1 - i] = v; };
///     polyscan::inclusive_scan(cpu, in, polyscan::to_function(backwards));
template <class Function>
function_output<Function> to_function(Function function) {
    return {std::move(function)};
}

namespace detail {

inline constexpr index_type unknown_size = -1;

template <class T>
inline constexpr bool is_counted_view = false;
template <class Iterator>
inline constexpr bool is_counted_view<counted_view<Iterator>> = true;

template <class T>
inline constexpr bool is_function_output = false;
template <class Function>
inline constexpr bool is_function_output<function_output<Function>> = true;

template <class T>
concept mdspan_like = requires(const T& view) {
    view.data_handle();
    view.extent(0);
    view.stride(0);
    { T::rank() } -> std::convertible_to<std::size_t>;
};

// Kokkos::View: `rank` is a static member that converts to an integer. Newer ones look like std::mdspan, too, but their
// data handle is more than a pointer.
template <class T>
concept kokkos_view_like = requires(const T& view) {
    view.data();
    view.extent(0);
    view.stride(0);
    static_cast<std::size_t>(T::rank);
    typename T::memory_space;
    typename T::array_layout;
};

// False for layouts that carry a stride of their own; others have stride 1 in rank 1.
template <class Layout>
inline constexpr bool has_unit_stride = true;
template <class Layout>
    requires requires { Layout::is_extent_constructible; }
inline constexpr bool has_unit_stride<Layout> = Layout::is_extent_constructible;

// Pointers stay pointers and contiguous iterators become pointers, so that a call with a vector and one with a span are
// the same instantiation, and addresses can be compared.
template <class Iterator>
auto plain(Iterator iterator) {
    if constexpr (std::is_pointer_v<Iterator>)
        return iterator;
    else if constexpr (std::contiguous_iterator<Iterator>)
        return std::to_address(iterator);
    else
        return iterator;
}

template <class View>
auto strided_pointer(const View& view, auto* data, const char* argument) {
    const index_type size = size_of(view.extent(0), argument);
    if (size > 1 && static_cast<index_type>(view.stride(0)) != 1) reject(argument, "a rank-1 view must have stride 1");
    return counted_view<decltype(data)>{data, size};
}

template <class T>
auto as_counted(T&& source, const char* argument) {
    using type = std::remove_cvref_t<T>;
    if constexpr (is_counted_view<type>) {
        return counted_view<decltype(plain(source.begin))>{plain(source.begin), source.size, source.count};
    } else if constexpr (is_function_output<type>) {
        return counted_view<type>{source, unknown_size};
    } else if constexpr (std::is_pointer_v<type>) {
        return counted_view<type>{source, unknown_size};
    } else if constexpr (kokkos_view_like<type>) {
        static_assert(static_cast<std::size_t>(type::rank) == 1, "polyscan scans rank-1 views; take a rank-1 subview");
        static_assert(has_unit_stride<typename type::array_layout>,
                      "polyscan scans contiguous views; copy a strided view to a contiguous one first");
        return strided_pointer(source, source.data(), argument);
    } else if constexpr (mdspan_like<type>) {
        static_assert(type::rank() == 1, "polyscan scans rank-1 views; take a rank-1 subview");
        return strided_pointer(source, source.data_handle(), argument);
    } else {
        static_assert(
            std::ranges::random_access_range<T> && std::ranges::sized_range<T>,
            "polyscan needs a random-access range with a size, a rank-1 view, or polyscan::counted(iterator, n)");
        if constexpr (std::ranges::contiguous_range<T>) {
            auto* data = std::ranges::data(source);
            return counted_view<decltype(data)>{data, size_of(std::ranges::size(source), argument)};
        } else {
            return counted_view<std::ranges::iterator_t<T>>{std::ranges::begin(source),
                                                            size_of(std::ranges::size(source), argument)};
        }
    }
}

// const T* whatever the caller's constness: reading is all that happens to an input.
template <class Iterator>
auto read_only(Iterator iterator) {
    if constexpr (std::is_pointer_v<Iterator>)
        return static_cast<const std::remove_pointer_t<Iterator>*>(iterator);
    else
        return iterator;
}

} // namespace detail
} // namespace polyscan
