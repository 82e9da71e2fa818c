// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include "file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

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

[[noreturn]] void cannot_write(const std::string& path) {
    throw bad_input(path, fmt::format("cannot be written: {}", std::system_category().message(errno)));
}

// Creates a file beside the target. The caller closes and removes or renames it.
int open_beside(const std::string& path, std::string& temporary) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) throw bad_input(path, "cannot be written: is a directory");
    if (std::filesystem::exists(path, ignored) && access(path.c_str(), W_OK) != 0) cannot_write(path);
    const auto folder = std::filesystem::path(path).parent_path();
    temporary = ((folder.empty() ? std::filesystem::path(".") : folder) / ".polyscan-XXXXXX").string();
    const int file = mkstemp(temporary.data());
    if (file < 0) cannot_write(path);
    return file;
}

bool is_special(const std::string& path) {
    std::error_code ignored;
    const auto status = std::filesystem::status(path, ignored);
    return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
           !std::filesystem::is_directory(status);
}

void write_all(int file, const std::string& text, const std::string& path) {
    for (std::size_t done = 0; done < text.size();) {
        const ssize_t n = ::write(file, text.data() + done, text.size() - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) cannot_write(path);
        done += static_cast<std::size_t>(n);
    }
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

void require_writable(const std::string& path) {
    if (path == "-" || is_special(path)) return;
    std::string temporary;
    ::close(open_beside(path, temporary));
    ::unlink(temporary.c_str());
}

void write_text(const std::string& given_path, const std::string& text) {
    if (given_path == "-") {
        fmt::print("{}", text);
        return;
    }
    // The file that a symbolic link leads to is replaced, the link stays.
    std::error_code error;
    const auto target = std::filesystem::weakly_canonical(given_path, error);
    const std::string path = error ? given_path : target.string();
    if (is_special(path)) {
        const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
        if (file < 0) cannot_write(path);
        write_all(file, text, path);
        ::close(file);
        return;
    }
    std::string temporary;
    const int file = open_beside(path, temporary);
    try {
        write_all(file, text, path);
        const mode_t mask = umask(0);
        umask(mask);
        if (fchmod(file, 0666 & ~mask) != 0 || fsync(file) != 0) cannot_write(path);
        if (::rename(temporary.c_str(), path.c_str()) != 0) cannot_write(path);
    } catch (...) {
        ::close(file);
        ::unlink(temporary.c_str());
        throw;
    }
    ::close(file);
}

} // namespace polyscan::tool
