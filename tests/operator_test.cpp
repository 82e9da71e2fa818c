// SPDX-License-Identifier: Apache-2.0
/// What an operator on the host gets to see, how often, and what becomes of its exceptions.
#include <algorithm>
#include <atomic>
#include <memory>
#include <ranges>
#include <stdexcept>
#include <vector>

#include <doctest/doctest.h>

#include "inputs.hpp"
#include "reduced.hpp"
#include POLYSCAN_TEST_BACKEND

namespace polyscan::test {
namespace {

/// A sum that counts its calls, marks results of unreal operands (add_marked), and throws when a result reaches a
/// limit.
struct observed_plus {
    std::atomic<index_type>* calls;
    std::uint32_t limit = ~0u;

    marked operator()(const marked& earlier, const marked& later) const {
        calls->fetch_add(1, std::memory_order_relaxed);
        const marked sum = add_marked{}(earlier, later);
        if (sum.value >= limit) throw std::runtime_error("the operator has had enough");
        return sum;
    }
};

std::vector<marked> ones(std::size_t n) { return std::vector<marked>(n, marked{marked::good, 1}); }

TEST_CASE("the operator is called on nothing but elements and their combinations, and not for one element") {
    auto on = backend_under_test::make(backend_under_test::concurrencies().front());
    for_each_policy([&](auto how) {
        CAPTURE(how.name());
        std::atomic<index_type> calls = 0;
        const observed_plus op{&calls};
        const std::vector<marked> in = ones(rounds(100'001u, 30'001u));
        std::vector<marked> out(in.size(), marked{0, 0});
        inclusive_scan(on, counted(in.data(), 1), out, op, how);
        CHECK(calls == 0);
        CHECK(out[0] == in[0]);
        exclusive_scan(on, counted(in.data(), 0), out, in[0], op, how);
        CHECK(calls == 0);
        inclusive_scan(on, counted(in.data(), 1), out, op, how, with_init{in[0]});
        CHECK(out[0].value == 2);
        CHECK(calls.load() <= 3); // the output, the total, what would be the next carry
        CHECK(out[1].mark == 0);
        for (const std::size_t n : {std::size_t{1'025}, std::size_t{20'000}, in.size()}) {
            calls = 0;
            inclusive_scan(on, counted(in.data(), n), out, op, how);
            CHECK(calls.load() >= static_cast<index_type>(n) - 1);
            CHECK(calls.load() <= 25 * static_cast<index_type>(n)); // at most two logarithmic passes over a tile
            CHECK(std::ranges::all_of(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(n),
                                      [](const marked& m) { return m.mark == marked::good; }));
            CHECK(out[n - 1].value == n);
        }
    });
}

/// The same on plain numbers, which backends may handle in vectors: real operands lie in a range that zero, garbage and
/// other inputs' values are not in.
template <class T>
struct watched_plus {
    std::atomic<index_type>* calls;
    std::atomic<index_type>* unreal;
    T limit;

    T operator()(T earlier, T later) const {
        calls->fetch_add(1, std::memory_order_relaxed);
        if (!(earlier >= 1 && earlier <= limit && later >= 1 && later <= limit))
            unreal->fetch_add(1, std::memory_order_relaxed);
        return static_cast<T>(earlier + later);
    }
};

TEST_CASE_TEMPLATE("on plain numbers, too", T, std::int32_t, double) {
    auto on = backend_under_test::make(backend_under_test::concurrencies().front());
    for_each_policy([&]<class Grid, class Block>(policy<Grid, Block> how) {
        if constexpr (std::is_same_v<Block, block::warp_shuffle>) {
            CAPTURE(how.name());
            std::atomic<index_type> calls = 0, unreal = 0;
            for (const std::size_t n : {1u, 2u, 3u, 5u, 31u, 64u, 127u, 129u, 1'000u, 8'193u, 100'001u}) {
                // Nothing else in the memory is in the range.
                std::vector<T> in(n + 64, T(-5)), out(n + 64, T(-5));
                std::fill_n(in.begin(), n, T(1));
                const watched_plus<T> op{&calls, &unreal, static_cast<T>(n)};
                inclusive_scan(on, counted(in.data(), n), out, op, how);
                CHECK(unreal.load() == 0);
                CHECK(out[n - 1] == static_cast<T>(n));
                CHECK(out[n] == T(-5));
                if (n == 1) CHECK(calls.load() == 0);
            }
        }
    });
}

TEST_CASE("an exception of the operator passes through, and the backend can be used again") {
    const std::uint32_t n = rounds(300'000u, 70'000u);
    const std::vector<marked> in = ones(n);
    std::vector<marked> out(in);
    for (const int workers : backend_under_test::concurrencies()) {
        auto on = backend_under_test::make(workers);
        for_each_policy([&](auto how) {
            CAPTURE(how.name());
            CAPTURE(workers);
            std::atomic<index_type> calls = 0;
            // In the first tile, where tiles are reduced, where carries are made, at the end.
            for (const std::uint32_t limit : {2u, 900u, 5'000u, n / 2, n - 1})
                CHECK_THROWS_AS(inclusive_scan(on, in, out, observed_plus{&calls, limit}, how), std::runtime_error);
            inclusive_scan(on, in, out, observed_plus{&calls}, how);
            CHECK(out.back().value == n);
        });
    }
}

struct throwing_transform {
    int at;
    int operator()(int value) const {
        if (value == at) throw std::out_of_range("element");
        return 1;
    }
};

TEST_CASE("an exception of the transform passes through") {
    auto on = backend_under_test::make(backend_under_test::concurrencies().front());
    constexpr int n = 100'000;
    std::vector<int> out(n);
    for_each_policy([&]<class Grid, class Block>(policy<Grid, Block> how) {
        if constexpr (std::is_same_v<Block, block::warp_shuffle>)
            for (const int at : {0, 50'000, n - 1})
                CHECK_THROWS_AS(inclusive_scan(on, std::views::iota(0, n), out, plus{}, how,
                                               with_transform{throwing_transform{at}}),
                                std::out_of_range);
    });
}

/// Owns its value: an element that was never constructed, or is used after its end, shows (under a sanitizer at the
/// latest).
struct owner {
    std::shared_ptr<int> value;
};
struct add_owners {
    owner operator()(const owner& a, const owner& b) const { return {std::make_shared<int>(*a.value + *b.value)}; }
};

TEST_CASE("elements that own memory are constructed, copied and destroyed properly") {
    auto on = backend_under_test::make(backend_under_test::concurrencies().front());
    const auto one = std::make_shared<int>(1);
    for_each_policy([&]<class Grid, class Block>(policy<Grid, Block> how) {
        if constexpr (std::is_same_v<Block, block::warp_shuffle> || std::is_same_v<Block, block::coarse>) {
            const std::vector<owner> in(9'000, owner{one});
            {
                std::vector<owner> out(in.size());
                inclusive_scan(on, in, out, add_owners{}, how);
                CHECK(*out.back().value == 9'000);
                exclusive_scan(on, out, out, owner{one}, add_owners{}, how);
                CHECK(*out[1].value == 2);
            }
            CHECK(one.use_count() == 9'001);
        }
    });
}

} // namespace
} // namespace polyscan::test
