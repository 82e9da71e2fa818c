// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include <polyscan/adapted_backend.hpp>
#include <polyscan/cuda/backend.hpp>

namespace polyscan::cuda {

/// The frequent set but for complex numbers: each combination is a kernel, or several.
struct compiled_set {
    template <class T, class Operator, class Policy>
    static constexpr bool contains = std::is_arithmetic_v<T> && frequent_set::contains<T, Operator, Policy>;
};

using registry_backend = backend;

} // namespace polyscan::cuda
