// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <vector>

#include <polyscan/cuda.hpp>

int main() {
    polyscan::cuda::backend gpu; // or backend{stream}
    if (const polyscan::availability here = gpu.available(); !here) {
        std::printf("skipped: no CUDA device (%s)\n", here.reason.c_str());
        return 77;
    }
    // [program]
    const std::vector<int> lengths{3, 0, 4, 2};
    auto in = gpu.allocate<int>(4);
    auto begins = gpu.allocate<long long>(4); // or memory of your own: any device pointer
    auto entries = gpu.allocate<long long>(1);
    gpu.copy_to_device(in.data(), lengths.data(), 4);

    // Ordered on the stream; nobody waits, and nothing is allocated once the backend's workspace has grown.
    polyscan::exclusive_scan(gpu, polyscan::counted(in.data(), 4), begins.data(), 0LL, polyscan::plus{},
                             polyscan::default_policy{}, polyscan::total_to{entries.data()});
    // [program]
    std::vector<long long> shown(4);
    long long total = 0;
    gpu.copy_to_host(shown.data(), begins.data(), 4);
    gpu.copy_to_host(&total, entries.data(), 1);
    gpu.synchronize();
    for (const long long begin : shown) std::printf("%lld ", begin);
    std::printf("of %lld\n", total);
}
