// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <vector>

#include <polyscan/openmp.hpp>

int main() {
    // [program]
    const std::vector<int> lengths{3, 0, 4, 2};
    std::vector<long long> begins(4);
    long long entries = 0;

    polyscan::openmp::backend cpu;
    polyscan::exclusive_scan(cpu, lengths, begins, 0LL, polyscan::plus{}, polyscan::default_policy{},
                             polyscan::total_to{&entries});
    // [program]
    for (const long long begin : begins) std::printf("%lld ", begin);
    std::printf("of %lld\n", entries);
}
