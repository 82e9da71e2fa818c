// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <polyscan/adapted_backend.hpp>
#include <polyscan/kokkos.hpp>

namespace polyscan::kokkos {

/// The default policy for everything; every policy for sums and maxima of 4- and 8-byte elements. All of it would take
/// minutes to compile. Sums of signed integers run as unsigned ones.
struct compiled_set {
    template <class T>
    static constexpr bool word = std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8);
    template <class Operator>
    static constexpr bool frequent = std::is_same_v<Operator, plus> || std::is_same_v<Operator, maximum>;

    template <class T, class Operator, class Policy>
    static constexpr bool contains =
        std::is_same_v<Policy, default_policy> ||
        (word<T> && frequent<Operator> && !(std::is_unsigned_v<T> && std::is_same_v<Operator, maximum>));
};

using registry_backend = backend<>;

} // namespace polyscan::kokkos
