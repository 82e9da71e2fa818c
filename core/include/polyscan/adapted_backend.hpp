// SPDX-License-Identifier: Apache-2.0
/// From names to types: the part of `any_backend` that is the same for every backend. A backend's registration source
/// derives from `adapted_backend`; other translation units instantiate `scan_elements<Backend, T, Set>` for each
/// element type (scan_elements.hpp), because that is what takes long to compile.
///
/// `Set` says what the backend was compiled for:
///     struct compiled_set { template <class T, class Operator, class Policy> static constexpr bool contains = ...; };
/// Policies that the backend lacks (`supports<Policy>` is false) are left out, whatever the set says.
#pragma once

#include <optional>
#include <string>
#include <type_traits>

#include <polyscan/any_backend.hpp>
#include <polyscan/operators.hpp>

namespace polyscan {

namespace detail {

/// Calls visit(Operator{}) for the operator of that name, if elements of type T are computed with it: signed integers
/// are for minimum and maximum only (see computed_as).
template <class T, class Visitor>
void visit_operator(std::string_view name, Visitor&& visit) {
    if constexpr (std::is_arithmetic_v<T>) {
        if (name == "minimum") visit(minimum{});
        if (name == "maximum") visit(maximum{});
    }
    if constexpr (!std::is_integral_v<T> || std::is_unsigned_v<T>) {
        if (name == "plus") visit(plus{});
        if (name == "multiplies") visit(multiplies{});
    }
    if constexpr (std::is_unsigned_v<T>) {
        if (name == "bit_and") visit(bit_and{});
        if (name == "bit_or") visit(bit_or{});
        if (name == "bit_xor") visit(bit_xor{});
    }
}

/// Wrapping and bitwise operations do not see the sign: signed integers share the code of unsigned ones.
inline dtype computed_as(dtype type, std::string_view op) {
    if (op == "minimum" || op == "maximum") return type;
    switch (type) {
    case dtype::int8: return dtype::uint8;
    case dtype::int16: return dtype::uint16;
    case dtype::int32: return dtype::uint32;
    case dtype::int64: return dtype::uint64;
    default: return type;
    }
}

} // namespace detail

/// Runs a call whose names have been checked, with elements of type T. Defined in scan_elements.hpp.
template <class Backend, class T, class Set>
void scan_elements(Backend& backend, const scan_call& call);

/// A set for backends on which each combination takes a second to compile: the default policy with everything; every
/// policy with sums and maxima of 4- and 8-byte numbers. The others are for programs of one's own, with the verbs.
struct frequent_set {
    template <class T>
    static constexpr bool word = std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8);

    // Sums of signed integers run as sums of unsigned ones (computed_as).
    template <class T, class Operator, class Policy>
    static constexpr bool contains =
        std::is_same_v<Policy, default_policy> || (word<T> && std::is_same_v<Operator, plus>) ||
        (word<T> && std::is_same_v<Operator, maximum> && std::is_signed_v<T>);
};

/// any_backend over a typed backend.
template <class Backend, class Set>
class adapted_backend : public any_backend {
public:
    explicit adapted_backend(Backend backend) : backend_(std::move(backend)) {}

    std::string_view name() const override { return Backend::name(); }
    polyscan::availability available() const override { return backend_.available(); }
    void synchronize() override { backend_.synchronize(); }

    std::optional<std::string> unsupported(const scan_call& call) const override {
        if (!operator_accepts(call.op, call.type))
            return "operator '" + call.op + "' is not defined for " + std::string(polyscan::name(call.type));
        bool known = false, contained = false;
        visit_dtype(detail::computed_as(call.type, call.op), [&]<class T>(std::type_identity<T>) {
            detail::visit_operator<T>(call.op, [&]<class Operator>(Operator) {
                known = visit_policy(call.policy, [&]<class Policy>(Policy) {
                    contained = Backend::template supports<Policy> && Set::template contains<T, Operator, Policy>;
                });
            });
        });
        if (!known) return "there is no policy '" + call.policy + "'";
        if (!contained)
            return call.op + " of " + std::string(polyscan::name(call.type)) + " under " + call.policy +
                   " is not in the set that this backend was compiled for";
        return std::nullopt;
    }

    void scan(const scan_call& call) override {
        if (const auto reason = unsupported(call)) reject("call", *reason);
        visit_dtype(detail::computed_as(call.type, call.op),
                    [&]<class T>(std::type_identity<T>) { scan_elements<Backend, T, Set>(backend_, call); });
    }

protected:
    Backend backend_;
};

} // namespace polyscan
