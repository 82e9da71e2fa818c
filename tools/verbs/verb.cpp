// SPDX-License-Identifier: Apache-2.0
#include "verbs/verb.hpp"

#include "names.hpp"
#include "program.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace polyscan::tool {

namespace {
struct registration {
    std::string backend;
    verb_runner_factory make;
};
std::vector<registration>& registrations() {
    static std::vector<registration> all;
    return all;
}
} // namespace

const std::vector<std::string>& verb_names() {
    static const std::vector<std::string> names{"reduce",        "copy_if",    "segmented_scan", "scan_by_key",
                                                "reduce_by_key", "radix_sort", "histogram"};
    return names;
}

verb parse_verb(std::string_view argument, std::string_view text) {
    const auto found = std::find(verb_names().begin(), verb_names().end(), text);
    if (found == verb_names().end())
        throw usage_error(argument, fmt::format("unknown verb '{}' (known: scan, {})", text, list_of(verb_names())));
    return static_cast<verb>(found - verb_names().begin());
}

bool register_verb_runner(std::string_view backend, verb_runner_factory make) {
    registrations().push_back({std::string(backend), std::move(make)});
    return true;
}

std::vector<std::unique_ptr<verb_runner>> make_verb_runners(std::string_view backend, int threads) {
    std::vector<std::unique_ptr<verb_runner>> runners;
    for (const registration& each : registrations())
        if (each.backend == backend) runners.push_back(each.make(threads));
    std::sort(runners.begin(), runners.end(), [](const auto& a, const auto& b) {
        const auto key = [](const verb_runner& r) { return std::pair(!(r.name() == "std sequential"), r.name()); };
        return key(*a) < key(*b);
    });
    return runners;
}

} // namespace polyscan::tool
