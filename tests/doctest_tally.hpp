// SPDX-License-Identifier: Apache-2.0
/// The tally of a matrix as doctest shows it: failing cells are failed checks, and the last line says how many cells
/// ran. For the one source of a test program that includes it after doctest and the backend's header.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

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

/// Prints the closing line.
class closing_line : public doctest::IReporter {
public:
    explicit closing_line(const doctest::ContextOptions&) {}
    void test_run_end(const doctest::TestRunStats&) override {
        std::printf("%s: %lld cells passed, %lld failed, %lld skipped\n", cells_of.c_str(),
                    static_cast<long long>(cells.passed()), static_cast<long long>(cells.failed()),
                    static_cast<long long>(cells.skipped()));
        std::fflush(stdout);
    }
    void report_query(const doctest::QueryData&) override {}
    void test_run_start() override {}
    void test_case_start(const doctest::TestCaseData&) override {}
    void test_case_reenter(const doctest::TestCaseData&) override {}
    void test_case_end(const doctest::CurrentTestCaseStats&) override {}
    void test_case_exception(const doctest::TestCaseException&) override {}
    void subcase_start(const doctest::SubcaseSignature&) override {}
    void subcase_end() override {}
    void log_assert(const doctest::AssertData&) override {}
    void log_message(const doctest::MessageData&) override {}
    void test_case_skipped(const doctest::TestCaseData&) override {}
};
REGISTER_LISTENER("closing line", 1, closing_line);

} // namespace polyscan::test
