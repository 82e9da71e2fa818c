// SPDX-License-Identifier: Apache-2.0
/// The tally of a matrix as doctest shows it: failing cells are failed checks, and the last line says how many cells
/// ran. For the one source of a test program that includes it after doctest and the backend's header.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "closing_line.hpp"
#include "matrix.hpp"

namespace polyscan::test {

class doctest_tally final : public tally {
    void on_fail(const std::string& what) override {
        // The first few say it all; the closing line counts the others.
        if (failed() <= 20)
            FAIL_CHECK(what);
        else
            REQUIRE_MESSAGE(failed() <= 20000, "too many failing cells");
    }
    void on_skip(const std::string& why) override { MESSAGE("skipped: ", why); }
};

inline doctest_tally cells;
inline std::string cells_of; ///< the backend

/// A target for each number of workers.
template <class BackendUnderTest>
std::vector<std::unique_ptr<target>> make_targets() {
    cells_of = BackendUnderTest::type::name();
    std::vector<std::unique_ptr<target>> result;
    for (const int workers : BackendUnderTest::concurrencies())
        result.push_back(std::make_unique<target_of<typename BackendUnderTest::type>>(workers, BackendUnderTest::make));
    return result;
}

class cells_line final : public closing_line {
    using closing_line::closing_line;
    std::string text(const doctest::TestRunStats&) const override {
        return cells_of + ": " + std::to_string(cells.passed()) + " cells passed, " + std::to_string(cells.failed()) +
               " failed, " + std::to_string(cells.skipped()) + " skipped";
    }
};
REGISTER_LISTENER("closing line", 1, cells_line);

} // namespace polyscan::test
