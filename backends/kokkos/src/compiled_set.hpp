// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include <polyscan/adapted_backend.hpp>
#include <polyscan/kokkos/backend.hpp>

namespace polyscan::kokkos {

/// The frequent set, and of the default policy the operators that people ask for: on a host its kernels are those of
/// the OpenMP backend, which has all of them.
struct compiled_set {
    template <class T, class Operator, class Policy>
    static constexpr bool contains =
        frequent_set::contains<T, Operator, Policy> &&
        (std::is_same_v<Operator, plus> || std::is_same_v<Operator, minimum> || std::is_same_v<Operator, maximum>);
};

using registry_backend = backend<>;

} // namespace polyscan::kokkos
