// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include <polyscan/adapted_backend.hpp>
#include <polyscan/openmp/backend.hpp>

namespace polyscan::openmp {

/// Every policy sums elements of every type; else as on the other backends. All of it would take four minutes to
/// compile.
struct compiled_set {
    template <class T, class Operator, class Policy>
    static constexpr bool contains = std::is_same_v<Operator, plus> || frequent_set::contains<T, Operator, Policy>;
};

using registry_backend = backend;

} // namespace polyscan::openmp
