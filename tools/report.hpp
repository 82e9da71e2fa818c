// SPDX-License-Identifier: Apache-2.0
/// What a comparison looks like: a table for people, JSON for programs.
#pragma once

#include "comparison.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace polyscan::tool {

/// A table of at most 100 columns, with a heading.
std::string as_table(const comparison_job& job, const comparison& result);

/// The rows of the JSON record; docs/results keeps such records.
nlohmann::ordered_json as_json(const comparison_job& job, const comparison& result);

} // namespace polyscan::tool
