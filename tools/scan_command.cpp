// SPDX-License-Identifier: Apache-2.0
// polyscan scan: one array file in, its scan out.
#include "array_file.hpp"
#include "names.hpp"
#include "options.hpp"
#include "oracle.hpp"
#include "program.hpp"
#include "progress.hpp"
#include "scan_stream.hpp"
#include "temporary_file.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>
#include <optional>

namespace polyscan::tool {

namespace {

struct scan_options {
    std::string input;
    std::string output;
    std::string backend;
    std::string policy = "default";
    std::string op = "plus";
    std::string kind = "inclusive";
    std::optional<std::string> init;
    std::string accumulate;
    std::string output_dtype;
    std::string raw_dtype;
    std::string output_format;
    std::string chunk = "32M";
    int threads = 0;
};

std::optional<dtype> optional_dtype(std::string_view argument, const std::string& text) {
    if (text.empty()) return std::nullopt;
    return parse_dtype(argument, text);
}

array_format output_format(const scan_options& given, array_format input) {
    if (given.output_format == "npy") return array_format::npy;
    if (given.output_format == "raw") return array_format::raw;
    if (!given.output_format.empty())
        throw usage_error("--output-format", fmt::format("unknown format '{}' (known: npy, raw)", given.output_format));
    return given.output.ends_with(".npy") ? array_format::npy : input;
}

void require_conversion(std::string_view argument, dtype from, dtype to) {
    if (!convertible(from, to))
        throw usage_error(
            argument, fmt::format("{} does not convert to {}: the imaginary part would be lost", name(from), name(to)));
}

// By the rules of the library: what the caller names, else the type that can hold both input and output.
void settle_types(const scan_options& given, dtype input, scan_job& job) {
    const auto accumulate = optional_dtype("--accumulate", given.accumulate);
    const auto output = optional_dtype("--output-dtype", given.output_dtype);
    job.accumulator = accumulate                              ? *accumulate
                      : output && convertible(input, *output) ? common_dtype(input, *output)
                                                              : input;
    job.output = output.value_or(job.accumulator);
    require_conversion("--accumulate", input, job.accumulator);
    require_conversion("--output-dtype", job.accumulator, job.output);
    require_operator(job.op, job.accumulator);
    if (given.init) job.init = parse_scalar("--init", *given.init, job.accumulator);
    if (!job.init && job.kind == scan_kind::exclusive) job.init = identity_of(job.op, job.accumulator);
}

void settle_chunk(const scan_options& given, dtype input, scan_job& job) {
    const std::uint64_t bytes = parse_count("--chunk", given.chunk);
    const std::size_t widest = std::max({size_of(input), size_of(job.accumulator), size_of(job.output)});
    const auto tile = static_cast<std::uint64_t>(tile_elements(job.policy, job.accumulator));
    const std::uint64_t tiles = std::max<std::uint64_t>(1, bytes / widest / tile);
    job.chunk_elements = static_cast<std::size_t>(tiles * tile);
}

exit_code scan(const scan_options& given) {
    scan_job job;
    job.op = parse_operator("--op", given.op);
    job.policy = parse_policy("--policy", given.policy);
    job.kind = parse_kind("--kind", given.kind);
    const auto raw_dtype = optional_dtype("--dtype", given.raw_dtype);

    array_reader reader = array_reader::open(given.input, raw_dtype);
    settle_types(given, reader.dtype(), job);
    settle_chunk(given, reader.dtype(), job);
    const auto backend = choose_backend(given.backend, given.threads);
    scan_call call;
    call.type = job.accumulator;
    call.op = job.op;
    call.policy = job.policy;
    call.kind = job.kind;
    if (const auto reason = backend->unsupported(call))
        throw usage_error("--backend", fmt::format("{}: {}", backend->name(), *reason));

    writer_options options;
    options.count = reader.count();
    options.format = output_format(given, reader.format());
    if (const auto identity = reader.identity()) options.inputs.push_back(*identity);
    array_writer writer(given.output, job.output, options);
    {
        progress_line progress;
        const auto count = reader.count();
        run_scan(*backend, job, reader, writer, [&](std::uint64_t done) {
            progress.show("scanning", count ? static_cast<double>(done) / static_cast<double>(*count) : -1);
        });
    }
    writer.finish();
    return exit_code::good;
}

} // namespace

void add_scan_command(CLI::App& program, exit_code& result) {
    CLI::App* command = program.add_subcommand("scan", "Scan an array file");
    auto given = std::make_shared<scan_options>();
    add_input_option(*command, given->input)->required();
    command
        ->add_option(
            "--output", given->output,
            "Where the result goes: .npy if the name ends so, else in the input's format; - is standard output")
        ->required()
        ->type_name("FILE");
    command->add_option("--backend", given->backend, "Where to run; without it the best one available")
        ->type_name("NAME");
    command->add_option("--policy", given->policy, "How to run: grid/block, or a short name")
        ->type_name("NAME")
        ->capture_default_str();
    add_op_option(*command, given->op);
    add_kind_option(*command, given->kind);
    command
        ->add_option("--init", given->init,
                     "What comes before the first element; exclusive without it: the operator's identity")
        ->type_name("VALUE");
    command
        ->add_option("--accumulate", given->accumulate,
                     "Type in which to add; without it the one that holds both input and output")
        ->type_name("DTYPE");
    command->add_option("--output-dtype", given->output_dtype, "Type to write; without it the accumulator's")
        ->type_name("DTYPE");
    command->add_option("--dtype", given->raw_dtype, "The input is raw little-endian elements of this type")
        ->type_name("DTYPE");
    command->add_option("--output-format", given->output_format, "npy or raw")->type_name("FORMAT");
    command
        ->add_option(
            "--chunk", given->chunk,
            "Bytes to hold at a time, in whole tiles. Memory stays below 4 chunks, 7 where types are converted (with a "
            "GPU 6 and 11); the bits of the result do not depend on it")
        ->type_name("BYTES")
        ->capture_default_str();
    add_threads_option(*command, given->threads, "a CPU backend");
    command->footer("Integers wrap around. A value that the next type cannot hold (a NaN for int32) is refused.\n"
                    "The output appears when it is complete; until then an existing file stays as it was.\n\n"
                    "Example:\n"
                    "  polyscan scan --input samples.npy --output sums.npy --accumulate float64\n"
                    "  polyscan scan --input log.bin --dtype uint16 --output peaks.npy --op maximum");
    command->callback([given, &result] {
        remove_temporaries_on_signal();
        result = scan(*given);
    });
}

} // namespace polyscan::tool
