// SPDX-License-Identifier: Apache-2.0
/// histogram against a count by the definition of each kind of bins: elements and bounds of many types, few and many
/// bins, bounds inside of the data, elements on the edges, long and empty inputs, run-time counts. A failing cell names
/// all of that. The last line says how many cells ran.
///
/// POLYSCAN_TEST_BACKEND names the header that defines `backend_under_test`.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include "inputs.hpp"
#include "sort.hpp"
#include "under_test.hpp"

namespace polyscan::test {
namespace {

// --- what is right ---------------------------------------------------------------------------------------------------

/// a < b as numbers; floating-point operands by C++'s rules.
template <class A, class B>
bool less(A a, B b) {
    if constexpr (std::is_integral_v<A> && std::is_integral_v<B>)
        return std::cmp_less(a, b);
    else
        return a < b;
}

template <class In, class Level>
index_type even_bin(In x, Level lower, Level upper, index_type bins) {
    if constexpr (std::is_integral_v<In> && std::is_integral_v<Level>) {
        if (less(x, lower) || !less(x, upper)) return -1;
        __extension__ using wide = __int128;
        return static_cast<index_type>((wide{x} - wide{lower}) * bins / (wide{upper} - wide{lower}));
    } else {
        using number = std::conditional_t<std::is_same_v<In, float> && std::is_same_v<Level, float>, float, double>;
        const auto value = static_cast<number>(x), low = static_cast<number>(lower), high = static_cast<number>(upper);
        if (!(low <= value && value < high)) return -1;
        const number scale = static_cast<number>(bins) / (high - low);
        const number difference = value - low;
        return std::min(bins - 1, static_cast<index_type>(std::floor(difference * scale)));
    }
}

/// The judge's rule: the last edge that is not greater (std::upper_bound, as numpy.searchsorted with side='right').
template <class In, class Level>
index_type edge_bin(In x, const std::vector<Level>& edges) {
    if (x != x) return -1;
    const auto above = std::upper_bound(edges.begin(), edges.end(), x, [](In a, Level b) { return less(a, b); });
    if (above == edges.begin() || above == edges.end()) return -1;
    return above - edges.begin() - 1;
}

// --- inputs ----------------------------------------------------------------------------------------------------------

/// Elements around and beyond [lower, upper]; every ninth is an edge of the bins, or NaN.
template <class In, class Level>
std::vector<In> make_elements(index_type n, Level lower, Level upper, const std::vector<Level>& edges,
                              std::uint64_t seed) {
    std::vector<In> x;
    for (index_type i = 0; i < n; ++i) {
        const std::uint64_t r = random_bits(seed, i);
        if (i % 9 == 0) {
            x.push_back(static_cast<In>(edges[r % edges.size()]));
        } else if constexpr (std::is_floating_point_v<In>) {
            const double low = static_cast<double>(lower), width = static_cast<double>(upper) - low;
            x.push_back(i % 31 == 1 ? std::numeric_limits<In>::quiet_NaN()
                                    : static_cast<In>(low + width * (static_cast<double>(r >> 11) * 0x1.2p-53 - 0.06)));
        } else if (i % 2 == 0) {
            x.push_back(static_cast<In>(r)); // anywhere
        } else {
            const double low = static_cast<double>(lower), width = static_cast<double>(upper) - low;
            const double chosen = low + width * (static_cast<double>(r >> 11) * 0x1.2p-53 - 0.06);
            const double most = std::nextafter(static_cast<double>(std::numeric_limits<In>::max()), 0.0);
            x.push_back(static_cast<In>(std::clamp(chosen, static_cast<double>(std::numeric_limits<In>::min()), most)));
        }
    }
    return x;
}

template <class Level>
std::vector<Level> make_edges(Level lower, Level upper, index_type bins, std::uint64_t seed) {
    std::vector<Level> edges{lower, upper};
    for (index_type i = 1; i < bins; ++i) {
        const double part = static_cast<double>(random_bits(seed, i) >> 11) * 0x1p-53;
        const double chosen =
            static_cast<double>(lower) + part * (static_cast<double>(upper) - static_cast<double>(lower));
        // Some twice: bins of no width.
        edges.push_back(i % 7 == 3 ? edges.back() : static_cast<Level>(chosen));
    }
    std::sort(edges.begin(), edges.end());
    return edges;
}

template <class T>
struct on_device {
    std::shared_ptr<std::byte> memory;
    on_device(target& on, const std::vector<T>& values)
        : memory(on.allocate(static_cast<index_type>(values.size() * sizeof(T)))) {
        on.copy_to_device(memory.get(), reinterpret_cast<const std::byte*>(values.data()),
                          static_cast<index_type>(values.size() * sizeof(T)));
    }
    T* data() const { return reinterpret_cast<T*>(memory.get()); }
};

/// Counts between two guards; they hold rubbish before the call.
template <class Count>
std::vector<Count> guarded_counts(index_type bins) {
    return std::vector<Count>(static_cast<std::size_t>(bins) + 2, Count{77});
}

enum class by { even_bins, edges };

template <class In, class Level, class Count>
void check_histogram(target& on, by which, index_type n, index_type bins, Level lower, Level upper, std::uint64_t seed,
                     index_type live = -1) {
    const std::string cell = std::string(backend_type::name()) + " histogram of " + std::to_string(sizeof(In)) +
                             (std::is_integral_v<In> ? " bytes, integers, by " : " bytes, floating, by ") +
                             (which == by::edges ? "edges" : "even bins") + ", n = " + std::to_string(n) +
                             ", live = " + std::to_string(live) + ", bins = " + std::to_string(bins) + ", [" +
                             std::to_string(lower) + ", " + std::to_string(upper) + "), workers " +
                             std::to_string(on.workers());
    const auto edges = make_edges(lower, upper, bins, seed);
    const auto x = make_elements<In>(n, lower, upper, edges, seed);
    const on_device<In> in(on, x);
    const on_device<Level> edges_there(on, edges);
    const on_device<Count> counts(on, guarded_counts<Count>(bins));
    const on_device<index_type> live_there(on, std::vector<index_type>{live});
    histogram_arguments<In, Level, Count> a;
    a.in = in.data();
    a.size = n;
    a.live = live >= 0 ? live_there.data() : nullptr;
    a.counts = counts.data() + 1;
    a.bins = bins;
    a.lower = lower;
    a.upper = upper;
    a.edges = which == by::edges ? edges_there.data() : nullptr;
    auto right = guarded_counts<Count>(bins), found = right;
    std::fill(right.begin() + 1, right.end() - 1, Count{0});
    try {
        run_histogram(object(on), a);
        on.synchronize();
    } catch (const std::exception& error) {
        return cells.fail(cell + ": " + error.what());
    }
    on.copy_to_host(reinterpret_cast<std::byte*>(found.data()), reinterpret_cast<const std::byte*>(counts.data()),
                    static_cast<index_type>(found.size() * sizeof(Count)));
    for (index_type i = 0; i < (live >= 0 ? std::min(n, live) : n); ++i) {
        const In element = x[static_cast<std::size_t>(i)];
        const index_type bin = which == by::edges ? edge_bin(element, edges) : even_bin(element, lower, upper, bins);
        if (bin >= 0) ++right[static_cast<std::size_t>(bin) + 1];
    }
    if (found == right)
        cells.pass();
    else
        cells.fail(cell + ": wrong counts");
}

/// Bounds that fit the type, with room on both sides where it has that.
template <class In, class Level>
std::pair<Level, Level> bounds(int which) {
    if constexpr (std::is_same_v<In, std::uint8_t>) {
        return which == 0 ? std::pair<Level, Level>{0, 256} : std::pair<Level, Level>{17, 201};
    } else if constexpr (std::is_integral_v<Level>) {
        if (which == 0) return {static_cast<Level>(-1000), static_cast<Level>(3001)};
        return {std::numeric_limits<Level>::min() / 2, std::numeric_limits<Level>::max() / 3};
    } else {
        return which == 0 ? std::pair<Level, Level>{Level(-1.25), Level(3.1)} : std::pair<Level, Level>{0, 10};
    }
}

template <class In, class Level, class Count>
void check_all(std::string_view name) {
    if (skipped(name)) return;
    for (const auto& each : targets())
        for (const by which : {by::even_bins, by::edges}) {
            std::uint64_t seed = 1;
            // One bin; few; a byte's; around the most that four sets (1025) or shared memory (8193) hold.
            for (const index_type bins : {1, 3, 256, 1025, 8192, 8193})
                // Nothing; one; a few; a piece of a host's and a rest.
                for (const index_type n : {0, 1, 1000, 33'000})
                    for (const int b : {0, 1}) {
                        // (upper - lower) bins < 2^64
                        if (b == 1 && std::is_integral_v<Level> && sizeof(Level) == 8 && bins > 1) continue;
                        const auto [lower, upper] = bounds<In, Level>(b);
                        if (n <= longest_input)
                            check_histogram<In, Level, Count>(*each, which, n, bins, lower, upper, ++seed);
                    }
            const auto [lower, upper] = bounds<In, Level>(0);
            for (const index_type live : {0, 1, 500, 1000, 5000})
                check_histogram<In, Level, Count>(*each, which, 1000, 20, lower, upper, ++seed, live);
            if (longest_input > 300'000)
                check_histogram<In, Level, Count>(*each, which, 300'000, 256, lower, upper, ++seed);
        }
}

#define POLYSCAN_TEST_HISTOGRAM(in, level, count)                                                                      \
    TEST_CASE("histogram: " #in ", " #level ", " #count) { check_all<in, level, count>("histogram of " #in); }
POLYSCAN_HISTOGRAM_CASES(POLYSCAN_TEST_HISTOGRAM)

TEST_CASE("histogram: more bins than are counted beside the output") {
    if (skipped("many bins") || longest_input < 1'000'000) return;
    target& on = *targets().front();
    check_histogram<float, float, std::int32_t>(on, by::even_bins, 100'000, 9'000'000, -1.0f, 2.0f, 3);
    check_histogram<std::int32_t, std::int32_t, std::int32_t>(on, by::even_bins, 100'000, 9'000'000, -5'000'000,
                                                              5'000'000, 4);
}

TEST_CASE("histogram: skewed data, where all elements fall into one bin") {
    if (skipped("skewed data")) return;
    for (const auto& each : targets()) {
        const index_type n = std::min<index_type>(longest_input, 200'000);
        const on_device<std::uint8_t> in(*each, std::vector<std::uint8_t>(static_cast<std::size_t>(n), 200));
        const on_device<std::uint32_t> counts(*each, std::vector<std::uint32_t>(256, 9));
        histogram_arguments<std::uint8_t, int, std::uint32_t> a;
        a.in = in.data();
        a.size = n;
        a.counts = counts.data();
        a.bins = 256;
        a.lower = 0;
        a.upper = 256;
        run_histogram(object(*each), a);
        each->synchronize();
        std::vector<std::uint32_t> found(256), right(256);
        right[200] = static_cast<std::uint32_t>(n);
        each->copy_to_host(reinterpret_cast<std::byte*>(found.data()), reinterpret_cast<std::byte*>(counts.data()),
                           256 * 4);
        CHECK(found == right);
    }
}

TEST_CASE("histogram: an iterator as input") {
    if (skipped("iterators")) return;
    for (const auto& each : targets()) {
        const index_type n = 3000, bins = 10;
        const on_device<std::int32_t> counts(*each, std::vector<std::int32_t>(static_cast<std::size_t>(bins), 9));
        run_histogram_of_squares(object(*each), n, counts.data(), bins);
        each->synchronize();
        std::vector<std::int32_t> found(static_cast<std::size_t>(bins)), right(found.size());
        for (index_type i = 0; i < n; ++i) ++right[static_cast<std::size_t>(i * i * bins / (n * n))];
        each->copy_to_host(reinterpret_cast<std::byte*>(found.data()), reinterpret_cast<std::byte*>(counts.data()),
                           bins * 4);
        CHECK(found == right);
    }
}

TEST_CASE("for_each: every index once") {
    if (skipped("for_each")) return;
    for (const auto& each : targets())
        for (const index_type n : {0, 1, 511, 513, 50'000}) {
            CAPTURE(n);
            std::vector<index_type> right(static_cast<std::size_t>(n) + 1, -1), found = right;
            const on_device<index_type> out(*each, right);
            for (index_type i = 0; i < n; ++i) right[static_cast<std::size_t>(i)] = 3 * i;
            run_for_each(object(*each), n, out.data());
            each->synchronize();
            each->copy_to_host(reinterpret_cast<std::byte*>(found.data()), reinterpret_cast<std::byte*>(out.data()),
                               static_cast<index_type>(found.size() * sizeof(index_type)));
            CHECK(found == right);
        }
}

// --- refused calls ---------------------------------------------------------------------------------------------------

TEST_CASE("histogram: what is refused, before anything is written") {
    if (skipped("refused histograms")) return;
    backend_type& on = object(*targets().front());
    auto in = on.template allocate<float>(100), edges = on.template allocate<float>(11);
    auto counts = on.template allocate<std::int32_t>(10);
    using arguments = histogram_arguments<float, float, std::int32_t>;
    const arguments good{in.data(), 100, nullptr, counts.data(), 10, 0.0f, 1.0f, nullptr};
    CHECK(refusal([&] { run_histogram(on, good); }) == "not refused");
    const auto refused = [&](auto change) {
        arguments bad = good;
        change(bad);
        return refusal([&] { run_histogram(on, bad); });
    };
    constexpr float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
    CHECK(refused([](arguments& a) { a.upper = a.lower; }).starts_with("bins: lower must be less than upper"));
    CHECK(refused([](arguments& a) { a.upper = nan; }).starts_with("bins: lower must be less than upper"));
    CHECK(refused([](arguments& a) { a.upper = infinity; }).starts_with("bins: upper - lower and the number"));
    CHECK(refused([](arguments& a) { a.upper = 1e-45f; }).starts_with("bins: upper - lower and the number"));
    CHECK(refused([](arguments& a) { a.bins = 0; }) == "counts: there must be a bin");
    CHECK(refused([](arguments& a) { a.counts = nullptr; }) == "counts: is null although it has elements");
    CHECK(refused([](arguments& a) { a.in = nullptr; }) == "in: is null although it has elements");
    CHECK(refused([](arguments& a) {
              a.counts = reinterpret_cast<std::int32_t*>(const_cast<float*>(a.in)) + 90;
          }).starts_with("counts: overlaps in"));
    CHECK(refused([&](arguments& a) {
              a.edges = edges.data();
              a.counts = reinterpret_cast<std::int32_t*>(edges.data());
          }).starts_with("counts: overlaps edges"));
    auto wide = on.template allocate<std::int64_t>(1);
    auto wide_counts = on.template allocate<std::uint64_t>(3);
    CHECK(refusal([&] {
              run_histogram(on, histogram_arguments<std::int64_t, std::int64_t, std::uint64_t>{
                                    wide.data(), 1, nullptr, wide_counts.data(), 3,
                                    std::numeric_limits<std::int64_t>::min() / 2,
                                    std::numeric_limits<std::int64_t>::max() / 2, nullptr});
          }).starts_with("bins: upper - lower times the number of bins must be less than 2^64"));
#ifdef POLYSCAN_TEST_HOST
    std::vector<float> x(10);
    std::vector<int> bins(3);
    CHECK(refusal([&] { histogram(on, x, bins, std::vector<float>{1, 2, 3}); }).starts_with("edges: has 3 elements"));
    CHECK(refusal([&] { histogram(on, x, bins.data(), even_bins{0, 1}); }).starts_with("counts: a bare pointer"));
#endif
}

#ifdef POLYSCAN_TEST_HOST
/// Backends with a histogram of their own that work in the host's memory look at the edges.
template <class Backend>
concept looks_at_edges =
    requires(Backend& b,
             const polyscan::detail::histogram_request<const float*, polyscan::detail::searched_bins<float>, int>& r) {
        b.histogram(r);
    };

TEST_CASE("histogram: edges out of order are refused") {
    if (!looks_at_edges<backend_type>) return;
    backend_type& on = object(*targets().front());
    const std::vector<float> x(10);
    std::vector<int> counts(2, 5);
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    for (const auto& edges : {std::vector<float>{1, 0, 2}, std::vector<float>{0, 2, 1}, std::vector<float>{0, nan, 2},
                              std::vector<float>{nan, 1, 2}})
        CHECK(refusal([&] { histogram(on, x, counts, edges); }).starts_with("edges: edge "));
    CHECK(counts == std::vector<int>(2, 5));
}
#endif

TEST_CASE("histogram: the documentation's examples") {
    if (skipped("examples")) return;
    target& on = *targets().front();
    const on_device<float> in(on, {0.1f, 0.7f, 0.9f, 2.5f}), edges(on, {0.0f, 0.5f, 0.8f, 1.0f, 100.0f});
    const on_device<std::int32_t> counts(on, {9, 9, 9, 9});
    histogram_arguments<float, float, std::int32_t> a;
    a.in = in.data();
    a.size = 4;
    a.counts = counts.data();
    a.bins = 4;
    a.upper = 1.0f;
    std::vector<std::int32_t> found(4);
    const auto run = [&] {
        run_histogram(object(on), a);
        on.synchronize();
        on.copy_to_host(reinterpret_cast<std::byte*>(found.data()), reinterpret_cast<std::byte*>(counts.data()), 16);
        return found;
    };
    CHECK(run() == std::vector<std::int32_t>{1, 0, 1, 1});
    a.edges = edges.data();
    CHECK(run() == std::vector<std::int32_t>{1, 1, 1, 1});
    // Each form of the kernels once: what sanitizers run.
    check_histogram<float, float, std::int32_t>(on, by::even_bins, 20'000, 256, -1.0f, 2.0f, 1);
    check_histogram<std::int64_t, std::int64_t, std::uint64_t>(on, by::edges, 20'000, 9000, -1000, 20'000, 2);
}

} // namespace
} // namespace polyscan::test
