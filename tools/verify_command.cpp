// SPDX-License-Identifier: Apache-2.0
// polyscan verify: the test matrix in small, on the user's own machine and backends.
#include "elements.hpp"
#include "generate.hpp"
#include "names.hpp"
#include "options.hpp"
#include "oracle.hpp"
#include "program.hpp"
#include "progress.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <memory>

namespace polyscan::tool {

namespace {

// Nothing, one, two; a row of 128 less one; around the tiles of 1024, 2048, 4096 and 8192 elements; several tiles and a
// part.
constexpr std::array<std::size_t, 16> sizes{0,    1,    2,    127,  1023, 1024, 1025, 2047,
                                            2049, 4095, 4096, 4097, 8191, 8192, 8193, 33000};
constexpr std::size_t largest = sizes.back();

struct verify_options {
    std::vector<std::string> backends;
    std::vector<std::string> policies;
    int threads = 0;
};

struct tally {
    int passed = 0;
    int failed = 0;
    int unsupported = 0;
};

// What is scanned, and by what: everything but policy, backend and size.
struct cell {
    dtype type;
    std::string op;
    scan_kind kind;
    std::optional<scalar> init;
};

std::vector<cell> all_cells() {
    std::vector<cell> cells;
    for (int t = 0; t <= static_cast<int>(dtype::complex128); ++t) {
        const auto type = static_cast<dtype>(t);
        for (const std::string_view op : operator_names()) {
            if (!operator_accepts(op, type)) continue;
            cells.push_back({type, std::string(op), scan_kind::inclusive, std::nullopt});
            cells.push_back({type, std::string(op), scan_kind::inclusive, parse_scalar("init", "3", type)});
            cells.push_back({type, std::string(op), scan_kind::exclusive, parse_scalar("init", "3", type)});
        }
    }
    return cells;
}

class verification {
public:
    explicit verification(const verify_options& given)
        : backends_(choose_backends("--backends", given.backends, given.threads)),
          policies_(parse_policies("--policies", given.policies)) {}

    exit_code run() {
        const std::vector<cell> cells = all_cells();
        std::size_t done = 0;
        for (const cell& what : cells) {
            progress_.show("verifying", static_cast<double>(done++) / static_cast<double>(cells.size()));
            run_cell(what);
        }
        progress_.clear();
        print_table();
        return failures_.empty() ? exit_code::good : exit_code::mismatch;
    }

private:
    void run_cell(const cell& what) {
        const std::size_t width = size_of(what.type);
        buffer input(largest * width);
        generate(what.op, what.type, 7, input.data(), largest);
        std::map<std::string, buffer> expected; // an output depends on no later input, so one array serves every size
        for (const chosen_backend& place : backends_) {
            if (!place.backend) continue;
            any_backend& backend = *place.backend;
            const auto device_input = backend.allocate(largest * width);
            const auto device_output = backend.allocate(largest * width);
            backend.copy_to_device(device_input.get(), input.data(), largest * width);
            for (const std::string& policy : policies_) {
                scan_call call;
                call.type = what.type;
                call.op = what.op;
                call.policy = policy;
                call.kind = what.kind;
                call.init = what.init ? what.init->data() : nullptr;
                call.input = device_input.get();
                call.output = device_output.get();
                tally& count = tallies_[{policy, place.name}];
                if (backend.unsupported(call)) {
                    ++count.unsupported;
                    continue;
                }
                const std::string tree = tree_of(policy, what.op, what.type);
                buffer& right = expected[tree];
                if (right.size() == 0) {
                    right = buffer(largest * width);
                    expected_outputs(tree, what.op, what.type, what.kind, what.init, input.data(), right.data(),
                                     largest);
                }
                for (const std::size_t n : sizes) {
                    call.size = static_cast<index_type>(n);
                    check(backend, call, right, count);
                }
            }
        }
    }

    void check(any_backend& backend, const scan_call& call, const buffer& right, tally& count) {
        const auto n = static_cast<std::size_t>(call.size);
        const std::size_t width = size_of(call.type);
        // One element beyond the end stays as it is.
        const std::size_t guarded = std::min(largest, n + 1);
        buffer result(guarded * width);
        std::fill_n(result.data(), result.size(), std::byte{0xa5});
        backend.copy_to_device(call.output, result.data(), result.size());
        backend.scan(call);
        backend.synchronize();
        backend.copy_to_host(result.data(), call.output, result.size());
        std::optional<std::size_t> at = first_difference(call.type, result.data(), right.data(), n);
        if (!at && !std::all_of(result.data() + n * width, result.data() + result.size(),
                                [](std::byte b) { return b == std::byte{0xa5}; }))
            at = n;
        if (!at) {
            ++count.passed;
            return;
        }
        ++count.failed;
        failures_.push_back(fmt::format("{} {}: {} {} of {} {}{}: mismatch at {}", backend.name(), call.policy,
                                        kind_name(call.kind), call.op, n, name(call.type),
                                        call.init ? " with init" : "", *at));
    }

    void print_table() const {
        std::string header = fmt::format("{:<28}", "policy");
        for (const chosen_backend& place : backends_) header += fmt::format(" {:>20}", place.name);
        fmt::print("{}\n", header);
        int total = 0;
        for (const std::string& policy : policies_) {
            std::string line = fmt::format("{:<28}", policy);
            for (const chosen_backend& place : backends_) {
                const auto found = tallies_.find({policy, place.name});
                if (found == tallies_.end()) {
                    line += fmt::format(" {:>20}", "skipped");
                    continue;
                }
                const tally& count = found->second;
                total += count.passed + count.failed;
                line += fmt::format(" {:>20}", count.failed > 0   ? fmt::format("{} of {} WRONG", count.failed,
                                                                                count.passed + count.failed)
                                               : count.passed > 0 ? fmt::format("{} right", count.passed)
                                                                  : "not supported");
            }
            fmt::print("{}\n", line);
        }
        for (const chosen_backend& place : backends_)
            if (!place.backend) fmt::print("{} skipped: {}\n", place.name, place.reason);
        constexpr std::size_t shown = 10;
        for (std::size_t i = 0; i < std::min(shown, failures_.size()); ++i) fmt::print("{}\n", failures_[i]);
        if (failures_.size() > shown) fmt::print("... and {} more\n", failures_.size() - shown);
        fmt::print("{} scans compared with the reference, {} mismatches\n", total, failures_.size());
    }

    std::vector<chosen_backend> backends_;
    std::vector<std::string> policies_;
    std::map<std::pair<std::string, std::string>, tally> tallies_;
    std::vector<std::string> failures_;
    progress_line progress_;
};

} // namespace

void add_verify_command(CLI::App& program, exit_code& result) {
    CLI::App* command = program.add_subcommand("verify", "Check all policies, types and operators on this machine");
    auto given = std::make_shared<verify_options>();
    add_backends_option(*command, given->backends);
    add_policies_option(*command, given->policies);
    add_threads_option(*command, given->threads, "CPU backends");
    command->footer("Example:\n  polyscan verify --threads 3");
    command->callback([given, &result] { result = verification(*given).run(); });
}

} // namespace polyscan::tool
