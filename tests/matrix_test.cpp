// SPDX-License-Identifier: Apache-2.0
/// The shared matrix, one test case per case of cases.hpp: `--test-case="*int32_plus*"` selects. A failing cell names
/// backend, policy, case, size, kind, init, placement and workers. The last line says how many cells ran.
///
/// POLYSCAN_TEST_BACKEND names the header that defines `backend_under_test`.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "cases.hpp"
#include "matrix.hpp"
#include POLYSCAN_TEST_BACKEND

namespace polyscan::test {
namespace {

using backend_type = backend_under_test::type;

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

doctest_tally cells;

const std::vector<std::unique_ptr<target>>& targets() {
    static const auto all = [] {
        std::vector<std::unique_ptr<target>> result;
        for (const int workers : backend_under_test::concurrencies())
            result.push_back(std::make_unique<target_of<backend_type>>(workers, backend_under_test::make));
        return result;
    }();
    return all;
}

std::vector<target*> pointers() {
    std::vector<target*> result;
    for (const auto& each : targets()) result.push_back(each.get());
    return result;
}

backend_type& object(target& on) { return static_cast<target_of<backend_type>&>(on).object(); }

bool skipped(std::string_view what) {
    const polyscan::availability here = object(*targets().front()).available();
    if (!here) cells.skip(1, std::string(backend_type::name()) + ' ' + std::string(what) + ": " + here.reason);
    return !here;
}

// The limits keep one case in seconds; the longest sizes of large tiles (8192 elements of 4 bytes) fit.
#ifndef POLYSCAN_TEST_ELEMENTS_LIMIT
#define POLYSCAN_TEST_ELEMENTS_LIMIT 600000
#endif
constexpr index_type elements_limit = POLYSCAN_TEST_ELEMENTS_LIMIT;

template <class Case>
void check_every_policy(index_type limit) {
    if (skipped(Case::name)) return;
    const run_function<Case> run = [](target& on, std::string_view policy, const case_arguments<Case>& arguments) {
        run_case<backend_type, Case>(object(on), policy, arguments);
    };
    for_each_policy([&](auto policy) { check_cells<Case>(pointers(), run, policy.name(), limit, cells); });
}

template <class Case>
void check_default_policy() {
    if (skipped(Case::name)) return;
    const run_function<Case> run = [](target& on, std::string_view, const case_arguments<Case>& arguments) {
        run_case_default<backend_type, Case>(object(on), arguments);
    };
    check_cells<Case>(pointers(), run, default_policy::name(), elements_limit, cells);
}

#define POLYSCAN_POLICY_TEST(name, ...)                                                                                \
    TEST_CASE("every policy: " #name) { check_every_policy<cases::name>(elements_limit); }
POLYSCAN_POLICY_CASES(POLYSCAN_POLICY_TEST)

#define POLYSCAN_RECURSION_TEST(name, ...)                                                                             \
    TEST_CASE("every policy: " #name) { check_every_policy<cases::name>(5'000); }
#ifndef POLYSCAN_TEST_WITHOUT_RECURSION
POLYSCAN_RECURSION_CASES(POLYSCAN_RECURSION_TEST)
#endif

#define POLYSCAN_HOST_TEST(name, ...)                                                                                  \
    TEST_CASE("every policy: " #name) { check_every_policy<cases::name>(3'000); }
#ifdef POLYSCAN_TEST_HOST
POLYSCAN_HOST_CASES(POLYSCAN_HOST_TEST)
#endif

#define POLYSCAN_DEFAULT_TEST(name, ...)                                                                               \
    TEST_CASE("default policy: " #name) { check_default_policy<cases::name>(); }
POLYSCAN_DEFAULT_CASES(POLYSCAN_DEFAULT_TEST)

/// Prints the closing line.
class closing_line : public doctest::IReporter {
public:
    explicit closing_line(const doctest::ContextOptions&) {}
    void test_run_end(const doctest::TestRunStats&) override {
        std::printf("%s: %lld cells passed, %lld failed, %lld skipped\n", std::string(backend_type::name()).c_str(),
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

} // namespace
} // namespace polyscan::test
