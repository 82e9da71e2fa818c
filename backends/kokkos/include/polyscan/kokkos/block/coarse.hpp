// SPDX-License-Identifier: Apache-2.0
/// Coarse by a team: each run of consecutive elements is scanned sequentially; Kogge-Stone scans the run totals; the
/// total of the earlier runs goes before each prefix. Work O(m): it trades parallelism for fewer rounds.
#pragma once

#include <polyscan/kokkos/block/kogge_stone.hpp>
#include <polyscan/kokkos/value.hpp>
#include <polyscan/tile.hpp>

namespace polyscan::kokkos {

template <class A>
constexpr index_type extra_values(block::coarse) {
    return 2 * shape_for<block::coarse, A>.threads; // run totals, twice for Kogge-Stone
}

/// As block_scan(kogge_stone). The last run may be shorter than the others.
template <class Team, class A, class Operator>
KOKKOS_FUNCTION A* block_scan(block::coarse, const Team& team, A* v, A* extra, index_type m, const Operator& op) {
    constexpr tile_shape shape = shape_for<block::coarse, A>;
    constexpr index_type run = shape.run;
    const index_type runs = ceil_div(m, run);
    A* totals = extra;

    team.team_barrier(); // the elements, which other members may have stored, are complete
    // 1. Scan each run. Nobody needs the total of the last one.
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, runs), [&](index_type r) {
        const index_type end = Kokkos::min((r + 1) * run, m);
        for (index_type i = r * run + 1; i < end; ++i) put(v + i, polyscan::combine(op, v[i - 1], v[i]));
        if (r < runs - 1) put(totals + r, v[end - 1]);
    });

    // 2. Scan the run totals.
    totals = block_scan(block::kogge_stone{}, team, totals, extra + shape.threads, runs - 1, op);

    // 3. Put the total of the earlier runs before each prefix.
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, m), [&](index_type i) {
        if (i >= run) put(v + i, polyscan::combine(op, totals[i / run - 1], v[i]));
    });
    team.team_barrier(); // the prefixes are complete
    return v;
}

} // namespace polyscan::kokkos
