// SPDX-License-Identifier: Apache-2.0
/// A doctest listener that prints one line when all tests are over. Derive from it, and register the class:
///     REGISTER_LISTENER("closing line", 1, my_line);
#pragma once

#include <cstdio>
#include <string>

#include <doctest/doctest.h>

namespace polyscan::test {

class closing_line : public doctest::IReporter {
public:
    explicit closing_line(const doctest::ContextOptions&) {}
    void test_run_end(const doctest::TestRunStats& stats) override {
        std::printf("%s\n", text(stats).c_str());
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

private:
    virtual std::string text(const doctest::TestRunStats& stats) const = 0;
};

} // namespace polyscan::test
