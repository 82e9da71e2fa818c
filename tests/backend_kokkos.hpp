// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <polyscan/kokkos.hpp>

#include "kokkos/running.hpp"

namespace polyscan::test {

/// On the default host space, as most users will have it.
struct backend_under_test {
    using space = Kokkos::DefaultHostExecutionSpace;
    using type = kokkos::backend<space>;
    static constexpr bool host = true;
    static std::vector<int> concurrencies() { return {2, 1, 3, kokkos_threads}; }
    /// Every length in parallel: the tests' arrays are far below what is worth waking threads.
    static type make(int threads) {
        kokkos::options with;
        with.parallel_bytes = 0;
        return type(instance_of<space>(threads), with);
    }
};

} // namespace polyscan::test
