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

/// "-" is standard output; a file appears whole or not at all. Throws bad_input.
void write_text(const std::string& path, const std::string& text);
/// Throws bad_input if write_text could not succeed: better before a long run than after it.
void require_writable(const std::string& path);

} // namespace polyscan::tool
