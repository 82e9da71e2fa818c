// SPDX-License-Identifier: Apache-2.0
/// What goes into a cell and how its output is judged: seeded inputs, the sizes with their reasons, equality, error
/// bound.
///
/// Element i of an input depends on the seed and on i alone, so a longer input starts with the shorter one. No input is
/// constant: a lost, repeated or swapped element shows.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <polyscan/half.hpp>
#include <polyscan/operators.hpp>
#include <polyscan/reference.hpp>
#include <polyscan/tile.hpp>

#include "cases.hpp"

namespace polyscan::test {

// --- random numbers --------------------------------------------------------------------------------------------------

/// 64 random bits for (seed, i): splitmix64 of Steele, Lea and Flood.
constexpr std::uint64_t random_bits(std::uint64_t seed, index_type i) {
    std::uint64_t z = seed * 0xd1342543de82ef95u + (static_cast<std::uint64_t>(i) + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/// The sequence of the check values: full mantissas, exponents over 2^31, both signs.
constexpr float check_value_input(index_type i) {
    const auto u = static_cast<std::uint32_t>(static_cast<std::uint64_t>(i) * 2654435761u) ^
                   static_cast<std::uint32_t>(static_cast<std::uint64_t>(i) >> 7);
    return static_cast<float>(static_cast<int>(u >> 8) - (1 << 23)) / static_cast<float>(1u << (u & 31));
}

/// FNV-1a, 64 bits, over the bytes of the elements.
template <class T>
std::uint64_t fnv1a(const std::vector<T>& values) {
    std::uint64_t hash = 14695981039346656037u;
    for (const T& value : values) {
        unsigned char bytes[sizeof(T)];
        std::memcpy(bytes, &value, sizeof(T));
        for (const unsigned char byte : bytes) hash = (hash ^ byte) * 1099511628211u;
    }
    return hash;
}

// --- inputs ----------------------------------------------------------------------------------------------------------

/// Input element i for `op`. Overloads choose values that keep the operator informative for the whole length.
template <std::floating_point T>
T element(const auto&, std::type_identity<T>, std::uint64_t seed, index_type i) {
    // Full mantissa, exponents -20..20, both signs: the sum keeps changing and every association rounds differently.
    const std::uint64_t r = random_bits(seed, i);
    const T fraction = static_cast<T>(1) + static_cast<T>(r >> 11) * static_cast<T>(0x1p-53);
    return std::ldexp((r & 1) != 0 ? -fraction : fraction, static_cast<int>(r >> 1 & 1023) % 41 - 20);
}

template <std::integral T>
T element(const auto&, std::type_identity<T>, std::uint64_t seed, index_type i) {
    return static_cast<T>(random_bits(seed, i));
}

// Odd factors are units modulo 2^w: no product becomes zero and stays there.
template <std::integral T>
T element(const multiplies&, std::type_identity<T>, std::uint64_t seed, index_type i) {
    return static_cast<T>(random_bits(seed, i) | 1);
}

// Factors come in pairs v, about 1/v: products stay near one, with full mantissas.
template <std::floating_point T>
T element(const multiplies&, std::type_identity<T>, std::uint64_t seed, index_type i) {
    const std::uint64_t pair = random_bits(seed, i / 2);
    const T value = static_cast<T>(1) + static_cast<T>(pair >> 11) * static_cast<T>(0x1p-53);
    const T sign = (random_bits(seed + 1, i) & 1) != 0 ? static_cast<T>(-1) : static_cast<T>(1);
    return i % 2 == 0 ? sign * value : sign / value;
}

namespace detail {
// Noise on a slope that restarts every 3001 elements: new extremes keep coming, and long stretches lie short of them.
inline double slope(std::uint64_t seed, index_type i) {
    return static_cast<double>(i % 3001) * 0.5 + static_cast<double>(i / 3001) * 40.0 +
           static_cast<double>(random_bits(seed, i) >> 40) * 0x1p-18;
}
} // namespace detail

template <class T>
    requires std::is_arithmetic_v<T>
T element(const maximum&, std::type_identity<T>, std::uint64_t seed, index_type i) {
    if constexpr (sizeof(T) == 1)
        return static_cast<T>(random_bits(seed, i) % 2 + static_cast<std::uint64_t>(i % 97 == 0 ? i / 97 % 120 : 0));
    else
        return static_cast<T>(detail::slope(seed, i));
}

template <class T>
    requires std::is_arithmetic_v<T>
T element(const minimum&, std::type_identity<T>, std::uint64_t seed, index_type i) {
    const T value = element(maximum{}, std::type_identity<T>{}, seed, i);
    return static_cast<T>(std::is_signed_v<T> ? -value : std::numeric_limits<T>::max() - value);
}

// All bits but a rare one, so that some are left to clear (set) after thousands of elements.
template <std::integral T>
T element(const bit_or&, std::type_identity<T>, std::uint64_t seed, index_type i) {
    const std::uint64_t r = random_bits(seed, i);
    return static_cast<T>(r % 512 == 0 ? std::uint64_t{1} << (r >> 32) % (8 * sizeof(T)) : 0);
}
template <std::integral T>
T element(const bit_and&, std::type_identity<T>, std::uint64_t seed, index_type i) {
    return static_cast<T>(~element(bit_or{}, std::type_identity<T>{}, seed, i));
}

template <class T>
    requires std::same_as<T, half> || std::same_as<T, bfloat16>
T element(const auto& op, std::type_identity<T>, std::uint64_t seed, index_type i) {
    return T(element(op, std::type_identity<float>{}, seed, i) * 0.0078125f);
}

template <class Op, class T>
std::complex<T> element(const Op& op, std::type_identity<std::complex<T>>, std::uint64_t seed, index_type i) {
    if constexpr (std::same_as<Op, multiplies>) {
        // On the unit circle, up to rounding.
        const double angle = static_cast<double>(random_bits(seed, i) >> 11) * 0x1p-50;
        return {static_cast<T>(std::cos(angle)), static_cast<T>(std::sin(angle))};
    } else {
        return {element(op, std::type_identity<T>{}, seed, i), element(op, std::type_identity<T>{}, seed + 7, i)};
    }
}

template <class T>
affine<T> element(const auto&, std::type_identity<affine<T>>, std::uint64_t seed, index_type i) {
    return {element(multiplies{}, std::type_identity<T>{}, seed, i),
            element(plus{}, std::type_identity<T>{}, seed + 7, i)};
}

inline permutation element(const auto&, std::type_identity<permutation>, std::uint64_t seed, index_type i) {
    permutation result{{0, 1, 2, 3, 4}};
    std::uint64_t r = random_bits(seed, i);
    for (std::uint64_t k = 4; k > 0; --k, r >>= 8) std::swap(result.to[k], result.to[r % (k + 1)]);
    return result;
}

template <class Word, std::size_t N>
words<Word, N> element(const auto&, std::type_identity<words<Word, N>>, std::uint64_t seed, index_type i) {
    words<Word, N> result{};
    for (std::size_t k = 0; k < N; ++k) {
        result.word[k] = static_cast<Word>(random_bits(seed + k, i));
        if (k % 2 == 0) result.word[k] = static_cast<Word>(result.word[k] | 1); // a unit
    }
    return result;
}

// A write every 7th element on average, so that runs without one cross every boundary.
template <class T>
write<T> element(const auto&, std::type_identity<write<T>>, std::uint64_t seed, index_type i) {
    const std::uint64_t r = random_bits(seed, i);
    return {static_cast<T>(r >> 8), r % 7 == 0};
}

template <class T>
    requires std::is_arithmetic_v<T>
T element(const fill_forward&, std::type_identity<T>, std::uint64_t seed, index_type i) {
    const std::uint64_t r = random_bits(seed, i);
    return r % 7 == 0 ? static_cast<T>(r >> 40) : static_cast<T>(fill_forward::none);
}

// Scales of 1 and -1: sums stay informative, and every swap shows.
inline std::uint64_t element(const compose_packed&, std::type_identity<std::uint64_t>, std::uint64_t seed,
                             index_type i) {
    const float scale = (random_bits(seed, i) & 1) != 0 ? -1.0f : 1.0f;
    return std::bit_cast<std::uint64_t>(
        affine<float>{scale, element(plus{}, std::type_identity<float>{}, seed + 7, i)});
}

inline sealed element(const auto&, std::type_identity<sealed>, std::uint64_t seed, index_type i) {
    return sealed(static_cast<std::uint32_t>(random_bits(seed, i)));
}

inline marked element(const auto&, std::type_identity<marked>, std::uint64_t seed, index_type i) {
    return {marked::good, static_cast<std::uint32_t>(random_bits(seed, i))};
}

inline std::string element(const auto&, std::type_identity<std::string>, std::uint64_t seed, index_type i) {
    // Mostly short; some empty.
    const std::uint64_t r = random_bits(seed, i);
    return std::string(r % 3, static_cast<char>('a' + r / 3 % 26));
}

template <class Case>
std::vector<typename Case::in_type> make_input(index_type n, std::uint64_t seed) {
    std::vector<typename Case::in_type> result;
    result.reserve(static_cast<std::size_t>(n));
    const typename Case::operator_type op{};
    for (index_type i = 0; i < n; ++i)
        result.push_back(element(op, std::type_identity<typename Case::in_type>{}, seed, i));
    return result;
}

/// An init that is not neutral.
template <class Case>
typename Case::accumulator_type make_init(std::uint64_t seed) {
    using accumulator = typename Case::accumulator_type;
    return element(typename Case::operator_type{}, std::type_identity<accumulator>{}, seed + 1000, 5);
}

/// The input as the operator sees it.
template <class Case>
std::vector<typename Case::accumulator_type> converted(const std::vector<typename Case::in_type>& input) {
    using accumulator = typename Case::accumulator_type;
    const typename Case::transform_type transform{};
    std::vector<accumulator> result;
    result.reserve(input.size());
    for (const auto& value : input) result.push_back(static_cast<accumulator>(transform(value)));
    return result;
}

// --- sizes -----------------------------------------------------------------------------------------------------------

struct size_with_reason {
    index_type n;
    const char* reason;
};

/// The sizes for a tile shape, ascending, without repetition. `elements_limit` leaves out what is too long for the
/// test.
inline std::vector<size_with_reason> sizes_for(tile_shape shape, index_type element_bytes, index_type elements_limit) {
    const index_type tile = shape.elements();
    // What one thread takes at a time where it takes several tiles: 128 KiB, a common choice of cache-sized sections.
    const index_type section = std::max<index_type>(1, 128 * 1024 / (tile * element_bytes)) * tile;
    std::vector<size_with_reason> all{
        {0, "nothing"},
        {1, "no operation"},
        {2, "one operation"},
        {3, "first absent node of every tree"},
        {31, "a warp less one"},
        {32, "a warp"},
        {33, "a warp and one"},
        {shape.run - 1, "a run (row) less one"},
        {shape.run, "a run (row)"},
        {shape.run + 1, "a run (row) and one"},
        {3 * shape.run - 1, "a partial run (row) after whole ones"},
        {shape.threads, "as many as threads (rows)"},
        {tile / 2 + 1, "first element of the upper half of a tile"},
        {tile - 1, "a tile less one"},
        {tile, "a tile"},
        {tile + 1, "a tile and one"},
        {2 * tile, "two tiles"},
        {2 * tile + 1, "the third tile has one element"},
        {3 * tile - 1, "three tiles less one"},
        {5 * tile + shape.run + 1, "tiles for a few threads, a partial one"},
        {section - 1, "a section less one"},
        {section, "a section"},
        {section + 1, "a section and one"},
        {33 * tile + tile / 3, "more tiles than a look-back window of one warp"},
        {3 * section + tile + 1, "the third section goes to a thread that has had one"},
        {18 * section + tile / 3, "more sections than a ring of 16 cells"},
        {tile * tile + 1, "more aggregates than a tile holds: three_pass recurses"},
    };
    std::erase_if(all, [&](const size_with_reason& size) { return size.n < 0 || size.n > elements_limit; });
    std::ranges::sort(all, {}, &size_with_reason::n);
    const auto repeated = std::ranges::unique(all, {}, &size_with_reason::n);
    all.erase(repeated.begin(), repeated.end());
    return all;
}

// --- judging ---------------------------------------------------------------------------------------------------------

/// The same bits; a NaN equals any NaN.
template <class T>
bool same_bits(const T& a, const T& b) {
    if constexpr (std::is_floating_point_v<T>) {
        using bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
        return (std::isnan(a) && std::isnan(b)) || std::bit_cast<bits>(a) == std::bit_cast<bits>(b);
    } else {
        return a == b;
    }
}
template <class T>
bool same_bits(const std::complex<T>& a, const std::complex<T>& b) {
    return same_bits(a.real(), b.real()) && same_bits(a.imag(), b.imag());
}
template <class T>
bool same_bits(const affine<T>& a, const affine<T>& b) {
    return same_bits(a.scale, b.scale) && same_bits(a.offset, b.offset);
}

/// A value for a message.
template <class T>
std::string show(const T& value) {
    if constexpr (std::is_integral_v<T>) {
        return std::to_string(value);
    } else if constexpr (std::is_floating_point_v<T>) {
        char text[40];
        std::snprintf(text, sizeof text, "%.17g (%a)", static_cast<double>(value), static_cast<double>(value));
        return text;
    } else if constexpr (std::same_as<T, std::string>) {
        return '"' + value.substr(0, 40) + "\" of " + std::to_string(value.size());
    } else {
        static_assert(std::is_trivially_copyable_v<T>);
        static constexpr char digits[] = "0123456789abcdef";
        const auto* bytes = reinterpret_cast<const unsigned char*>(&value);
        std::string text = "bytes";
        for (std::size_t i = 0; i < std::min<std::size_t>(sizeof(T), 32); ++i)
            text += {' ', digits[bytes[i] >> 4], digits[bytes[i] & 15]};
        return text;
    }
}

/// A-priori bound of |y_i - sequential y_i| for float sums: (gamma_{n-1} + gamma_depth) times the sum of magnitudes.
/// The depth of any of the trees is at most that of the left fold, n - 1; log-depth inside a tile makes it far smaller.
template <std::floating_point T>
class error_bound {
public:
    explicit error_bound(tile_shape shape)
        : tile_(shape.elements()), in_tile_(static_cast<double>(shape.threads + shape.run) + 12.0) {}

    /// Feed magnitudes in order; returns the bound after this element.
    double next(double magnitude) {
        sum_ += magnitude;
        ++count_;
        // Within a tile: a fold over rows or runs or a logarithmic tree; then one operation per earlier tile.
        const double depth =
            std::min(static_cast<double>(count_), in_tile_ + static_cast<double>(count_ / tile_) + 1.0);
        return (gamma(static_cast<double>(count_)) + gamma(depth)) * sum_;
    }

private:
    static double gamma(double operations) {
        const double u = std::numeric_limits<T>::epsilon() / 2;
        return operations * u / (1 - operations * u);
    }
    index_type tile_;
    double in_tile_;
    index_type count_ = 0;
    double sum_ = 0;
};

} // namespace polyscan::test
