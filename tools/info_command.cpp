// SPDX-License-Identifier: Apache-2.0
// polyscan info: what this program was built with and what it can use here.
#include "machine.hpp"
#include "names.hpp"
#include "program.hpp"

#include <polyscan/registry.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <memory>

namespace polyscan::tool {

namespace {

std::vector<std::string> policy_aliases() {
    std::vector<std::string> lines;
    for (const std::string_view alias : {"default", "kogge_stone", "brent_kung", "coarse", "warp_shuffle", "three_pass",
                                         "domino", "look_back", "prefix_server"})
        lines.push_back(fmt::format("{:<14} {}", alias, canonical_policy_name(alias).value_or("")));
    return lines;
}

std::vector<std::string> dtype_names() {
    std::vector<std::string> names;
    for (int i = 0; i <= static_cast<int>(dtype::complex128); ++i) names.emplace_back(name(static_cast<dtype>(i)));
    return names;
}

nlohmann::ordered_json as_json() {
    nlohmann::ordered_json info;
    info["version"] = program_version();
    info["compiler"] = compiler();
    info["machine"] = machine_facts();
    info["backends"] = backend_facts();
    info["policies"] = all_policies();
    info["operators"] = operator_names();
    info["dtypes"] = dtype_names();
    return info;
}

void print_text() {
    fmt::print("polyscan {}, built with {}\n\nBackends\n", program_version(), compiler());
    const auto backends = backend_facts();
    if (backends.empty()) fmt::print("  none was compiled in\n");
    for (const auto& backend : backends) {
        const bool available = backend.at("available").get<bool>();
        const auto text = backend.at(available ? "description" : "reason").get<std::string>();
        fmt::print("  {:<10} {:<13} {}\n", backend.at("name").get<std::string>(),
                   available ? "available" : "not available", text);
    }
    fmt::print("\nPolicies (grid/block)\n");
    std::string grid;
    for (const std::string& policy : all_policies()) {
        const std::string this_grid = policy.substr(0, policy.find('/'));
        if (this_grid != grid)
            fmt::print("{}  ", grid.empty() ? "" : "\n");
        else
            fmt::print("  ");
        fmt::print("{}", policy);
        grid = this_grid;
    }
    fmt::print("\n\nShort names\n");
    for (const std::string& line : policy_aliases()) fmt::print("  {}\n", line);
    const auto& operators = operator_names();
    fmt::print("\nOperators  {}\nDtypes     {}\n", list_of({operators.begin(), operators.end()}),
               list_of(dtype_names()));
}

} // namespace

void add_info_command(CLI::App& program, exit_code& result) {
    CLI::App* command = program.add_subcommand("info", "Show version, backends, policies, operators and element types");
    auto json = std::make_shared<bool>(false);
    command->add_flag("--json", *json, "Print JSON");
    command->footer("Example:\n  polyscan info --json");
    command->callback([json, &result] {
        if (*json)
            fmt::print("{}\n", as_json().dump(2));
        else
            print_text();
        result = exit_code::good;
    });
}

} // namespace polyscan::tool
