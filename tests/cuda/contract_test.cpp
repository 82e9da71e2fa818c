// SPDX-License-Identifier: Apache-2.0
/// The CUDA backend's own promises: streams, graphs, workspace, errors, progress. Where there is no device, every test
/// is skipped and says so.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <polyscan/reference.hpp>
#include <polyscan/tile_status.hpp>

#include "contract_runs.hpp"
#include "inputs.hpp"
#include "needs_device.hpp"

namespace polyscan::test {
namespace {

using int32 = std::int32_t;
using int32_case = cases::int32_plus;

std::vector<std::string> policy_names() {
    std::vector<std::string> names;
    for_each_policy([&](auto policy) { names.push_back(policy.name()); });
    return names;
}
const std::vector<std::string> grids = {
    "single_block/kogge_stone",  "three_pass/kogge_stone",    "domino/kogge_stone",      "look_back/kogge_stone",
    "prefix_server/kogge_stone", "single_block/warp_shuffle", "three_pass/warp_shuffle", "domino/warp_shuffle",
    "look_back/warp_shuffle",    "prefix_server/warp_shuffle"};

std::vector<int32> numbers(index_type n, std::uint64_t seed = 1) { return make_input<int32_case>(n, seed); }

std::vector<int32> sums(const std::vector<int32>& x) { return reference::sequential(x, plus{}); }

/// Input, output and what should come out, on the device of one backend object.
struct experiment {
    cuda::backend& on;
    index_type n;
    cuda::buffer<int32> in, out;
    std::vector<int32> expected;

    experiment(cuda::backend& backend, index_type size, std::uint64_t seed = 1)
        : on(backend), n(size), in(size), out(size) {
        refill(seed);
    }
    void refill(std::uint64_t seed) {
        const std::vector<int32> x = numbers(n, seed);
        expected = sums(x);
        on.copy_to_device(in.data(), x.data(), n);
        poison();
    }
    void poison() {
        cuda::check(cudaMemsetAsync(out.data(), 0xa5, static_cast<std::size_t>(n) * sizeof(int32), on.stream()),
                    "cudaMemsetAsync");
    }
    void start(std::string_view policy) {
        case_arguments<int32_case> a;
        a.in = in.data();
        a.out = out.data();
        a.size = n;
        run_case(on, policy, a);
    }
    bool right() {
        std::vector<int32> y(static_cast<std::size_t>(n));
        on.copy_to_host(y.data(), out.data(), n);
        return y == expected;
    }
};

class stream {
public:
    stream() { cuda::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags"); }
    stream(const stream&) = delete;
    stream& operator=(const stream&) = delete;
    ~stream() { static_cast<void>(cudaStreamDestroy(stream_)); }
    operator cudaStream_t() const { return stream_; }

private:
    cudaStream_t stream_ = nullptr;
};

class graph {
public:
    template <class Work>
    graph(cudaStream_t on, Work work) {
        cudaGraph_t captured = nullptr;
        cuda::check(cudaStreamBeginCapture(on, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
        work();
        cuda::check(cudaStreamEndCapture(on, &captured), "cudaStreamEndCapture");
        cuda::check(cudaGraphGetNodes(captured, nullptr, &nodes), "cudaGraphGetNodes");
        cuda::check(cudaGraphInstantiate(&graph_, captured, 0), "cudaGraphInstantiate");
        static_cast<void>(cudaGraphDestroy(captured));
    }
    graph(const graph&) = delete;
    graph& operator=(const graph&) = delete;
    ~graph() { static_cast<void>(cudaGraphExecDestroy(graph_)); }
    void launch(cudaStream_t on) { cuda::check(cudaGraphLaunch(graph_, on), "cudaGraphLaunch"); }

    std::size_t nodes = 0;

private:
    cudaGraphExec_t graph_ = nullptr;
};

} // namespace

TEST_CASE("a captured graph can be replayed with other data, and one call is one launch") {
    NEEDS_DEVICE();
    stream own;
    cuda::backend on(own);
    for (const std::string& policy : policy_names()) {
        CAPTURE(policy);
        experiment e(on, 300'000);
        e.start(policy);
        REQUIRE(e.right());
        graph captured(own, [&] { e.start(policy); });
        // three_pass: reduce, whose last block scans the aggregates of so few tiles, and rescan.
        CHECK(captured.nodes == (policy.find("three_pass") == std::string::npos ? 1 : 2));
        for (std::uint64_t seed = 2; seed < 5; ++seed) {
            e.refill(seed);
            captured.launch(own);
            CHECK(e.right());
        }
        // A larger call moves the workspace; the graph keeps what it captured.
        experiment larger(on, 3'000'000);
        larger.start(policy);
        CHECK(larger.right());
        e.refill(9);
        captured.launch(own);
        CHECK(e.right());
    }
}

TEST_CASE("a capture that would have to grow the workspace is refused, and reserve() prevents that") {
    NEEDS_DEVICE();
    stream own;
    for (const bool reserved : {false, true}) {
        cuda::backend on(own);
        experiment e(on, 100'000);
        on.synchronize();
        if (reserved) {
            reserve_int32(on, "default", e.n);
            on.synchronize();
            graph captured(own, [&] { e.start("default"); });
            captured.launch(own);
        } else {
            graph captured(own, [&] { CHECK_THROWS_AS(e.start("default"), backend_error); });
            e.start("default");
        }
        CHECK(e.right());
    }
    // One tile needs no workspace: its first call may be in a capture.
    for (const index_type n : {1'000, 8'000}) {
        CAPTURE(n);
        cuda::backend on(own);
        experiment e(on, n);
        on.synchronize();
        graph captured(own, [&] { e.start("default"); });
        captured.launch(own);
        CHECK(e.right());
    }
}

TEST_CASE("several host threads, each with a backend and a stream") {
    NEEDS_DEVICE();
    constexpr int count = 4;
    std::vector<int> wrong(count, -1);
    std::vector<std::thread> threads;
    for (int k = 0; k < count; ++k)
        threads.emplace_back([&, k] {
            stream own;
            cuda::backend on(own);
            wrong[static_cast<std::size_t>(k)] = 0;
            for (int round = 0; round < 6; ++round)
                for (const std::string& policy : grids) {
                    experiment e(on, 70'001 + 50'000 * k, static_cast<std::uint64_t>(100 * k + round + 1));
                    e.start(policy);
                    if (!e.right()) ++wrong[static_cast<std::size_t>(k)];
                }
        });
    for (auto& thread : threads) thread.join();
    for (const int w : wrong) CHECK(w == 0);
}

TEST_CASE("two streams at once from one host thread") {
    NEEDS_DEVICE();
    stream first, second;
    cuda::backend a(first), b(second);
    for (const std::string& policy : grids) {
        CAPTURE(policy);
        experiment x(a, 1'000'000, 1), y(b, 900'001, 2);
        for (int round = 0; round < 5; ++round) {
            x.start(policy);
            y.start(policy);
        }
        CHECK(x.right());
        CHECK(y.right());
    }
}

TEST_CASE("scans one after another: each reads what the one before wrote, though launches may overlap") {
    NEEDS_DEVICE();
    stream own;
    cuda::backend on(own);
    // For the default policy: one block, a cluster of blocks, a block for each tile, the pipeline.
    for (const index_type n : {5'000, 60'000, 1'000'000, 3'000'001}) {
        experiment e(on, n);
        constexpr int rounds = 4;
        std::vector<int32> expected = e.expected; // after one scan
        for (int k = 1; k < 2 * rounds; ++k) expected = sums(expected);
        const auto chain = [&] {
            for (int k = 0; k < 2 * rounds; ++k) {
                case_arguments<int32_case> a;
                a.in = k % 2 == 0 ? e.in.data() : e.out.data();
                a.out = k % 2 == 0 ? e.out.data() : e.in.data();
                a.size = n;
                run_case(on, "default", a);
            }
        };
        const auto right = [&] {
            std::vector<int32> y(static_cast<std::size_t>(n));
            on.copy_to_host(y.data(), e.in.data(), n);
            return y == expected;
        };
        CAPTURE(n);
        chain();
        CHECK(right());
        graph captured(own, chain);
        for (int round = 0; round < 2; ++round) {
            e.refill(1);
            captured.launch(own);
            CHECK(right());
        }
    }
}

TEST_CASE("the caller's workspace, at every alignment, full of garbage before it is initialised") {
    NEEDS_DEVICE();
    cuda::backend on;
    for (const std::string& policy : grids) {
        const index_type n = 123'457;
        const std::size_t bytes = workspace_bytes<int32>(policy, n);
        for (const std::size_t shift :
             {std::size_t{0}, std::size_t{1}, std::size_t{4}, std::size_t{8}, std::size_t{127}}) {
            CAPTURE(policy);
            CAPTURE(shift);
            cuda::buffer<unsigned char> memory(static_cast<index_type>(bytes + shift + 64));
            cuda::check(cudaMemset(memory.data(), 0xff, bytes + shift + 64), "cudaMemset");
            on.set_workspace(memory.data() + shift, bytes);
            experiment e(on, n);
            if (bytes > 0) CHECK_THROWS_AS(e.start(policy), std::invalid_argument);
            on.initialise_workspace();
            for (int round = 0; round < 3; ++round) {
                e.poison();
                e.start(policy);
                CHECK(e.right());
            }
            std::vector<unsigned char> behind(64);
            on.copy_to_host(behind.data(), memory.data() + shift + bytes, 64);
            CHECK(std::all_of(behind.begin(), behind.end(), [](unsigned char byte) { return byte == 0xff; }));
            if (bytes > 0) {
                experiment too_long(on, 4 * n);
                if (workspace_bytes<int32>(policy, 4 * n) > bytes)
                    CHECK_THROWS_AS(too_long.start(policy), std::invalid_argument);
                CHECK_NOTHROW(e.start(policy));
                CHECK(e.right());
            }
            on.set_workspace(nullptr, 0);
        }
    }
}

TEST_CASE("workspace sizes are small") {
    // At most 32 bytes for each tile of 32 KiB, 64 where an accumulator has 16 bytes, and a constant.
    for (const index_type n : {index_type{1} << 28, (index_type{1} << 31) - 1, index_type{1} << 33}) {
        CHECK(workspace_bytes<int32>("default", n) <= static_cast<std::size_t>(n / 8192 + 1) * 32 + 512);
        CHECK(workspace_bytes<double>("default", n) <= static_cast<std::size_t>(n / 4096 + 1) * 32 + 512);
        CHECK(workspace_bytes<affine<double>>("default", n) <= static_cast<std::size_t>(n / 2048 + 1) * 64 + 512);
    }
}

TEST_CASE("epochs wrap: nothing of an older call is taken for new") {
    NEEDS_DEVICE();
    cuda::backend on;
    for (const std::string& policy : policy_names()) {
        CAPTURE(policy);
        experiment e(on, 400'000);
        e.start(policy);
        on.force_epoch(tile_status::epoch_limit - 2);
        for (std::uint64_t seed = 1; seed < 6; ++seed) { // the second one wraps
            e.refill(seed);
            e.start(policy);
            CHECK(e.right());
        }
    }
}

TEST_CASE("few blocks are enough: 1, 2, 3, 5, 31") {
    NEEDS_DEVICE();
    cuda::backend on;
    for (const std::string& policy : policy_names())
        for (const int blocks : {1, 2, 3, 5, 31}) {
            CAPTURE(policy);
            CAPTURE(blocks);
            on.hooks().most_blocks = blocks;
            experiment e(on, 1'234'567, static_cast<std::uint64_t>(blocks));
            e.start(policy);
            CHECK(e.right());
        }
}

TEST_CASE("a kernel that holds most of the device does not stop a scan") {
    NEEDS_DEVICE();
    stream busy, own;
    cuda::backend on(own);
    volatile int* flag = nullptr;
    cuda::check(cudaHostAlloc(reinterpret_cast<void**>(const_cast<int**>(&flag)), sizeof(int), cudaHostAllocMapped),
                "cudaHostAlloc");
    experiment e(on, 2'000'000);
    for (const std::string& policy : grids) { // first calls load the kernels, which may wait for the device
        e.start(policy);
        CHECK(e.right());
    }
    *flag = 0;
    occupy(on.multiprocessors() - 2, flag, busy);
    for (const std::string& policy : grids) {
        CAPTURE(policy);
        e.poison();
        e.start(policy);
        CHECK(e.right());
    }
    *flag = 1;
    cuda::check(cudaStreamSynchronize(busy), "cudaStreamSynchronize");
    static_cast<void>(cudaFreeHost(const_cast<int*>(flag)));
}

TEST_CASE("a failed allocation and a refused launch are reported, and the next call works") {
    NEEDS_DEVICE();
    for (const std::string& policy : policy_names()) {
        CAPTURE(policy);
        cuda::backend on;
        experiment e(on, 2'000'000), small(on, 5'000);
        small.start(policy);
        on.memory().allocation_limit = 1;
        const std::size_t bytes = workspace_bytes<int32>(policy, e.n);
        if (bytes > 200'000) { // more than the small call left
            try {
                e.start(policy);
                FAIL_CHECK("the allocation did not fail");
            } catch (const backend_error& error) {
                CHECK(error.backend() == "cuda");
                CHECK(error.call() == "cudaMalloc");
                CHECK(error.message().find("out of memory") != std::string::npos);
            }
        }
        on.memory().allocation_limit = SIZE_MAX;
        CHECK_NOTHROW(small.start(policy));
        CHECK(small.right());
        e.start(policy);
        CHECK(e.right());
        on.hooks().refuse_launch = true;
        CHECK_THROWS_AS(e.start(policy), backend_error);
        on.hooks().refuse_launch = false;
        e.refill(3);
        e.start(policy);
        CHECK(e.right());
    }
    CHECK_THROWS_AS(cuda::backend().allocate<double>(index_type{1} << 60), backend_error);
}

TEST_CASE("iterators: counting with a lambda, thrust vectors") {
    NEEDS_DEVICE();
    cuda::backend on;
    const index_type n = 100'001;
    auto out = on.allocate<std::uint64_t>(n);
    scan_squares_of_counting(on, out.data(), n);
    std::vector<std::uint64_t> y(static_cast<std::size_t>(n));
    on.copy_to_host(y.data(), out.data(), n);
    std::uint64_t sum = 0;
    bool right = true;
    for (std::uint64_t i = 0; i < y.size(); ++i) right = right && y[i] == (sum += i * i);
    CHECK(right);
    CHECK(thrust_vector_agrees(on));
}

TEST_CASE("inputs less aligned than outputs of the same size") {
    NEEDS_DEVICE();
    cuda::backend on;
    constexpr auto words = static_cast<index_type>(sizeof(three_doubles) / sizeof(std::uint32_t));
    for (const index_type n : {index_type{100}, index_type{50'000}, index_type{700'001}}) {
        const std::vector<int32> x = numbers(3 * n);
        std::vector<three_doubles> doubles(static_cast<std::size_t>(n));
        for (std::size_t i = 0; i < doubles.size(); ++i)
            for (std::size_t k = 0; k < 3; ++k) doubles[i].at[k] = x[3 * i + k] * 0.001;
        const std::vector<three_doubles> expected =
            reference::policy_order(default_policy{}, doubles, add_doubles{}, std::optional<three_doubles>{});
        for (const index_type offset : {0, 1, 2, 3}) {
            CAPTURE(n);
            CAPTURE(offset);
            auto in = on.allocate<std::uint32_t>(n * words + offset);
            auto out = on.allocate<three_doubles>(n);
            on.copy_to_device(in.data() + offset, reinterpret_cast<const std::uint32_t*>(doubles.data()), n * words);
            cuda::check(cudaMemsetAsync(out.data(), 0xa5, doubles.size() * sizeof(three_doubles), on.stream()),
                        "cudaMemsetAsync"); // another offset's outputs would be right
            scan_words_as_doubles(on, in.data() + offset, out.data(), n);
            std::vector<three_doubles> y(doubles.size());
            on.copy_to_host(y.data(), out.data(), n);
            CHECK(std::memcmp(y.data(), expected.data(), y.size() * sizeof(three_doubles)) == 0);
        }
    }
}

TEST_CASE("three passes recurse: 64-byte elements, tiles of 512") {
    NEEDS_DEVICE();
    using Case = cases::words_64_bytes;
    using element = Case::accumulator_type;
    cuda::backend on;
    for (const index_type n : {index_type{511}, index_type{512 * 512 + 513}, index_type{700'001}}) {
        const std::vector<element> x = make_input<Case>(n, 4);
        const std::vector<element> expected = reference::sequential(x, compose_words{});
        cuda::buffer<element> in(n), out(n);
        on.copy_to_device(in.data(), x.data(), n);
        for (const std::string& policy : policy_names()) {
            CAPTURE(policy);
            CAPTURE(n);
            case_arguments<Case> a;
            a.in = in.data();
            a.out = out.data();
            a.size = n;
            cuda::check(cudaMemsetAsync(out.data(), 0xa5, static_cast<std::size_t>(n) * sizeof(element), on.stream()),
                        "cudaMemsetAsync");
            run_case(on, policy, a);
            std::vector<element> y(x.size(), x[0]);
            on.copy_to_host(y.data(), out.data(), n);
            CHECK(y == expected);
        }
    }
}

namespace {
/// Every policy once for each kind, over a length of a few tiles, against the policy's oracle. `pipelines`: those with
/// a pipeline, or the others.
template <class Case>
void each_policy_once(cuda::backend& on, bool pipelines) {
    using element = typename Case::accumulator_type;
    for_each_policy([&]<class Grid, class Block>(policy<Grid, Block> how) {
        constexpr bool has_pipeline = std::is_same_v<policy<Grid, Block>, default_policy> && sizeof(element) <= 40;
        if (has_pipeline != pipelines) return;
        const index_type n = 3 * shape_for<Block, element>.elements() + 7;
        const std::vector<element> x = make_input<Case>(n, 11);
        const std::optional<element> init = make_init<Case>(2);
        const std::vector<element> inclusive = reference::policy_order(how, x, typename Case::operator_type{}, init);
        cuda::buffer<element> in(n), out(n), total(1);
        on.copy_to_device(in.data(), x.data(), n);
        for (const scan_kind kind : {scan_kind::inclusive, scan_kind::exclusive}) {
            const std::string name = how.name();
            CAPTURE(name);
            case_arguments<Case> a;
            a.in = in.data();
            a.out = out.data();
            a.size = n;
            a.kind = kind;
            a.init = init;
            a.total = total.data();
            run_case(on, name, a);
            std::vector<element> y(x.size(), x[0]);
            on.copy_to_host(y.data(), out.data(), n);
            const std::vector<element> expected = reference::outputs(inclusive, kind, init);
            CHECK(std::equal(y.begin(), y.end(), expected.begin(),
                             [](const element& p, const element& q) { return same_bits(p, q); }));
            std::vector<element> sum(1, x[0]);
            on.copy_to_host(sum.data(), total.data(), 1);
            CHECK(same_bits(sum[0], inclusive.back()));
        }
    });
}
} // namespace

TEST_CASE("each kernel once: for the sanitizers") {
    NEEDS_DEVICE();
    cuda::backend on;
    each_policy_once<cases::float_plus>(on, false);     // cells of one 64-bit word
    each_policy_once<cases::double_plus>(on, false);    // one of 128 bits
    each_policy_once<cases::affine_double>(on, false);  // two of 128 bits
    each_policy_once<cases::words_64_bytes>(on, false); // eight
}

// Apart, because racecheck does not follow barriers in shared memory that are not the block's
// (docs/memory_ordering.md).
TEST_CASE("the pipeline once: for the sanitizers") {
    NEEDS_DEVICE();
    for (const int blocks : {0, 1, 2}) {
        cuda::backend on;
        on.hooks().most_blocks = blocks;
        each_policy_once<cases::float_plus>(on, true);
        each_policy_once<cases::double_plus>(on, true);
        each_policy_once<cases::affine_double>(on, true);
        each_policy_once<cases::permutation5>(on, true); // stores through shared memory
    }
}

TEST_CASE("CUB agrees") {
    NEEDS_DEVICE();
    cuda::backend on;
    for (const index_type n : {index_type{1'000}, index_type{65'537}, index_type{10'000'019}}) {
        experiment e(on, n);
        for (const std::string& policy : policy_names()) {
            CAPTURE(policy);
            CAPTURE(n);
            e.start(policy);
            on.synchronize();
            cuda::buffer<int32> judged(n);
            cub_inclusive_sum<int32>(e.in.data(), judged.data(), n);
            on.copy_to_host(e.expected.data(), judged.data(), n);
            CHECK(e.right());
        }
    }
}

TEST_CASE("large: more than 2^32 elements, once per grid algorithm" * doctest::skip()) {
    NEEDS_DEVICE();
    cuda::backend on;
    for (const char* grid : {"three_pass", "domino", "look_back", "prefix_server"})
        for (const index_type n : {(index_type{1} << 31) + 5, (index_type{1} << 32) + 12'345}) {
            CAPTURE(grid);
            CAPTURE(n);
            CHECK(wrong_in_large(on, std::string(grid) + "/warp_shuffle", n) == 0);
        }
    // One block needs about a second for each 2^31.
    CHECK(wrong_in_large(on, "single_block/warp_shuffle", (index_type{1} << 32) + 12'345) == 0);
}

namespace {
constexpr char title[] = "cuda contract";
REGISTER_LISTENER("closing line", 1, tests_line<title>);
} // namespace

TEST_CASE("an error of earlier device work is reported as such" * doctest::skip()) {
    NEEDS_DEVICE(); // run alone: the device context is lost
    cuda::backend on;
    experiment e(on, 10'000);
    e.start("default");
    CHECK(e.right());
    fail_on_device(on.stream());
    static_cast<void>(cudaStreamSynchronize(on.stream()));
    try {
        e.start("default");
        FAIL_CHECK("the error went unnoticed");
    } catch (const backend_error& error) {
        CHECK(error.call() == "earlier work on the device");
    }
}

} // namespace polyscan::test
