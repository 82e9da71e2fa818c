// SPDX-License-Identifier: Apache-2.0
/// What a record of a run says about where it was made.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <string>

namespace polyscan::tool {

std::string program_version();
std::string compiler();

/// Processor, number of processors, memory, operating system.
nlohmann::ordered_json machine_facts();
/// Every compiled-in backend: name, available, reason, description, threads.
nlohmann::ordered_json backend_facts();

/// Microseconds that an empty parallel region over all processors takes, the median of many; nothing without OpenMP.
/// On some virtual machines it tells apart states in which memory has another speed, so a record of times needs it.
std::optional<double> parallel_region_us();

/// Bytes of memory in this machine.
std::uint64_t physical_memory();

} // namespace polyscan::tool
