// SPDX-License-Identifier: Apache-2.0
/// Properties that need no oracle, for every policy that promises them. Calls go through the seam of launch.hpp, so
/// that a backend with a compiler of its own is tested by the same file.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "inputs.hpp"
#include "matrix.hpp"
#include POLYSCAN_TEST_BACKEND

namespace polyscan::test {
namespace {

using backend_type = backend_under_test::type;

template <class T>
using values = std::vector<T>;

/// A policy by name, on a backend object.
class subject {
public:
    subject(target_of<backend_type>& on, std::string policy) : on_(on), policy_(std::move(policy)) {}

    const std::string& policy() const { return policy_; }
    bool left_fold() const { return !policy_.starts_with("three_pass"); }
    std::string block() const { return policy_.substr(policy_.find('/') + 1); }
    template <class Case>
    index_type tile() const {
        index_type elements = 0;
        visit_policy(policy_, [&]<class Grid, class Block>(polyscan::policy<Grid, Block>) {
            elements = shape_for<Block, typename Case::accumulator_type>.elements();
        });
        return elements;
    }

    /// One call from and to host memory.
    template <class Case>
    auto scan(std::span<const typename Case::in_type> x,
              const std::optional<typename Case::accumulator_type>& init = {}, scan_kind kind = scan_kind::inclusive,
              typename Case::accumulator_type* total = nullptr) const {
        using T = typename Case::accumulator_type;
        static_assert(std::is_same_v<T, typename Case::in_type> && std::is_same_v<T, typename Case::out_type>);
        const auto bytes = static_cast<index_type>(x.size_bytes());
        const auto in = on_.allocate(bytes), out = on_.allocate(bytes), sum = on_.allocate(sizeof(T));
        on_.copy_to_device(in.get(), reinterpret_cast<const std::byte*>(x.data()), bytes);
        case_arguments<Case> arguments;
        arguments.in = reinterpret_cast<const T*>(in.get());
        arguments.out = reinterpret_cast<T*>(out.get());
        arguments.size = static_cast<index_type>(x.size());
        arguments.kind = kind;
        arguments.init = init;
        arguments.total = total != nullptr ? reinterpret_cast<T*>(sum.get()) : nullptr;
        run_case<backend_type, Case>(on_.object(), policy_, arguments);
        on_.synchronize();
        values<T> y(x.size());
        on_.copy_to_host(reinterpret_cast<std::byte*>(y.data()), out.get(), bytes);
        if (total != nullptr) on_.copy_to_host(reinterpret_cast<std::byte*>(total), sum.get(), sizeof(T));
        return y;
    }

private:
    target_of<backend_type>& on_;
    std::string policy_;
};

/// Calls `check(subject)` for every policy, the numbers of workers in turn.
void every_policy(auto check) {
    const std::vector<int> workers = backend_under_test::concurrencies();
    std::size_t turn = 0;
    for_each_policy([&](auto how) {
        target_of<backend_type> on(workers[turn++ % workers.size()], backend_under_test::make);
        if (const polyscan::availability here = on.object().available(); !here) {
            if (turn == 1) MESSAGE("skipped: ", here.reason);
            return;
        }
        CAPTURE(how.name());
        check(subject(on, how.name()));
    });
}

template <class T>
bool same(std::span<const T> a, std::span<const T> b) {
    return std::ranges::equal(a, b, [](const T& x, const T& y) { return same_bits(x, y); });
}

template <class Case, class T = typename Case::accumulator_type>
void check_chunks(const subject& policy) {
    const index_type tile = policy.tile<Case>();
    const values<T> x = make_input<Case>(6 * tile + tile / 3, 21);
    const std::span<const T> all(x);
    const values<T> whole = policy.scan<Case>(all);
    for (const index_type cut : {tile, 2 * tile, 5 * tile}) {
        const auto rest = static_cast<std::size_t>(cut);
        CHECK(same<T>(policy.scan<Case>(all.subspan(rest), whole[rest - 1]), std::span(whole).subspan(rest)));
    }
    values<T> chained;
    for (std::size_t first = 0; first < x.size(); first = chained.size()) {
        const std::optional<T> carry = chained.empty() ? std::nullopt : std::optional<T>(chained.back());
        const std::size_t length = std::min(static_cast<std::size_t>(tile), x.size() - first);
        for (const T& y : policy.scan<Case>(all.subspan(first, length), carry)) chained.push_back(y);
    }
    CHECK(same<T>(chained, whole));
}

TEST_CASE("the last output of a tile is the next carry: a chunk that ends there continues from it") {
    every_policy([](const subject& policy) {
        if (!policy.left_fold()) return;
        check_chunks<cases::float_plus>(policy);
        check_chunks<cases::affine_double>(policy);
        check_chunks<cases::permutation5>(policy);
    });
}

TEST_CASE("float sums of non-negative input never decrease") {
    every_policy([](const subject& policy) {
        // Only these: the other trees have inputs whose sums decrease (docs/determinism.md shows some).
        if (!policy.left_fold() || policy.block() != "warp_shuffle") return;
        for (const std::uint64_t seed : {1u, 2u, 3u}) {
            values<float> x = make_input<cases::float_plus>(300'000, seed);
            // Magnitudes over 2^40, some zero: most sums do not change at all, and must not fall by a rounding.
            for (std::size_t i = 0; i < x.size(); ++i) x[i] = i % 11 == 0 ? 0.0f : std::fabs(x[i]);
            CHECK(std::ranges::is_sorted(policy.scan<cases::float_plus>(x)));
        }
    });
}

TEST_CASE("outputs do not depend on what follows") {
    every_policy([](const subject& policy) {
        using plus_case = cases::float_plus;
        const index_type tile = policy.tile<plus_case>();
        const values<float> x = make_input<plus_case>(5 * tile + 77, 31);
        const values<float> y = policy.scan<plus_case>(x);
        for (const index_type n : {index_type{1}, index_type{33}, tile - 1, tile, tile + 1, 3 * tile + 5, 5 * tile}) {
            const auto length = static_cast<std::size_t>(n);
            CHECK(same<float>(policy.scan<plus_case>(std::span(x).first(length)), std::span(y).first(length)));
            // What follows is poison: its NaN must not arrive earlier, and must not get lost.
            values<float> poisoned = x;
            std::fill(poisoned.begin() + n, poisoned.end(), std::numeric_limits<float>::quiet_NaN());
            const values<float> z = policy.scan<plus_case>(poisoned);
            CHECK(same<float>(std::span(z).first(length), std::span(y).first(length)));
            CHECK(std::all_of(z.begin() + n, z.end(), [](float value) { return std::isnan(value); }));
        }
    });
}

TEST_CASE("exclusive is inclusive with a shifted store, and the total is the last inclusive output") {
    every_policy([](const subject& policy) {
        using plus_case = cases::float_plus;
        const index_type tile = policy.tile<plus_case>();
        for (const index_type n : {index_type{1}, index_type{2}, tile, 4 * tile + 13}) {
            const values<float> x = make_input<plus_case>(n, 41);
            float total = 0;
            const values<float> y = policy.scan<plus_case>(x, 0.1f, scan_kind::inclusive, &total);
            CHECK(same_bits(total, y.back()));
            total = 0;
            const values<float> z = policy.scan<plus_case>(x, 0.1f, scan_kind::exclusive, &total);
            CHECK(same_bits(total, y.back()));
            CHECK(same_bits(z.front(), 0.1f));
            CHECK(same<float>(std::span(z).subspan(1), std::span(y).first(y.size() - 1)));
        }
    });
}

TEST_CASE("policies with the same block algorithm and a left fold over the tiles agree in every bit") {
    const values<double> x = make_input<cases::double_plus>(60'000, 51);
    std::map<std::string, values<double>> first;
    every_policy([&](const subject& policy) {
        if (!policy.left_fold()) return;
        const values<double> y = policy.scan<cases::double_plus>(x);
        CHECK(same<double>(y, first.emplace(policy.block(), y).first->second));
    });
}

TEST_CASE("the same call again gives the same bits, whatever the number of workers") {
    // The reported kind: x_i = frac(i pi), a million elements, differences from element 38400 on.
    values<float> x;
    for (index_type i = 0; i < 1'000'000; ++i) {
        const double product = static_cast<double>(i) * 3.14159265358979323846;
        x.push_back(static_cast<float>(product - std::floor(product)));
    }
    std::optional<std::uint64_t> first;
    for (const int workers : backend_under_test::concurrencies()) {
        target_of<backend_type> on(workers, backend_under_test::make);
        if (!on.object().available()) return;
        const subject policy(on, default_policy::name());
        for (int run = 0; run < 25; ++run) {
            const std::uint64_t hash = fnv1a(policy.scan<cases::float_plus>(x));
            if (!first) first = hash;
            REQUIRE(hash == *first);
        }
    }
}

} // namespace
} // namespace polyscan::test
