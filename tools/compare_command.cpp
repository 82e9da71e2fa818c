// SPDX-License-Identifier: Apache-2.0
// polyscan compare: every backend and policy on the user's own data, checked and timed.
#include "array_file.hpp"
#include "comparison.hpp"
#include "generate.hpp"
#include "machine.hpp"
#include "names.hpp"
#include "options.hpp"
#include "output_file.hpp"
#include "program.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "temporary_file.hpp"
#include "verbs/verb_comparison.hpp"

#include <polyscan/registry.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <ctime>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include <sys/stat.h>
#include <unistd.h>

namespace polyscan::tool {

namespace {

// Two sizes that a cache holds and does not hold; over in well under two minutes on two processors.
constexpr const char* default_sizes = "2^22,2^24";

struct compare_options {
    std::string input;
    std::string size;
    std::string sizes;
    std::string dtype_name;
    std::string seed = "1";
    std::vector<std::string> backends;
    std::vector<std::string> policies;
    std::string verb = "scan";
    std::string op = "plus";
    std::string kind = "inclusive";
    std::string json;
    bool peers = false;
    int threads = 0;
    int repetitions = 11;
};

// The host holds the input, the expected outputs and a result; a CPU backend its own input and output.
void require_memory(std::string_view argument, std::uint64_t count, dtype type) {
    constexpr std::uint64_t arrays = 5;
    const std::uint64_t memory = physical_memory();
    if (count > memory / arrays / size_of(type))
        throw usage_error(argument,
                          fmt::format("{} elements of {} need {} times their size in memory, this machine has {} GiB",
                                      count, name(type), arrays, memory >> 30));
}

buffer read_whole(const std::string& path, const std::optional<dtype>& raw, dtype& type, std::size_t& count) {
    array_reader reader = array_reader::open(path, raw);
    type = reader.dtype();
    const std::size_t width = size_of(type);
    if (reader.count()) require_memory(reader.label(), *reader.count(), type);
    // A pipe may not know its length: then the memory grows as the data come, by halves.
    std::size_t filled = 0;
    buffer data(width * static_cast<std::size_t>(reader.count() ? *reader.count() : std::uint64_t{1} << 20));
    while (true) {
        if (filled == data.size()) {
            if (reader.count()) break;
            require_memory(reader.label(), data.size() / width * 2, type);
            buffer larger(data.size() * 2);
            std::copy_n(data.data(), filled, larger.data());
            data = std::move(larger);
        }
        const std::size_t n = reader.read({data.data() + filled, data.size() - filled});
        if (n == 0) break;
        filled += n;
    }
    count = filled / width;
    if (count == 0) throw bad_input(reader.label(), "has no elements to compare on");
    return data;
}

std::string today() {
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    gmtime_r(&now, &utc);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                       utc.tm_hour, utc.tm_min, utc.tm_sec);
}

nlohmann::ordered_json machine_record(const std::vector<double>& probes) {
    nlohmann::ordered_json machine = machine_facts();
    machine["parallel_region_us"] = probes;
    machine["date"] = today();
    machine["version"] = program_version();
    machine["compiler"] = compiler();
    machine["backends"] = backend_facts();
    return machine;
}

// Time of a run grows with its elements above a size where fixed costs prevail: enough to estimate what is left.
double cost_of(std::uint64_t count) { return 1e6 + static_cast<double>(count); }

class compare_run {
public:
    explicit compare_run(const compare_options& given) : given_(given) {
        job_.op = parse_operator("--op", given.op);
        job_.kind = parse_kind("--kind", given.kind);
        job_.policies = parse_policies("--policies", given.policies);
        job_.peers = given.peers;
        job_.threads = given.threads;
        job_.repetitions = given.repetitions;
        seed_ = parse_count("--seed", given.seed);
        if (given.verb != "scan") settle_verb();
        if (!given.dtype_name.empty()) raw_ = parse_dtype("--dtype", given.dtype_name);
        if (!given.input.empty() && !(given.size.empty() && given.sizes.empty()))
            throw usage_error("--size", "a file has its own size: give either --input or --size");
        if (!given.size.empty() && !given.sizes.empty()) throw usage_error("--size", "give either --size or --sizes");
        if (given.input.empty()) {
            job_.type = raw_.value_or(dtype::float32);
            if (!given.size.empty())
                counts_ = {parse_count("--size", given.size)};
            else
                counts_ = parse_counts("--sizes", given.sizes.empty() ? default_sizes : given.sizes);
            const char* const argument = given.size.empty() ? "--sizes" : "--size";
            for (const std::uint64_t count : counts_) {
                if (count == 0) throw usage_error(argument, "there must be at least one element");
                require_memory(argument, count, job_.type);
            }
            require_operator(job_.op, job_.type);
        }
        backends_ = choose_backends("--backends", given.backends, given.threads);
        // Opened now: better a refusal before a long run than after it.
        if (!given.json.empty()) json_.emplace(given.json, input_files());
    }

    exit_code run() {
        if (!given_.input.empty()) {
            const buffer data = read_whole(given_.input, raw_, job_.type, job_.size);
            require_operator(job_.op, job_.type);
            compare_on(data, 0, 1);
        } else {
            double total = 0;
            for (const std::uint64_t count : counts_) total += cost_of(count);
            double done = 0;
            for (const std::uint64_t count : counts_) {
                job_.size = static_cast<std::size_t>(count);
                buffer data(job_.size * size_of(job_.type));
                generate(job_.op, job_.type, seed_, data.data(), job_.size);
                compare_on(data, done / total, cost_of(count) / total);
                done += cost_of(count);
            }
        }
        finish();
        if (!failure_.empty()) throw failed_run(failure_);
        return mismatches_ > 0 ? exit_code::mismatch : exit_code::good;
    }

private:
    std::vector<file_identity> input_files() const {
        struct stat status{};
        const bool is_there = given_.input == "-" ? ::fstat(STDIN_FILENO, &status) == 0
                                                  : !given_.input.empty() && ::stat(given_.input.c_str(), &status) == 0;
        if (!is_there) return {};
        return {identity_of(status)};
    }

    void settle_verb() {
        parse_verb("--verb", given_.verb);
        if (!given_.input.empty())
            throw usage_error("--verb", "verbs beside scan run on generated data: give --size, not --input");
        if (job_.op != "plus") throw usage_error("--verb", "verbs beside scan are compiled for plus only");
        if (!given_.dtype_name.empty() && given_.dtype_name != "int32" && given_.dtype_name != "float32")
            throw usage_error("--verb", "verbs beside scan are compiled for int32 and float32");
        if (job_.kind != scan_kind::inclusive) throw usage_error("--kind", "verbs beside scan have none");
        if (!given_.policies.empty()) throw usage_error("--policies", "verbs beside scan run under the default policy");
        job_.verb = given_.verb;
    }

    // Before each size and after the last: the state may change in between.
    void probe() {
        if (given_.json.empty()) return;
        if (const auto us = parallel_region_us()) probes_.push_back(*us);
    }

    // Both backends' rows were compared with the same expected outputs, so rows that match them match each other.
    void count_same_bits(const comparison& result) {
        std::map<std::string, std::pair<int, int>> of_policy; // rows checked, rows right
        for (const comparison_row& row : result.rows) {
            if (row.peer || !row.matches) continue;
            ++of_policy[row.policy].first;
            if (*row.matches) ++of_policy[row.policy].second;
        }
        for (const auto& [policy, rows] : of_policy) {
            if (rows.first < 2) continue;
            ++side_by_side_;
            if (rows.first == rows.second) ++same_bits_;
        }
    }

    void compare_on(const buffer& data, double start, double share) {
        job_.input = &data;
        probe();
        const comparison result =
            (job_.verb.empty() ? compare : compare_verb)(backends_, job_, [&](std::string_view what, double done) {
                progress_.show(fmt::format("{} {} elements", what, job_.size), start + share * done);
            });
        progress_.clear();
        for (const comparison_row& row : result.rows) {
            if (row.matches) ++(*row.matches ? matches_ : mismatches_);
            if (row.verdict == "skipped") ++skipped_;
        }
        count_same_bits(result);
        if (failure_.empty()) failure_ = result.failure;
        for (auto& row : as_json(job_, result)) rows_.push_back(std::move(row));
        if (given_.json != "-") {
            fmt::print("{}{}", tables_++ > 0 ? "\n" : "", as_table(job_, result));
            std::fflush(stdout);
        }
    }

    void finish() {
        if (!given_.json.empty()) {
            nlohmann::ordered_json record;
            record["schema"] = 1;
            probe();
            record["machine"] = machine_record(probes_);
            record["rows"] = rows_;
            const std::string text = record.dump(2) + "\n";
            json_->write(std::as_bytes(std::span{text}));
            json_->finish();
        }
        if (given_.json == "-") return;
        fmt::print(
            "\n{} rows checked, {} mismatches, {} skipped. Median of {} repetitions in random order.\n"
            "spread: interquartile range. GB/s: read once and written once. /copy: time of a copy of the same bytes\n"
            "over the time of the {}. speed-up: over {} on one thread.\n",
            matches_ + mismatches_, mismatches_, skipped_, job_.repetitions, job_.verb.empty() ? "scan" : "call",
            job_.verb.empty() ? fmt::format("std::{}_scan", kind_name(job_.kind)) : "the obvious loop, or std::sort,");
        if (side_by_side_ > 0)
            fmt::print("{} of {} policies that ran on more than one backend gave the same bits on each.\n", same_bits_,
                       side_by_side_);
    }

    const compare_options& given_;
    comparison_job job_;
    std::optional<dtype> raw_;
    std::vector<std::uint64_t> counts_;
    std::uint64_t seed_ = 1;
    std::vector<chosen_backend> backends_;
    progress_line progress_;
    std::optional<output_file> json_;
    nlohmann::ordered_json rows_ = nlohmann::ordered_json::array();
    std::string failure_;
    int matches_ = 0;
    int mismatches_ = 0;
    int skipped_ = 0;
    int side_by_side_ = 0;
    int same_bits_ = 0;
    int tables_ = 0;
    std::vector<double> probes_;
};

} // namespace

void add_compare_command(CLI::App& program, exit_code& result) {
    CLI::App* command = program.add_subcommand("compare", "Check and time every backend and policy on your data");
    auto given = std::make_shared<compare_options>();
    add_input_option(*command, given->input);
    command->add_option("--size", given->size, "Elements of generated data: 1000000, 2^22, 64M")->type_name("N");
    command
        ->add_option("--sizes", given->sizes,
                     std::string("Several sizes, one table each: 2^10..2^28 (doubling) or 1000,2^20; without any: ") +
                         default_sizes)
        ->type_name("LIST");
    command
        ->add_option("--dtype", given->dtype_name, "Type of generated data (float32 without it), or of a raw --input")
        ->type_name("DTYPE");
    command->add_option("--seed", given->seed, "Chooses the generated data")->type_name("N")->capture_default_str();
    add_backends_option(*command, given->backends);
    add_policies_option(*command, given->policies);
    command
        ->add_option("--verb", given->verb,
                     "What to compare: scan, or under the default policy reduce, copy_if, segmented_scan, scan_by_key, "
                     "reduce_by_key, radix_sort or histogram (int32 and float32, plus)")
        ->type_name("NAME")
        ->capture_default_str();
    add_op_option(*command, given->op);
    add_kind_option(*command, given->kind);
    add_threads_option(*command, given->threads, "CPU backends and peers");
    command->add_option("--repetitions", given->repetitions, "Timings per row, in random order over all rows")
        ->type_name("N")
        ->check(CLI::Range(1, 10000).description(""))
        ->capture_default_str();
    command
        ->add_option("--json", given->json, "Write the rows to this file too; - is standard output, without the tables")
        ->type_name("FILE");
    command->add_flag("--peers", given->peers,
                      "Add what one would otherwise use: the standard library's, TBB's and OpenMP's scans, Kokkos', "
                      "CUB's and Thrust's");
    command->footer(
        "Every row is checked before the first timing: 'exact' equals the left fold, 'same bits' equals the policy's\n"
        "order of operations bit for bit, 'within bound' (peers only) lies within the error bound of a sum.\n"
        "All rows use the same buffers, warm in the cache if they fit there.\n\n"
        "Example:\n"
        "  polyscan compare --input samples.npy --peers\n"
        "  polyscan compare --sizes 2^16..2^24 --dtype int32 --policies default,domino --json run.json\n"
        "  polyscan compare --verb radix_sort --sizes 2^20,2^24 --dtype int32 --peers");
    command->callback([given, &result] {
        remove_temporaries_on_signal();
        result = compare_run(*given).run();
    });
}

} // namespace polyscan::tool
