// SPDX-License-Identifier: Apache-2.0
/// Under a sanitizer everything takes ten times as long, and a hand-over that is wrong is reported at the first one.
#pragma once

#include <cstdlib>

namespace polyscan::test {

/// Whether POLYSCAN_TEST_REDUCED asks for fewer rounds of the same.
inline bool reduced() {
    static const bool asked = std::getenv("POLYSCAN_TEST_REDUCED") != nullptr;
    return asked;
}

/// `full` rounds, or a part of them.
template <class Number>
Number rounds(Number full, Number part) {
    return reduced() ? part : full;
}

} // namespace polyscan::test
