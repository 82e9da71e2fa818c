// SPDX-License-Identifier: Apache-2.0
/// Warp shuffle: the default tree. Rows of some 512 bytes (what a GPU warp holds as one 16-byte vector per lane) are
/// scanned by Sklansky's divide and conquer; the offset of a row is the left fold of the earlier rows' totals. On the
/// CPU the lanes are SIMD lanes: the inner loops below combine one broadcast value into consecutive elements. J.
/// Sklansky: "Conditional-sum addition logic" (1960).
#pragma once

#include <algorithm>

#include <polyscan/host/loops.hpp>
#include <polyscan/operators.hpp>
#include <polyscan/tile.hpp>

namespace polyscan::openmp {

/// Replaces v[0, m) by its prefixes.
template <class T, class Operator>
void block_scan(block::warp_shuffle, T* v, index_type m, const Operator& op) {
    constexpr index_type row_length = shape_for<block::warp_shuffle, T>.run;
    for (index_type first = 0; first < m; first += row_length) {
        T* const row = v + first;
        const index_type length = std::min(row_length, m - first);
        // The upper half of every group of 2 * stride takes the last prefix of the lower half.
        for (index_type stride = 1; stride < length; stride *= 2) {
            for (index_type middle = stride; middle < length; middle += 2 * stride) {
                const T lower = row[middle - 1];
                const index_type end = std::min(middle + stride, length);
                POLYSCAN_INDEPENDENT_ITERATIONS
                for (index_type i = middle; i < end; ++i) row[i] = combine(op, lower, row[i]);
            }
        }
        if (first > 0) {
            // The last prefix of the row before includes its own offset: that is the left fold of the row totals.
            const T offset = row[-1];
            POLYSCAN_INDEPENDENT_ITERATIONS
            for (index_type i = 0; i < length; ++i) row[i] = combine(op, offset, row[i]);
        }
    }
}

/// The last prefix of a full tile: neighbours are folded pairwise inside a row, which is the tree that the last element
/// of Sklansky's scan depends on; row totals from left to right. Overwrites v.
template <class T, class Operator>
T block_reduce(block::warp_shuffle, T* v, index_type m, const Operator& op) {
    constexpr index_type row_length = shape_for<block::warp_shuffle, T>.run;
    for (index_type first = 0; first < m; first += row_length) {
        T* const row = v + first;
        for (index_type length = row_length / 2; length >= 1; length /= 2)
            for (index_type i = 0; i < length; ++i) row[i] = combine(op, row[2 * i], row[2 * i + 1]);
        if (first > 0) v[0] = combine(op, v[0], row[0]);
    }
    return v[0];
}

} // namespace polyscan::openmp
