// SPDX-License-Identifier: Apache-2.0
#include "contract_runs.hpp"

#include <cstring>

#include <thrust/device_vector.h>
#include <thrust/iterator/counting_iterator.h>

#include "launch_impl.hpp"

namespace polyscan::test {

template <class T>
std::size_t workspace_bytes(std::string_view policy, index_type n) {
    std::size_t bytes = 0;
    visit_policy(policy, [&]<class Policy>(Policy) {
        bytes = cuda::backend::workspace_bytes<Policy, scan_request<T, const T*, T*, plus>>(n);
    });
    return bytes;
}
template std::size_t workspace_bytes<std::int32_t>(std::string_view, index_type);
template std::size_t workspace_bytes<double>(std::string_view, index_type);
template std::size_t workspace_bytes<affine<double>>(std::string_view, index_type);

void reserve_int32(cuda::backend& backend, std::string_view policy, index_type n) {
    visit_policy(policy, [&]<class Policy>(Policy) {
        backend.reserve<Policy, scan_request<std::int32_t, const std::int32_t*, std::int32_t*, plus>>(n);
    });
}

// A struct of 64 bytes under every policy, beside the matrix' smaller ones.
template void run_case(cuda::backend&, std::string_view, const case_arguments<cases::words_64_bytes>&);

void scan_squares_of_counting(cuda::backend& backend, std::uint64_t* out, index_type n) {
    inclusive_scan<std::uint64_t>(backend, counted(thrust::counting_iterator<std::uint64_t>(0), n), out, plus{},
                                  default_policy{},
                                  with_transform{[] __host__ __device__(std::uint64_t i) { return i * i; }});
}

namespace {

struct words_of_doubles {
    std::uint32_t at[sizeof(three_doubles) / sizeof(std::uint32_t)];
    __host__ __device__ operator three_doubles() const {
        three_doubles doubles;
        std::memcpy(&doubles, at, sizeof doubles);
        return doubles;
    }
};

} // namespace

void scan_words_as_doubles(cuda::backend& backend, const std::uint32_t* in, three_doubles* out, index_type n) {
    inclusive_scan<three_doubles>(backend, counted(reinterpret_cast<const words_of_doubles*>(in), n), out,
                                  add_doubles{});
}

bool thrust_vector_agrees(cuda::backend& backend) {
    thrust::device_vector<int> in(10'000, 3), out(in.size());
    inclusive_scan(backend, counted(thrust::raw_pointer_cast(in.data()), in.size()),
                   thrust::raw_pointer_cast(out.data()));
    backend.synchronize();
    for (const std::size_t i : {std::size_t{0}, std::size_t{4'096}, in.size() - 1})
        if (out[i] != static_cast<int>(i + 1) * 3) return false;
    return true;
}

namespace {

// A sum of int8 wraps every few elements, and its value depends on every earlier element. The pattern repeats with a
// period that divides no tile, so the right value of any place follows from the place alone.
constexpr int period = 251;
__host__ __device__ std::int8_t pattern(index_type i) { return static_cast<std::int8_t>(i % period * 7 + 1); }

struct pattern_prefixes {
    std::int8_t of[period]; // inclusive sums of one period
};

__global__ void fill_pattern(std::int8_t* data, index_type n) {
    const index_type stride = index_type{gridDim.x} * blockDim.x;
    for (index_type i = index_type{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride) data[i] = pattern(i);
}

__global__ void count_wrong(const std::int8_t* data, index_type n, pattern_prefixes prefixes,
                            unsigned long long* wrong) {
    const index_type stride = index_type{gridDim.x} * blockDim.x;
    unsigned long long mine = 0;
    for (index_type i = index_type{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride) {
        const auto whole = static_cast<std::uint8_t>(static_cast<std::uint64_t>(i / period) *
                                                     static_cast<std::uint8_t>(prefixes.of[period - 1]));
        const auto expected = static_cast<std::int8_t>(whole + static_cast<std::uint8_t>(prefixes.of[i % period]));
        mine += data[i] != expected;
    }
    if (mine != 0) atomicAdd(wrong, mine);
}

__global__ void spin(const volatile int* flag) {
    while (*flag == 0) __nanosleep(1000);
}

__global__ void write_to_null(int* nowhere) { *nowhere = 1; }

} // namespace

unsigned long long wrong_in_large(cuda::backend& backend, std::string_view policy, index_type n) {
    constexpr int blocks = 2048, threads = 256;
    pattern_prefixes prefixes{};
    std::uint8_t sum = 0;
    for (int i = 0; i < period; ++i) {
        sum = static_cast<std::uint8_t>(sum + static_cast<std::uint8_t>(pattern(i)));
        prefixes.of[i] = static_cast<std::int8_t>(sum);
    }
    auto in = backend.allocate<std::int8_t>(n);
    auto out = backend.allocate<std::int8_t>(n);
    auto wrong = backend.allocate<unsigned long long>(1);
    cuda::check(cudaMemsetAsync(wrong.data(), 0, sizeof(unsigned long long), backend.stream()), "cudaMemsetAsync");
    cuda::check(cudaMemsetAsync(out.data(), 0xa5, static_cast<std::size_t>(n), backend.stream()), "cudaMemsetAsync");
    fill_pattern<<<blocks, threads, 0, backend.stream()>>>(in.data(), n);
    // One policy for each grid algorithm: the block algorithm does not see the length.
    const auto on = [&](auto how) {
        if (policy == how.name())
            inclusive_scan<std::int8_t>(backend, counted(static_cast<const std::int8_t*>(in.data()), n), out.data(),
                                        plus{}, how);
    };
    on(polyscan::policy<grid::single_block, block::warp_shuffle>{});
    on(polyscan::policy<grid::three_pass, block::warp_shuffle>{});
    on(polyscan::policy<grid::domino, block::warp_shuffle>{});
    on(polyscan::policy<grid::look_back, block::warp_shuffle>{});
    on(polyscan::policy<grid::prefix_server, block::warp_shuffle>{});
    count_wrong<<<blocks, threads, 0, backend.stream()>>>(out.data(), n, prefixes, wrong.data());
    unsigned long long result = 0;
    backend.copy_to_host(&result, wrong.data(), 1);
    return result;
}

void occupy(int blocks, const volatile int* flag, cudaStream_t stream) {
    // All the shared memory that a block can have: one block takes a multiprocessor for itself.
    int device = 0, most = 0;
    cuda::check(cudaGetDevice(&device), "cudaGetDevice");
    cuda::check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
                "cudaDeviceGetAttribute");
    cuda::check(cudaFuncSetAttribute(spin, cudaFuncAttributeMaxDynamicSharedMemorySize, most), "cudaFuncSetAttribute");
    spin<<<static_cast<unsigned>(blocks), 1, static_cast<std::size_t>(most), stream>>>(flag);
    cuda::check(cudaGetLastError(), "spin");
}

void fail_on_device(cudaStream_t stream) { write_to_null<<<1, 1, 0, stream>>>(nullptr); }

} // namespace polyscan::test
