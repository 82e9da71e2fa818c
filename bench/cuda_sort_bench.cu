// SPDX-License-Identifier: Apache-2.0
/// Sorts and histograms beside CUB's and a device copy: CUDA events, all contenders in turn within every round, medians
/// over the rounds, each result checked against CUB's. Prints one JSON object a line. At most 20 seconds.
///
///     cuda_sort_bench [--short]
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <cub/device/device_histogram.cuh>
#include <cub/device/device_radix_sort.cuh>

#include <polyscan/cuda.hpp>
#include <polyscan/histogram.hpp>
#include <polyscan/radix_sort.hpp>

namespace polyscan::bench {
namespace {

constexpr int rounds = 5;
using key = std::uint32_t;

enum class data { random, few, equal };
constexpr const char* name_of(data of) { return of == data::random ? "random" : of == data::few ? "16 bits" : "equal"; }

/// Well mixed bits of i (the finaliser of splitmix64).
__host__ __device__ std::uint64_t mixed(std::uint64_t i) {
    std::uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

template <class T>
__global__ void fill(T* to, std::size_t n, data of) {
    const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride) {
        const std::uint64_t bits = of == data::equal ? 77 : of == data::few ? mixed(i) & 0xffff : mixed(i);
        if constexpr (std::is_same_v<T, float>)
            to[i] = static_cast<float>(bits >> 40) * 0x1p-24f;
        else
            to[i] = static_cast<T>(bits);
    }
}

template <class T>
__global__ void count_different(const T* a, const T* b, std::size_t n, unsigned long long* different) {
    const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride)
        if (a[i] != b[i]) atomicAdd(different, 1ull);
}

struct contender {
    std::string name;
    std::function<void()> run;
};

class comparison {
public:
    comparison() {
        cuda::check(cudaEventCreate(&start_), "cudaEventCreate");
        cuda::check(cudaEventCreate(&stop_), "cudaEventCreate");
    }

    void sorts(int log2n, data of) {
        const auto n = static_cast<index_type>(std::size_t{1} << log2n);
        const auto in = polyscan_.allocate<key>(n), values = polyscan_.allocate<key>(n);
        const auto out = polyscan_.allocate<key>(n), values_out = polyscan_.allocate<key>(n);
        const auto right = polyscan_.allocate<key>(n), values_right = polyscan_.allocate<key>(n);
        fill<<<2048, 256, 0, stream_>>>(in.data(), static_cast<std::size_t>(n), of);
        fill<<<2048, 256, 0, stream_>>>(values.data(), static_cast<std::size_t>(n), data::random);
        const auto* const k = static_cast<const key*>(in.data());
        const auto* const v = static_cast<const key*>(values.data());
        std::size_t bytes = 0, more = 0;
        cuda::check(cub::DeviceRadixSort::SortKeys(nullptr, bytes, k, right.data(), n), "cub");
        cuda::check(cub::DeviceRadixSort::SortPairs(nullptr, more, k, right.data(), v, values_right.data(), n), "cub");
        bytes = std::max(bytes, more);
        const auto scratch = polyscan_.allocate<unsigned char>(static_cast<index_type>(bytes));

        const contender copy{"copy", [&] {
                                 cuda::check(cudaMemcpyAsync(out.data(), k, static_cast<std::size_t>(n) * sizeof(key),
                                                             cudaMemcpyDeviceToDevice, stream_),
                                             "copy");
                             }};
        measure("radix_sort", "uint32", of, log2n,
                {copy,
                 {"cuda", [&] { radix_sort(polyscan_, counted(k, n), out.data()); }},
                 {"cub", [&] {
                      cuda::check(
                          cub::DeviceRadixSort::SortKeys(scratch.data(), bytes, k, right.data(), n, 0, 32, stream_),
                          "cub");
                  }}});
        report_differences("radix_sort", out.data(), right.data(), n);
        measure("radix_sort_by_key", "uint32, uint32", of, log2n,
                {copy,
                 {"cuda", [&] { radix_sort_by_key(polyscan_, counted(k, n), v, out.data(), values_out.data()); }},
                 {"cub", [&] {
                      cuda::check(cub::DeviceRadixSort::SortPairs(scratch.data(), bytes, k, right.data(), v,
                                                                  values_right.data(), n, 0, 32, stream_),
                                  "cub");
                  }}});
        report_differences("radix_sort_by_key, keys", out.data(), right.data(), n);
        report_differences("radix_sort_by_key, values", values_out.data(), values_right.data(), n);
    }

    template <class T, class Level>
    void histograms(const char* dtype, int log2n, data of, Level lower, Level upper) {
        constexpr int bins = 256;
        const auto n = static_cast<index_type>(std::size_t{1} << log2n);
        const auto in = polyscan_.allocate<T>(n), copied = polyscan_.allocate<T>(n);
        const auto counts = polyscan_.allocate<int>(bins), right = polyscan_.allocate<int>(bins);
        fill<<<2048, 256, 0, stream_>>>(in.data(), static_cast<std::size_t>(n), of);
        const auto* const x = static_cast<const T*>(in.data());
        std::size_t bytes = 0;
        const auto cub_histogram = [&](void* scratch) {
            cuda::check(cub::DeviceHistogram::HistogramEven(scratch, bytes, x, right.data(), bins + 1, lower, upper, n,
                                                            stream_),
                        "cub");
        };
        cub_histogram(nullptr);
        const auto scratch = polyscan_.allocate<unsigned char>(static_cast<index_type>(bytes));
        measure("histogram", dtype, of, log2n,
                {{"copy",
                  [&] {
                      cuda::check(cudaMemcpyAsync(copied.data(), x, static_cast<std::size_t>(n) * sizeof(T),
                                                  cudaMemcpyDeviceToDevice, stream_),
                                  "copy");
                  }},
                 {"cuda",
                  [&] { histogram(polyscan_, counted(x, n), counted(counts.data(), bins), even_bins{lower, upper}); }},
                 {"cub", [&] { cub_histogram(scratch.data()); }}});
        report_differences("histogram", counts.data(), right.data(), bins);
    }

private:
    void measure(const char* verb, const char* dtype, data of, int log2n, const std::vector<contender>& all) {
        const int calls = log2n <= 24 ? 10 : 3;
        std::vector<std::vector<double>> times(all.size());
        for (int round = -1; round < rounds; ++round) // the first one warms up
            for (std::size_t c = 0; c < all.size(); ++c) {
                cuda::check(cudaEventRecord(start_, stream_), "cudaEventRecord");
                for (int i = 0; i < calls; ++i) all[c].run();
                cuda::check(cudaEventRecord(stop_, stream_), "cudaEventRecord");
                cuda::check(cudaEventSynchronize(stop_), "cudaEventSynchronize");
                float ms = 0;
                cuda::check(cudaEventElapsedTime(&ms, start_, stop_), "cudaEventElapsedTime");
                if (round >= 0) times[c].push_back(1e3 * static_cast<double>(ms) / calls);
            }
        std::vector<double> median;
        for (auto& t : times) {
            std::nth_element(t.begin(), t.begin() + rounds / 2, t.end());
            median.push_back(t[rounds / 2]);
        }
        for (std::size_t c = 0; c < all.size(); ++c)
            std::printf("{\"verb\": \"%s\", \"backend\": \"%s\", \"dtype\": \"%s\", \"data\": \"%s\", \"log2n\": %d, "
                        "\"median_us\": %.1f, \"elements_per_us\": %.0f, \"speed_of_cub\": %.3f}\n",
                        verb, all[c].name.c_str(), dtype, name_of(of), log2n, median[c],
                        static_cast<double>(std::size_t{1} << log2n) / median[c], median.back() / median[c]);
        std::fflush(stdout);
    }

    template <class T>
    void report_differences(const char* what, const T* found, const T* right, index_type n) {
        const auto different = polyscan_.allocate<unsigned long long>(1);
        unsigned long long count = 0;
        polyscan_.copy_to_device(different.data(), &count, 1);
        count_different<<<2048, 256, 0, stream_>>>(found, right, static_cast<std::size_t>(n), different.data());
        polyscan_.copy_to_host(&count, different.data(), 1);
        if (count == 0) return;
        failed_ = true;
        std::printf("{\"verb\": \"%s\", \"n\": %lld, \"different_from_cub\": %llu}\n", what, static_cast<long long>(n),
                    count);
    }

    static cudaStream_t new_stream() {
        cudaStream_t stream = nullptr;
        cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
        return stream;
    }
    cudaStream_t stream_ = new_stream();
    cudaEvent_t start_ = nullptr, stop_ = nullptr;
    cuda::backend polyscan_{stream_};
    bool failed_ = false;

public:
    bool failed() const { return failed_; }
};

int run(int argc, char** argv) {
    const bool brief = argc > 1 && std::strcmp(argv[1], "--short") == 0;
    if (const auto here = cuda::backend().available(); !here) {
        std::printf("skipped: %s\n", here.reason.c_str());
        return 0;
    }
    comparison all;
    for (const int log2n : {16, 20, 24, 26, 28}) {
        if (brief && log2n != 26) continue;
        all.sorts(log2n, data::random);
        if (log2n == 26) {
            all.sorts(log2n, data::few);
            all.sorts(log2n, data::equal);
        }
    }
    for (const int log2n : {24, 28}) {
        if (brief && log2n != 24) continue;
        for (const data of : {data::random, data::equal}) {
            all.histograms<std::uint8_t>("uint8", log2n, of, 0, 256);
            all.histograms<std::uint32_t>("uint32", log2n, of, 0, 65536);
            all.histograms<float>("float", log2n, of, 0.0f, 1.0f);
        }
    }
    return all.failed() ? 1 : 0;
}

} // namespace
} // namespace polyscan::bench

int main(int argc, char** argv) {
    try {
        return polyscan::bench::run(argc, argv);
    } catch (const std::exception& error) {
        std::printf("failed: %s\n", error.what());
        return 1;
    }
}
