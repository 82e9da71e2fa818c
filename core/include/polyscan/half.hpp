// SPDX-License-Identifier: Apache-2.0
/// 16-bit floating-point storage types. They hold values; arithmetic happens in float: scan them with a float (or
/// double) accumulator. Conversion from float rounds to nearest, ties to even, as the processors' own instructions do.
///
///     std::span<const polyscan::half> in = ...; std::span<float> out = ...;
///     polyscan::inclusive_scan(cpu, in, out);      // accumulates in float
#pragma once

#include <bit>
#include <cstdint>

#include <polyscan/function.hpp>

namespace polyscan {

/// IEEE 754 binary16: 1 sign, 5 exponent, 10 fraction bits. Same layout as CUDA's __half.
struct half {
    std::uint16_t bits = 0;

    half() = default;
    POLYSCAN_FUNCTION explicit half(float value) : bits(round(std::bit_cast<std::uint32_t>(value))) {}

    POLYSCAN_FUNCTION operator float() const {
#if defined(__CUDA_ARCH__)
        float value; // one instruction
        asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
        return value;
#else
        const std::uint32_t sign = std::uint32_t{bits & 0x8000u} << 16;
        const std::uint32_t magnitude = bits & 0x7fffu;
        if (magnitude >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
        // Scaling by 2^112 moves the exponent bias from 15 to 127 and normalises subnormal numbers exactly.
        const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
        return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(scaled));
#endif
    }

private:
    POLYSCAN_FUNCTION static std::uint16_t round(std::uint32_t word) {
        const std::uint32_t sign = word >> 16 & 0x8000u;
        const std::uint32_t magnitude = word & 0x7fffffffu;
        if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
        if (magnitude >= 0x47800000u) return static_cast<std::uint16_t>(sign | 0x7c00u); // 2^16 and more: infinity
        if (magnitude < 0x38800000u) {
            // Below 2^-14 the result is subnormal: adding 0.5 leaves the rounded multiple of 2^-24 in the low bits.
            const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
            return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
        }
        const std::uint32_t odd = magnitude >> 13 & 1u;
        return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
    }
};

/// bfloat16: the upper half of a float. Same layout as CUDA's __nv_bfloat16.
struct bfloat16 {
    std::uint16_t bits = 0;

    bfloat16() = default;
    POLYSCAN_FUNCTION explicit bfloat16(float value) : bits(round(std::bit_cast<std::uint32_t>(value))) {}

    POLYSCAN_FUNCTION operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

private:
    POLYSCAN_FUNCTION static std::uint16_t round(std::uint32_t word) {
        if ((word & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>(word >> 16 | 0x40u);
        const std::uint32_t odd = word >> 16 & 1u;
        return static_cast<std::uint16_t>((word + 0x7fffu + odd) >> 16);
    }
};

} // namespace polyscan
