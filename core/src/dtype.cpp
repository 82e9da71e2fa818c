// SPDX-License-Identifier: Apache-2.0
#include <polyscan/dtype.hpp>

#include <array>

namespace polyscan {

namespace {
constexpr std::array<std::string_view, 12> names{"int8",   "int16",  "int32",   "int64",   "uint8",     "uint16",
                                                 "uint32", "uint64", "float32", "float64", "complex64", "complex128"};
} // namespace

std::string_view name(dtype type) { return names.at(static_cast<std::size_t>(type)); }

std::optional<dtype> dtype_from_name(std::string_view name) {
    for (std::size_t i = 0; i < names.size(); ++i)
        if (names[i] == name) return static_cast<dtype>(i);
    return std::nullopt;
}

std::size_t size_of(dtype type) {
    return visit_dtype(type, []<class T>(std::type_identity<T>) { return sizeof(T); });
}

} // namespace polyscan
