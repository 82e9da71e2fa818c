// SPDX-License-Identifier: Apache-2.0
/// Inputs that broke other scan libraries; each test case names where it was reported. The kinds are in the matrix;
/// these are the very inputs, with the right values written out.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>
#include <ranges>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "inputs.hpp"
#include POLYSCAN_TEST_BACKEND

namespace polyscan::test {
namespace {

backend_under_test::type ordinary() { return backend_under_test::make(backend_under_test::concurrencies().front()); }

/// Each number of workers, with the default policy: what differs between policies is in the matrix.
void every_concurrency(auto check) {
    for (const int workers : backend_under_test::concurrencies()) {
        CAPTURE(workers);
        auto on = backend_under_test::make(workers);
        check(on);
    }
}

template <class T>
std::vector<T> from_to(T first, T last) {
    std::vector<T> values(static_cast<std::size_t>(last - first + 1));
    std::iota(values.begin(), values.end(), first);
    return values;
}

constexpr double infinity = std::numeric_limits<double>::infinity();

// --- accumulator type ------------------------------------------------------------------------------------------------

TEST_CASE("NVIDIA/cub#384, NVIDIA/cccl#880: uint8 into uint64 does not wrap at 256") {
    auto on = ordinary();
    const std::vector<std::uint8_t> in(260, 1);
    std::vector<std::uint64_t> out(260);
    inclusive_scan(on, in, out);
    CHECK(out == from_to<std::uint64_t>(1, 260));
}

TEST_CASE("NVIDIA/thrust#1170: int8 in, int init 200") {
    auto on = ordinary();
    const std::vector<std::int8_t> in{100, 100, -100};
    std::vector<int> wide(3);
    inclusive_scan(on, in, wide, plus{}, default_policy{}, with_init{200});
    CHECK(wide == std::vector<int>{300, 400, 300});
    exclusive_scan(on, in, wide, 200);
    CHECK(wide == std::vector<int>{200, 300, 400});
    // Into int8 the accumulator is still int: the total tells.
    std::vector<std::int8_t> narrow(3);
    int total = 0;
    exclusive_scan(on, in, narrow, 200, plus{}, default_policy{}, total_to{&total});
    CHECK(total == 300);
    CHECK(narrow == std::vector<std::int8_t>{static_cast<std::int8_t>(200), static_cast<std::int8_t>(300),
                                             static_cast<std::int8_t>(400)});
}

TEST_CASE("AMReX-Codes/amrex#5732: doubles are not truncated, 64-bit sums do not wrap") {
    auto on = ordinary();
    const std::vector<double> halves{0.5, 1.25, 2.5};
    std::vector<double> sums(3);
    exclusive_scan(on, halves, sums, 0); // a literal int as init: the output still decides
    CHECK(sums == std::vector<double>{0, 0.5, 1.75});
    const std::vector<std::int64_t> large{2147483647, 2, 3};
    std::vector<std::int64_t> out(3);
    exclusive_scan(on, large, out);
    CHECK(out == std::vector<std::int64_t>{0, 2147483647, 2147483649});
}

TEST_CASE("llnl/RAJA#2004: char to int") {
    auto on = ordinary();
    const std::vector<char> in(300, 1);
    std::vector<int> out(300);
    exclusive_scan(on, in, out);
    CHECK(out == from_to(0, 299));
}

TEST_CASE("kokkos/kokkos#5545, #5556: types under 4 bytes over several tiles, with total") {
    every_concurrency([](auto& on) {
        const auto check = [&]<class T>(T) {
            const std::vector<T> in = make_input<test_case<T, T, T, plus>>(50'000, 3);
            std::vector<T> out(in.size());
            T total = 0;
            inclusive_scan(on, in, out, plus{}, default_policy{}, total_to{&total});
            const auto right = reference::sequential(in, plus{});
            CHECK(out == right);
            CHECK(total == right.back());
        };
        check(std::int8_t{});
        check(std::int16_t{});
    });
}

// --- operand order ---------------------------------------------------------------------------------------------------

TEST_CASE("NVIDIA/cccl#8242, #8259: fill forward over several tiles") {
    every_concurrency([](auto& on) {
        std::vector<int> in(100'003, fill_forward::none), right(in.size()), out(in.size());
        for (std::size_t i = 0; i < in.size(); i += 8191) in[i] = static_cast<int>(i); // a prime period
        int last = fill_forward::none;
        for (std::size_t i = 0; i < in.size(); ++i) right[i] = last = in[i] == fill_forward::none ? last : in[i];
        inclusive_scan(on, in, out, fill_forward{});
        CHECK(out == right);
        exclusive_scan(on, in, out, 77, fill_forward{});
        CHECK(out[0] == 77);
        CHECK(std::equal(out.begin() + 1, out.end(), right.begin()));
    });
}

TEST_CASE("TheHPXProject/hpx#1958: concatenation of a to z, in chunks") {
    auto on = ordinary();
    std::vector<std::string> letters, out(26);
    for (char c = 'a'; c <= 'z'; ++c) letters.emplace_back(1, c);
    for_each_policy([&]<class Grid, class Block>(policy<Grid, Block> how) {
        if constexpr (std::is_same_v<Block, block::kogge_stone>) {
            inclusive_scan(on, letters, out, concatenate{}, how);
            CHECK(out.back() == "abcdefghijklmnopqrstuvwxyz");
            exclusive_scan(on, letters, out, std::string("0"), concatenate{}, how);
            CHECK(out.back() == "0abcdefghijklmnopqrstuvwxy");
        }
    });
}

/// Pairs (x, g), then (y, h), give (x h + y, g h).
struct moving_average {
    std::array<double, 2> operator()(const std::array<double, 2>& a, const std::array<double, 2>& b) const {
        return {a[0] * b[1] + b[0], a[1] * b[1]};
    }
};

TEST_CASE("triton-lang/triton#2359: a recurrence over 64 and 128 elements") {
    auto on = ordinary();
    for (const std::size_t n : {64u, 128u}) {
        std::vector<std::array<double, 2>> in, out(n);
        for (std::size_t i = 0; i < n; ++i) in.push_back({static_cast<double>(i % 7), i % 3 == 0 ? 0.5 : 0.25});
        inclusive_scan(on, in, out, moving_average{});
        double average = 0;
        for (std::size_t i = 0; i < n; ++i) {
            average = average * in[i][1] + in[i][0]; // exact: few bits, powers of two
            CHECK(std::fabs(out[i][0] - average) <= 1e-12 * (1 + average));
        }
    }
}

// --- init ------------------------------------------------------------------------------------------------------------

TEST_CASE("TheHPXProject/hpx#1390: init counts once") {
    every_concurrency([](auto& on) {
        const std::vector<int> in{1, 1, 2, 2, 3, 3, 4, 4};
        std::vector<int> out(8);
        inclusive_scan(on, in, out, plus{}, default_policy{}, with_init{100});
        CHECK(out == std::vector<int>{101, 102, 104, 106, 109, 112, 116, 120});
    });
}

TEST_CASE("JuliaGPU/CUDA.jl#1227: 513 ones, init 1") {
    auto on = ordinary();
    const std::vector<int> in(513, 1);
    std::vector<int> out(513);
    inclusive_scan(on, in, out, plus{}, default_policy{}, with_init{1});
    CHECK(out == from_to(2, 514));
}

TEST_CASE("NVIDIA/cccl#6317, #6560: no made-up neutral element") {
    every_concurrency([](auto& on) {
        std::vector<std::uint64_t> factors(5'000), out(5'000);
        for (std::size_t i = 0; i < factors.size(); ++i) factors[i] = i % 100 == 0 ? 2 : 1;
        inclusive_scan(on, factors, out, multiplies{});
        CHECK(out[4'999] == std::uint64_t{1} << 50);
        std::vector<int> positive(5'000), least(5'000);
        for (int i = 0; i < 5'000; ++i) positive[static_cast<std::size_t>(i)] = 6'000 - i;
        inclusive_scan(on, positive, least, minimum{});
        CHECK(least == positive);
    });
}

TEST_CASE("JuliaGPU/AcceleratedKernels.jl#127, #84: the last element of a block counts") {
    auto on = ordinary();
    std::vector<int> in(1'024), out(1'024);
    in[511] = in[599] = 1;
    for_each_policy([&]<class Grid, class Block>(policy<Grid, Block> how) {
        if constexpr (std::is_same_v<Grid, grid::look_back>) {
            exclusive_scan(on, in, out, no_init, plus{}, how);
            CHECK(std::all_of(out.begin(), out.begin() + 512, [](int v) { return v == 0; }));
            CHECK(std::all_of(out.begin() + 512, out.begin() + 600, [](int v) { return v == 1; }));
            CHECK(std::all_of(out.begin() + 600, out.end(), [](int v) { return v == 2; }));
        }
    });
}

// --- in place --------------------------------------------------------------------------------------------------------

TEST_CASE("uxlfoundation/oneDPL#514, #637; llvm/llvm-project#59810; AMReX-Codes/amrex#2105: exclusive in place") {
    every_concurrency([](auto& on) {
        std::vector<int> pi{3, 1, 4, 1, 5, 9, 2, 6};
        exclusive_scan(on, pi, pi, 0);
        CHECK(pi == std::vector<int>{0, 3, 4, 8, 9, 14, 23, 25});
        std::vector<int> ones(10, 1);
        exclusive_scan(on, ones, ones, 0);
        CHECK(ones == from_to(0, 9));
        std::vector<int> values(700);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 13 == 0;
        values.back() = 5;
        int total = 0;
        std::vector<int> in_place = values;
        exclusive_scan(on, in_place, in_place, 0, plus{}, default_policy{}, total_to{&total});
        CHECK(total == std::accumulate(values.begin(), values.end(), 0));
        std::vector<int> right(values.size());
        std::exclusive_scan(values.begin(), values.end(), right.begin(), 0);
        CHECK(in_place == right);
    });
}

// --- few elements, workers -------------------------------------------------------------------------------------------

TEST_CASE("llnl/RAJA#229: fewer elements than workers") {
    for (const int workers : {1, 2, 3, 5, 8, 16}) {
        auto on = backend_under_test::make(workers);
        for (int n = 0; n <= 2 * workers; ++n) {
            std::vector<int> in = from_to(1, n), out(in.size());
            inclusive_scan(on, in, out);
            for (int i = 0; i < n; ++i) CHECK(out[static_cast<std::size_t>(i)] == (i + 1) * (i + 2) / 2);
        }
    }
}

// --- alignment -------------------------------------------------------------------------------------------------------

TEST_CASE("NVIDIA/cccl#8838: int32 to int64, output shifted by one") {
    auto on = ordinary();
    const std::vector<std::int32_t> in{5, 7};
    std::vector<std::int64_t> out{-1, -1, -1, -1};
    inclusive_scan(on, in, out.data() + 1);
    CHECK(out == std::vector<std::int64_t>{-1, 5, 12, -1});
}

// --- concurrency -----------------------------------------------------------------------------------------------------

TEST_CASE("kokkos/kokkos#9291, #9300: eight host threads, a backend object each") {
    std::atomic<int> wrong = 0;
    std::vector<std::jthread> hosts;
    for (int host = 0; host < 8; ++host)
        hosts.emplace_back([&wrong, host] {
            auto on = backend_under_test::make(2);
            for (int n = 10'000; n >= 100; n -= 100) {
                std::vector<int> in(static_cast<std::size_t>(n), host + 1), out(in.size());
                inclusive_scan(on, in, out);
                for (int i = 0; i < n; ++i)
                    if (out[static_cast<std::size_t>(i)] != (i + 1) * (host + 1)) ++wrong;
            }
        });
    hosts.clear();
    CHECK(wrong == 0);
}

TEST_CASE("kokkos/kokkos#2681: many scans of several tiles, random data") {
    auto on = ordinary();
    std::vector<std::uint64_t> in = make_input<cases::uint64_plus>(50 * 4'096, 9), out(in.size());
    for (int run = 0; run < 100; ++run) {
        in[static_cast<std::size_t>(run) * 1'000] += 1;
        inclusive_scan(on, in, out, plus{}, policies::look_back);
        REQUIRE(out.back() == std::accumulate(in.begin(), in.end(), std::uint64_t{0}));
    }
}

// --- iterators -------------------------------------------------------------------------------------------------------

TEST_CASE("llnl/RAJA#1202, #1228: const input") {
    auto on = ordinary();
    const int in[] = {1, 2, 3};
    int out[3];
    const int* const first = in;
    inclusive_scan(on, counted(first, 3), out);
    CHECK(out[2] == 6);
    exclusive_scan(on, counted(first, 3), &out[0]);
    CHECK(out[2] == 3);
}

// --- NaN, infinity, zero ---------------------------------------------------------------------------------------------

TEST_CASE("NVIDIA/cudf#17933: after an overflow to infinity, infinity") {
    auto on = ordinary();
    std::vector<double> in;
    for (int i = 0; i < 90; ++i)
        in.push_back(i % 9 == 0 ? 0.0 : std::ldexp(1.5, i % 2 == 0 ? -1'020 + i : 1'023 - (89 - i) / 2));
    std::vector<double> out(in.size());
    const auto right = reference::sequential(in, plus{});
    REQUIRE(std::isinf(right.back()));
    REQUIRE(std::isfinite(right[right.size() / 2]));
    for_each_policy([&]<class Grid, class Block>(policy<Grid, Block> how) {
        if constexpr (std::is_same_v<Grid, grid::single_block>) {
            inclusive_scan(on, in, out, plus{}, how);
            CHECK(std::isinf(out.back()));
            const auto first = std::ranges::find(out, infinity);
            CHECK(std::all_of(first, out.end(), [](double v) { return v == infinity; }));
        }
    });
}

TEST_CASE("pytorch/pytorch#88556: a product that starts with zero") {
    auto on = ordinary();
    std::vector<float> in, out(100);
    for (int i = 0; i < 100; ++i) in.push_back(static_cast<float>(i) * 0.5f);
    inclusive_scan(on, in, out, multiplies{});
    // Sklansky's tree forms products of later elements first, and one that overflows meets the zero: the policy
    // decides, and docs/determinism.md says so. Same bits as the oracle, and zero where no overflow comes in.
    const auto right = reference::policy_order(default_policy{}, in, multiplies{});
    for (std::size_t i = 0; i < in.size(); ++i) CHECK(same_bits(out[i], right[i]));
    CHECK(std::all_of(out.begin(), out.begin() + 32, [](float v) { return v == 0; }));
}

struct log_sum_exp {
    double operator()(double a, double b) const {
        const double high = std::max(a, b), low = std::min(a, b);
        return low == -infinity ? high : high + std::log1p(std::exp(low - high));
    }
};

TEST_CASE("pytorch/pytorch#52213: log-sum-exp with repeated -inf") {
    auto on = ordinary();
    const std::vector<double> in{2, -infinity, -infinity, 1};
    std::vector<double> out(4);
    inclusive_scan(on, in, out, log_sum_exp{});
    CHECK(out[0] == 2);
    CHECK(out[1] == 2);
    CHECK(out[2] == 2);
    CHECK(out[3] == doctest::Approx(2.3133).epsilon(1e-4));
}

TEST_CASE("NVIDIA/cccl#1388, NVIDIA/cub#642: minimum of infinities is infinite") {
    auto on = ordinary();
    std::vector<double> in(10, infinity), out(10);
    inclusive_scan(on, in, out, minimum{});
    CHECK(out == in);
    exclusive_scan(on, in, out, no_init, minimum{});
    CHECK(out == in);
    in.assign(10, -infinity);
    inclusive_scan(on, in, out, maximum{});
    CHECK(out == in);
    exclusive_scan(on, in, out, no_init, maximum{});
    CHECK(out == in);
}

TEST_CASE("flagos-ai/FlagGems#790: a running maximum does not ignore NaN") {
    auto on = ordinary();
    const std::vector<double> in{1, std::numeric_limits<double>::quiet_NaN(), 3};
    std::vector<double> out(3);
    inclusive_scan(on, in, out, maximum{});
    CHECK(out[0] == 1);
    CHECK(std::isnan(out[1]));
    CHECK(std::isnan(out[2]));
}

// --- segments and keys -----------------------------------------------------------------------------------------------

TEST_CASE("NVIDIA/cccl#2061: the first offset is not 0") {
    every_concurrency([](auto& on) {
        const std::vector<int> in{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, offsets{5, 9, 9, 12};
        std::vector<int> out(12, -1);
        inclusive_segmented_scan(on, in, segment_offsets(offsets), out);
        CHECK(out == std::vector<int>{-1, -1, -1, -1, -1, 6, 13, 21, 30, 10, 21, 33});
        // Far from 0, and the room ends where the segments do.
        const std::vector<index_type> late{99'990, 99'995, 100'000};
        const std::vector<int> ones(100'000, 1);
        std::vector<int> sums(100'000, -1);
        exclusive_segmented_scan(on, ones, segment_offsets(late), sums);
        CHECK(sums[99'989] == -1);
        CHECK(std::vector<int>(sums.end() - 10, sums.end()) == std::vector<int>{0, 1, 2, 3, 4, 0, 1, 2, 3, 4});
        // As far before 0 and behind the end as numbers go.
        const std::vector<index_type> widest{std::numeric_limits<index_type>::min(), 99'999,
                                             std::numeric_limits<index_type>::max()};
        inclusive_segmented_scan(on, ones, segment_offsets(widest), sums);
        CHECK(sums[99'998] == 99'999);
        CHECK(sums[99'999] == 1);
    });
}

TEST_CASE("AccelerateHS/accelerate#188: no segments, or only empty ones") {
    auto on = ordinary();
    const std::vector<int> in{1, 2, 3};
    for (const std::vector<int>& offsets : {std::vector<int>{}, {0}, {0, 0, 0}, {3, 3}, {2, 2, 2}}) {
        std::vector<int> out(3, -1);
        inclusive_segmented_scan(on, in, segment_offsets(offsets), out);
        CHECK(out == std::vector<int>(3, -1));
    }
    const std::vector<int> nothing;
    std::vector<int> out;
    inclusive_segmented_scan(on, nothing, segment_offsets(std::vector<int>{0, 0}), out);
    inclusive_segmented_scan(on, nothing, head_flags(nothing), out);
    index_type count = 7;
    reduce_by_key(on, nothing, nothing, out, out, &count);
    CHECK(count == 0);
}

TEST_CASE("Bears-R-Us/arkouda#1055: a resetting sum over segments that span several workers") {
    // 32 elements per worker and more; segments of three workers' shares.
    every_concurrency([](auto& on) {
        for (const std::size_t n : {std::size_t{32}, std::size_t{32} * 8192}) {
            std::vector<int> heads(n, 0), right(n), out(n);
            const std::vector<int> ones(n, 1);
            for (std::size_t i = 0; i < n; i += 3 * n / 8) heads[i] = 1;
            for (std::size_t i = 0; i < n; ++i) right[i] = heads[i] != 0 || i == 0 ? 1 : right[i - 1] + 1;
            inclusive_segmented_scan(on, ones, head_flags(heads), out);
            CHECK(out == right);
        }
    });
}

TEST_CASE("ROCm/rocm-libraries#1835: the output over the keys") {
    auto on = ordinary();
    std::vector<int> keys{1, 1, 2, 2};
    const std::vector<int> in{1, 2, 3, 4};
    CHECK_THROWS_WITH_AS(inclusive_scan_by_key(on, keys, in, keys), doctest::Contains("out: overlaps keys"),
                         std::invalid_argument);
    CHECK(keys == std::vector<int>{1, 1, 2, 2});
    // Over the values it is well defined.
    std::vector<int> values = in;
    inclusive_scan_by_key(on, keys, values, values);
    CHECK(values == std::vector<int>{1, 3, 3, 7});
}

// --- compaction ------------------------------------------------------------------------------------------------------

TEST_CASE("TheHPXProject/hpx#1962: copy_if in place is refused") {
    auto on = ordinary();
    std::vector<int> values = from_to(0, 11);
    index_type count = 0;
    const auto even = [](int x) { return x % 2 == 0; };
    CHECK_THROWS_WITH_AS(copy_if(on, values, values, &count, even), doctest::Contains("out: overlaps in"),
                         std::invalid_argument);
    CHECK(values == from_to(0, 11));
    std::vector<int> out(12, -1);
    copy_if(on, values, out, &count, even);
    CHECK(count == 6);
    CHECK(out == std::vector<int>{0, 2, 4, 6, 8, 10, -1, -1, -1, -1, -1, -1});
}

TEST_CASE("ROCm/rocPRIM#376: partitions of one element more than some number") {
    every_concurrency([](auto& on) {
        for (const index_type n : {513, 1024, 1025, 4097, 40'961}) {
            CAPTURE(n);
            const std::vector<int> in = from_to(0, static_cast<int>(n) - 1);
            std::vector<int> out(in.size()), right = in;
            const auto divisible = [](int x) { return x % 3 == 0; };
            std::stable_partition(right.begin(), right.end(), divisible);
            index_type count = 0;
            partition(on, in, out, &count, divisible);
            CHECK(count == (n + 2) / 3);
            CHECK(out == right);
        }
    });
}

// --- no value yet ----------------------------------------------------------------------------------------------------

TEST_CASE("kokkos/kokkos#6065: joining with nothing on either side") {
    using cell = polyscan::write<int>;
    const cell x{4, true}, empty{0, false};
    CHECK(last_write_wins{}(x, empty) == x);
    CHECK(last_write_wins{}(empty, x) == x);
    CHECK(!last_write_wins{}(empty, empty).present);
    auto on = ordinary();
    const std::vector<cell> in{empty, empty, x, empty};
    std::vector<cell> out(4);
    inclusive_scan(on, in, out, last_write_wins{});
    CHECK(!out[1].present);
    CHECK(out[2] == x);
    CHECK(out[3] == x);
}

} // namespace
} // namespace polyscan::test
