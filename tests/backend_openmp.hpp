// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <polyscan/openmp.hpp>

namespace polyscan::test {

struct backend_under_test {
    using type = openmp::backend;
    static constexpr bool host = true;
    /// Two is what the machine has at least; one, three (odd) and eight (over-subscribed) must give the same bits.
    static std::vector<int> concurrencies() { return {2, 1, 3, 8}; }
    /// Every length in parallel: the tests' arrays are far below what is worth a team.
    static type make(int threads) { return type(openmp::options{threads, 0}); }
};

} // namespace polyscan::test
