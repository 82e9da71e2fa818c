// SPDX-License-Identifier: Apache-2.0
/// Forward progress of the OpenMP backend, under a time limit: more threads than processors, fewer granted than asked
/// for, tiles that are late, threads that start in the wrong order. Every call must end, with the right result.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <ranges>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <omp.h>

#include <polyscan/openmp.hpp>

#include "inputs.hpp"
#include "reduced.hpp"

namespace polyscan::test {
namespace {

/// The right outputs, once per length.
using element_type = affine<std::uint64_t>;

const std::vector<element_type>& right(index_type n) {
    static std::map<index_type, std::vector<element_type>> known;
    auto& y = known[n];
    if (y.empty() && n > 0) y = reference::sequential(make_input<cases::affine_uint64>(n, 7), compose_affine{});
    return y;
}

/// A scan with an operator that shows every lost, repeated or swapped tile.
template <class Backend, class Policy>
bool good(const Backend& on, Policy how, index_type n) {
    static std::map<index_type, std::vector<element_type>> inputs;
    auto& x = inputs[n];
    if (x.empty() && n > 0) x = make_input<cases::affine_uint64>(n, 7);
    std::vector<element_type> y(x.size());
    inclusive_scan(on, x, y, compose_affine{}, how);
    return y == right(n);
}

/// The grid algorithms over one block algorithm: what differs in progress is between tiles.
void every_grid(auto check) {
    for_each_policy([&]<class Grid, class Block>(policy<Grid, Block> how) {
        if constexpr (std::is_same_v<Block, block::warp_shuffle>) {
            CAPTURE(how.name());
            check(how);
        }
    });
}

constexpr index_type section = openmp::tuning::section_bytes / index_type{sizeof(element_type)};
/// Something to do for every one of 72 threads, more than once for a few.
const index_type many_sections = rounds(80, 16) * section + 1'000;

openmp::backend with_threads(int threads) { return openmp::backend(openmp::options{threads, 0}); }

TEST_CASE("granted: 1 to 72 threads asked for, on whatever the runtime grants") {
    every_grid([](auto how) {
        for (int threads = 1; threads <= 72; threads += threads < 3 ? 1 : rounds(1, 69)) {
            const auto on = with_threads(threads);
            REQUIRE(good(on, how, 1'000)); // the reported length
            if (reduced() || threads <= 16 || threads % 8 == 1 || threads == 72) REQUIRE(good(on, how, many_sections));
        }
    });
}

TEST_CASE("granted: fewer elements than threads") {
    every_grid([](auto how) {
        for (int threads = 1; threads <= rounds(16, 4); ++threads)
            for (index_type n = 0; n <= 2 * threads; ++n) REQUIRE(good(with_threads(threads), how, n));
    });
}

TEST_CASE("granted: inside a parallel region, every thread its own scan") {
    every_grid([](auto how) {
        std::atomic<int> wrong = 0, calls = 0;
        constexpr index_type n = 9 * section + 5;
        (void)right(n), (void)good(with_threads(1), how, n); // the tables are filled before they are shared
#pragma omp parallel num_threads(4)
        {
            ++calls;
            for (int i = 0; i < rounds(5, 2); ++i)
                if (!good(with_threads(8), how, n)) ++wrong;
        }
        CHECK(calls >= 1);
        CHECK(wrong == 0);
    });
}

TEST_CASE("granted: one backend object, eight host threads") {
    const auto on = with_threads(3);
    std::atomic<int> wrong = 0;
    const auto each_length = [](auto visit) {
        for (index_type n = 6 * section; n >= 100; n -= section / 2) visit(n);
    };
    each_length([&](index_type n) { (void)right(n), (void)good(on, default_policy{}, n); });
    std::vector<std::jthread> hosts;
    for (int host = 0; host < 8; ++host)
        hosts.emplace_back([&] {
            each_length([&](index_type n) {
                if (!good(on, default_policy{}, n)) ++wrong;
            });
        });
    hosts.clear();
    CHECK(wrong == 0);
}

/// Late tiles: the elements at the head of some tiles take a while to load.
struct late {
    index_type every;
    int milliseconds;
    std::int64_t operator()(std::int64_t i) const {
        if (i % every == every / 2) std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
        return i;
    }
};

TEST_CASE("granted: late tiles") {
    const std::int64_t n = rounds(40, 10) * 16'384; // sections of 8-byte elements
    std::vector<std::int64_t> out(static_cast<std::size_t>(n));
    every_grid([&](auto how) {
        for (const int threads : {2, 5, 16}) {
            const auto on = with_threads(threads);
            // One late tile that all wait for, then one in every few sections.
            for (const late delay : {late{n + 1, 0}, late{n / 2, 30}, late{5 * 16'384, 3}}) {
                std::ranges::fill(out, -1);
                inclusive_scan(on, std::views::iota(std::int64_t{0}, n), out, plus{}, how, with_transform{delay});
                std::int64_t sum = 0;
                bool all_right = true;
                for (std::int64_t i = 0; i < n; ++i)
                    all_right = all_right && out[static_cast<std::size_t>(i)] == (sum += i);
                CHECK(all_right);
            }
        }
    });
}

/// A team of std::threads that start in a chosen order, each only after the one before has finished or fallen asleep.
struct chosen_team {
    enum class order { reverse, one_after_the_other, staggered } how;

    template <class Worker>
    void run(int threads, Worker&& worker) const {
        openmp::failure shared;
        std::vector<std::thread> team;
        std::atomic<int> started = 0;
        for (int i = 0; i < std::max(1, threads); ++i) {
            team.emplace_back([&, i] {
                if (how == order::reverse) {
                    // The last thread goes first; the first, which a launch index would give tile 0, last.
                    while (started != threads - 1 - i) std::this_thread::yield();
                    ++started;
                } else if (how == order::staggered) {
                    std::this_thread::sleep_for(std::chrono::microseconds(200 * (i % 3)));
                }
                openmp::run_guarded(shared, worker);
            });
            // One resident worker is enough: the first does everything before the second exists.
            if (how == order::one_after_the_other) team.back().join();
        }
        for (std::thread& each : team)
            if (each.joinable()) each.join();
        shared.rethrow();
    }
};

TEST_CASE("workers started in reverse, one after the other, staggered") {
    using order = chosen_team::order;
    for (const order how : {order::reverse, order::one_after_the_other, order::staggered}) {
        for (const int threads : {1, 2, 7, rounds(33, 9)}) {
            const openmp::basic_backend<chosen_team> on(openmp::options{threads, 0}, chosen_team{how});
            every_grid([&](auto policy) {
                CAPTURE(static_cast<int>(how));
                CAPTURE(threads);
                REQUIRE(good(on, policy, many_sections));
            });
        }
    }
}

TEST_CASE("an operator that throws in one thread ends all of them, in any start order") {
    struct refuse {
        std::int64_t limit;
        std::int64_t operator()(std::int64_t a, std::int64_t b) const {
            if (a + b > limit) throw std::range_error("limit");
            return a + b;
        }
    };
    using order = chosen_team::order;
    const std::int64_t n = rounds(40, 10) * 16'384;
    const std::vector<std::int64_t> in(static_cast<std::size_t>(n), 1);
    std::vector<std::int64_t> out(in.size());
    for (const order how : {order::reverse, order::one_after_the_other, order::staggered}) {
        const openmp::basic_backend<chosen_team> on(openmp::options{8, 0}, chosen_team{how});
        every_grid([&](auto policy) {
            for (const std::int64_t limit : {std::int64_t{2}, std::int64_t{3'000}, n / 2, n - 1})
                CHECK_THROWS_AS(inclusive_scan(on, in, out, refuse{limit}, policy), std::range_error);
            inclusive_scan(on, in, out, refuse{1'000'000}, policy);
            CHECK(out.back() == n);
        });
    }
}

TEST_CASE("many scans in a row") {
    // Random data, so that a hand-over that is sometimes too early shows.
    const auto on = with_threads(4);
    every_grid([&](auto how) {
        for (int run = 0; run < rounds(200, 20); ++run) REQUIRE(good(on, how, 8 * section + run % 7));
    });
}

} // namespace
} // namespace polyscan::test
