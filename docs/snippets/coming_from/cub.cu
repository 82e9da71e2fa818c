// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include <cub/cub.cuh>
#include <cuda_runtime.h>

int main() {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        std::puts("skipped: no CUDA device");
        return 77;
    }
    const int lengths[]{3, 0, 4, 2};
    int* in = nullptr;
    long long* begins = nullptr;
    cudaMalloc(&in, sizeof lengths);
    cudaMalloc(&begins, 4 * sizeof(long long));
    cudaMemcpy(in, lengths, sizeof lengths, cudaMemcpyHostToDevice);
    // [program]
    void* workspace = nullptr;
    std::size_t bytes = 0; // two calls: the first one says how much memory the second one needs
    cub::DeviceScan::ExclusiveScan(workspace, bytes, in, begins, cuda::std::plus<>{}, 0LL, 4);
    cudaMalloc(&workspace, bytes);
    cub::DeviceScan::ExclusiveScan(workspace, bytes, in, begins, cuda::std::plus<>{}, 0LL, 4);
    // [program]
    long long shown[4];
    cudaMemcpy(shown, begins, sizeof shown, cudaMemcpyDeviceToHost);
    for (const long long begin : shown) std::printf("%lld ", begin);
    std::printf("of %lld\n", shown[3] + lengths[3]);
    cudaFree(in);
    cudaFree(begins);
    cudaFree(workspace);
}
