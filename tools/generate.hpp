// SPDX-License-Identifier: Apache-2.0
/// Input for runs without a file.
#pragma once

#include "elements.hpp"

#include <cstdint>
#include <string_view>

namespace polyscan::tool {

/// Fills n elements with values like those that are scanned in practice, so that results neither overflow nor freeze:
/// counts and measurements for plus, factors near 1 for multiplies, a slow climb among noise for minimum and maximum,
/// flags for the bitwise operators. The same seed gives the same elements on every machine.
void generate(std::string_view op, dtype type, std::uint64_t seed, void* data, std::size_t n);

} // namespace polyscan::tool
