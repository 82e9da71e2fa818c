// SPDX-License-Identifier: Apache-2.0
#include "measure.hpp"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

namespace polyscan::tool {

namespace {

// Keeps the mean of every repetition.
class collector : public benchmark::BenchmarkReporter {
public:
    explicit collector(std::size_t rows) : samples(rows) {}

    bool ReportContext(const Context&) override { return true; }

    void ReportRuns(const std::vector<Run>& runs) override {
        for (const Run& run : runs)
            if (run.run_type == Run::RT_Iteration && run.iterations > 0)
                samples.at(std::stoul(run.run_name.function_name))
                    .push_back(run.real_accumulated_time / static_cast<double>(run.iterations));
    }

    std::vector<std::vector<double>> samples;
};

double quantile(const std::vector<double>& sorted, double q) {
    const double at = q * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

void initialise_once() {
    static const bool done = [] {
        std::array<std::string, 2> texts{"polyscan", "--benchmark_enable_random_interleaving=true"};
        std::array<char*, 3> arguments{texts[0].data(), texts[1].data(), nullptr};
        int count = 2;
        benchmark::Initialize(&count, arguments.data());
        return true;
    }();
    static_cast<void>(done);
}

} // namespace

std::vector<measurement> measure(const std::vector<timed_call>& calls, int repetitions, double least_seconds,
                                 const std::function<void(double)>& progress) {
    initialise_once();
    std::vector<measurement> results(calls.size());
    const double runs = static_cast<double>(calls.size()) * repetitions;
    double runs_done = 0;
    benchmark::ClearRegisteredBenchmarks();
    for (std::size_t row = 0; row < calls.size(); ++row) {
        benchmark::RegisterBenchmark(std::to_string(row).c_str(),
                                     [&, row](benchmark::State& state) {
                                         try {
                                             calls[row].before();
                                             for ([[maybe_unused]] auto _ : state)
                                                 state.SetIterationTime(calls[row].run());
                                         } catch (const std::exception& error) {
                                             results[row].error = error.what();
                                             state.SkipWithError("threw");
                                         }
                                         runs_done += 1;
                                         progress(std::min(1.0, runs_done / runs));
                                     })
            ->UseManualTime()
            ->MinTime(least_seconds)
            ->Repetitions(repetitions);
    }
    collector seen(calls.size());
    benchmark::RunSpecifiedBenchmarks(&seen, ".");
    benchmark::ClearRegisteredBenchmarks();
    for (std::size_t row = 0; row < calls.size(); ++row) {
        std::vector<double>& samples = seen.samples[row];
        if (samples.empty() || !results[row].error.empty()) continue;
        std::sort(samples.begin(), samples.end());
        results[row].median = quantile(samples, 0.5);
        results[row].spread = (quantile(samples, 0.75) - quantile(samples, 0.25)) / results[row].median;
    }
    return results;
}

} // namespace polyscan::tool
