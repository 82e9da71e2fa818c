// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <polyscan/kokkos.hpp>

#include "kokkos/running.hpp"

namespace polyscan::test {

/// What devices run, on one thread: every wait must be over before it begins.
struct backend_under_test {
    using space = Kokkos::Serial;
    using type = kokkos::backend<space, kokkos::form::team>;
    static constexpr bool host = true;
    /// One team of one, always.
    static std::vector<int> concurrencies() { return {1}; }
    static type make(int) {
        start_kokkos();
        return type();
    }
};

} // namespace polyscan::test
