// SPDX-License-Identifier: Apache-2.0
/// What the commands of the program share: exit codes, and the error for arguments that break a rule.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace polyscan::tool {

enum class exit_code {
    good = 0,
    mismatch = 1,      ///< a result differs from the reference
    bad_input = 2,     ///< an argument or a file
    backend_failed = 3 ///< a backend's runtime reported an error
};

/// An argument that cannot be what it is. what() is one line, "ARGUMENT: RULE".
class usage_error : public std::runtime_error {
public:
    usage_error(std::string_view argument, std::string_view rule)
        : std::runtime_error(std::string(argument) + ": " + std::string(rule)) {}
};

/// A run that went to its end, but in which a backend's runtime reported an error.
class failed_run : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Each command adds its options to the program and, when it is called, sets `result`.
void add_info_command(CLI::App& program, exit_code& result);
void add_scan_command(CLI::App& program, exit_code& result);
void add_compare_command(CLI::App& program, exit_code& result);
void add_verify_command(CLI::App& program, exit_code& result);
void add_completion_command(CLI::App& program);
void add_man_command(CLI::App& program);

} // namespace polyscan::tool
