// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <vector>

#include <RAJA/RAJA.hpp>

int main() {
    // [program]
    const std::vector<int> lengths{3, 0, 4, 2};
    std::vector<long long> begins(4);

    RAJA::exclusive_scan<RAJA::omp_parallel_for_exec>(
        RAJA::make_span(lengths.data(), 4), RAJA::make_span(begins.data(), 4), RAJA::operators::plus<long long>{}, 0LL);
    const long long entries = begins.back() + lengths.back();
    // [program]
    for (const long long begin : begins) std::printf("%lld ", begin);
    std::printf("of %lld\n", entries);
}
