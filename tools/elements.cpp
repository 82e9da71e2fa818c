// SPDX-License-Identifier: Apache-2.0
#include "elements.hpp"

#include "program.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

namespace polyscan::tool {

namespace {

constexpr std::align_val_t alignment{4096};

template <class T>
constexpr bool is_complex = false;
template <class T>
constexpr bool is_complex<std::complex<T>> = true;

template <class T>
scalar bytes_of(T value) {
    scalar bytes(sizeof(T));
    std::memcpy(bytes.data(), &value, sizeof(T));
    return bytes;
}

// The number at the start of `text`, which is shortened by it; nothing if there is none or it does not fit T.
template <class T>
std::optional<T> take_real(std::string& text) {
    const char* const start = text.c_str();
    if (text.empty() || std::isspace(static_cast<unsigned char>(*start))) return std::nullopt;
    char* end = nullptr;
    errno = 0;
    T value{};
    if constexpr (std::is_same_v<T, float>)
        value = std::strtof(start, &end);
    else
        value = std::strtod(start, &end);
    if (end == start || (errno == ERANGE && std::isinf(value))) return std::nullopt;
    text.erase(0, static_cast<std::size_t>(end - start));
    return value;
}

template <class T>
std::optional<T> parse_value(std::string text) {
    if constexpr (std::is_integral_v<T>) {
        T value{};
        if (text.starts_with('+')) text.erase(0, 1);
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
        return value;
    } else if constexpr (is_complex<T>) {
        using real = typename T::value_type;
        const auto first = take_real<real>(text);
        if (!first) return std::nullopt;
        if (text.empty()) return T(*first, 0);
        if (text == "j") return T(0, *first);
        if (text.front() != '+' && text.front() != '-') return std::nullopt;
        const auto second = take_real<real>(text);
        if (!second || text != "j") return std::nullopt;
        return T(*first, *second);
    } else {
        const auto value = take_real<T>(text);
        if (!text.empty()) return std::nullopt;
        return value;
    }
}

template <class From, class To>
constexpr bool can_convert = is_complex<To> || !is_complex<From>;

template <class From, class To>
std::optional<not_convertible> convert_all(const From* from, To* to, std::size_t n) {
    if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
        // Both ends are powers of two, or zero, and so exact in From; NaN fails both comparisons.
        const From end = std::ldexp(From{1}, std::numeric_limits<To>::digits);
        const From lowest = std::is_signed_v<To> ? -end : From{0};
        for (std::size_t i = 0; i < n; ++i) {
            const From value = std::trunc(from[i]);
            if (!(value >= lowest && value < end))
                return not_convertible{i, std::isnan(value)   ? "NaN"
                                          : std::isinf(value) ? "an infinity"
                                                              : "a value out of range"};
            to[i] = static_cast<To>(value);
        }
    } else if constexpr (is_complex<To> && is_complex<From>) {
        for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<To>(from[i]);
    } else if constexpr (is_complex<To>) {
        for (std::size_t i = 0; i < n; ++i) to[i] = To(static_cast<typename To::value_type>(from[i]), 0);
    } else {
        for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<To>(from[i]);
    }
    return std::nullopt;
}

template <class T>
bool same_bits(const T& a, const T& b) {
    if constexpr (is_complex<T>) {
        return same_bits(a.real(), b.real()) && same_bits(a.imag(), b.imag());
    } else {
        if constexpr (std::is_floating_point_v<T>)
            if (std::isnan(a) && std::isnan(b)) return true;
        return std::memcmp(&a, &b, sizeof(T)) == 0;
    }
}

} // namespace

buffer::buffer(std::size_t bytes)
    : data_(::operator new(std::max<std::size_t>(bytes, 1), alignment),
            [](void* data) { ::operator delete(data, alignment); }),
      size_(bytes) {}

scalar parse_scalar(std::string_view argument, std::string_view text, dtype type) {
    return visit_dtype(type, [&]<class T>(std::type_identity<T>) {
        if (const auto value = parse_value<T>(std::string(text))) return bytes_of(*value);
        throw usage_error(argument, fmt::format("'{}' is not a value of {}", text, name(type)));
    });
}

dtype common_dtype(dtype a, dtype b) {
    return visit_dtype(a, [&]<class A>(std::type_identity<A>) {
        return visit_dtype(b, []<class B>(std::type_identity<B>) {
            if constexpr (is_complex<A> == is_complex<B>)
                return dtype_of<std::common_type_t<A, B>>;
            else if constexpr (is_complex<A>)
                return dtype_of<std::complex<std::common_type_t<typename A::value_type, B>>>;
            else
                return dtype_of<std::complex<std::common_type_t<A, typename B::value_type>>>;
        });
    });
}

bool convertible(dtype from, dtype to) {
    return visit_dtype(from, [&]<class From>(std::type_identity<From>) {
        return visit_dtype(to, []<class To>(std::type_identity<To>) { return can_convert<From, To>; });
    });
}

std::optional<not_convertible> convert(dtype from_type, const void* from, dtype to_type, void* to, std::size_t n) {
    return visit_dtype(from_type, [&]<class From>(std::type_identity<From>) {
        return visit_dtype(to_type, [&]<class To>(std::type_identity<To>) -> std::optional<not_convertible> {
            if constexpr (can_convert<From, To>)
                return convert_all(static_cast<const From*>(from), static_cast<To*>(to), n);
            else
                reject("convert", "complex numbers do not convert to real ones");
        });
    });
}

std::optional<std::size_t> first_difference(dtype type, const void* a, const void* b, std::size_t n) {
    return visit_dtype(type, [&]<class T>(std::type_identity<T>) -> std::optional<std::size_t> {
        const T* const x = static_cast<const T*>(a);
        const T* const y = static_cast<const T*>(b);
        constexpr std::size_t piece = 4096; // the usual case, equal bytes, goes by memcmp
        for (std::size_t first = 0; first < n; first += piece) {
            const std::size_t last = std::min(n, first + piece);
            if (std::memcmp(x + first, y + first, (last - first) * sizeof(T)) == 0) continue;
            for (std::size_t i = first; i < last; ++i)
                if (!same_bits(x[i], y[i])) return i;
        }
        return std::nullopt;
    });
}

} // namespace polyscan::tool
