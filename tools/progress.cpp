// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include <unistd.h>

namespace polyscan::tool {

namespace {
constexpr std::chrono::milliseconds redraw_interval{100};
constexpr int bar_width = 30;

std::string duration(double seconds) {
    const long whole = static_cast<long>(seconds + 0.5);
    if (whole < 60) return fmt::format("{} s", whole);
    return fmt::format("{} min {:02} s", whole / 60, whole % 60);
}
} // namespace

progress_line::progress_line() : visible_(isatty(STDERR_FILENO) == 1) {}

progress_line::~progress_line() { clear(); }

void progress_line::show(std::string_view what, double done) {
    if (!visible_) return;
    const auto now = clock::now();
    if (drawn_ && now - last_ < redraw_interval) return;
    last_ = now;
    drawn_ = true;
    std::string line = fmt::format("\r\x1b[K{}", what);
    if (done >= 0) {
        const double part = std::min(done, 1.0);
        const int filled = static_cast<int>(part * bar_width);
        line += fmt::format(" [{:#<{}}{:.<{}}] {:3.0f}%", "", filled, "", bar_width - filled, part * 100);
        const double spent = std::chrono::duration<double>(now - start_).count();
        if (part > 0.02 && spent > 1) line += fmt::format(", about {} left", duration(spent * (1 - part) / part));
    }
    std::fputs(line.c_str(), stderr);
    std::fflush(stderr);
}

void progress_line::clear() {
    if (!drawn_) return;
    std::fputs("\r\x1b[K", stderr);
    std::fflush(stderr);
    drawn_ = false;
}

} // namespace polyscan::tool
