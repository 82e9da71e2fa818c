// SPDX-License-Identifier: Apache-2.0
#include "generate.hpp"

#include <cmath>

namespace polyscan::tool {

namespace {

// SplitMix64 (Steele, Lea, Flood, 2014): element i depends on seed and i alone.
std::uint64_t random_bits(std::uint64_t seed, std::uint64_t i) {
    std::uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// In [0, 1), with 24 bits: exact in float, so that every machine rounds alike.
double unit(std::uint64_t bits) { return static_cast<double>(bits >> 40) * 0x1p-24; }

template <class T>
T real_value(std::string_view op, std::uint64_t bits, double position) {
    const double u = unit(bits);
    if (op == "multiplies") return static_cast<T>(1 + (u - 0.5) * 0x1p-10);
    if (op == "minimum") return static_cast<T>(u - position);
    if (op == "maximum") return static_cast<T>(u + position);
    return static_cast<T>(u * u); // plus: small measurements are more frequent than large ones
}

template <class T>
T integer_value(std::string_view op, std::uint64_t bits, double position) {
    using word = std::make_unsigned_t<T>;
    const auto flag = static_cast<word>(word{1} << (bits >> 32) % (8 * sizeof(T)));
    const bool rare = bits % 1024 == 0;
    if (op == "bit_and") return static_cast<T>(rare ? static_cast<word>(~flag) : static_cast<word>(~word{0}));
    if (op == "bit_or") return static_cast<T>(rare ? flag : word{0});
    if (op == "bit_xor") return static_cast<T>(bits);
    if (op == "multiplies") return static_cast<T>(bits | 1); // odd: the product never becomes 0
    if (op == "minimum") return static_cast<T>(100 - 100 * position + unit(bits) * 20);
    if (op == "maximum") return static_cast<T>(100 * position + unit(bits) * 20);
    return static_cast<T>(bits % 100);
}

} // namespace

void generate(std::string_view op, dtype type, std::uint64_t seed, void* data, std::size_t n) {
    visit_dtype(type, [&]<class T>(std::type_identity<T>) {
        T* const x = static_cast<T*>(data);
        for (std::size_t i = 0; i < n; ++i) {
            const double position = static_cast<double>(i) / static_cast<double>(n);
            const std::uint64_t bits = random_bits(seed, i);
            if constexpr (std::is_integral_v<T>) {
                x[i] = integer_value<T>(op, bits, position);
            } else if constexpr (std::is_floating_point_v<T>) {
                x[i] = real_value<T>(op, bits, position);
            } else {
                using real = typename T::value_type;
                const real im = static_cast<real>(unit(random_bits(~seed, i)) - 0.5);
                x[i] = T(real_value<real>(op, bits, position), op == "multiplies" ? im * real{0x1p-10} : im);
            }
        }
    });
}

} // namespace polyscan::tool
