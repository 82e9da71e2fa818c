// SPDX-License-Identifier: Apache-2.0
/// Kokkos not yet initialised, and no longer: it can be once per process, so this is a program of its own.
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <polyscan/kokkos.hpp>

namespace polyscan::test {
namespace {

template <class Call>
std::string message_of(const Call& call) {
    try {
        call();
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "no std::invalid_argument";
}

TEST_CASE("before, while and after Kokkos is running") {
    using best = kokkos::backend<>;
    using team = kokkos::backend<Kokkos::DefaultHostExecutionSpace, kokkos::form::team>;
    const std::vector<int> in{3, 1, 4, 1, 5};
    std::vector<int> out(in.size());

    CHECK(message_of([] { best(); }).find("Kokkos::initialize()") != std::string::npos);
    CHECK(message_of([] { team(); }).find("Kokkos::ScopeGuard") != std::string::npos);

    Kokkos::initialize(Kokkos::InitializationSettings().set_disable_warnings(true));
    auto first = std::make_unique<best>();
    auto second = std::make_unique<team>();
    CHECK(first->available());
    inclusive_scan(*first, in, out);
    CHECK(out == std::vector<int>{3, 4, 8, 9, 14});
    inclusive_scan(*second, in, out, maximum{});
    second->synchronize();
    CHECK(out == std::vector<int>{3, 3, 4, 4, 5});
    Kokkos::finalize();

    CHECK_FALSE(first->available());
    CHECK(second->available().reason.find("finalised") != std::string::npos);
    CHECK(message_of([&] { inclusive_scan(*first, in, out); }).find("before Kokkos::finalize()") != std::string::npos);
    CHECK(message_of([&] { inclusive_scan(*second, in, out); }).find("before Kokkos::finalize()") != std::string::npos);
    CHECK(message_of([&] { second->synchronize(); }).find("finalised") != std::string::npos);
    CHECK(message_of([] { best(); }).find("finalised") != std::string::npos);
    // An object that outlives Kokkos goes without asking it for anything.
    first.reset();
    second.reset();
}

} // namespace
} // namespace polyscan::test
