// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <vector>

#include <polyscan/openmp.hpp>

int main() {
    polyscan::openmp::backend cpu;
    const std::vector<int> in{3, 1, 4, 1, 5};
    std::vector<int> out(in.size());

    polyscan::inclusive_scan(cpu, in, out); // sum, default policy
    for (const int value : out) std::cout << value << ' ';

    polyscan::exclusive_scan(cpu, in, out, 10, polyscan::plus{}, polyscan::policies::domino);
    for (const int value : out) std::cout << value << ' ';
}
