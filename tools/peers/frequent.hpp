// SPDX-License-Identifier: Apache-2.0
/// What peers are compiled for: sums and maxima of the four frequent types. A template of another library for every
/// type and operator would take longer to compile than the backend that it is compared with.
#pragma once

#include <polyscan/any_backend.hpp>
#include <polyscan/operators.hpp>

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace polyscan::tool {

inline constexpr const char* outside_frequent =
    "compiled for plus and maximum of int32, int64, float32 and float64 only";

/// Calls `visit(std::type_identity<T>{}, Operator{})`; false where the call's type or operator is not among them.
template <class Visitor>
bool visit_frequent(const scan_call& call, Visitor&& visit) {
    const auto with_type = [&]<class T>(std::type_identity<T> type) {
        if (call.op == "plus") return visit(type, plus{}), true;
        if (call.op == "maximum") return visit(type, maximum{}), true;
        return false;
    };
    switch (call.type) {
    case dtype::int32: return with_type(std::type_identity<std::int32_t>{});
    case dtype::int64: return with_type(std::type_identity<std::int64_t>{});
    case dtype::float32: return with_type(std::type_identity<float>{});
    case dtype::float64: return with_type(std::type_identity<double>{});
    default: return false;
    }
}

inline bool is_frequent(const scan_call& call) {
    return visit_frequent(call, [](auto, auto) {});
}

} // namespace polyscan::tool
