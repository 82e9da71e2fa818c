// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <numeric>
#include <vector>

int main() {
    // [program]
    const std::vector<int> lengths{3, 0, 4, 2};
    std::vector<long long> begins(4);

    std::exclusive_scan(lengths.begin(), lengths.end(), begins.begin(), 0LL);
    const long long entries = begins.back() + lengths.back();
    // [program]
    for (const long long begin : begins) std::printf("%lld ", begin);
    std::printf("of %lld\n", entries);
}
