// SPDX-License-Identifier: Apache-2.0
/// For tests that mean nothing without a device: they are skipped, say so, and are counted.
#pragma once

#include <string>

#include <doctest/doctest.h>

#include <polyscan/cuda/backend.hpp>

#include "closing_line.hpp"

namespace polyscan::test {

inline int skipped_tests = 0;

inline bool no_device() {
    const availability here = cuda::backend().available();
    if (!here) {
        ++skipped_tests;
        MESSAGE("skipped: ", here.reason);
    }
    return !here;
}

/// Closes with the number of tests, skipped ones apart. `Title` is an object with linkage.
template <const char* Title>
class tests_line final : public closing_line {
    using closing_line::closing_line;
    std::string text(const doctest::TestRunStats& stats) const override {
        const int failed = static_cast<int>(stats.numTestCasesFailed);
        const int run = static_cast<int>(stats.numTestCasesPassingFilters);
        return std::string(Title) + ": " + std::to_string(run - failed - skipped_tests) + " tests passed, " +
               std::to_string(failed) + " failed, " + std::to_string(skipped_tests) + " skipped";
    }
};

} // namespace polyscan::test

#define NEEDS_DEVICE()                                                                                                 \
    if (polyscan::test::no_device()) return
