// SPDX-License-Identifier: Apache-2.0
/// Device copy, polyscan, CUB and Thrust side by side: cold buffers in rotation, CUDA events, all contenders in turn
/// within every round, medians over the rounds. Prints one JSON object a line.
///
///     cuda_bench [--short] [--policies] [--types]
///
///     (nothing)    int32, float32 and float64 under the default policy, 2^10 to 2^30 elements, beside CUB and Thrust;
///                  up to 2^20 also as nodes of a CUDA graph
///     --short      fewer lengths
///     --policies   also every policy, float32
///     --types      also other types and operators, and the variants of a call
///
/// The copy moves the bytes that the scan must move: where input and output differ, it is a kernel that reads the one
/// and writes the other.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <cub/device/device_scan.cuh>
#include <thrust/execution_policy.h>
#include <thrust/scan.h>

#include <polyscan/cuda.hpp>
#include <polyscan/half.hpp>

namespace polyscan::bench {
namespace {

constexpr int rounds = 7;
constexpr int largest_log2n = 30;
constexpr std::size_t spacing = 256; // bytes between buffers of one rotation
/// For input and output each: the largest doubles, which are far more than any cache.
constexpr std::size_t wanted_pool_bytes = (std::size_t{8} << largest_log2n) + (std::size_t{1} << 20);
constexpr int graph_nodes = 40;

__global__ void nothing() {}

/// A user's struct of N numbers.
template <class T, int N>
struct record {
    T part[N];

    __host__ __device__ friend record operator+(const record& a, const record& b) {
        record sum = a;
        for (int i = 0; i < N; ++i) sum.part[i] += b.part[i];
        return sum;
    }
};
template <class T>
__device__ T number(std::size_t i) {
    const auto mixed = static_cast<std::uint32_t>(i * 2654435761u) ^ static_cast<std::uint32_t>(i >> 7);
    if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>)
        return T(static_cast<float>(static_cast<int>(mixed >> 24) - 128));
    else
        return static_cast<T>(static_cast<int>(mixed >> 16) - 32768);
}
template <class T>
struct maker {
    __device__ static T make(std::size_t i) { return number<T>(i); }
};
template <class T>
struct maker<affine<T>> {
    __device__ static affine<T> make(std::size_t i) { return {(i % 2 != 0 ? T(1) : T(-1)), number<T>(i)}; }
};
template <class T, int N>
struct maker<record<T, N>> {
    __device__ static record<T, N> make(std::size_t i) {
        record<T, N> result;
        for (int k = 0; k < N; ++k) result.part[k] = number<T>(i * N + static_cast<std::size_t>(k));
        return result;
    }
};
template <class T>
__global__ void fill(T* data, std::size_t n) {
    const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride)
        data[i] = maker<T>::make(i);
}

/// One read and one 16-byte write a thread.
template <class In, class Out>
__global__ void __launch_bounds__(256) convert(const In* in, Out* out, std::size_t n) {
    constexpr int run = 16 / static_cast<int>(sizeof(Out));
    const std::size_t first = (std::size_t{blockIdx.x} * blockDim.x + threadIdx.x) * run;
    if (first >= n) return;
    cuda::packed_run<In, run> from;
    from.load(reinterpret_cast<const unsigned char*>(in + first), 0);
    cuda::slot<In> raw[run];
    from.unpack(raw);
    cuda::slot<Out> element[run];
    for (int e = 0; e < run; ++e) element[e].value = static_cast<Out>(raw[e].value);
    cuda::packed_run<Out, run> to;
    to.pack(element);
    to.store_whole(out + first);
}

struct contender {
    std::string backend, policy;
    std::function<void(std::size_t set)> run;
};

/// What a row of the table is about.
struct subject {
    const char* dtype;
    const char* op = "plus";
    const char* variant = "";
};

struct twice {
    template <class T>
    __host__ __device__ T operator()(const T& value) const {
        return static_cast<T>(value + value);
    }
};

class comparison {
public:
    comparison() {
        cuda::check(cudaEventCreate(&start_), "cudaEventCreate");
        cuda::check(cudaEventCreate(&stop_), "cudaEventCreate");
        std::size_t free_bytes = 0, all_bytes = 0;
        cuda::check(cudaMemGetInfo(&free_bytes, &all_bytes), "cudaMemGetInfo");
        pool_bytes_ = std::min(wanted_pool_bytes, free_bytes / 5 * 2 / spacing * spacing);
        cuda::check(cudaMalloc(&in_, pool_bytes_), "cudaMalloc");
        cuda::check(cudaMalloc(&out_, pool_bytes_), "cudaMalloc");
        cuda::check(cudaMalloc(&scratch_, scratch_bytes), "cudaMalloc");
    }

    /// Buffers for n elements each, in rotation.
    template <class In, class Out>
    struct buffers {
        char *in_pool, *out_pool;
        std::size_t in_stride, out_stride, sets;

        const In* in(std::size_t set) const { return reinterpret_cast<const In*>(in_pool + set * in_stride); }
        Out* out(std::size_t set) const { return reinterpret_cast<Out*>(out_pool + set * out_stride); }
    };
    template <class In, class Out>
    buffers<In, Out> prepare(const char* content, std::size_t n) {
        const auto rounded = [](std::size_t bytes) { return (bytes + 64 + spacing - 1) / spacing * spacing; };
        const std::size_t in_stride = rounded(n * sizeof(In)), out_stride = rounded(n * sizeof(Out));
        if (filled_ != content) {
            fill<<<2048, 256, 0, stream_>>>(static_cast<In*>(in_), pool_bytes_ / sizeof(In));
            filled_ = content;
        }
        const std::size_t sets = std::min<std::size_t>(pool_bytes_ / std::max(in_stride, out_stride), 4096);
        return {static_cast<char*>(in_), static_cast<char*>(out_), in_stride, out_stride, sets};
    }

    template <class In, class Out>
    contender copy(const buffers<In, Out>& memory, std::size_t n) {
        if constexpr (std::is_same_v<In, Out>)
            return {"copy", "", [=, this](std::size_t set) {
                        cuda::check(cudaMemcpyAsync(memory.out(set), memory.in(set), n * sizeof(In),
                                                    cudaMemcpyDeviceToDevice, stream_),
                                    "copy");
                    }};
        else
            return {"copy", "", [=, this](std::size_t set) {
                        const std::size_t threads = n * sizeof(Out) / 16;
                        convert<<<static_cast<unsigned>((threads + 255) / 256), 256, 0, stream_>>>(memory.in(set),
                                                                                                   memory.out(set), n);
                    }};
    }

    /// All contenders for n elements of T; `policies`: every policy of polyscan, else the default.
    template <class T>
    void measure(const char* dtype, int log2n, bool policies) {
        const std::size_t n = std::size_t{1} << log2n;
        const auto memory = prepare<T, T>(dtype, n);
        if (!holds(memory, {dtype}, log2n)) return;
        std::vector<contender> all{copy(memory, n)};
        if (log2n <= 16) all.push_back({"empty kernel", "", [this](std::size_t) { nothing<<<1, 32, 0, stream_>>>(); }});
        const auto scan = [&]<class Policy>(Policy how) {
            all.push_back({"cuda", how.name(), [=, this](std::size_t set) {
                               inclusive_scan<T>(polyscan_, counted(memory.in(set), n), memory.out(set), plus{}, how);
                           }});
        };
        if (policies)
            for_each_policy([&]<class Grid, class Block>(policy<Grid, Block> how) {
                if (!std::is_same_v<Grid, grid::single_block> || log2n <= 16) scan(how);
            });
        else
            scan(default_policy{});
        all.push_back({"cub", "", [=, this](std::size_t set) {
                           std::size_t bytes = scratch_bytes;
                           cuda::check(cub::DeviceScan::InclusiveSum(scratch_, bytes, memory.in(set), memory.out(set),
                                                                     n, stream_),
                                       "cub");
                       }});
        if (log2n <= 20 && !policies) measure_graph({dtype, "plus", "graph"}, log2n, all, memory.sets);
        all.push_back({"thrust", "", [=, this](std::size_t set) {
                           thrust::inclusive_scan(thrust::cuda::par.on(stream_), memory.in(set), memory.in(set) + n,
                                                  memory.out(set));
                       }});
        report({dtype}, log2n, all, memory.sets, n * 2 * sizeof(T));
    }

    /// The default policy alone, beside the copy and, where it takes the types as they are, CUB.
    template <class In, class A, class Out, class Operator>
    void measure_type(subject what, std::size_t n, Operator op, bool with_cub) {
        const auto memory = prepare<In, Out>(what.dtype, n);
        if (!holds(memory, what, 0, n)) return;
        std::vector<contender> all{copy(memory, n)};
        all.push_back({"cuda", default_policy{}.name(), [=, this](std::size_t set) {
                           inclusive_scan<A>(polyscan_, counted(memory.in(set), n), memory.out(set), op);
                       }});
        if constexpr (std::is_same_v<In, Out> && std::is_same_v<In, A>)
            if (with_cub)
                all.push_back({"cub", "", [=, this](std::size_t set) {
                                   std::size_t bytes = scratch_bytes;
                                   cuda::check(cub::DeviceScan::InclusiveScan(scratch_, bytes, memory.in(set),
                                                                              memory.out(set), op, n, stream_),
                                               "cub");
                               }});
        report(what, 0, all, memory.sets, n * (sizeof(In) + sizeof(Out)), n);
    }

    /// Exclusive, with init, transformed, in place, off by one element: beside the plain call.
    template <class T>
    void measure_variants(const char* dtype, std::size_t n) {
        const auto memory = prepare<T, T>(dtype, n + 8);
        if (!holds(memory, {dtype, "plus", "variants"}, 0, n)) return;
        const std::vector<std::pair<const char*, std::function<void(std::size_t)>>> variants = {
            {"plain",
             [=, this](std::size_t s) { inclusive_scan<T>(polyscan_, counted(memory.in(s), n), memory.out(s)); }},
            {"exclusive",
             [=, this](std::size_t s) { exclusive_scan<T>(polyscan_, counted(memory.in(s), n), memory.out(s)); }},
            {"init",
             [=, this](std::size_t s) {
                 inclusive_scan<T>(polyscan_, counted(memory.in(s), n), memory.out(s), plus{}, default_policy{},
                                   with_init{T(3)});
             }},
            {"transform",
             [=, this](std::size_t s) {
                 inclusive_scan<T>(polyscan_, counted(memory.in(s), n), memory.out(s), plus{}, default_policy{},
                                   with_transform{twice{}});
             }},
            {"in place",
             [=, this](std::size_t s) { inclusive_scan<T>(polyscan_, counted(memory.out(s), n), memory.out(s)); }},
            {"input off by one",
             [=, this](std::size_t s) { inclusive_scan<T>(polyscan_, counted(memory.in(s) + 1, n), memory.out(s)); }},
            {"output off by one",
             [=, this](std::size_t s) { inclusive_scan<T>(polyscan_, counted(memory.in(s), n), memory.out(s) + 1); }},
            {"both off by one",
             [=, this](std::size_t s) {
                 inclusive_scan<T>(polyscan_, counted(memory.in(s) + 1, n), memory.out(s) + 1);
             }},
            {"off by one and three", [=, this](std::size_t s) {
                 inclusive_scan<T>(polyscan_, counted(memory.in(s) + 1, n), memory.out(s) + 3);
             }}};
        std::vector<contender> all{copy(memory, n)};
        for (const auto& [name, run] : variants) all.push_back({"cuda", name, run});
        report({dtype, "plus", "variants"}, 0, all, memory.sets, n * 2 * sizeof(T), n);
    }

private:
    static int calls_for(std::size_t bytes) {
        return bytes <= (std::size_t{2} << 20) ? 100 : bytes <= (std::size_t{1} << 27) ? 30 : 6;
    }

    /// One launch of a graph of many nodes.
    void measure_graph(const subject& what, int log2n, const std::vector<contender>& all, std::size_t sets) {
        std::vector<cudaGraphExec_t> graphs(all.size());
        for (std::size_t c = 0; c < all.size(); ++c) {
            all[c].run(0); // workspace grows before the capture
            cudaGraph_t captured = nullptr;
            cuda::check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
            for (std::size_t i = 0; i < graph_nodes; ++i) all[c].run(i * 97 % sets);
            cuda::check(cudaStreamEndCapture(stream_, &captured), "cudaStreamEndCapture");
            cuda::check(cudaGraphInstantiate(&graphs[c], captured, 0), "cudaGraphInstantiate");
            cuda::check(cudaGraphDestroy(captured), "cudaGraphDestroy");
        }
        const std::vector<double> us = medians(
            all.size(), [](std::size_t) { return 4; },
            [&](std::size_t c, int) { cuda::check(cudaGraphLaunch(graphs[c], stream_), "cudaGraphLaunch"); });
        for (std::size_t c = 0; c < all.size(); ++c) {
            print(what, log2n, all[c], us[c] / graph_nodes, us[0] / graph_nodes, 0, 0);
            cuda::check(cudaGraphExecDestroy(graphs[c]), "cudaGraphExecDestroy");
        }
    }

    void report(const subject& what, int log2n, const std::vector<contender>& all, std::size_t sets, std::size_t bytes,
                std::size_t n = 0) {
        std::size_t turn = 0;
        const std::vector<double> us = medians(
            all.size(),
            [&](std::size_t c) {
                const bool slow = all[c].policy.starts_with("domino") && log2n < 24;
                return slow ? std::min(calls_for(bytes), 6) : calls_for(bytes);
            },
            [&](std::size_t c, int) { all[c].run(turn++ * 97 % sets); });
        for (std::size_t c = 0; c < all.size(); ++c) print(what, log2n, all[c], us[c], us[0], bytes, n);
        std::fflush(stdout);
    }

    /// Microseconds a call of each contender.
    template <class Calls, class Run>
    std::vector<double> medians(std::size_t contenders, Calls calls, Run run) {
        std::vector<std::vector<double>> times(contenders);
        for (int round = -1; round < rounds; ++round) // the first one warms up
            for (std::size_t c = 0; c < contenders; ++c) {
                const int count = calls(c);
                cuda::check(cudaEventRecord(start_, stream_), "cudaEventRecord");
                for (int i = 0; i < count; ++i) run(c, i);
                cuda::check(cudaEventRecord(stop_, stream_), "cudaEventRecord");
                cuda::check(cudaEventSynchronize(stop_), "cudaEventSynchronize");
                float ms = 0;
                cuda::check(cudaEventElapsedTime(&ms, start_, stop_), "cudaEventElapsedTime");
                if (round >= 0) times[c].push_back(1e3 * static_cast<double>(ms) / count);
            }
        std::vector<double> result;
        for (std::vector<double>& of_one : times) {
            std::nth_element(of_one.begin(), of_one.begin() + rounds / 2, of_one.end());
            result.push_back(of_one[rounds / 2]);
        }
        return result;
    }

    /// Whether the pool has room for one set of buffers; if not, the row says so.
    template <class In, class Out>
    bool holds(const buffers<In, Out>& memory, const subject& what, int log2n, std::size_t n = 0) const {
        if (memory.sets > 0) return true;
        print_subject(what, log2n, {"cuda", default_policy{}.name(), {}}, n);
        std::printf("\"median_us\": null, \"verdict\": \"skipped\", "
                    "\"reason\": \"input and output need %zu bytes each, the pools hold %zu\"}\n",
                    std::max(memory.in_stride, memory.out_stride), pool_bytes_);
        return false;
    }

    static void print_subject(const subject& what, int log2n, const contender& who, std::size_t n) {
        std::printf("{\"backend\": \"%s\", \"policy\": \"%s\", \"dtype\": \"%s\", \"op\": \"%s\", ",
                    who.backend.c_str(), who.policy.c_str(), what.dtype, what.op);
        if (*what.variant != '\0') std::printf("\"variant\": \"%s\", ", what.variant);
        if (n > 0)
            std::printf("\"n\": %zu, ", n);
        else
            std::printf("\"log2n\": %d, ", log2n);
    }

    static void print(const subject& what, int log2n, const contender& who, double us, double copy_us,
                      std::size_t bytes, std::size_t n) {
        print_subject(what, log2n, who, n);
        std::printf("\"median_us\": %.2f, ", us);
        if (bytes > 0) std::printf("\"gbps\": %.0f, ", 1e-3 * static_cast<double>(bytes) / us);
        std::printf("\"copy_ratio\": %.3f}\n", copy_us / us);
    }

    static constexpr std::size_t scratch_bytes = std::size_t{256} << 20;
    static cudaStream_t new_stream() {
        cudaStream_t stream = nullptr;
        cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
        return stream;
    }
    cudaStream_t stream_ = new_stream();
    cudaEvent_t start_ = nullptr, stop_ = nullptr;
    std::size_t pool_bytes_ = 0;
    void* in_ = nullptr;
    void* out_ = nullptr;
    void* scratch_ = nullptr;
    std::string filled_;
    cuda::backend polyscan_{stream_};
};

void measure_types(comparison& all) {
    constexpr std::size_t gibibyte = std::size_t{1} << 30;
    all.measure_type<std::int64_t, std::int64_t, std::int64_t>({"int64"}, gibibyte / 8, plus{}, true);
    all.measure_type<affine<std::uint64_t>, affine<std::uint64_t>, affine<std::uint64_t>>(
        {"affine uint64", "compose_affine"}, gibibyte / 16, compose_affine{}, false);
    all.measure_type<affine<double>, affine<double>, affine<double>>({"affine float64", "compose_affine"},
                                                                     gibibyte / 16, compose_affine{}, true);
    all.measure_type<std::int8_t, std::int8_t, std::int8_t>({"int8"}, gibibyte, plus{}, true);
    all.measure_type<std::int8_t, std::int8_t, std::int8_t>({"int8", "maximum"}, gibibyte, maximum{}, true);
    all.measure_type<std::uint8_t, std::uint8_t, std::uint8_t>({"uint8", "maximum"}, gibibyte, maximum{}, false);
    all.measure_type<std::uint8_t, std::uint64_t, std::uint64_t>({"uint8 to uint64"}, gibibyte / 8, plus{}, false);
    all.measure_type<half, float, float>({"half to float32"}, gibibyte / 4, plus{}, false);
    all.measure_type<bfloat16, float, float>({"bfloat16 to float32"}, gibibyte / 4, plus{}, false);
    const auto measure_struct = [&]<class T, int N>(record<T, N>, const char* name, auto add) {
        all.measure_type<record<T, N>, record<T, N>, record<T, N>>({name, "lambda"}, gibibyte / sizeof(record<T, N>),
                                                                   add, false);
    };
    using floats3 = record<float, 3>;
    using doubles3 = record<double, 3>;
    using doubles5 = record<double, 5>;
    measure_struct(floats3{}, "struct of 12 bytes",
                   [] __host__ __device__(const floats3& a, const floats3& b) { return a + b; });
    measure_struct(doubles3{}, "struct of 24 bytes",
                   [] __host__ __device__(const doubles3& a, const doubles3& b) { return a + b; });
    measure_struct(doubles5{}, "struct of 40 bytes",
                   [] __host__ __device__(const doubles5& a, const doubles5& b) { return a + b; });
    all.measure_variants<float>("float32", gibibyte / 4);
    all.measure_variants<std::int8_t>("int8", gibibyte);
}

int run(int argc, char** argv) {
    bool brief = false, policies = false, types = false;
    for (int i = 1; i < argc; ++i) {
        brief = brief || std::strcmp(argv[i], "--short") == 0;
        policies = policies || std::strcmp(argv[i], "--policies") == 0;
        types = types || std::strcmp(argv[i], "--types") == 0;
    }
    if (const auto here = cuda::backend().available(); !here) {
        std::printf("skipped: %s\n", here.reason.c_str());
        return 0;
    }
    comparison all;
    if (policies)
        for (const int log2n : {10, 12, 20, 24, 28}) all.measure<float>("float32", log2n, true);
    if (types) measure_types(all);
    const std::vector<int> sizes =
        brief ? std::vector<int>{10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30}
              : std::vector<int>{10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30};
    for (const int log2n : sizes) all.measure<int>("int32", log2n, false);
    for (const int log2n : sizes) all.measure<float>("float32", log2n, false);
    for (const int log2n : sizes) all.measure<double>("float64", log2n, false);
    return 0;
}

} // namespace
} // namespace polyscan::bench

int main(int argc, char** argv) { return polyscan::bench::run(argc, argv); }
