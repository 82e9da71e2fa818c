// SPDX-License-Identifier: Apache-2.0
/// From the name of an operator and an element type to C++ types.
#pragma once

#include <polyscan/any_backend.hpp>
#include <polyscan/operators.hpp>

#include <string_view>
#include <type_traits>
#include <utility>

namespace polyscan::tool {

namespace detail {
template <class T, class Visitor>
bool visit_operator(std::string_view op, Visitor&& visit) {
    const std::type_identity<T> type;
    if (op == "plus") return visit(type, plus{}), true;
    if (op == "multiplies") return visit(type, multiplies{}), true;
    if constexpr (std::is_arithmetic_v<T>) {
        if (op == "minimum") return visit(type, minimum{}), true;
        if (op == "maximum") return visit(type, maximum{}), true;
    }
    if constexpr (std::is_integral_v<T>) {
        if (op == "bit_and") return visit(type, bit_and{}), true;
        if (op == "bit_or") return visit(type, bit_or{}), true;
        if (op == "bit_xor") return visit(type, bit_xor{}), true;
    }
    return false;
}
} // namespace detail

/// Calls `visit(std::type_identity<T>{}, Operator{})`. Throws std::invalid_argument where the operator is not defined
/// for the type.
template <class Visitor>
void visit_operation(std::string_view op, dtype type, Visitor&& visit) {
    visit_dtype(type, [&]<class T>(std::type_identity<T>) {
        if (!detail::visit_operator<T>(op, visit))
            reject("op", std::string(op) + " is not defined for " + std::string(name(type)));
    });
}

} // namespace polyscan::tool
