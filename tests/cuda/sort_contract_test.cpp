// SPDX-License-Identifier: Apache-2.0
/// Sorts, histograms and selections on the CUDA backend: graphs, workspace, few blocks, scans in between, CUB as the
/// judge. Where there is no device, every test is skipped and says so.
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "cuda/backend_cuda.hpp"
#include "inputs.hpp"
#include "needs_device.hpp"
#include "sort.hpp"
#include "sort_contract_runs.hpp"

namespace polyscan::test {
namespace {

using uint32 = std::uint32_t;

std::vector<uint32> numbers(index_type n, std::uint64_t seed, uint32 mask = ~uint32{0}) {
    std::vector<uint32> x;
    for (index_type i = 0; i < n; ++i) x.push_back(static_cast<uint32>(random_bits(seed, i)) & mask);
    return x;
}

/// A sort of keys, and what should come out.
struct experiment {
    cuda::backend& on;
    index_type n;
    cuda::buffer<uint32> in, out;
    std::vector<uint32> expected;

    experiment(cuda::backend& backend, index_type size, std::uint64_t seed = 1, uint32 mask = ~uint32{0})
        : on(backend), n(size), in(size), out(size) {
        refill(seed, mask);
    }
    void refill(std::uint64_t seed, uint32 mask = ~uint32{0}) {
        expected = numbers(n, seed, mask);
        on.copy_to_device(in.data(), expected.data(), n);
        std::sort(expected.begin(), expected.end());
    }
    void start(bool in_place = false) {
        sort_arguments<uint32, keys_only> a;
        a.keys = in.data();
        a.keys_out = in_place ? in.data() : out.data();
        a.size = n;
        run_sort(on, a);
    }
    bool right(bool in_place = false) {
        std::vector<uint32> y(static_cast<std::size_t>(n));
        on.copy_to_host(y.data(), in_place ? in.data() : out.data(), n);
        return y == expected;
    }
};

/// A stream of its own, since the default stream cannot be captured.
struct stream {
    cudaStream_t handle = nullptr;
    stream() { cuda::check(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking), "cudaStreamCreateWithFlags"); }
    stream(const stream&) = delete;
    stream& operator=(const stream&) = delete;
    ~stream() { static_cast<void>(cudaStreamDestroy(handle)); }
};

struct graph {
    cudaGraphExec_t handle = nullptr;
    template <class Work>
    graph(cudaStream_t on, Work work) {
        cudaGraph_t captured = nullptr;
        cuda::check(cudaStreamBeginCapture(on, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
        work();
        cuda::check(cudaStreamEndCapture(on, &captured), "cudaStreamEndCapture");
        cuda::check(cudaGraphInstantiate(&handle, captured, 0), "cudaGraphInstantiate");
        static_cast<void>(cudaGraphDestroy(captured));
    }
    graph(const graph&) = delete;
    graph& operator=(const graph&) = delete;
    ~graph() { static_cast<void>(cudaGraphExecDestroy(handle)); }
};

} // namespace

TEST_CASE("a captured sort can be replayed with data that need other passes") {
    NEEDS_DEVICE();
    stream own;
    cuda::backend on(own.handle);
    for (const bool in_place : {false, true}) {
        CAPTURE(in_place);
        experiment e(on, 100'000);
        e.start(in_place);
        REQUIRE(e.right(in_place));
        graph captured(own.handle, [&] { e.start(in_place); });
        // Four passes, one, two of four, none.
        std::uint64_t seed = 2;
        for (const uint32 mask : {~uint32{0}, uint32{0xff00}, uint32{0xff00ff00}, uint32{0}, uint32{0xfffff}}) {
            CAPTURE(mask);
            e.refill(++seed, mask);
            cuda::check(cudaGraphLaunch(captured.handle, own.handle), "cudaGraphLaunch");
            CHECK(e.right(in_place));
        }
        // A longer sort moves the workspace; the graph keeps what it captured.
        experiment longer(on, 1'000'000);
        longer.start();
        CHECK(longer.right());
        e.refill(9);
        cuda::check(cudaGraphLaunch(captured.handle, own.handle), "cudaGraphLaunch");
        CHECK(e.right(in_place));
    }
}

TEST_CASE("a capture that would have to grow the workspace is refused, and scratch() grows it beforehand") {
    NEEDS_DEVICE();
    stream own;
    cuda::backend on(own.handle);
    experiment e(on, 50'000);
    on.synchronize();
    graph nothing(own.handle, [&] { CHECK_THROWS_AS(e.start(), backend_error); });
    static_cast<void>(on.scratch<unsigned char>(static_cast<index_type>(sort_workspace_bytes_uint32(e.n))));
    on.synchronize();
    graph captured(own.handle, [&] { e.start(); });
    cuda::check(cudaGraphLaunch(captured.handle, own.handle), "cudaGraphLaunch");
    CHECK(e.right());
}

TEST_CASE("the caller's workspace, at every alignment, and too little of it") {
    NEEDS_DEVICE();
    cuda::backend on;
    const index_type n = 123'457;
    const std::size_t bytes = sort_workspace_bytes_uint32(n);
    CHECK(sort_workspace_bytes_float_uint64(n) > bytes);
    for (const std::size_t shift : {std::size_t{0}, std::size_t{1}, std::size_t{64}, std::size_t{127}}) {
        CAPTURE(shift);
        cuda::buffer<unsigned char> memory(static_cast<index_type>(bytes + shift + 64));
        cuda::check(cudaMemset(memory.data(), 0xff, bytes + shift + 64), "cudaMemset");
        on.set_workspace(memory.data() + shift, bytes);
        experiment e(on, n);
        CHECK_THROWS_AS(e.start(), std::invalid_argument);
        on.initialise_workspace();
        for (const bool in_place : {false, false, true}) {
            e.start(in_place);
            CHECK(e.right(in_place));
        }
        std::vector<unsigned char> behind(64);
        on.copy_to_host(behind.data(), memory.data() + shift + bytes, 64);
        CHECK(std::all_of(behind.begin(), behind.end(), [](unsigned char byte) { return byte == 0xff; }));
        experiment longer(on, 2 * n);
        CHECK_THROWS_AS(longer.start(), std::invalid_argument);
        on.set_workspace(nullptr, 0);
    }
}

TEST_CASE("selections and partitions in the caller's workspace, at every alignment, and too little of it") {
    NEEDS_DEVICE();
    cuda::backend on;
    const index_type n = 123'457;
    const std::size_t bytes = select_workspace_bytes_int32(n);
    const auto is_even = [](std::int32_t value) { return value % 2 == 0; };
    std::vector<std::int32_t> x;
    for (index_type i = 0; i < n; ++i) x.push_back(static_cast<std::int32_t>(random_bits(5, i)));
    std::vector<std::int32_t> right = x;
    const index_type evens = std::stable_partition(right.begin(), right.end(), is_even) - right.begin();
    cuda::buffer<std::int32_t> in(n), out(n);
    cuda::buffer<index_type> count(1);
    on.copy_to_device(in.data(), x.data(), n);
    for (const std::size_t shift : {std::size_t{0}, std::size_t{1}, std::size_t{64}, std::size_t{127}}) {
        CAPTURE(shift);
        cuda::buffer<unsigned char> memory(static_cast<index_type>(bytes + shift + 64));
        cuda::check(cudaMemset(memory.data(), 0xff, bytes + shift + 64), "cudaMemset");
        on.set_workspace(memory.data() + shift, bytes);
        CHECK_THROWS_AS(copy_even(on, in.data(), n, out.data(), count.data()), std::invalid_argument);
        on.initialise_workspace();
        for (const bool all : {false, true, false, true}) {
            CAPTURE(all);
            (all ? partition_even : copy_even)(on, in.data(), n, out.data(), count.data());
            index_type number = 0;
            on.copy_to_host(&number, count.data(), 1);
            CHECK(number == evens);
            std::vector<std::int32_t> found(static_cast<std::size_t>(all ? n : evens));
            on.copy_to_host(found.data(), out.data(), static_cast<index_type>(found.size()));
            CHECK(std::equal(found.begin(), found.end(), right.begin()));
        }
        std::vector<unsigned char> behind(64);
        on.copy_to_host(behind.data(), memory.data() + shift + bytes, 64);
        CHECK(std::all_of(behind.begin(), behind.end(), [](unsigned char byte) { return byte == 0xff; }));
        // (It throws before anything is read.)
        CHECK_THROWS_AS(copy_even(on, in.data(), 4 * n, out.data(), count.data()), std::invalid_argument);
        on.set_workspace(nullptr, 0);
    }
}

TEST_CASE("few blocks are enough: 1, 2, 3, 5, 31; sorts after sorts of other lengths") {
    NEEDS_DEVICE();
    for (const int blocks : {1, 2, 3, 5, 31, 0}) {
        CAPTURE(blocks);
        cuda::backend on = backend_under_test::make(blocks);
        std::uint64_t seed = 0;
        for (const index_type n : {300'000, 10'241, 80'001, 300'000}) {
            CAPTURE(n);
            experiment e(on, n, ++seed);
            e.start();
            CHECK(e.right());
            e.start(true);
            CHECK(e.right(true));
        }
    }
}

TEST_CASE("two streams at once from one host thread") {
    NEEDS_DEVICE();
    stream first, second;
    cuda::backend a(first.handle), b(second.handle);
    experiment x(a, 2'000'000, 1), y(b, 1'900'001, 2);
    for (int round = 0; round < 5; ++round) {
        x.start();
        y.start();
    }
    CHECK(x.right());
    CHECK(y.right());
}

TEST_CASE("CUB agrees") {
    NEEDS_DEVICE();
    cuda::backend on;
    for (const index_type n : {index_type{1'000}, index_type{65'537}, index_type{10'000'019}})
        for (const bool descending : {false, true})
            for (const uint32 mask : {~uint32{0}, uint32{0x3ff}}) {
                CAPTURE(n);
                CAPTURE(descending);
                CAPTURE(mask);
                const auto keys = numbers(n, 3, mask);
                std::vector<uint32> values(static_cast<std::size_t>(n)), found(values.size()), judged(values.size());
                std::iota(values.begin(), values.end(), uint32{0});
                cuda::buffer<uint32> k(n), v(n), ko(n), vo(n), kj(n), vj(n);
                on.copy_to_device(k.data(), keys.data(), n);
                on.copy_to_device(v.data(), values.data(), n);
                sort_arguments<uint32, uint32> a{k.data(),
                                                 ko.data(),
                                                 v.data(),
                                                 vo.data(),
                                                 n,
                                                 nullptr,
                                                 descending ? sort_order::descending : sort_order::ascending,
                                                 {}};
                run_sort(on, a);
                cub_sort(k.data(), kj.data(), v.data(), vj.data(), n, descending);
                on.copy_to_host(found.data(), ko.data(), n);
                on.copy_to_host(judged.data(), kj.data(), n);
                CHECK(found == judged);
                on.copy_to_host(found.data(), vo.data(), n);
                on.copy_to_host(judged.data(), vj.data(), n);
                CHECK(found == judged);
                cub_sort(k.data(), kj.data(), nullptr, nullptr, n, descending);
                on.copy_to_host(judged.data(), kj.data(), n);
                on.copy_to_host(found.data(), ko.data(), n);
                CHECK(found == judged);
            }
}

TEST_CASE("a histogram is part of a graph") {
    NEEDS_DEVICE();
    stream own;
    cuda::backend on(own.handle);
    const index_type n = 100'000, bins = 100;
    cuda::buffer<std::int32_t> in(n), counts(bins);
    histogram_arguments<std::int32_t, std::int32_t, std::int32_t> a;
    a.in = in.data();
    a.size = n;
    a.counts = counts.data();
    a.bins = bins;
    a.lower = 0;
    a.upper = 1000;
    graph captured(own.handle, [&] { run_histogram(on, a); });
    for (std::uint64_t seed = 1; seed < 4; ++seed) {
        std::vector<std::int32_t> x, right(static_cast<std::size_t>(bins)), found(right.size());
        for (index_type i = 0; i < n; ++i) x.push_back(static_cast<std::int32_t>(random_bits(seed, i) % 1100));
        for (const std::int32_t value : x)
            if (value < 1000) ++right[static_cast<std::size_t>(value / 10)];
        on.copy_to_device(in.data(), x.data(), n);
        cuda::check(cudaGraphLaunch(captured.handle, own.handle), "cudaGraphLaunch");
        on.copy_to_host(found.data(), counts.data(), bins);
        CHECK(found == right);
    }
}

TEST_CASE("failures are reported, and the backend lives on") {
    NEEDS_DEVICE();
    cuda::backend on;
    experiment e(on, 100'000);
    on.hooks().refuse_launch = true;
    CHECK_THROWS_AS(e.start(), backend_error);
    on.hooks().refuse_launch = false;
    e.start();
    CHECK(e.right());
    on.memory().allocation_limit = 1000;
    experiment longer(on, 1'000'000);
    CHECK_THROWS_AS(longer.start(), backend_error);
    on.memory().allocation_limit = SIZE_MAX;
    longer.start();
    CHECK(longer.right());
}

TEST_CASE("large: more than 2^32 keys" * doctest::skip()) {
    NEEDS_DEVICE();
    cuda::backend on;
    CHECK(wrong_in_large_sort(on, (index_type{1} << 32) + 12'345) == 0);
}

namespace {
constexpr char title[] = "cuda sort contract";
REGISTER_LISTENER("closing line", 1, tests_line<title>);
} // namespace

} // namespace polyscan::test
