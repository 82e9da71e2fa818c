// SPDX-License-Identifier: Apache-2.0
/// The reference backend as the tests see a backend; backend_openmp.hpp and its like have the same shape.
#pragma once

#include <vector>

#include "reference_backend.hpp"

namespace polyscan::test {

struct backend_under_test {
    using type = reference_backend;
    /// The host can follow its pointers, and operators run on the host.
    static constexpr bool host = true;
    /// Numbers of workers to try, the ordinary one first.
    static std::vector<int> concurrencies() { return {1}; }
    static type make(int) { return {}; }
};

} // namespace polyscan::test
