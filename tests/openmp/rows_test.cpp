// SPDX-License-Identifier: Apache-2.0
/// Where the host's kernels leave the plain way of a row: sums of small integers in floats, which are made as integers,
/// minimum and maximum of floating-point numbers, which ask whether there is a NaN, and operators that are not the
/// library's, which may see nothing but nodes of the tree. Compared with the oracle, bit for bit. Run once for each
/// instruction set.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <polyscan/openmp.hpp>
#include <polyscan/reference.hpp>
#include <polyscan/segmented.hpp>

#include "inputs.hpp"

#if defined(POLYSCAN_TEST_KERNELS_OF_REGISTRY)
#include "host_kernels.hpp"

namespace polyscan::host {
POLYSCAN_HOST_KERNELS_FLOATING(extern template, float)
POLYSCAN_HOST_KERNELS_FLOATING(extern template, double)
} // namespace polyscan::host
#endif

namespace {

using namespace polyscan;

/// Around rows and tiles, for one thread and for several.
const index_type sizes[] = {1, 3, 63, 64, 65, 127, 128, 129, 1000, 8191, 8192, 8193, 3 * 8192 + 77, 1200007};

template <class In, class T, class Operator>
void compare(const std::vector<In>& input, const Operator& op, const std::string& what) {
    const openmp::backend one(1), three(3);
    for (const index_type n : sizes) {
        for (const bool exclusive : {false, true}) {
            for (const bool with_init : {false, true}) {
                if (n > 100000 && exclusive != with_init) continue; // long enough as it is
                const auto length = static_cast<std::size_t>(n);
                std::optional<T> init;
                if (with_init || exclusive) init = with_init ? T(3.25) : Operator::template identity<T>();
                const auto inclusive = reference::policy_order(
                    default_policy{}, std::vector<T>(input.begin(), input.begin() + n), op, init);
                const auto expected =
                    reference::outputs(inclusive, exclusive ? scan_kind::exclusive : scan_kind::inclusive, init);
                // From a line, and from 16 bytes behind one.
                for (const std::size_t shift : {std::size_t{0}, std::size_t{16}}) {
                    std::vector<T> memory(length + 64 / sizeof(T) + 16 / sizeof(T), T(-7));
                    auto* const begin = reinterpret_cast<std::byte*>(memory.data());
                    const std::size_t to_line = (64 - reinterpret_cast<std::uintptr_t>(begin) % 64) % 64;
                    T* const out = reinterpret_cast<T*>(begin + to_line + shift);
                    const auto in = counted(input.data(), n);
                    const openmp::backend& cpu = shift == 0 ? three : one;
                    if (exclusive)
                        exclusive_scan(cpu, in, out, *init, op);
                    else if (init)
                        inclusive_scan(cpu, in, out, op, default_policy{}, polyscan::with_init{*init});
                    else
                        inclusive_scan<T>(cpu, in, out, op);
                    std::size_t wrong = 0;
                    while (wrong < length && test::same_bits(out[wrong], expected[wrong])) ++wrong;
                    CHECK_MESSAGE(wrong == length, what, ", n = ", n, exclusive ? ", exclusive" : "",
                                  with_init ? ", init" : "", ", shift ", shift, ": output ", wrong);
                }
            }
        }
    }
}

template <class Element>
void compare_sums(const std::string& type) {
    using limits = std::numeric_limits<Element>;
    std::mt19937 random(7);
    std::vector<Element> all(static_cast<std::size_t>(std::end(sizes)[-1]));
    for (Element& value : all) value = static_cast<Element>(random());
    compare<Element, float>(all, plus{}, type + " at random");
    for (Element& value : all) value = limits::max();
    compare<Element, float>(all, plus{}, type + " largest");
    for (Element& value : all) value = limits::min();
    compare<Element, float>(all, plus{}, type + " smallest");
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i % 2 == 0 ? limits::min() : limits::max();
    compare<Element, float>(all, plus{}, type + " in turn");
}

template <class T, class Operator>
void compare_order(const std::string& what, const Operator& op) {
    using limits = std::numeric_limits<T>;
    constexpr T special[] = {T(0),
                             -T(0),
                             limits::infinity(),
                             -limits::infinity(),
                             limits::denorm_min(),
                             -limits::denorm_min(),
                             limits::max(),
                             limits::lowest()};
    std::mt19937 random(11);
    std::vector<T> all(static_cast<std::size_t>(std::end(sizes)[-1]));
    // Zeros of both signs, then the other special values among numbers that come closer to the winning end.
    for (T& value : all) value = special[random() % 64 == 0 ? 1 : 0];
    compare<T, T>(all, op, what + " of zeros");
    for (T& value : all) value = special[random() % 64 == 0 ? 0 : 1];
    compare<T, T>(all, op, what + " of negative zeros");
    const T sign = std::is_same_v<Operator, minimum> ? T(-1) : T(1);
    for (std::size_t i = 0; i < all.size(); ++i)
        all[i] = sign * static_cast<T>(i) * T(0.001) - sign * static_cast<T>(random() % 1000) - sign * T(300);
    for (std::size_t i = 0; i < all.size(); i += random() % 400) all[i] = special[random() % 2];
    compare<T, T>(all, op, what);
    // One NaN at a time: in any lane, in the first row and in later ones, of either sign, quiet or signalling.
    for (const std::size_t at : {0u, 5u, 77u, 126u, 8192u, 8192u * 2 + 130, 1000003u}) {
        auto with_nan = all;
        with_nan[at] = at % 2 == 0 ? limits::quiet_NaN() : -limits::quiet_NaN();
        if (at % 3 == 0) with_nan[at] = limits::signaling_NaN();
        compare<T, T>(with_nan, op, what + " with a NaN at " + std::to_string(at));
    }
    for (T& value : all) value = random() % 3000 == 0 ? limits::quiet_NaN() : special[random() % 8];
    compare<T, T>(all, op, what + " of special values");
}

/// Consecutive elements, by the numbers of the first and the last.
template <class T, int Words>
struct range {
    T first, last, filler[Words - 2];
};
template <class T>
struct range<T, 2> {
    T first, last;
};
std::atomic<bool> not_a_node = false;

/// Defined for neighbours only.
struct join_neighbours {
    template <class T, int Words>
    range<T, Words> operator()(const range<T, Words>& a, const range<T, Words>& b) const {
        if (a.last + 1 != b.first) not_a_node.store(true, std::memory_order_relaxed);
        range<T, Words> result = b;
        result.first = a.first;
        return result;
    }
};

template <class T, int Words>
void join_all(const char* what) {
    const openmp::backend one(1), three(3);
    for (const index_type n : {1, 31, 33, 64, 200, 4096, 4097, 3 * 8192 + 77, 300007}) {
        std::vector<range<T, Words>> in(static_cast<std::size_t>(n)), out(in.size());
        for (std::size_t i = 0; i < in.size(); ++i) in[i].first = in[i].last = static_cast<T>(i);
        for (const openmp::backend* cpu : {&one, &three}) {
            inclusive_scan(*cpu, counted(in.data(), n), out.data(), join_neighbours{});
            std::size_t right = 0;
            while (right < out.size() && out[right].first == T(0) && out[right].last == static_cast<T>(right)) ++right;
            CHECK_MESSAGE(right == out.size(), what, ", n = ", n, ": output ", right);
        }
    }
}

struct from_zero {
    template <class T>
    static constexpr T identity() {
        return T(0);
    }
};
struct sum : from_zero {
    static constexpr const char* name = "sum";
    template <class T>
    T operator()(T a, T b) const {
        return static_cast<T>(a + b);
    }
};
struct last_that_is_not_zero : from_zero {
    static constexpr const char* name = "last that is not zero";
    template <class T>
    T operator()(T a, T b) const {
        return b == T(0) ? a : b;
    }
};

template <class T, class... Operators>
void compare_operators(const std::string& type, const Operators&... operators) {
    std::mt19937 random(5);
    std::vector<T> all(static_cast<std::size_t>(std::end(sizes)[-1]));
    for (T& value : all) value = static_cast<T>(static_cast<std::int64_t>(random() % 2001) - 1000);
    if constexpr (std::is_floating_point_v<T>)
        for (T& value : all) value *= T(0.37);
    (compare<T, T>(all, operators, type + " " + Operators::name), ...);
}

} // namespace

TEST_CASE("operators that are not the library's") {
    join_all<std::int32_t, 2>("8 bytes");
    join_all<float, 3>("12 bytes");
    join_all<double, 2>("16 bytes");
    join_all<std::int32_t, 4>("16 bytes, 4 words");
    join_all<std::int64_t, 4>("32 bytes");
    CHECK_FALSE(not_a_node.load());
    // Each is compiled for every instruction set, which takes seconds.
    compare_operators<float>("float", sum{}, last_that_is_not_zero{});
    compare_operators<double>("double", sum{});
    compare_operators<std::int32_t>("int32", sum{});
    compare_operators<std::int64_t>("int64", last_that_is_not_zero{});
    compare_operators<std::int8_t>("int8", last_that_is_not_zero{});
    compare_operators<std::int16_t>("int16", sum{});
}

TEST_CASE("sums of small integers in floats") {
    compare_sums<std::int8_t>("int8");
    compare_sums<std::uint8_t>("uint8");
    compare_sums<std::int16_t>("int16");
    compare_sums<std::uint16_t>("uint16");
}

TEST_CASE("minimum and maximum of floating-point numbers") {
    compare_order<float>("float minimum", minimum{});
    compare_order<float>("float maximum", maximum{});
    compare_order<double>("double minimum", minimum{});
    compare_order<double>("double maximum", maximum{});
}

TEST_CASE("negative zeros of a long segment") {
    // Over rows and tiles: a sum of them is one only if nothing was added to them on the way.
    const auto check = []<class T>(T zero) {
        const std::vector<T> in(9000, zero);
        std::vector<T> out(in.size());
        for (const int threads : {1, 3}) {
            const openmp::backend cpu(threads);
            inclusive_segmented_scan(cpu, in, head_flags(std::vector<char>(in.size())), out);
            CHECK(std::all_of(out.begin(), out.end(), [](T sum) { return std::signbit(sum); }));
        }
    };
    check(-0.0F);
    check(-0.0);
}
