// SPDX-License-Identifier: Apache-2.0
// Compiled for Thrust's OpenMP device system here, so that it runs without a GPU; the program is the same for CUDA.
#include <cstdio>

#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/scan.h>

int main() {
    // [program]
    const thrust::device_vector<int> lengths{3, 0, 4, 2};
    thrust::device_vector<long long> begins(4);

    thrust::exclusive_scan(lengths.begin(), lengths.end(), begins.begin(), 0LL);
    const long long entries = begins.back() + lengths.back(); // two copies from the device, each with a wait
    // [program]
    const thrust::host_vector<long long> shown = begins;
    for (const long long begin : shown) std::printf("%lld ", begin);
    std::printf("of %lld\n", entries);
}
