// SPDX-License-Identifier: Apache-2.0
// polyscan completion, polyscan man: made from the same text as --help.
#include "machine.hpp"
#include "names.hpp"
#include "program.hpp"

#include <polyscan/registry.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

namespace polyscan::tool {

namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& program) {
    return program.get_subcommands([](const CLI::App*) { return true; });
}

std::string option_names(const CLI::App& command) {
    std::string names;
    for (const CLI::Option* option : command.get_options())
        names += fmt::format("{}--{}", names.empty() ? "" : " ", option->get_lnames().front());
    return names;
}

void print_bash(const CLI::App& program) {
    std::vector<std::string> dtypes;
    for (int i = 0; i <= static_cast<int>(dtype::complex128); ++i) dtypes.emplace_back(name(static_cast<dtype>(i)));
    std::string names;
    std::string cases;
    for (const CLI::App* command : commands_of(program)) {
        names += fmt::format("{}{}", names.empty() ? "" : " ", command->get_name());
        cases += fmt::format("    {}) words=\"{}\" ;;\n", command->get_name(), option_names(*command));
    }
    fmt::print(R"(# bash completion for polyscan: source this, or install it as bash-completion/completions/polyscan
_polyscan() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} words=""
    case $previous in
    --input|--output|--json) COMPREPLY=($(compgen -f -- "$current")); return ;;
    --op) words="{}" ;;
    --kind) words="inclusive exclusive" ;;
    --policy|--policies) words="default {}" ;;
    --backend|--backends) words="{}" ;;
    --dtype|--accumulate|--output-dtype) words="{}" ;;
    --output-format) words="npy raw" ;;
    *) if [ "$COMP_CWORD" = 1 ]; then words="{} --help --version"; else case ${{COMP_WORDS[1]}} in
{}    esac; fi ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o filenames -F _polyscan polyscan
)",
               fmt::join(operator_names(), " "), fmt::join(all_policies(), " "), fmt::join(registered_backends(), " "),
               fmt::join(dtypes, " "), names, cases);
}

// Text for troff: no accidental requests, and hyphens that can be searched for.
std::string troff(std::string_view text) {
    std::string result;
    bool at_start = true;
    for (const char c : text) {
        if (at_start && (c == '.' || c == '\'')) result += "\\&";
        if (c == '\\' || c == '-') result += '\\';
        result += c == '\\' ? 'e' : c;
        at_start = c == '\n';
    }
    return result;
}

void print_options(const CLI::App& command) {
    for (const CLI::Option* option : command.get_options()) {
        std::string head = fmt::format("\\fB{}\\fR", troff("--" + option->get_lnames().front()));
        if (option->get_type_size() > 0) head += fmt::format(" \\fI{}\\fR", troff(option->get_type_name()));
        std::string text = option->get_description();
        if (!option->get_default_str().empty()) text += fmt::format(" (default: {})", option->get_default_str());
        fmt::print(".TP\n{}\n{}\n", head, troff(text));
    }
}

void print_man(const CLI::App& program) {
    fmt::print(".TH POLYSCAN 1 \"\" \"polyscan {0}\" \"User Commands\"\n.SH NAME\npolyscan \\- {1}\n"
               ".SH SYNOPSIS\n\\fBpolyscan\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n.SH DESCRIPTION\n{1}\n.SH COMMANDS\n",
               program_version(), troff(program.get_description()));
    for (const CLI::App* command : commands_of(program)) {
        fmt::print(".SS \"polyscan {}\"\n{}\n", troff(command->get_name()), troff(command->get_description()));
        print_options(*command);
        if (!command->get_footer().empty()) fmt::print(".PP\n.nf\n{}\n.fi\n", troff(command->get_footer()));
    }
    fmt::print(".SH NOTES\n.nf\n{}\n.fi\n", troff(program.get_footer()));
}

} // namespace

void add_completion_command(CLI::App& program) {
    CLI::App* command = program.add_subcommand("completion", "Print a completion script for a shell");
    auto shell = std::make_shared<std::string>("bash");
    command->add_option("--shell", *shell, "bash")
        ->type_name("NAME")
        ->check(CLI::IsMember({"bash"}))
        ->capture_default_str();
    command->footer("Example:\n  source <(polyscan completion)");
    command->callback([&program, shell] { print_bash(program); });
}

void add_man_command(CLI::App& program) {
    CLI::App* command = program.add_subcommand("man", "Print the manual page");
    command->footer("Example:\n  polyscan man > polyscan.1 && man ./polyscan.1");
    command->callback([&program] { print_man(program); });
}

} // namespace polyscan::tool
