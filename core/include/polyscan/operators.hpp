// SPDX-License-Identifier: Apache-2.0
/// Operators. A scan needs an operator `op` that is associative on the accumulator type; it need not be commutative,
/// and the order of operands is fixed: `op(earlier, later)`, where *earlier* comes from smaller indices. It is called
/// only on elements and their combinations, never on padding. It may be called concurrently, so it must not change
/// shared state.
///
/// An identity is optional. `exclusive_scan` without init needs one; nothing else does. An operator offers it as
///     template <class T> static constexpr T identity();      // or: static constexpr T identity();
///
/// A user's operator, worked: the affine maps x -> s x + t under composition.
///     struct compose { template <class M> M operator()(M earlier, M later) const {
///         return {later.s * earlier.s, later.s * earlier.t + later.t}; } };
#pragma once

#include <cmath>
#include <complex>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <polyscan/function.hpp>
#include <polyscan/half.hpp>

namespace polyscan {

/// The one place where an operator is applied. Every kernel combines through it, so the order of operands is decided
/// here.
template <class Operator, class T>
POLYSCAN_FUNCTION constexpr T combine(const Operator& op, const T& earlier, const T& later) {
    return static_cast<T>(op(earlier, later));
}

/// True when regrouping cannot change a bit of the result: op(op(a, b), c) == op(a, op(b, c)) for all values of T.
/// Backends regroup such operators for speed. Specialise it for your own operator if that holds.
template <class Operator, class T>
inline constexpr bool exactly_associative = false;

namespace detail {
template <class T>
inline constexpr bool is_complex = false;
template <class T>
inline constexpr bool is_complex<std::complex<T>> = true;

// [complex.numbers]: a complex number may be accessed as an array of two. Device code has no other way to the parts,
// because std::complex's own functions are host functions.
template <class T>
POLYSCAN_FUNCTION T part(const std::complex<T>& z, int i) {
    return reinterpret_cast<const T(&)[2]>(z)[i];
}
template <class T>
POLYSCAN_FUNCTION std::complex<T> complex_of(std::complex<T> z, T re, T im) {
    reinterpret_cast<T(&)[2]>(z)[0] = re;
    reinterpret_cast<T(&)[2]>(z)[1] = im;
    return z;
}

template <class T>
concept number = std::is_arithmetic_v<T> || is_complex<T>;

// Signed overflow is undefined in C++; the same operation on the unsigned type wraps, as NumPy and GPUs do.
// At least 64 bits: narrower unsigned types would be promoted to int, which can overflow again.
template <class T>
using wrapping = typename std::conditional_t<(sizeof(T) > sizeof(std::uint64_t)), std::make_unsigned<T>,
                                             std::type_identity<std::uint64_t>>::type;
} // namespace detail

/// Sum. Integers wrap around. The result has the operands' type: no promotion to int.
struct plus {
    template <class T>
    POLYSCAN_FUNCTION constexpr T operator()(const T& earlier, const T& later) const {
        if constexpr (std::is_integral_v<T>) {
            using wide = detail::wrapping<T>;
            return static_cast<T>(static_cast<wide>(earlier) + static_cast<wide>(later));
        } else if constexpr (detail::is_complex<T>) {
            return detail::complex_of(earlier, detail::part(earlier, 0) + detail::part(later, 0),
                                      detail::part(earlier, 1) + detail::part(later, 1));
        } else {
            return static_cast<T>(earlier + later);
        }
    }
    template <detail::number T>
    POLYSCAN_FUNCTION static constexpr T identity() {
        return T{};
    }
};

/// Product. Integers wrap around; complex numbers multiply as (ac - bd, ad + bc), without the standard library's
/// recovery of infinities.
struct multiplies {
    template <class T>
    POLYSCAN_FUNCTION constexpr T operator()(const T& earlier, const T& later) const {
        if constexpr (std::is_integral_v<T>) {
            using wide = detail::wrapping<T>;
            return static_cast<T>(static_cast<wide>(earlier) * static_cast<wide>(later));
        } else if constexpr (detail::is_complex<T>) {
            const auto a = detail::part(earlier, 0), b = detail::part(earlier, 1);
            const auto c = detail::part(later, 0), d = detail::part(later, 1);
            return detail::complex_of(earlier, a * c - b * d, a * d + b * c);
        } else {
            return static_cast<T>(earlier * later);
        }
    }
    template <detail::number T>
    POLYSCAN_FUNCTION static constexpr T identity() {
        return T(1);
    }
};

namespace detail {
// Precedes in the total preorder of IEEE 754-2019 minimum and maximum: -0 before +0.
template <std::floating_point T>
POLYSCAN_FUNCTION constexpr bool precedes(T a, T b) {
    if (a < b) return true;
    if constexpr (sizeof(T) > sizeof(std::int64_t)) { // long double, whose bits are no integer's
        return a == b && std::signbit(a) && !std::signbit(b);
    } else {
        using bits = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
        return a == b && std::bit_cast<bits>(a) < 0 && std::bit_cast<bits>(b) >= 0;
    }
}
} // namespace detail

/// The smaller value. For floating point this is IEEE 754-2019 `minimum`: NaN propagates, -0 < +0; so it is exactly
/// associative. Other types need operator<; of equivalent values the earlier one is kept.
struct minimum {
    template <class T>
    POLYSCAN_FUNCTION constexpr T operator()(const T& earlier, const T& later) const {
        if constexpr (std::is_floating_point_v<T>) {
            if (earlier != earlier) return earlier;
            if (later != later) return later;
            return detail::precedes(later, earlier) ? later : earlier;
        } else {
            return later < earlier ? later : earlier;
        }
    }
    template <class T>
        requires std::is_arithmetic_v<T>
    POLYSCAN_FUNCTION static constexpr T identity() {
        return std::is_floating_point_v<T> ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
    }
};

/// The larger value. For floating point this is IEEE 754-2019 `maximum`: NaN propagates, -0 < +0. Other types need
/// operator<; of equivalent values the earlier one is kept.
struct maximum {
    template <class T>
    POLYSCAN_FUNCTION constexpr T operator()(const T& earlier, const T& later) const {
        if constexpr (std::is_floating_point_v<T>) {
            if (earlier != earlier) return earlier;
            if (later != later) return later;
            return detail::precedes(earlier, later) ? later : earlier;
        } else {
            return earlier < later ? later : earlier;
        }
    }
    template <class T>
        requires std::is_arithmetic_v<T>
    POLYSCAN_FUNCTION static constexpr T identity() {
        return std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
    }
};

/// Bits set in both.
struct bit_and {
    template <std::integral T>
    POLYSCAN_FUNCTION constexpr T operator()(const T& earlier, const T& later) const {
        return static_cast<T>(earlier & later);
    }
    template <std::integral T>
    POLYSCAN_FUNCTION static constexpr T identity() {
        return static_cast<T>(~T{0});
    }
};

/// Bits set in either.
struct bit_or {
    template <std::integral T>
    POLYSCAN_FUNCTION constexpr T operator()(const T& earlier, const T& later) const {
        return static_cast<T>(earlier | later);
    }
    template <std::integral T>
    POLYSCAN_FUNCTION static constexpr T identity() {
        return T{0};
    }
};

/// Bits set in exactly one.
struct bit_xor {
    template <std::integral T>
    POLYSCAN_FUNCTION constexpr T operator()(const T& earlier, const T& later) const {
        return static_cast<T>(earlier ^ later);
    }
    template <std::integral T>
    POLYSCAN_FUNCTION static constexpr T identity() {
        return T{0};
    }
};

/// The map x -> scale * x + offset. Scans of such maps solve linear recurrences and evaluate polynomials.
template <class T>
struct alignas(2 * sizeof(T)) affine {
    T scale;
    T offset;

    friend constexpr bool operator==(const affine&, const affine&) = default;
};

/// Composition of affine maps, the earlier one applied first. Associative, not commutative. Exact over unsigned
/// integers (modulo 2^w); over floating point it rounds once per product and once per fused multiply-add.
struct compose_affine {
    template <class T>
    POLYSCAN_FUNCTION constexpr affine<T> operator()(const affine<T>& earlier, const affine<T>& later) const {
        if constexpr (std::is_floating_point_v<T>) {
            // A call to fma, not an expression for the compiler to contract: every backend rounds alike.
            using std::fma;
            return {later.scale * earlier.scale, fma(later.scale, earlier.offset, later.offset)};
        } else {
            static_assert(std::is_unsigned_v<T> && sizeof(T) >= sizeof(int),
                          "affine maps need floating point, or unsigned integers that do not promote to int");
            return {later.scale * earlier.scale, later.scale * earlier.offset + later.offset};
        }
    }
    template <class M>
        requires std::same_as<M, affine<decltype(M::scale)>>
    POLYSCAN_FUNCTION static constexpr M identity() {
        return {1, 0};
    }
};

/// A cell that may hold a write. "Last write wins" fills gaps forward: the later operand if it holds a write, else the
/// earlier one. Associative, not commutative.
template <class T>
struct write {
    T value;
    bool present;

    friend constexpr bool operator==(const write&, const write&) = default;
};

/// See `write`.
struct last_write_wins {
    template <class T>
    POLYSCAN_FUNCTION constexpr write<T> operator()(const write<T>& earlier, const write<T>& later) const {
        return later.present ? later : earlier;
    }
};

template <class T>
    requires std::is_integral_v<T>
inline constexpr bool exactly_associative<plus, T> = true;
template <class T>
    requires std::is_integral_v<T>
inline constexpr bool exactly_associative<multiplies, T> = true;
template <class T>
    requires std::is_arithmetic_v<T>
inline constexpr bool exactly_associative<minimum, T> = true;
template <class T>
    requires std::is_arithmetic_v<T>
inline constexpr bool exactly_associative<maximum, T> = true;
template <class T>
inline constexpr bool exactly_associative<bit_and, T> = true;
template <class T>
inline constexpr bool exactly_associative<bit_or, T> = true;
template <class T>
inline constexpr bool exactly_associative<bit_xor, T> = true;
template <class T>
    requires std::is_unsigned_v<T>
inline constexpr bool exactly_associative<compose_affine, affine<T>> = true;
template <class T>
inline constexpr bool exactly_associative<last_write_wins, write<T>> = true;

namespace detail {
template <class Operator, class T>
concept identity_by_type = requires {
    { Operator::template identity<T>() } -> std::convertible_to<T>;
};
template <class Operator, class T>
concept identity_plain = requires {
    { Operator::identity() } -> std::convertible_to<T>;
};
} // namespace detail

/// The operator offers an identity for T.
template <class Operator, class T>
concept has_identity = detail::identity_by_type<Operator, T> || detail::identity_plain<Operator, T>;

/// That identity.
template <class T, class Operator>
    requires has_identity<Operator, T>
constexpr T identity_of(const Operator&) {
    if constexpr (detail::identity_by_type<Operator, T>)
        return Operator::template identity<T>();
    else
        return Operator::identity();
}

} // namespace polyscan
