// SPDX-License-Identifier: Apache-2.0
/// Sorts and histograms as the tests call them: a backend's compiler sees `run_...(backend, arguments)`, which
/// sort_runs.cpp.in defines through the public verbs. All pointers are memory of the backend; `live`, where not null,
/// holds the number of elements, `size` then is the room for them.
#pragma once

#include <cstdint>

#include <polyscan/half.hpp>
#include <polyscan/histogram.hpp>
#include <polyscan/indexed.hpp>
#include <polyscan/radix_sort.hpp>

namespace polyscan::test {

/// The longest inputs. Slow backends take less.
#ifndef POLYSCAN_TEST_SORT_LIMIT
#define POLYSCAN_TEST_SORT_LIMIT 1500000
#endif
inline constexpr index_type longest_input = POLYSCAN_TEST_SORT_LIMIT;

/// In the place of a type of values.
struct keys_only {};

template <class Key, class Value>
struct sort_arguments {
    const Key* keys = nullptr;
    Key* keys_out = nullptr;
    const Value* values = nullptr;
    Value* values_out = nullptr;
    index_type size = 0;
    const index_type* live = nullptr;
    sort_order order = sort_order::ascending;
    bit_range bits = {};
};
template <class Backend, class Key, class Value>
void run_sort(Backend& backend, const sort_arguments<Key, Value>& arguments);

template <class In, class Level, class Count>
struct histogram_arguments {
    const In* in = nullptr;
    index_type size = 0;
    const index_type* live = nullptr;
    Count* counts = nullptr;
    index_type bins = 0;
    Level lower{}, upper{};
    const Level* edges = nullptr; ///< bins + 1 of them; null: even bins
};
template <class Backend, class In, class Level, class Count>
void run_histogram(Backend& backend, const histogram_arguments<In, Level, Count>& arguments);

/// counts[i] = how many of the squares of 0, ..., n - 1 lie in even bin i over [0, n * n): from an iterator.
template <class Backend>
void run_histogram_of_squares(Backend& backend, index_type n, std::int32_t* counts, index_type bins);

/// out[i] = 3 * i, by for_each, where the backend has that.
template <class Backend>
void run_for_each(Backend& backend, index_type n, index_type* out);

/// Values of sizes that no machine word has, and of the largest that a device moves at once.
struct bytes_3 {
    std::uint8_t part[3];
};
struct bytes_12 {
    std::uint32_t part[3];
};
struct alignas(16) bytes_16 {
    std::uint64_t part[2];
};

/// The squares of 0, 1, 2, ...
struct square_iterator : index_iterator {
    POLYSCAN_FUNCTION index_type operator*() const { return value * value; }
    POLYSCAN_FUNCTION index_type operator[](index_type i) const { return (value + i) * (value + i); }
    POLYSCAN_FUNCTION square_iterator& operator+=(index_type n) { return value += n, *this; }
    POLYSCAN_FUNCTION square_iterator& operator-=(index_type n) { return value -= n, *this; }
    POLYSCAN_FUNCTION square_iterator& operator++() { return *this += 1; }
    POLYSCAN_FUNCTION square_iterator& operator--() { return *this -= 1; }
    POLYSCAN_FUNCTION square_iterator operator++(int) { return {{value++}}; }
    POLYSCAN_FUNCTION square_iterator operator--(int) { return {{value--}}; }
    POLYSCAN_FUNCTION friend square_iterator operator+(square_iterator a, index_type n) { return {{a.value + n}}; }
    POLYSCAN_FUNCTION friend square_iterator operator+(index_type n, square_iterator a) { return {{a.value + n}}; }
    POLYSCAN_FUNCTION friend square_iterator operator-(square_iterator a, index_type n) { return {{a.value - n}}; }
    POLYSCAN_FUNCTION friend index_type operator-(square_iterator a, square_iterator b) { return a.value - b.value; }
};

struct store_triple {
    index_type* out;
    POLYSCAN_FUNCTION void operator()(index_type i) const { out[i] = 3 * i; }
};

// Keys and values: every width of keys alone, every kind of values.
#define POLYSCAN_SORT_KEYS_CASES(X)                                                                                    \
    X(std::int8_t, keys_only)                                                                                          \
    X(std::uint8_t, keys_only)                                                                                         \
    X(std::int16_t, keys_only)                                                                                         \
    X(std::uint16_t, keys_only)                                                                                        \
    X(std::int32_t, keys_only)                                                                                         \
    X(std::uint32_t, keys_only)                                                                                        \
    X(std::int64_t, keys_only)                                                                                         \
    X(std::uint64_t, keys_only)                                                                                        \
    X(float, keys_only)                                                                                                \
    X(double, keys_only)                                                                                               \
    X(half, keys_only)
#define POLYSCAN_SORT_PAIRS_CASES(X)                                                                                   \
    X(std::uint8_t, bytes_3)                                                                                           \
    X(std::int16_t, std::uint16_t)                                                                                     \
    X(std::uint32_t, std::uint32_t)                                                                                    \
    X(std::int32_t, std::uint8_t)                                                                                      \
    X(float, std::uint64_t)                                                                                            \
    X(double, std::uint32_t)                                                                                           \
    X(std::int64_t, bytes_12)                                                                                          \
    X(std::uint64_t, bytes_16)

// Elements, bounds and counts.
#define POLYSCAN_HISTOGRAM_CASES(X)                                                                                    \
    X(std::uint8_t, int, std::uint32_t)                                                                                \
    X(std::int32_t, std::int32_t, std::int32_t)                                                                        \
    X(std::int64_t, std::int64_t, std::uint64_t)                                                                       \
    X(std::uint32_t, std::int64_t, std::int64_t)                                                                       \
    X(float, float, std::int32_t)                                                                                      \
    X(double, double, std::int64_t)                                                                                    \
    X(std::int32_t, double, std::int32_t)

} // namespace polyscan::test
