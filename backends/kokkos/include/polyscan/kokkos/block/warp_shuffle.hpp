// SPDX-License-Identifier: Apache-2.0
/// Warp shuffle by a team, the default tree: a row of some 512 bytes per team member, scanned by Sklansky's divide and
/// conquer across its vector lanes; the offset of a row is the left fold of the earlier rows' totals. Kokkos has no
/// shuffle of one's own operator, so lanes meet in team scratch: the loops over vector lanes end in step. J. Sklansky:
/// "Conditional-sum addition logic" (1960).
#pragma once

#include <polyscan/kokkos/value.hpp>
#include <polyscan/tile.hpp>

namespace polyscan::kokkos {

template <class A>
constexpr index_type extra_values(block::warp_shuffle) {
    return shape_for<block::warp_shuffle, A>.threads; // an offset per row
}

/// As block_scan(kogge_stone).
template <class Team, class A, class Operator>
KOKKOS_FUNCTION A* block_scan(block::warp_shuffle, const Team& team, A* v, A* extra, index_type m, const Operator& op) {
    constexpr index_type row_length = shape_for<block::warp_shuffle, A>.run;
    const index_type rows = ceil_div(m, row_length);
    A* const offsets = extra;

    team.team_barrier(); // the elements, which other members may have stored, are complete
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, rows), [&](index_type r) {
        A* const row = v + r * row_length;
        const index_type length = Kokkos::min(row_length, m - r * row_length);
        // The upper half of every group of 2 * stride takes the last prefix of the lower half. A round writes upper
        // halves and reads, beside the element itself, lower ones.
        for (index_type stride = 1; stride < length; stride *= 2) {
            Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, row_length / 2), [&](index_type k) {
                const index_type middle = 2 * (k - k % stride) + stride;
                const index_type i = middle + k % stride;
                if (i < length) put(row + i, polyscan::combine(op, row[middle - 1], row[i]));
            });
        }
    });
    team.team_barrier(); // the last prefix of each row is its total, and complete

    Kokkos::single(Kokkos::PerTeam(team), [&]() {
        for (index_type r = 1; r < rows; ++r) {
            const A& total = v[r * row_length - 1];
            put(offsets + r, r > 1 ? polyscan::combine(op, offsets[r - 1], total) : total);
        }
    });
    team.team_barrier(); // the offsets are complete

    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, m), [&](index_type i) {
        if (i >= row_length) put(v + i, polyscan::combine(op, offsets[i / row_length], v[i]));
    });
    team.team_barrier(); // the prefixes are complete
    return v;
}

} // namespace polyscan::kokkos
