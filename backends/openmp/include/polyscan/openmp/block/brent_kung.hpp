// SPDX-License-Identifier: Apache-2.0
/// Brent-Kung: a reduction tree up, a distribution tree down. Work O(m), depth about 2 log m.
/// R. Brent, H. T. Kung: "A regular layout for parallel adders" (1982).
#pragma once

#include <polyscan/host/loops.hpp>
#include <polyscan/openmp/block/kogge_stone.hpp>
#include <polyscan/operators.hpp>
#include <polyscan/tile.hpp>

namespace polyscan::openmp {

/// Replaces v[0, m) by its prefixes. Nodes that would need an element at m or beyond do not exist.
template <class T, class Operator>
void block_scan(block::brent_kung, T* v, index_type m, const Operator& op) {
    index_type stride = 1;
    // Up: the last element of each group of 2 * stride absorbs the group's left half.
    for (; stride < m; stride *= 2) {
        POLYSCAN_INDEPENDENT_ITERATIONS
        for (index_type i = 2 * stride - 1; i < m; i += 2 * stride) v[i] = combine(op, v[i - stride], v[i]);
    }
    // Down: what is complete at i is handed to the middle of the next group, i + stride.
    for (stride /= 2; stride >= 1; stride /= 2) {
        POLYSCAN_INDEPENDENT_ITERATIONS
        for (index_type i = 2 * stride - 1; i + stride < m; i += 2 * stride)
            v[i + stride] = combine(op, v[i], v[i + stride]);
    }
}

/// The up-sweep of a full tile; its root is the same tree as Kogge-Stone's. Overwrites v.
template <class T, class Operator>
T block_reduce(block::brent_kung, T* v, index_type m, const Operator& op) {
    return block_reduce(block::kogge_stone{}, v, m, op);
}

} // namespace polyscan::openmp
