// SPDX-License-Identifier: Apache-2.0
/// Kogge-Stone: ceil(log2 m) rounds; the round with stride s combines element i - s into element i for all i >= s.
/// Work O(m log m), depth log m. P. Kogge, H. Stone: "A parallel algorithm for the efficient solution of a general
/// class of recurrence equations" (1973).
#pragma once

#include <algorithm>

#include <polyscan/host/loops.hpp>
#include <polyscan/operators.hpp>
#include <polyscan/tile.hpp>

namespace polyscan::openmp {

/// Replaces v[0, m) by its prefixes.
template <class T, class Operator>
void block_scan(block::kogge_stone, T* v, index_type m, const Operator& op) {
    for (index_type stride = 1; stride < m; stride *= 2) {
        // A round must read only values from before it. From right to left, in groups of at most `stride` elements: a
        // group reads what lies left of it, which no earlier group of this round has written.
        for (index_type end = m; end > stride;) {
            const index_type begin = std::max(stride, end - stride);
            POLYSCAN_INDEPENDENT_ITERATIONS
            for (index_type i = begin; i < end; ++i) v[i] = combine(op, v[i - stride], v[i]);
            end = begin;
        }
    }
}

/// The last prefix of a full tile, by the nodes of the tree that it depends on: each round folds neighbours. Overwrites
/// v.
template <class T, class Operator>
T block_reduce(block::kogge_stone, T* v, index_type m, const Operator& op) {
    for (index_type length = m / 2; length >= 1; length /= 2)
        for (index_type i = 0; i < length; ++i) v[i] = combine(op, v[2 * i], v[2 * i + 1]);
    return v[0];
}

} // namespace polyscan::openmp
