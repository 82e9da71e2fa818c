// SPDX-License-Identifier: Apache-2.0
/// The shared matrix, one test case per case of cases.hpp: `--test-case="*int32_plus*"` selects. A failing cell names
/// backend, policy, case, size, kind, init, placement and workers. The last line says how many cells ran.
///
/// POLYSCAN_TEST_BACKEND names the header that defines `backend_under_test`.
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "cases.hpp"
#include "under_test.hpp"

namespace polyscan::test {
namespace {

/// A policy that the backend lacks is a row that says so, not a failure.
template <class Policy>
bool lacks(std::string_view what) {
    if constexpr (backend_type::template supports<Policy>) return false;
    cells.skip(1, std::string(backend_type::name()) + ' ' + Policy::name() + ' ' + std::string(what) +
                      ": the backend does not have this policy");
    return true;
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
    for_each_policy([&]<class Policy>(Policy) {
        if (!lacks<Policy>(Case::name)) check_cells<Case>(pointers(), run, Policy::name(), limit, cells);
    });
}

template <class Case>
void check_default_policy() {
    if (skipped(Case::name) || lacks<default_policy>(Case::name)) return;
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
#if defined(POLYSCAN_TEST_FEW_CASES)
// For a backend that runs another one's kernels or none: numbers of 4 and 8 bytes, with every operator.
POLYSCAN_DEFAULT_CASES_INT32(POLYSCAN_DEFAULT_TEST)
POLYSCAN_DEFAULT_CASES_FLOAT(POLYSCAN_DEFAULT_TEST)
#elif defined(POLYSCAN_TEST_FEW_INTEGERS)
POLYSCAN_DEFAULT_CASES_INT32(POLYSCAN_DEFAULT_TEST)
POLYSCAN_DEFAULT_CASES_FLOAT(POLYSCAN_DEFAULT_TEST)
POLYSCAN_DEFAULT_CASES_MIXED(POLYSCAN_DEFAULT_TEST)
POLYSCAN_DEFAULT_CASES_STRUCT(POLYSCAN_DEFAULT_TEST)
#else
POLYSCAN_DEFAULT_CASES(POLYSCAN_DEFAULT_TEST)
#endif

} // namespace
} // namespace polyscan::test
