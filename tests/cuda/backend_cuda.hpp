// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <polyscan/cuda.hpp>

namespace polyscan::test {

struct backend_under_test {
    using type = cuda::backend;
    static constexpr bool host = false;
    /// Blocks of a launch: as many as the device holds, and few, down to the one that must be enough.
    static std::vector<int> concurrencies() { return {0, 1, 2, 3, 5, 31}; }
    static type make(int blocks) {
        type result;
        result.hooks().most_blocks = blocks;
        return result;
    }
};

} // namespace polyscan::test
