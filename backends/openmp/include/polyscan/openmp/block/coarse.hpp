// SPDX-License-Identifier: Apache-2.0
/// Coarse: each (virtual) thread scans a run of consecutive elements sequentially; Kogge-Stone scans the run totals;
/// the total of the earlier runs goes before each prefix. Work O(m). The natural block scan of a CPU, where a run costs
/// one operation per element; on a GPU it trades parallelism for fewer rounds.
#pragma once

#include <algorithm>
#include <array>

#include <polyscan/openmp/block/kogge_stone.hpp>
#include <polyscan/openmp/value_buffer.hpp>
#include <polyscan/operators.hpp>
#include <polyscan/tile.hpp>

namespace polyscan::openmp {

/// Replaces v[0, m) by its prefixes. The last run may be shorter than the others.
template <class T, class Operator>
void block_scan(block::coarse, T* v, index_type m, const Operator& op) {
    constexpr tile_shape shape = shape_for<block::coarse, T>;
    const index_type runs = ceil_div(m, shape.run);

    // 1. Scan each run.
    const index_type full = m / shape.run;
    for (index_type r = 0; r < full; ++r)
        for (index_type i = 1; i < shape.run; ++i)
            v[r * shape.run + i] = combine(op, v[r * shape.run + i - 1], v[r * shape.run + i]);
    for (index_type i = full * shape.run + 1; i < m; ++i) v[i] = combine(op, v[i - 1], v[i]);

    // 2. Scan the run totals. Nobody needs the last one.
    value_buffer<T> totals(runs);
    totals.fill(runs - 1, [&](index_type r) { return v[(r + 1) * shape.run - 1]; });
    block_scan(block::kogge_stone{}, totals.data(), runs - 1, op);

    // 3. Put the total of the earlier runs before each prefix.
    for (index_type r = 1; r < runs; ++r) {
        const T earlier = totals.data()[r - 1];
        const index_type end = std::min((r + 1) * shape.run, m);
        for (index_type i = r * shape.run; i < end; ++i) v[i] = combine(op, earlier, v[i]);
    }
}

/// The last prefix: the scan of all earlier run totals, then the last run's. Overwrites v.
template <class T, class Operator>
T block_reduce(block::coarse, T* v, index_type m, const Operator& op) {
    block_scan(block::coarse{}, v, m, op);
    return v[m - 1];
}

} // namespace polyscan::openmp
