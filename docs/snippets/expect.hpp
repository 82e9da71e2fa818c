// SPDX-License-Identifier: Apache-2.0
/// What a snippet says about its own output: a program that finds something else says so and exits with 1.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <ranges>

namespace snippet {

inline void expect(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "the page says otherwise: %s\n", what);
    std::exit(1);
}

template <std::ranges::range Found>
void expect(const Found& found, std::initializer_list<std::ranges::range_value_t<Found>> values, const char* what) {
    expect(std::ranges::equal(found, values), what);
}

} // namespace snippet
