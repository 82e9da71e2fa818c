// SPDX-License-Identifier: Apache-2.0
/// Element types by name (NumPy's names), for the run-time face and the program.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include <polyscan/error.hpp>
#include <polyscan/policy.hpp>

namespace polyscan {

/// Element types that go by name.
enum class dtype { int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, float64, complex64, complex128 };

/// In the order of the enumeration.
using dtype_list = type_list<std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t,
                             std::uint32_t, std::uint64_t, float, double, std::complex<float>, std::complex<double>>;

namespace detail {
template <class T, class... Types>
constexpr int position_in(type_list<Types...>) {
    int position = 0;
    const bool found = ((std::is_same_v<T, Types> || (++position, false)) || ...);
    return found ? position : -1;
}
} // namespace detail

/// T is one of them.
template <class T>
inline constexpr bool has_dtype = detail::position_in<T>(dtype_list{}) >= 0;

/// The dtype of T.
template <class T>
    requires has_dtype<T>
inline constexpr dtype dtype_of = static_cast<dtype>(detail::position_in<T>(dtype_list{}));

/// "int8", "float64", "complex64", ...
std::string_view name(dtype type);
/// The other way round; nothing for a name that is none.
std::optional<dtype> dtype_from_name(std::string_view name);
/// Bytes of one element.
std::size_t size_of(dtype type);

/// Calls `visit(std::type_identity<T>{})` with the C++ type of `type`; returns what it returns.
template <class Visitor>
decltype(auto) visit_dtype(dtype type, Visitor&& visit) {
    switch (type) {
    case dtype::int8: return visit(std::type_identity<std::int8_t>{});
    case dtype::int16: return visit(std::type_identity<std::int16_t>{});
    case dtype::int32: return visit(std::type_identity<std::int32_t>{});
    case dtype::int64: return visit(std::type_identity<std::int64_t>{});
    case dtype::uint8: return visit(std::type_identity<std::uint8_t>{});
    case dtype::uint16: return visit(std::type_identity<std::uint16_t>{});
    case dtype::uint32: return visit(std::type_identity<std::uint32_t>{});
    case dtype::uint64: return visit(std::type_identity<std::uint64_t>{});
    case dtype::float32: return visit(std::type_identity<float>{});
    case dtype::float64: return visit(std::type_identity<double>{});
    case dtype::complex64: return visit(std::type_identity<std::complex<float>>{});
    case dtype::complex128: return visit(std::type_identity<std::complex<double>>{});
    }
    reject("dtype", "must be one of the enumerators");
}

} // namespace polyscan
