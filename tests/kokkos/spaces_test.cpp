// SPDX-License-Identifier: Apache-2.0
/// What only the Kokkos backend has: views, execution-space instances, several host threads, both forms side by side.
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <polyscan/kokkos.hpp>
#include <polyscan/reference.hpp>

#include "running.hpp"

namespace polyscan::test {
namespace {

using space = Kokkos::DefaultHostExecutionSpace;
using best = kokkos::backend<space>;
using team = kokkos::backend<space, kokkos::form::team>;

std::vector<std::int64_t> numbers(index_type n) {
    std::vector<std::int64_t> x;
    for (index_type i = 0; i < n; ++i) x.push_back((i * 2654435761u >> 7) % 1000 - 500);
    return x;
}

std::vector<std::int64_t> sums(const std::vector<std::int64_t>& x) { return reference::sequential(x, plus{}); }

template <class View>
std::vector<std::int64_t> contents(const View& view) {
    return {view.data(), view.data() + view.extent(0)};
}

TEST_CASE_TEMPLATE("views: managed, const, unmanaged, subview, in place", Backend, best, team) {
    start_kokkos();
    Backend scans;
    const index_type n = 20'000;
    const auto x = numbers(n);
    Kokkos::View<std::int64_t*, Kokkos::HostSpace> in("in", x.size()), out("out", x.size());
    std::copy(x.begin(), x.end(), in.data());

    SUBCASE("const input") {
        const Kokkos::View<const std::int64_t*, Kokkos::HostSpace> constant = in;
        inclusive_scan(scans, constant, out);
        scans.synchronize();
        CHECK(contents(out) == sums(x));
    }
    SUBCASE("unmanaged output") {
        std::vector<std::int64_t> memory(x.size());
        using unmanaged = Kokkos::View<std::int64_t*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
        inclusive_scan(scans, in, unmanaged(memory.data(), memory.size()));
        scans.synchronize();
        CHECK(memory == sums(x));
    }
    SUBCASE("contiguous subview") {
        const auto part = Kokkos::subview(in, std::pair<std::size_t, std::size_t>(5, 9'005));
        const auto place = Kokkos::subview(out, std::pair<std::size_t, std::size_t>(1, 9'001));
        inclusive_scan(scans, part, place);
        scans.synchronize();
        CHECK(contents(place) == sums({x.begin() + 5, x.begin() + 9'005}));
        CHECK(out(0) == 0);
        CHECK(out(9'001) == 0);
    }
    SUBCASE("in place, exclusive, with a total in a view of rank 0's memory") {
        Kokkos::View<std::int64_t, Kokkos::HostSpace> total("total");
        exclusive_scan(scans, in, in, std::int64_t{7}, plus{}, policies::prefix_server, total_to{total.data()});
        scans.synchronize();
        auto expected = reference::sequential(x, plus{}, std::optional<std::int64_t>(7));
        CHECK(total() == expected.back());
        CHECK(contents(in) == reference::outputs(expected, scan_kind::exclusive, std::optional<std::int64_t>(7)));
    }
    SUBCASE("partial overlap is refused") {
        const auto first = Kokkos::subview(in, std::pair<std::size_t, std::size_t>(0, 100));
        const auto second = Kokkos::subview(in, std::pair<std::size_t, std::size_t>(50, 150));
        CHECK_THROWS_AS(inclusive_scan(scans, first, second), std::invalid_argument);
    }
    SUBCASE("empty view") {
        Kokkos::View<std::int64_t*, Kokkos::HostSpace> nothing("nothing", 0);
        std::int64_t total = -1;
        inclusive_scan(scans, nothing, nothing, plus{}, default_policy{}, total_to{&total});
        scans.synchronize();
        CHECK(total == 0);
    }
}

// A strided view does not compile; core names the reason ("polyscan scans contiguous views").
static_assert(!detail::has_unit_stride<Kokkos::LayoutStride>);
static_assert(detail::has_unit_stride<Kokkos::LayoutLeft> && detail::has_unit_stride<Kokkos::LayoutRight>);

TEST_CASE_TEMPLATE("calls on one instance are in order with other kernels of it", Backend, best, team) {
    const space instance = instance_of<space>(2);
    Backend scans(instance);
    const index_type n = 50'000;
    Kokkos::View<std::int64_t*, Kokkos::HostSpace> v("v", n);
    for (int round = 1; round <= 20; ++round) {
        Kokkos::parallel_for(Kokkos::RangePolicy<space>(instance, 0, n), [=](index_type i) { v(i) = round; });
        inclusive_scan(scans, v, v, plus{}, policies::domino);
        inclusive_scan(scans, v, v, maximum{}, policies::look_back);
        Kokkos::parallel_for(Kokkos::RangePolicy<space>(instance, 0, n), [=](index_type i) { v(i) -= round * i; });
    }
    scans.synchronize();
    CHECK(contents(v) == std::vector<std::int64_t>(static_cast<std::size_t>(n), 20));
}

// Reported elsewhere (kokkos#9291): the scratch of one host thread's scan was overwritten by another's.
template <class Backend, class MakeInstance>
int failures_of_eight_threads(const MakeInstance& instance) {
    std::vector<int> failures(8);
    std::vector<std::thread> threads;
    for (std::size_t id = 0; id < failures.size(); ++id) {
        threads.emplace_back([&failures, id, &instance] {
            Backend scans(instance(static_cast<int>(id)));
            for (index_type n = 10'000; n > 0; n -= 1'000) {
                const auto x = numbers(n);
                std::vector<std::int64_t> y(x.size());
                const auto check = [&](auto policy) {
                    inclusive_scan(scans, x, y, plus{}, policy);
                    scans.synchronize();
                    if (y != sums(x)) ++failures[id];
                };
                check(policies::prefix_server);
                check(policies::three_pass);
                check(policies::domino);
                check(policies::look_back);
            }
        });
    }
    int all = 0;
    for (std::size_t id = 0; id < failures.size(); ++id) {
        threads[id].join();
        all += failures[id];
    }
    return all;
}

TEST_CASE_TEMPLATE("eight host threads, one instance", Backend, best, team) {
    start_kokkos();
    CHECK(failures_of_eight_threads<Backend>([](int) { return space(); }) == 0);
}

TEST_CASE_TEMPLATE("eight host threads, an instance each", Backend, best, team) {
    start_kokkos();
    const auto instances = Kokkos::Experimental::partition_space(space(), std::vector<int>(8, 1));
    CHECK(failures_of_eight_threads<Backend>([&](int id) { return instances[static_cast<std::size_t>(id)]; }) == 0);
}

// Descriptors are left as they are between calls: nothing of an earlier call may be taken for the present one, whatever
// the width of the value, and however the workspace grew.
TEST_CASE("one workspace, many calls of different types, lengths and algorithms") {
    start_kokkos();
    team scans;
    int wrong = 0;
    const auto check = [&]<class T>(std::type_identity<T>, index_type n, auto policy, unsigned seed) {
        std::vector<T> x;
        for (index_type i = 0; i < n; ++i)
            x.push_back(static_cast<T>((static_cast<unsigned>(i) + seed) * 2654435761u >> 20));
        std::vector<T> y(x.size());
        inclusive_scan<T>(scans, x, y, plus{}, policy);
        scans.synchronize();
        if (y != reference::policy_order(policy, x, plus{})) ++wrong;
    };
    for (unsigned round = 0; round < 60; ++round) {
        const index_type n = (round * 7919u) % 40'000 + 1;
        check(std::type_identity<float>{}, n, policies::prefix_server, round);
        check(std::type_identity<double>{}, n, policies::prefix_server, round);
        check(std::type_identity<std::uint64_t>{}, n, policies::look_back, round);
        check(std::type_identity<std::uint8_t>{}, n, policies::domino, round);
        check(std::type_identity<double>{}, n, policies::look_back, round);
        check(std::type_identity<float>{}, n, policies::three_pass, round);
        check(std::type_identity<std::int32_t>{}, n, policies::domino, round);
    }
    CHECK(wrong == 0);
}

// The same, aimed: each call leaves values that would read as a status of the next call, if the two shared memory.
TEST_CASE("a value left behind is not taken for a status") {
    start_kokkos();
    team scans;
    std::vector<double> x(20'000, 0.5), y(x.size());
    const auto expected = reference::policy_order(policies::domino, x, plus{});
    for (std::uint32_t call = 1; call < 60; call += 2) {
        const std::uint32_t next = tile_status::pack(call + 1, tile_state::carry);
        std::vector<std::uint32_t> small(x.size(), next);
        inclusive_scan(scans, small, small, maximum{}, policies::domino);
        inclusive_scan(scans, x, y, plus{}, policies::domino);
        scans.synchronize();
        CHECK(y == expected);
    }
}

// Members of a team are held up at random places, so that a missing barrier shows.
struct hesitant_plus {
    double operator()(const double& earlier, const double& later) const {
        thread_local unsigned calls = 0;
        if (++calls * 2654435761u >> 27 == 0) std::this_thread::yield();
        return earlier + later;
    }
};

TEST_CASE("members of a team wait for each other") {
    start_kokkos();
    std::vector<double> x, y;
    for (int i = 0; i < 9'000; ++i) x.push_back(1.0 / (i + 1));
    y.resize(x.size());
    for (const int members : {2, 3}) {
        kokkos::options with;
        with.team_size = members;
        team scans(instance_of<space>(members), with);
        for (int round = 0; round < 5; ++round) {
            for_each_policy([&](auto policy) {
                inclusive_scan(scans, x, y, hesitant_plus{}, policy);
                scans.synchronize();
                INFO(policy.name(), ", members: ", members);
                CHECK(y == reference::policy_order(policy, x, plus{}));
            });
        }
    }
}

TEST_CASE("options are checked") {
    start_kokkos();
    kokkos::options wrong;
    wrong.threads = -1;
    CHECK_THROWS_WITH_AS(best{wrong}, "threads: must not be negative", std::invalid_argument);
    wrong.threads = 0;
    wrong.team_size = -1;
    CHECK_THROWS_WITH_AS(best{wrong}, "team_size: must not be negative", std::invalid_argument);
}

struct throws_at_zero {
    int operator()(int earlier, int later) const {
        if (later == 0) throw std::domain_error("zero");
        return earlier + later;
    }
};

TEST_CASE("an operator's exception passes through, from any number of threads") {
    start_kokkos();
    kokkos::options with;
    with.parallel_bytes = 0;
    best scans(with);
    std::vector<int> x(100'000, 1), y(x.size());
    x[77'777] = 0;
    for_each_policy([&](auto policy) {
        CHECK_THROWS_AS(inclusive_scan(scans, x, y, throws_at_zero{}, policy), std::domain_error);
    });
    x[77'777] = 1;
    inclusive_scan(scans, x, y, throws_at_zero{});
    CHECK(y.back() == 100'000);
}

} // namespace
} // namespace polyscan::test
