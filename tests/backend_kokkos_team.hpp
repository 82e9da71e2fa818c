// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <polyscan/kokkos.hpp>

#include "kokkos/running.hpp"

namespace polyscan::test {

/// What devices run, on the host.
struct backend_under_test {
    using space = Kokkos::DefaultHostExecutionSpace;
    using type = kokkos::backend<space, kokkos::form::team>;
    static constexpr bool host = true;
    /// Two teams of one; one team; one team of three; four teams of two.
    static std::vector<int> concurrencies() { return {2, 1, 3, kokkos_threads}; }
    static type make(int threads) {
        kokkos::options with;
        with.team_size = threads == 3 ? 3 : threads == kokkos_threads ? 2 : 1;
        return type(instance_of<space>(threads), with);
    }
};

} // namespace polyscan::test
