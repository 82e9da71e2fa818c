// SPDX-License-Identifier: Apache-2.0
/// The verbs beside scan on one GPU: polyscan and CUB in turn within every round, beside a device copy and a read-only
/// pass, medians over the rounds. Prints one JSON object a line; `of_roof` is the time that a copy (for reduce: a read)
/// of the verb's bytes would take, divided by the verb's.
///
///     cuda_primitives_bench [log2 of the number of elements, 26 if left out]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <cub/device/device_partition.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>

#include <polyscan/cuda.hpp>

namespace polyscan::bench {
namespace {

constexpr int rounds = 9;
constexpr int calls = 5;                   // between two events
constexpr index_type segment_length = 100; // on average
constexpr index_type run_length = 16;      // on average
constexpr index_type spare = 64;           // elements behind each buffer

__host__ __device__ std::uint32_t mixed(index_type i) {
    auto z = static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    return static_cast<std::uint32_t>(z >> 32);
}
/// A key for each run: the number of the piece of `run_length` elements, or of the next one.
__host__ __device__ std::int32_t key_of(index_type i) {
    const index_type piece = i / run_length;
    const bool next = i % run_length >= static_cast<index_type>(mixed(piece + 1) % run_length);
    return static_cast<std::int32_t>(piece + (next ? 1 : 0));
}

__global__ void fill(float* floats, std::int32_t* ints, std::uint8_t* flags, std::int32_t* keys, index_type n) {
    const index_type stride = index_type{gridDim.x} * blockDim.x;
    for (index_type i = index_type{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride) {
        floats[i] = static_cast<float>(static_cast<int>(mixed(i) >> 16) - 32768);
        ints[i] = static_cast<std::int32_t>(mixed(i));
        flags[i] = mixed(3 * i) % segment_length == 0;
        keys[i] = key_of(i);
    }
}

/// The read-only roof: 16 bytes a load, eight loads under way, and a use for them.
__global__ void __launch_bounds__(512) read_all(const uint4* in, index_type words, std::uint32_t* never) {
    constexpr int batch = 8;
    std::uint32_t sum = 0;
    const index_type stride = index_type{gridDim.x} * blockDim.x;
    index_type i = index_type{blockIdx.x} * blockDim.x + threadIdx.x;
    for (; i + (batch - 1) * stride < words; i += batch * stride) {
        uint4 v[batch];
#pragma unroll
        for (int b = 0; b < batch; ++b) v[b] = __ldcs(in + i + b * stride);
#pragma unroll
        for (int b = 0; b < batch; ++b) sum ^= v[b].x ^ v[b].y ^ v[b].z ^ v[b].w;
    }
    for (; i < words; i += stride) sum ^= in[i].x;
    if (sum == 0x12345678u && in == nullptr) *never = sum; // never, which the compiler cannot know
}

struct is_even {
    __host__ __device__ bool operator()(std::int32_t value) const { return value % 2 == 0; }
};
struct add {
    template <class T>
    __host__ __device__ T operator()(const T& a, const T& b) const {
        return a + b;
    }
};

struct contender {
    const char *verb, *by;
    double bytes;     ///< read and written, once each
    const char* roof; ///< the contender whose bytes per second bound it
    std::function<void()> run;
};

int run(int log2n) {
    cuda::backend gpu;
    if (const availability here = gpu.available(); !here) {
        std::printf("{\"skipped\": \"%s\"}\n", here.reason.c_str());
        return 0;
    }
    const index_type n = index_type{1} << log2n;
    const auto floats = gpu.allocate<float>(n + spare), sums = gpu.allocate<float>(n + spare);
    const auto ints = gpu.allocate<std::int32_t>(n + spare), chosen = gpu.allocate<std::int32_t>(n + spare);
    const auto keys = gpu.allocate<std::int32_t>(n + spare), runs = gpu.allocate<std::int32_t>(n + spare);
    const auto flags = gpu.allocate<std::uint8_t>(n + spare);
    const auto total = gpu.allocate<float>(1);
    const auto int_total = gpu.allocate<std::int32_t>(1);
    const auto double_total = gpu.allocate<double>(1);
    const auto count = gpu.allocate<index_type>(1);
    const auto never = gpu.allocate<std::uint32_t>(1);
    std::size_t scratch_bytes = std::size_t{256} << 20;
    const auto scratch = gpu.allocate<unsigned char>(static_cast<index_type>(scratch_bytes));
    fill<<<2048, 256>>>(floats.data(), ints.data(), flags.data(), keys.data(), n);
    cuda::check(cudaGetLastError(), "fill");

    const double elements = static_cast<double>(n);
    const auto in = counted(static_cast<const float*>(floats.data()), n);
    const auto numbers = counted(static_cast<const std::int32_t*>(ints.data()), n);
    const auto names = counted(static_cast<const std::int32_t*>(keys.data()), n);
    const auto doubles = counted(reinterpret_cast<const double*>(floats.data()), n / 2); // whatever they are
    const auto check = [](cudaError_t status) { cuda::check(status, "cub"); };
    void* const memory = scratch.data();
    const unsigned readers = static_cast<unsigned>(gpu.multiprocessors() * 4);

    const std::vector<contender> all{
        {"copy", "cudaMemcpyAsync", 8 * elements, "copy",
         [&] {
             cuda::check(cudaMemcpyAsync(sums.data(), floats.data(), static_cast<std::size_t>(n) * sizeof(float),
                                         cudaMemcpyDeviceToDevice),
                         "cudaMemcpyAsync");
         }},
        {"read", "kernel", 4 * elements, "read",
         [&] { read_all<<<readers, 512>>>(reinterpret_cast<const uint4*>(floats.data()), n / 4, never.data()); }},
        {"reduce", "polyscan", 4 * elements, "read", [&] { reduce(gpu, in, total.data()); }},
        {"reduce", "cub", 4 * elements, "read",
         [&] { check(cub::DeviceReduce::Sum(memory, scratch_bytes, floats.data(), total.data(), n)); }},
        {"reduce int32", "polyscan", 4 * elements, "read", [&] { reduce(gpu, numbers, int_total.data()); }},
        {"reduce int32", "cub", 4 * elements, "read",
         [&] { check(cub::DeviceReduce::Sum(memory, scratch_bytes, ints.data(), int_total.data(), n)); }},
        {"reduce double", "polyscan", 4 * elements, "read", [&] { reduce(gpu, doubles, double_total.data()); }},
        {"reduce double", "cub", 4 * elements, "read",
         [&] { check(cub::DeviceReduce::Sum(memory, scratch_bytes, doubles.begin, double_total.data(), n / 2)); }},
        {"copy_if", "polyscan", 6 * elements, "copy",
         [&] { copy_if(gpu, numbers, chosen.data(), count.data(), is_even{}); }},
        {"copy_if", "cub", 6 * elements, "copy",
         [&] {
             check(
                 cub::DeviceSelect::If(memory, scratch_bytes, ints.data(), chosen.data(), count.data(), n, is_even{}));
         }},
        {"partition", "polyscan", 8 * elements, "copy",
         [&] { partition(gpu, numbers, chosen.data(), count.data(), is_even{}); }},
        {"partition", "cub", 8 * elements, "copy",
         [&] {
             check(cub::DevicePartition::If(memory, scratch_bytes, ints.data(), chosen.data(), count.data(), n,
                                            is_even{}));
         }},
        {"segmented_scan", "polyscan", 9 * elements, "copy",
         [&] { inclusive_segmented_scan(gpu, in, head_flags(flags.data()), sums.data()); }},
        {"scan_by_key", "polyscan", 12 * elements, "copy",
         [&] { inclusive_scan_by_key(gpu, names, floats.data(), sums.data()); }},
        {"scan_by_key", "cub", 12 * elements, "copy",
         [&] {
             check(
                 cub::DeviceScan::InclusiveSumByKey(memory, scratch_bytes, keys.data(), floats.data(), sums.data(), n));
         }},
        {"reduce_by_key", "polyscan", (8 + 8.0 / run_length) * elements, "copy",
         [&] { reduce_by_key(gpu, names, floats.data(), runs.data(), sums.data(), count.data()); }},
        {"reduce_by_key", "cub", (8 + 8.0 / run_length) * elements, "copy",
         [&] {
             check(cub::DeviceReduce::ReduceByKey(memory, scratch_bytes, keys.data(), runs.data(), floats.data(),
                                                  sums.data(), count.data(), add{}, n));
         }},
        {"run_length_encode", "polyscan", (4 + 8.0 / run_length) * elements, "copy",
         [&] { run_length_encode(gpu, names, runs.data(), chosen.data(), count.data()); }},
        {"run_length_encode", "cub", (4 + 8.0 / run_length) * elements, "copy", [&] {
             check(cub::DeviceRunLengthEncode::Encode(memory, scratch_bytes, keys.data(), runs.data(), chosen.data(),
                                                      count.data(), n));
         }}};

    cudaEvent_t start, stop;
    cuda::check(cudaEventCreate(&start), "cudaEventCreate");
    cuda::check(cudaEventCreate(&stop), "cudaEventCreate");
    std::vector<std::vector<double>> times(all.size());
    for (int round = -1; round < rounds; ++round) // the first one warms up
        for (std::size_t c = 0; c < all.size(); ++c) {
            cuda::check(cudaEventRecord(start), "cudaEventRecord");
            for (int call = 0; call < calls; ++call) all[c].run();
            cuda::check(cudaEventRecord(stop), "cudaEventRecord");
            cuda::check(cudaEventSynchronize(stop), all[c].verb);
            float milliseconds = 0;
            cuda::check(cudaEventElapsedTime(&milliseconds, start, stop), "cudaEventElapsedTime");
            if (round >= 0) times[c].push_back(1000.0 * milliseconds / calls);
        }

    std::vector<double> us;
    for (auto& of : times) {
        std::nth_element(of.begin(), of.begin() + rounds / 2, of.end());
        us.push_back(of[rounds / 2]);
    }
    const auto find = [&](const std::string& verb, const std::string& by) {
        for (std::size_t c = 0; c < all.size(); ++c)
            if (verb == all[c].verb && (by.empty() || by == all[c].by)) return c;
        return all.size();
    };
    for (std::size_t c = 0; c < all.size(); ++c) {
        const std::size_t roof = find(all[c].roof, ""), cub = find(all[c].verb, "cub");
        std::printf("{\"verb\": \"%s\", \"by\": \"%s\", \"log2n\": %d, \"us\": %.1f, \"gbps\": %.0f, \"of_roof\": %.3f",
                    all[c].verb, all[c].by, log2n, us[c], all[c].bytes / us[c] / 1000,
                    all[c].bytes / us[c] / (all[roof].bytes / us[roof]));
        if (cub < all.size()) std::printf(", \"cub_us_over_us\": %.3f", us[cub] / us[c]);
        std::printf("}\n");
    }
    return 0;
}

} // namespace
} // namespace polyscan::bench

int main(int argc, char** argv) {
    try {
        return polyscan::bench::run(argc > 1 ? std::atoi(argv[1]) : 26);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 3;
    }
}
