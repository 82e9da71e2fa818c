// SPDX-License-Identifier: Apache-2.0
/// Device copy, polyscan, CUB and Thrust side by side: cold buffers in rotation, CUDA events, all contenders in turn
/// within every round, medians over the rounds. Prints one JSON object a line.
///
///     cuda_bench [--short] [--policies]
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <cub/device/device_scan.cuh>
#include <thrust/execution_policy.h>
#include <thrust/scan.h>

#include <polyscan/cuda.hpp>

namespace polyscan::bench {
namespace {

constexpr int rounds = 7;
constexpr std::size_t pool_bytes = std::size_t{4} << 30; // far more than any cache, for input and output each
constexpr std::size_t spacing = 256;                     // bytes between buffers of one rotation

__global__ void nothing() {}

template <class T>
__global__ void fill(T* data, std::size_t n) {
    const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride) {
        const auto mixed = static_cast<std::uint32_t>(i * 2654435761u) ^ static_cast<std::uint32_t>(i >> 7);
        data[i] = static_cast<T>(static_cast<int>(mixed >> 16) - 32768);
    }
}

struct contender {
    std::string backend, policy;
    std::function<void(std::size_t set)> run;
};

class comparison {
public:
    comparison() {
        cuda::check(cudaEventCreate(&start_), "cudaEventCreate");
        cuda::check(cudaEventCreate(&stop_), "cudaEventCreate");
        cuda::check(cudaMalloc(&in_, pool_bytes), "cudaMalloc");
        cuda::check(cudaMalloc(&out_, pool_bytes), "cudaMalloc");
        cuda::check(cudaMalloc(&scratch_, scratch_bytes), "cudaMalloc");
    }

    /// All contenders for n elements of T; `policies`: every policy of polyscan, else the default.
    template <class T>
    void measure(const char* dtype, int log2n, bool policies, bool peers) {
        const std::size_t n = std::size_t{1} << log2n;
        const std::size_t stride = (n * sizeof(T) + spacing - 1) / spacing * spacing;
        const std::size_t sets = std::min<std::size_t>(pool_bytes / stride, 4096);
        if (sets == 0) return;
        if (filled_ != dtype) {
            fill<<<2048, 256, 0, stream_>>>(static_cast<T*>(in_), pool_bytes / sizeof(T));
            filled_ = dtype;
        }
        const auto in = [=, this](std::size_t set) {
            return reinterpret_cast<T*>(static_cast<char*>(in_) + set * stride);
        };
        const auto out = [=, this](std::size_t set) {
            return reinterpret_cast<T*>(static_cast<char*>(out_) + set * stride);
        };
        std::vector<contender> all;
        all.push_back({"copy", "", [=, this](std::size_t set) {
                           cuda::check(
                               cudaMemcpyAsync(out(set), in(set), n * sizeof(T), cudaMemcpyDeviceToDevice, stream_),
                               "copy");
                       }});
        if (log2n <= 16) all.push_back({"empty kernel", "", [this](std::size_t) { nothing<<<1, 32, 0, stream_>>>(); }});
        const auto scan = [&]<class Policy>(Policy how) {
            all.push_back({"cuda", how.name(), [=, this](std::size_t set) {
                               inclusive_scan<T>(polyscan_, counted(in(set), n), out(set), plus{}, how);
                           }});
        };
        if (policies)
            for_each_policy([&]<class Grid, class Block>(policy<Grid, Block> how) {
                if (!std::is_same_v<Grid, grid::single_block> || log2n <= 16) scan(how);
            });
        else
            scan(default_policy{});
        if (peers) {
            all.push_back(
                {"cub", "", [=, this](std::size_t set) {
                     std::size_t bytes = scratch_bytes;
                     cuda::check(cub::DeviceScan::InclusiveSum(scratch_, bytes, in(set), out(set), n, stream_), "cub");
                 }});
            all.push_back({"thrust", "", [=, this](std::size_t set) {
                               thrust::inclusive_scan(thrust::cuda::par.on(stream_), in(set), in(set) + n, out(set));
                           }});
        }

        const std::size_t bytes = n * sizeof(T);
        const int calls = bytes <= (std::size_t{1} << 20) ? 100 : bytes <= (std::size_t{1} << 26) ? 30 : 6;
        std::vector<std::vector<double>> times(all.size());
        std::size_t turn = 0;
        for (int round = -1; round < rounds; ++round) // the first one warms up
            for (std::size_t c = 0; c < all.size(); ++c) {
                const bool slow = all[c].policy.starts_with("domino") && log2n < 24;
                const int count = slow ? std::min(calls, 6) : calls;
                cuda::check(cudaEventRecord(start_, stream_), "cudaEventRecord");
                for (int i = 0; i < count; ++i) all[c].run(turn++ * 97 % sets);
                cuda::check(cudaEventRecord(stop_, stream_), "cudaEventRecord");
                cuda::check(cudaEventSynchronize(stop_), "cudaEventSynchronize");
                float ms = 0;
                cuda::check(cudaEventElapsedTime(&ms, start_, stop_), "cudaEventElapsedTime");
                if (round >= 0) times[c].push_back(1e3 * static_cast<double>(ms) / count);
            }
        double copy = 0;
        for (std::size_t c = 0; c < all.size(); ++c) {
            std::nth_element(times[c].begin(), times[c].begin() + rounds / 2, times[c].end());
            const double us = times[c][rounds / 2];
            if (c == 0) copy = us;
            std::printf("{\"backend\": \"%s\", \"policy\": \"%s\", \"dtype\": \"%s\", \"op\": \"plus\", \"log2n\": %d, "
                        "\"median_us\": %.2f, \"gbps\": %.0f, \"copy_ratio\": %.3f}\n",
                        all[c].backend.c_str(), all[c].policy.c_str(), dtype, log2n, us,
                        2e-3 * static_cast<double>(bytes) / us, copy / us);
        }
        std::fflush(stdout);
    }

private:
    static constexpr std::size_t scratch_bytes = std::size_t{64} << 20;
    static cudaStream_t new_stream() {
        cudaStream_t stream = nullptr;
        cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
        return stream;
    }
    cudaStream_t stream_ = new_stream();
    cudaEvent_t start_ = nullptr, stop_ = nullptr;
    void* in_ = nullptr;
    void* out_ = nullptr;
    void* scratch_ = nullptr;
    std::string filled_;
    cuda::backend polyscan_{stream_};
};

int run(int argc, char** argv) {
    bool brief = false, policies = false;
    for (int i = 1; i < argc; ++i) {
        brief = brief || std::strcmp(argv[i], "--short") == 0;
        policies = policies || std::strcmp(argv[i], "--policies") == 0;
    }
    if (const auto here = cuda::backend().available(); !here) {
        std::printf("skipped: %s\n", here.reason.c_str());
        return 0;
    }
    comparison all;
    if (policies)
        for (const int log2n : {10, 12, 20, 24, 28}) all.measure<float>("float32", log2n, true, true);
    const std::vector<int> sizes =
        brief ? std::vector<int>{12, 16, 20, 22, 24, 26, 28}
              : std::vector<int>{10, 12, 14, 16, 18, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30};
    for (const int log2n : sizes) all.measure<int>("int32", log2n, false, true);
    if (!brief)
        for (const int log2n : sizes) all.measure<float>("float32", log2n, false, true);
    for (const int log2n : sizes)
        if (log2n < 30) all.measure<double>("float64", log2n, false, true);
    return 0;
}

} // namespace
} // namespace polyscan::bench

int main(int argc, char** argv) { return polyscan::bench::run(argc, argv); }
