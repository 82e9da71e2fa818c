// SPDX-License-Identifier: Apache-2.0
/// What the matrix scans: element types, operators, and the lists of cases made from both. Everything here that is
/// trivially copyable can be used in device code, so that a backend's compiler can instantiate any group of cases:
///
///     #define INSTANTIATE(name, ...) template void run_case(my::backend&, std::string_view, const
///     case_arguments<cases::name>&); POLYSCAN_POLICY_CASES(INSTANTIATE)
///
/// Cross only what interacts: a few types with every policy, every type and operator with the default policy.
#pragma once

#include <bit>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <polyscan/operators.hpp>

#include "launch.hpp"

namespace polyscan::test {

/// A permutation of five elements: 5 bytes, a size that divides nothing.
struct permutation {
    std::uint8_t to[5];

    friend constexpr bool operator==(const permutation&, const permutation&) = default;
};

/// Composition, the earlier permutation applied first. Associative, far from commutative, and it never loses
/// information: one swapped pair of operands shows in every later output.
struct compose_permutation {
    POLYSCAN_FUNCTION constexpr permutation operator()(const permutation& earlier, const permutation& later) const {
        permutation result{};
        for (int i = 0; i < 5; ++i) result.to[i] = later.to[earlier.to[i]];
        return result;
    }
    POLYSCAN_FUNCTION static constexpr permutation identity() { return {{0, 1, 2, 3, 4}}; }
};

/// N words that are affine maps modulo 2^w in pairs; a last odd word is a sum. sizeof is N * sizeof(Word), so that the
/// same operator serves every element size.
template <class Word, std::size_t N>
struct words {
    Word word[N];

    friend constexpr bool operator==(const words&, const words&) = default;
};

/// Pairwise composition. Associative, not commutative, without an identity.
struct compose_words {
    template <class Word, std::size_t N>
    POLYSCAN_FUNCTION constexpr words<Word, N> operator()(const words<Word, N>& earlier,
                                                          const words<Word, N>& later) const {
        words<Word, N> result{};
        for (std::size_t i = 0; i + 1 < N; i += 2) {
            result.word[i] = modulo<Word>(std::uint64_t{later.word[i]} * earlier.word[i]);
            result.word[i + 1] = modulo<Word>(std::uint64_t{later.word[i]} * earlier.word[i + 1] + later.word[i + 1]);
        }
        if (N % 2 != 0) result.word[N - 1] = modulo<Word>(std::uint64_t{earlier.word[N - 1]} + later.word[N - 1]);
        return result;
    }

private:
    template <class Word>
    POLYSCAN_FUNCTION static constexpr Word modulo(std::uint64_t value) {
        return static_cast<Word>(value);
    }
};

/// A number without a default constructor: shows code that makes elements from nothing.
struct sealed {
    std::uint32_t value;

    sealed() = delete;
    POLYSCAN_FUNCTION constexpr explicit sealed(std::uint32_t v) : value(v) {}
    friend constexpr bool operator==(const sealed&, const sealed&) = default;
};

struct add_sealed {
    POLYSCAN_FUNCTION constexpr sealed operator()(const sealed& earlier, const sealed& later) const {
        return sealed(earlier.value + later.value);
    }
};

/// A number beside a mark that only real elements and their combinations carry.
struct marked {
    static constexpr std::uint32_t good = 0x600df00du;
    static constexpr std::uint32_t bad = 0xbadbadbau;

    std::uint32_t mark;
    std::uint32_t value;

    friend constexpr bool operator==(const marked&, const marked&) = default;
};

/// A sum that poisons its result when it is called on anything but real elements: padding, zeroed or stale memory.
struct add_marked {
    POLYSCAN_FUNCTION constexpr marked operator()(const marked& earlier, const marked& later) const {
        const bool real = earlier.mark == marked::good && later.mark == marked::good;
        return {real ? marked::good : marked::bad, earlier.value + later.value};
    }
};

/// Keeps the later number unless that is the mark for "none here": last write wins on plain numbers. Associative, not
/// commutative, and an operator of a user's own on types that backends treat specially.
struct fill_forward {
    static constexpr int none = -1;
    template <class T>
    POLYSCAN_FUNCTION constexpr T operator()(T earlier, T later) const {
        return later == static_cast<T>(none) ? earlier : later;
    }
};

/// Affine maps of floats as plain 64-bit numbers: composition does not commute, and rounds. Kernels for numbers have to
/// keep the order and the tree of it, too.
struct compose_packed {
    POLYSCAN_FUNCTION std::uint64_t operator()(std::uint64_t earlier, std::uint64_t later) const {
        const affine<float> composed =
            compose_affine{}(std::bit_cast<affine<float>>(earlier), std::bit_cast<affine<float>>(later));
        return std::bit_cast<std::uint64_t>(composed);
    }
};

/// Concatenation. Host only.
struct concatenate {
    std::string operator()(const std::string& earlier, const std::string& later) const { return earlier + later; }
    static std::string identity() { return {}; }
};

/// A transform of bytes, which keeps neither their order nor their sum.
template <class T>
struct bend {
    POLYSCAN_FUNCTION constexpr T operator()(std::uint8_t value) const {
        return static_cast<T>(value % 5 != 0 ? value * value - 3 : value / 2);
    }
};

/// A transform that widens.
struct square {
    POLYSCAN_FUNCTION constexpr std::int64_t operator()(std::int32_t value) const {
        return std::int64_t{value} * value;
    }
};

} // namespace polyscan::test

namespace polyscan {
template <>
inline constexpr bool exactly_associative<test::compose_permutation, test::permutation> = true;
template <class Word, std::size_t N>
inline constexpr bool exactly_associative<test::compose_words, test::words<Word, N>> = true;
// Left at false on purpose, although true of both: an operator that is not declared exact must come out right too.
// exactly_associative<test::add_sealed, test::sealed>, exactly_associative<test::add_marked, test::marked>
} // namespace polyscan

// Each list calls X(name, case type) per case. Element types of a name: input, accumulator, output, where they differ.

/// Every policy. Each case is here for what it adds.
#define POLYSCAN_POLICY_CASES(X)                                                                                       \
    X(int32_plus, test_case<std::int32_t, std::int32_t, std::int32_t, plus>)          /* exact, commutative */         \
    X(float_plus, test_case<float, float, float, plus>)                               /* the tree shows */             \
    X(double_plus, test_case<double, double, double, plus>)                           /* 8-byte tiles */               \
    X(uint8_uint64_plus, test_case<std::uint8_t, std::uint64_t, std::uint64_t, plus>) /* widening */                   \
    X(affine_double, test_case<affine<double>, affine<double>, affine<double>, compose_affine>) /* order and tree */   \
    X(permutation5, test_case<permutation, permutation, permutation, compose_permutation>)      /* order, 5 bytes */

/// Every policy, on a 512-byte element: tiles are so small that a few thousand elements make three_pass recurse twice.
#define POLYSCAN_RECURSION_CASES(X)                                                                                    \
    X(words_512_bytes,                                                                                                 \
      test_case<words<std::uint64_t, 64>, words<std::uint64_t, 64>, words<std::uint64_t, 64>, compose_words>)

#define POLYSCAN_ARITHMETIC_OF(X, T, name)                                                                             \
    X(name##_plus, test_case<T, T, T, plus>)                                                                           \
    X(name##_multiplies, test_case<T, T, T, multiplies>)                                                               \
    X(name##_minimum, test_case<T, T, T, minimum>)                                                                     \
    X(name##_maximum, test_case<T, T, T, maximum>)

#define POLYSCAN_BITWISE_OF(X, T, name)                                                                                \
    X(name##_bit_and, test_case<T, T, T, bit_and>)                                                                     \
    X(name##_bit_or, test_case<T, T, T, bit_or>)                                                                       \
    X(name##_bit_xor, test_case<T, T, T, bit_xor>)

// The default policy: groups of similar size, so that each can be a translation unit. int32_plus, float_plus,
// double_plus, uint8_uint64_plus, affine_double and permutation5 are in POLYSCAN_POLICY_CASES already.

#define POLYSCAN_DEFAULT_CASES_INT8(X)                                                                                 \
    POLYSCAN_ARITHMETIC_OF(X, std::int8_t, int8)                                                                       \
    POLYSCAN_BITWISE_OF(X, std::int8_t, int8)

#define POLYSCAN_DEFAULT_CASES_INT16(X)                                                                                \
    POLYSCAN_ARITHMETIC_OF(X, std::int16_t, int16)                                                                     \
    POLYSCAN_BITWISE_OF(X, std::int16_t, int16)

#define POLYSCAN_DEFAULT_CASES_INT32(X)                                                                                \
    X(int32_multiplies, test_case<std::int32_t, std::int32_t, std::int32_t, multiplies>)                               \
    X(int32_minimum, test_case<std::int32_t, std::int32_t, std::int32_t, minimum>)                                     \
    X(int32_maximum, test_case<std::int32_t, std::int32_t, std::int32_t, maximum>)                                     \
    POLYSCAN_BITWISE_OF(X, std::int32_t, int32)

#define POLYSCAN_DEFAULT_CASES_INT64(X)                                                                                \
    POLYSCAN_ARITHMETIC_OF(X, std::int64_t, int64)                                                                     \
    POLYSCAN_BITWISE_OF(X, std::int64_t, int64)

#define POLYSCAN_DEFAULT_CASES_UINT64(X)                                                                               \
    POLYSCAN_ARITHMETIC_OF(X, std::uint64_t, uint64)                                                                   \
    POLYSCAN_BITWISE_OF(X, std::uint64_t, uint64)

#define POLYSCAN_DEFAULT_CASES_FLOAT(X)                                                                                \
    X(float_multiplies, test_case<float, float, float, multiplies>)                                                    \
    X(float_minimum, test_case<float, float, float, minimum>)                                                          \
    X(float_maximum, test_case<float, float, float, maximum>)                                                          \
    X(double_multiplies, test_case<double, double, double, multiplies>)                                                \
    X(double_minimum, test_case<double, double, double, minimum>)                                                      \
    X(double_maximum, test_case<double, double, double, maximum>)                                                      \
    X(complex_float_plus, test_case<std::complex<float>, std::complex<float>, std::complex<float>, plus>)              \
    X(complex_float_multiplies, test_case<std::complex<float>, std::complex<float>, std::complex<float>, multiplies>)

/// Input, accumulator and output differ.
#define POLYSCAN_DEFAULT_CASES_MIXED(X)                                                                                \
    X(uint8_uint64_maximum, test_case<std::uint8_t, std::uint64_t, std::uint64_t, maximum>)                            \
    X(int8_double_plus, test_case<std::int8_t, double, double, plus>)                                                  \
    X(int32_int64_plus, test_case<std::int32_t, std::int64_t, std::int64_t, plus>)                                     \
    X(half_float_plus, test_case<half, float, float, plus>)                                                            \
    X(half_float_maximum, test_case<half, float, float, maximum>)                                                      \
    X(bfloat16_float_plus, test_case<bfloat16, float, float, plus>)                                                    \
    X(bfloat16_float_minimum, test_case<bfloat16, float, float, minimum>)                                              \
    X(float_double_float_plus, test_case<float, double, float, plus>) /* the carry has more bits than the output */    \
    X(int32_squares_int64_plus, test_case<std::int32_t, std::int64_t, std::int64_t, plus, square>)                     \
    X(uint8_plus, test_case<std::uint8_t, std::uint8_t, std::uint8_t, plus>)                                           \
    X(uint8_minimum, test_case<std::uint8_t, std::uint8_t, std::uint8_t, minimum>)                                     \
    X(uint8_bent_plus, test_case<std::uint8_t, std::uint8_t, std::uint8_t, plus, bend<std::uint8_t>>)                  \
    X(uint8_bent_int8_maximum, test_case<std::uint8_t, std::int8_t, std::int8_t, maximum, bend<std::int8_t>>)          \
    X(uint8_bent_int8_int64_bit_xor, test_case<std::uint8_t, std::int8_t, std::int64_t, bit_xor, bend<std::int8_t>>)   \
    X(int32_fill_forward, test_case<std::int32_t, std::int32_t, std::int32_t, fill_forward>)                           \
    X(double_fill_forward, test_case<double, double, double, fill_forward>)

#define POLYSCAN_WORDS_CASE(X, Word, count, name)                                                                      \
    X(name, test_case<words<Word, count>, words<Word, count>, words<Word, count>, compose_words>)

#define POLYSCAN_DEFAULT_CASES_STRUCT(X)                                                                               \
    POLYSCAN_WORDS_CASE(X, std::uint8_t, 3, words_3_bytes)                                                             \
    POLYSCAN_WORDS_CASE(X, std::uint32_t, 3, words_12_bytes)                                                           \
    POLYSCAN_WORDS_CASE(X, std::uint32_t, 4, words_16_bytes) /* aligned to 4 */                                        \
    POLYSCAN_WORDS_CASE(X, std::uint64_t, 3, words_24_bytes)                                                           \
    POLYSCAN_WORDS_CASE(X, std::uint64_t, 5, words_40_bytes)                                                           \
    POLYSCAN_WORDS_CASE(X, std::uint64_t, 8, words_64_bytes)                                                           \
    X(affine_uint64, test_case<affine<std::uint64_t>, affine<std::uint64_t>, affine<std::uint64_t>, compose_affine>)   \
    X(affine_float, test_case<affine<float>, affine<float>, affine<float>, compose_affine>)                            \
    X(write_int32, test_case<write<std::int32_t>, write<std::int32_t>, write<std::int32_t>, last_write_wins>)          \
    X(sealed_plus, test_case<sealed, sealed, sealed, add_sealed>)                                                      \
    X(marked_plus, test_case<marked, marked, marked, add_marked>)

#define POLYSCAN_DEFAULT_CASES(X)                                                                                      \
    POLYSCAN_DEFAULT_CASES_INT8(X)                                                                                     \
    POLYSCAN_DEFAULT_CASES_INT16(X)                                                                                    \
    POLYSCAN_DEFAULT_CASES_INT32(X)                                                                                    \
    POLYSCAN_DEFAULT_CASES_INT64(X)                                                                                    \
    POLYSCAN_DEFAULT_CASES_UINT64(X)                                                                                   \
    POLYSCAN_DEFAULT_CASES_FLOAT(X)                                                                                    \
    POLYSCAN_DEFAULT_CASES_MIXED(X)                                                                                    \
    POLYSCAN_DEFAULT_CASES_STRUCT(X)

/// Every policy, element types that only a host can hold.
#define POLYSCAN_HOST_CASES(X) X(string_concatenate, test_case<std::string, std::string, std::string, concatenate>)

namespace polyscan::test::cases {

#define POLYSCAN_DEFINE_CASE(case_name, with_every_policy, ...)                                                        \
    struct case_name : __VA_ARGS__ {                                                                                   \
        static constexpr std::string_view name = #case_name;                                                           \
        static constexpr bool every_policy = with_every_policy;                                                        \
    };
#define POLYSCAN_DEFINE_EVERY(case_name, ...) POLYSCAN_DEFINE_CASE(case_name, true, __VA_ARGS__)
#define POLYSCAN_DEFINE_DEFAULT(case_name, ...) POLYSCAN_DEFINE_CASE(case_name, false, __VA_ARGS__)
POLYSCAN_POLICY_CASES(POLYSCAN_DEFINE_EVERY)
POLYSCAN_RECURSION_CASES(POLYSCAN_DEFINE_EVERY)
POLYSCAN_HOST_CASES(POLYSCAN_DEFINE_EVERY)
POLYSCAN_DEFAULT_CASES(POLYSCAN_DEFINE_DEFAULT)
#undef POLYSCAN_DEFINE_DEFAULT
#undef POLYSCAN_DEFINE_EVERY
#undef POLYSCAN_DEFINE_CASE

static_assert(sizeof(words<std::uint8_t, 3>) == 3 && sizeof(words<std::uint32_t, 3>) == 12 &&
              sizeof(words<std::uint64_t, 64>) == 512 && sizeof(permutation) == 5);

} // namespace polyscan::test::cases
