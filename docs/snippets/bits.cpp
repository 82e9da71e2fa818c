// SPDX-License-Identifier: Apache-2.0
/// The worked example of docs/determinism.md, as a program.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include <polyscan/openmp.hpp>

#include "expect.hpp"

namespace {

using snippet::expect;

// [worked]
std::uint32_t last_bits(auto policy) {
    polyscan::openmp::backend cpu;
    const float half_a_step = std::ldexp(1.0F, -24);
    const std::vector<float> in{1, half_a_step, half_a_step, half_a_step, half_a_step, half_a_step};
    std::vector<float> out(6);
    polyscan::inclusive_scan(cpu, in, out, polyscan::plus{}, policy);
    std::printf("%-28s %08x\n", policy.name().c_str(), std::bit_cast<std::uint32_t>(out[5]));
    return std::bit_cast<std::uint32_t>(out[5]);
}
// [worked]

// [contraction]
// Two roundings, or one where the compiler fuses: link polyscan::bit_exact, or write std::fma and mean it.
struct compose {
    template <class Map>
    Map operator()(const Map& earlier, const Map& later) const {
        return {later.scale * earlier.scale, later.scale * earlier.offset + later.offset};
    }
};
// [contraction]

} // namespace

int main() {
    // [calls]
    last_bits(polyscan::policies::kogge_stone);  // 3f800002
    last_bits(polyscan::policies::brent_kung);   // 3f800002
    last_bits(polyscan::policies::coarse);       // 3f800001
    last_bits(polyscan::policies::warp_shuffle); // 3f800002
    // [calls]
    expect(last_bits(polyscan::policies::kogge_stone) == 0x3f800002, "kogge_stone");
    expect(last_bits(polyscan::policies::brent_kung) == 0x3f800002, "brent_kung");
    expect(last_bits(polyscan::policies::coarse) == 0x3f800001, "coarse");
    expect(last_bits(polyscan::policies::warp_shuffle) == 0x3f800002, "warp_shuffle");
    // This program is compiled with polyscan::bit_exact: the product is rounded before the sum.
    struct map {
        float scale, offset;
    };
    const float tiny = 1 + std::ldexp(1.0F, -23);
    const map twice = compose{}(map{1, tiny}, map{tiny, -1 - std::ldexp(1.0F, -22)});
    expect(twice.offset == 0, "a product that is rounded before the sum");
    expect(std::fma(tiny, tiny, -1 - std::ldexp(1.0F, -22)) != 0, "a fused one would keep 2^-46");
}
