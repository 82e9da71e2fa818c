// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <fmt/format.h>

namespace polyscan::tool {

namespace {

std::string duration(double seconds) {
    if (seconds < 1e-3) return fmt::format("{:.2f} us", seconds * 1e6);
    if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
    return fmt::format("{:.2f} s", seconds);
}

std::string size_text(std::size_t bytes) {
    constexpr std::size_t kibibyte = 1024;
    if (bytes < kibibyte) return fmt::format("{} B", bytes);
    if (bytes < kibibyte * kibibyte) return fmt::format("{:.4g} KiB", static_cast<double>(bytes) / kibibyte);
    return fmt::format("{:.4g} MiB", static_cast<double>(bytes) / kibibyte / kibibyte);
}

std::string ratio(const std::optional<double>& value, std::string_view suffix) {
    return value ? fmt::format("{:.2f}{}", *value, suffix) : "-";
}

double gbps(const comparison_job& job, const comparison_row& row) {
    const double bytes = row.bytes > 0 ? row.bytes : 2 * static_cast<double>(job.size * size_of(job.type));
    return bytes / row.median * 1e-9;
}

std::string line_of(const comparison_job& job, const comparison_row& row) {
    const std::string start = fmt::format("{:<8} {:<26}", row.backend, row.policy);
    if (row.median <= 0)
        return fmt::format("{} {}{}{}\n", start, row.verdict, row.reason.empty() ? "" : ": ", row.reason);
    return fmt::format("{} {:>10} {:>6.1f}% {:>8.2f} {:>6} {:>8}  {}\n", start, duration(row.median), row.spread * 100,
                       gbps(job, row), ratio(row.copy_ratio, ""), ratio(row.speed_up, "x"), row.verdict);
}

} // namespace

std::string as_table(const comparison_job& job, const comparison& result) {
    const std::string what = job.verb.empty() ? fmt::format("{} {}", kind_name(job.kind), job.op) : job.verb;
    std::string text =
        fmt::format("{} of {} {} ({})\n", what, job.size, name(job.type), size_text(job.size * size_of(job.type)));
    text += fmt::format("{:<8} {:<26} {:>10} {:>7} {:>8} {:>6} {:>8}  {}\n", "backend", "policy", "median", "spread",
                        "GB/s", "/copy", "speed-up", "verdict");
    const auto& rows = result.rows;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        // A backend that is not available is one line, not one per policy.
        std::size_t same = i + 1;
        while (same < rows.size() && rows[i].verdict == "skipped" && rows[same].verdict == "skipped" &&
               rows[same].backend == rows[i].backend && rows[same].reason == rows[i].reason)
            ++same;
        if (same - i > 1) {
            text += fmt::format("{:<8} {:<26} skipped: {}\n", rows[i].backend, fmt::format("{} policies", same - i),
                                rows[i].reason);
            i = same - 1;
        } else {
            text += line_of(job, rows[i]);
        }
    }
    return text;
}

nlohmann::ordered_json as_json(const comparison_job& job, const comparison& result) {
    auto rows = nlohmann::ordered_json::array();
    for (const comparison_row& row : result.rows) {
        nlohmann::ordered_json item;
        const bool timed = row.median > 0;
        item["backend"] = row.backend;
        item["policy"] = row.policy;
        item["peer"] = row.peer;
        item["verb"] = job.verb.empty() ? "scan" : job.verb;
        item["dtype"] = name(job.type);
        item["op"] = job.op;
        item["kind"] = kind_name(job.kind);
        item["n"] = job.size;
        item["threads"] = row.threads;
        item["median_us"] = timed ? nlohmann::ordered_json(row.median * 1e6) : nlohmann::ordered_json();
        item["gbps"] = timed ? nlohmann::ordered_json(gbps(job, row)) : nlohmann::ordered_json();
        item["copy_ratio"] = row.copy_ratio ? nlohmann::ordered_json(*row.copy_ratio) : nlohmann::ordered_json();
        item["matches"] = row.matches ? nlohmann::ordered_json(*row.matches) : nlohmann::ordered_json();
        item["verdict"] = row.verdict;
        item["reason"] = row.reason;
        rows.push_back(std::move(item));
    }
    return rows;
}

} // namespace polyscan::tool
