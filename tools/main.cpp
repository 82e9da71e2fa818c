// SPDX-License-Identifier: Apache-2.0
// polyscan: scans array files, and compares backends and policies. Exit codes: program.hpp.
#include "machine.hpp"
#include "program.hpp"

#include <polyscan/error.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <new>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace {

using polyscan::tool::exit_code;

// One line, whatever the message holds. Where it cannot be written, the exit code has to do.
exit_code fail(exit_code code, std::string message) {
    std::replace(message.begin(), message.end(), '\n', ' ');
    while (!message.empty() && message.back() == ' ') message.pop_back();
    std::fputs(fmt::format("polyscan: {}\n", message).c_str(), stderr);
    return code;
}

// The first files that are opened must not take the numbers of standard streams that are closed: what is printed would
// go there. (Nobody can write to what stands in for the outputs, nor read what stands in for the input.)
void occupy_standard_streams() {
    for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number)
        if (::fcntl(number, F_GETFD) < 0 && errno == EBADF)
            static_cast<void>(::open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY));
}

// An empty value, of a variable that is not set, is not an option left out.
void refuse_empty_values(CLI::App& program) {
    for (CLI::App* command : program.get_subcommands({}))
        for (CLI::Option* option : command->get_options())
            if (option->get_items_expected_max() > 0)
                option->check(
                    [](const std::string& value) { return value.empty() ? "must not be empty" : std::string(); });
}

exit_code run(int argc, char** argv) {
    CLI::App program("Parallel scans (prefix sums) of array files, and a comparison of the ways to compute them.",
                     "polyscan");
    program.set_version_flag("--version", polyscan::tool::program_version());
    program.require_subcommand(1);
    program.footer("Exit codes: 0 good, 1 a mismatch was found, 2 bad input, argument or file, 3 a backend failed.\n"
                   "'polyscan COMMAND --help' explains a command.\n\n"
                   "Example:\n  polyscan compare --input samples.npy");
    exit_code result = exit_code::good;
    polyscan::tool::add_compare_command(program, result);
    polyscan::tool::add_scan_command(program, result);
    polyscan::tool::add_verify_command(program, result);
    polyscan::tool::add_info_command(program, result);
    polyscan::tool::add_completion_command(program);
    polyscan::tool::add_man_command(program);
    refuse_empty_values(program);
    try {
        program.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) {
            program.exit(error); // --help and --version
            return exit_code::good;
        }
        const std::string first = argc > 1 ? argv[1] : "";
        if (program.get_subcommands().empty() && !first.empty() && !first.starts_with('-'))
            return fail(exit_code::bad_input,
                        fmt::format("unknown command '{}' ('polyscan --help' lists them)", first));
        return fail(exit_code::bad_input, error.what());
    }
    return result;
}

} // namespace

int main(int argc, char** argv) {
    occupy_standard_streams();
    exit_code code = exit_code::good;
    try {
        code = run(argc, argv);
    } catch (const polyscan::backend_error& error) {
        code = fail(exit_code::backend_failed, error.what());
    } catch (const polyscan::tool::failed_run& error) {
        code = fail(exit_code::backend_failed, error.what());
    } catch (const std::bad_alloc&) {
        code = fail(exit_code::bad_input, "not enough memory for data of this size");
    } catch (const std::system_error& error) {
        if (std::ferror(stdout) == 0) code = fail(exit_code::bad_input, error.what()); // else: below
    } catch (const std::exception& error) {
        code = fail(exit_code::bad_input, error.what());
    }
    // An earlier flush may have failed, and dropped what it could not write.
    if ((std::fflush(stdout) != 0 || std::ferror(stdout) != 0) && code == exit_code::good)
        code = fail(exit_code::bad_input, "standard output cannot be written");
    return static_cast<int>(code);
}
