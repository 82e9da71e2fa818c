// SPDX-License-Identifier: Apache-2.0
#include "sort_contract_runs.hpp"

#include <cub/device/device_radix_sort.cuh>

namespace polyscan::test {

std::size_t sort_workspace_bytes_uint32(index_type n) { return cuda::radix_sort_workspace_bytes<std::uint32_t>(n); }
std::size_t sort_workspace_bytes_float_uint64(index_type n) {
    return cuda::radix_sort_workspace_bytes<float, std::uint64_t>(n);
}

namespace {
struct is_even {
    __host__ __device__ bool operator()(std::int32_t value) const { return value % 2 == 0; }
};
} // namespace

void copy_even(cuda::backend& backend, const std::int32_t* in, index_type n, std::int32_t* out, index_type* count) {
    copy_if(backend, counted(in, n), out, count, is_even{});
}
void partition_even(cuda::backend& backend, const std::int32_t* in, index_type n, std::int32_t* out,
                    index_type* count) {
    partition(backend, counted(in, n), out, count, is_even{});
}
std::size_t select_workspace_bytes_int32(index_type n) { return cuda::select_workspace_bytes<std::int32_t>(n); }

void cub_sort(const std::uint32_t* keys, std::uint32_t* keys_out, const std::uint32_t* values,
              std::uint32_t* values_out, index_type n, bool descending) {
    void* scratch = nullptr;
    std::size_t bytes = 0;
    for (int round = 0; round < 2; ++round) { // the first one asks for the size
        if (values == nullptr && !descending)
            cuda::check(cub::DeviceRadixSort::SortKeys(scratch, bytes, keys, keys_out, n), "cub");
        else if (values == nullptr)
            cuda::check(cub::DeviceRadixSort::SortKeysDescending(scratch, bytes, keys, keys_out, n), "cub");
        else if (!descending)
            cuda::check(cub::DeviceRadixSort::SortPairs(scratch, bytes, keys, keys_out, values, values_out, n), "cub");
        else
            cuda::check(
                cub::DeviceRadixSort::SortPairsDescending(scratch, bytes, keys, keys_out, values, values_out, n),
                "cub");
        if (round == 0) cuda::check(cudaMalloc(&scratch, bytes), "cudaMalloc");
    }
    cuda::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    cuda::check(cudaFree(scratch), "cudaFree");
}

namespace {

// Element i is 0, 1, ..., 255 in turn, so that the sorted element at i follows from i and n alone.
__global__ void fill_in_turn(std::uint8_t* data, index_type n) {
    const index_type stride = index_type{gridDim.x} * blockDim.x;
    for (index_type i = index_type{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride)
        data[i] = static_cast<std::uint8_t>(i);
}

__global__ void count_wrong(const std::uint8_t* data, index_type n, unsigned long long* wrong) {
    const index_type stride = index_type{gridDim.x} * blockDim.x, each = n / 256, more = n % 256;
    unsigned long long mine = 0;
    for (index_type i = index_type{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride) {
        // The first `more` values come once more than the others.
        const index_type right = i < more * (each + 1) ? i / (each + 1) : more + (i - more * (each + 1)) / each;
        mine += data[i] != static_cast<std::uint8_t>(right);
    }
    if (mine != 0) atomicAdd(wrong, mine);
}

} // namespace

unsigned long long wrong_in_large_sort(cuda::backend& backend, index_type n) {
    constexpr int blocks = 2048, threads = 256;
    auto in = backend.allocate<std::uint8_t>(n), out = backend.allocate<std::uint8_t>(n);
    auto wrong = backend.allocate<unsigned long long>(1);
    cuda::check(cudaMemsetAsync(wrong.data(), 0, sizeof(unsigned long long), backend.stream()), "cudaMemsetAsync");
    fill_in_turn<<<blocks, threads, 0, backend.stream()>>>(in.data(), n);
    radix_sort(backend, counted(static_cast<const std::uint8_t*>(in.data()), n), out.data());
    count_wrong<<<blocks, threads, 0, backend.stream()>>>(out.data(), n, wrong.data());
    unsigned long long result = 0;
    backend.copy_to_host(&result, wrong.data(), 1);
    return result;
}

} // namespace polyscan::test
