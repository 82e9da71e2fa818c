// SPDX-License-Identifier: Apache-2.0
/// Timing by Google Benchmark: repetitions of all rows in random order, so that a change in the machine's state meets
/// all.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace polyscan::tool {

struct measurement {
    double median = 0; ///< seconds of one call
    double spread = 0; ///< interquartile range over the median
    std::string error; ///< what the call threw
};

struct timed_call {
    std::function<double()> run;          ///< does the work once and returns its seconds
    std::function<void()> before = [] {}; ///< called before each repetition, not timed
};

/// Results are in the order of `calls`. A repetition lasts at least `least_seconds`, as many calls as that takes.
/// `progress` is told the fraction done.
std::vector<measurement> measure(const std::vector<timed_call>& calls, int repetitions, double least_seconds,
                                 const std::function<void(double)>& progress);

} // namespace polyscan::tool
