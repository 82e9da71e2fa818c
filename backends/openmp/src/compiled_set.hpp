// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <polyscan/adapted_backend.hpp>
#include <polyscan/openmp.hpp>

namespace polyscan::openmp {

/// Everything: all element types, all operators that they have, all policies.
struct compiled_set {
    template <class T, class Operator, class Policy>
    static constexpr bool contains = true;
};

} // namespace polyscan::openmp
