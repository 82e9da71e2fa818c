// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include <polyscan/adapted_backend.hpp>
#include <polyscan/cuda/backend.hpp>

namespace polyscan::cuda {

/// The default policy with every element type but complex numbers and every operator; every policy with the sum and the
/// maximum of 4- and 8-byte signed integers and floating-point numbers. Each combination is a kernel that takes a
/// second to compile; others are for programs of one's own, with the verbs.
struct compiled_set {
    template <class T, class Operator, class Policy>
    static constexpr bool contains = [] {
        if (!std::is_arithmetic_v<T>) return false;
        if (std::is_same_v<Policy, default_policy>) return true;
        const bool wide = sizeof(T) == 4 || sizeof(T) == 8;
        // Sums of signed integers run as sums of unsigned ones, so unsigned sums are there as well.
        if (std::is_same_v<Operator, plus>) return wide && (std::is_unsigned_v<T> || std::is_floating_point_v<T>);
        return std::is_same_v<Operator, maximum> && wide && std::is_signed_v<T>;
    }();
};

} // namespace polyscan::cuda
