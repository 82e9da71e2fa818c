// SPDX-License-Identifier: Apache-2.0
/// Options that several commands have: the same name, the same words, the same limits.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace polyscan::tool {

inline CLI::Option* add_input_option(CLI::App& command, std::string& input) {
    return command
        .add_option("--input", input, "The array: a .npy file, or raw elements with --dtype; - is standard input")
        ->type_name("FILE");
}

inline void add_backends_option(CLI::App& command, std::vector<std::string>& backends) {
    command.add_option("--backends", backends, "Comma-separated; without it all that were compiled in")
        ->delimiter(',')
        ->type_name("LIST");
}

inline void add_policies_option(CLI::App& command, std::vector<std::string>& policies) {
    command.add_option("--policies", policies, "Comma-separated, grid/block or short names; without it all 20")
        ->delimiter(',')
        ->type_name("LIST");
}

inline void add_op_option(CLI::App& command, std::string& op) {
    command.add_option("--op", op, "plus, multiplies, minimum, maximum, bit_and, bit_or or bit_xor")
        ->type_name("NAME")
        ->capture_default_str();
}

inline void add_kind_option(CLI::App& command, std::string& kind) {
    command.add_option("--kind", kind, "inclusive or exclusive")->type_name("KIND")->capture_default_str();
}

/// `whose` are meant: "a CPU backend".
inline void add_threads_option(CLI::App& command, int& threads, const std::string& whose) {
    constexpr int most = 4096; // more than any machine has: a slip of the finger
    command.add_option("--threads", threads, "Threads of " + whose + "; 0: one per processor")
        ->type_name("N")
        ->check(CLI::Range(0, most).description(""))
        ->capture_default_str();
}

} // namespace polyscan::tool
