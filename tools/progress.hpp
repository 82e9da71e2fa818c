// SPDX-License-Identifier: Apache-2.0
/// A line on the terminal that says how far a command is. In a pipe, a file or a log there is none.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace polyscan::tool {

class progress_line {
public:
    /// Shown on standard error if that is a terminal.
    progress_line();
    progress_line(const progress_line&) = delete;
    progress_line& operator=(const progress_line&) = delete;
    ~progress_line();

    /// Redraws at most ten times per second. `done` is a fraction; negative: unknown, no bar and no time left.
    void show(std::string_view what, double done);
    void clear();

private:
    using clock = std::chrono::steady_clock;
    bool visible_;
    bool drawn_ = false;
    clock::time_point start_ = clock::now();
    clock::time_point last_{};
};

} // namespace polyscan::tool
