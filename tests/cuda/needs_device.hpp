// SPDX-License-Identifier: Apache-2.0
/// For tests that mean nothing without a device: they are skipped, say so, and are counted.
#pragma once

#include <doctest/doctest.h>

#include <polyscan/cuda/backend.hpp>

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

} // namespace polyscan::test

#define NEEDS_DEVICE()                                                                                                 \
    if (polyscan::test::no_device()) return
