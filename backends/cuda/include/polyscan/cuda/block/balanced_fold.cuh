// SPDX-License-Identifier: Apache-2.0
/// The fold of a full tile by one warp, in a balanced tree: what Kogge-Stone's last element and Brent-Kung's root are.
/// No shared memory and no barrier, so that reducing runs at the speed of reading.
#pragma once

#include <algorithm>
#include <bit>

#include <polyscan/cuda/request.cuh>
#include <polyscan/cuda/tuning.hpp>

namespace polyscan::cuda {

/// Elements that a lane reads at once: 16 bytes of accumulators, a power of two.
template <class A>
inline constexpr int lane_run =
    static_cast<int>(std::bit_floor(std::clamp<std::size_t>(sizeof(uint4) / sizeof(A), 1, 4)));

/// Balanced tree over the values of one lane.
template <int Run, class Operator, class A>
__device__ A fold_run(const Operator& op, slot<A> (&v)[Run]) {
#pragma unroll
    for (int s = 1; s < Run; s *= 2)
#pragma unroll
        for (int e = 0; e + s < Run; e += 2 * s) v[e].value = polyscan::combine(op, v[e].value, v[e + s].value);
    return v[0].value;
}

/// The fold of elements first, ..., first + Elements - 1, given to every lane.
template <int Elements, class KernelRequest>
__device__ auto balanced_fold(const KernelRequest& request, index_type first) {
    using A = typename KernelRequest::accumulator_type;
    constexpr int run = lane_run<A>;
    constexpr int chunk = warp_size * run;
    constexpr int chunks = Elements / chunk;
    static_assert(chunks >= 1 && chunks <= warp_size && Elements % chunk == 0);
    const int lane = static_cast<int>(threadIdx.x) % warp_size;

    slot<A> mine; // lane c, c + chunks, ...: the fold of chunk c
#pragma unroll tuning::fold_batch(sizeof(A))
    for (int c = 0; c < chunks; ++c) {
        slot<A> v[run];
        request.template load_run<run>(first + c * chunk + lane * run, v);
        const A total = fold_lanes<warp_size>(request.op, fold_run(request.op, v));
        if (lane % chunks == c) mine.value = total;
    }
    return fold_lanes<chunks>(request.op, mine.value);
}

} // namespace polyscan::cuda
