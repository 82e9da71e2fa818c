// SPDX-License-Identifier: Apache-2.0
/// What the tests of sorts and histograms call on a backend. For the translation units that instantiate it.
#pragma once

#include <type_traits>

#include "sort.hpp"

namespace polyscan::test {

template <class T>
counted_view<const T*> sort_input(const T* first, index_type size, const index_type* live) {
    return live == nullptr ? counted(first, size) : counted(first, size, live);
}

template <class Backend, class Key, class Value>
void run_sort(Backend& backend, const sort_arguments<Key, Value>& a) {
    const auto keys = sort_input(a.keys, a.size, a.live);
    if constexpr (std::is_same_v<Value, keys_only>)
        radix_sort(backend, keys, a.keys_out, a.order, a.bits);
    else
        radix_sort_by_key(backend, keys, a.values, a.keys_out, a.values_out, a.order, a.bits);
}

template <class Backend, class In, class Level, class Count>
void run_histogram(Backend& backend, const histogram_arguments<In, Level, Count>& a) {
    const auto in = sort_input(a.in, a.size, a.live);
    const auto counts = counted(a.counts, a.bins);
    if (a.edges == nullptr)
        histogram(backend, in, counts, even_bins{a.lower, a.upper});
    else
        histogram(backend, in, counts, counted(a.edges, a.bins + 1));
}

template <class Backend>
void run_histogram_of_squares(Backend& backend, index_type n, std::int32_t* counts, index_type bins) {
    histogram(backend, counted(square_iterator{}, n), counted(counts, bins), even_bins{index_type{0}, n * n});
}

template <class Backend>
void run_for_each(Backend& backend, index_type n, index_type* out) {
    backend.for_each(n, store_triple{out});
}

} // namespace polyscan::test
