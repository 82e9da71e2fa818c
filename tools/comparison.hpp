// SPDX-License-Identifier: Apache-2.0
/// One comparison: every backend and policy, and the peers, on the same input. All results are checked before the first
/// timing; all timings come from one interleaved run.
#pragma once

#include "elements.hpp"
#include "names.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace polyscan::tool {

struct comparison_row {
    std::string backend;
    std::string policy; ///< grid/block; a peer's name; for the row `copy` the backend that copies
    bool peer = false;
    int threads = 0;
    double median = 0; ///< seconds; 0: not measured
    double spread = 0; ///< interquartile range over the median
    std::optional<double> copy_ratio = {};
    std::optional<double> speed_up = {}; ///< over the sequential scan of the standard library
    std::optional<bool> matches = {};
    std::string verdict = {}; ///< "exact", "same bits", "within bound", "mismatch at I", "skipped"
    std::string reason = {};  ///< for "skipped"
    double bytes = 0;         ///< read and written at least; 0: the input and as much output
};

struct comparison_job {
    std::string verb; ///< empty: scan
    dtype type = dtype::float32;
    std::string op = "plus";
    scan_kind kind = scan_kind::inclusive;
    const buffer* input = nullptr;
    std::size_t size = 0;
    std::vector<std::string> policies;
    bool peers = false;
    int threads = 0;
    int repetitions = 11;
};

struct comparison {
    std::vector<comparison_row> rows;
    std::string failure; ///< what a backend's runtime reported, empty if nothing
};

// What comparisons of scans and of other verbs share.

/// Checking comes before timing; its share of the progress bar.
inline constexpr double share_of_checking = 0.3;
/// The verdict on a row that ran: `good`, or where its result differs.
void judge_row(comparison_row& row, std::optional<std::size_t> mismatch, std::string_view good);
/// A backend's runtime reported an error in that row.
void fail_row(comparison& result, comparison_row& row, const std::string& message);
/// Times the rows that are not skipped. (Rows with a wrong result, too: the time may help to find out why.) `run(i)`
/// gives the seconds of row i; `needs_quiet(i)`: it has threads of its own, or one only, and must not share the
/// processors with another runtime's workers.
void time_rows(comparison& result, int repetitions, const std::function<double(std::size_t)>& run,
               const std::function<bool(std::size_t)>& needs_quiet,
               const std::function<void(std::string_view, double)>& progress);

/// `progress` is told what is being done, and the fraction of the whole that is done.
comparison compare(const std::vector<chosen_backend>& backends, const comparison_job& job,
                   const std::function<void(std::string_view, double)>& progress);

} // namespace polyscan::tool
