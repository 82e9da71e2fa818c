// SPDX-License-Identifier: Apache-2.0
/// Kogge-Stone by a team: ceil(log2 m) rounds; the round with stride s combines element i - s into element i for all i
/// >= s. Rounds read one buffer and write another, so one barrier each is enough. Work O(m log m), depth log m. P.
/// Kogge, H. Stone: "A parallel algorithm for the efficient solution of a general class of recurrence equations"
/// (1973).
#pragma once

#include <polyscan/kokkos/value.hpp>
#include <polyscan/tile.hpp>

namespace polyscan::kokkos {

/// Values of team scratch that the block scan needs beside the tile.
template <class A>
constexpr index_type extra_values(block::kogge_stone) {
    return shape_for<block::kogge_stone, A>.elements();
}

/// Scans v[0, m), which the caller has just stored (no barrier yet). Returns where the prefixes are, v or extra; they
/// are visible to the whole team.
template <class Team, class A, class Operator>
KOKKOS_FUNCTION A* block_scan(block::kogge_stone, const Team& team, A* v, A* extra, index_type m, const Operator& op) {
    for (index_type stride = 1; stride < m; stride *= 2) {
        // The values of the last round are complete, and nobody reads `extra` any more, which held those before them.
        team.team_barrier();
        Kokkos::parallel_for(Kokkos::TeamVectorRange(team, m), [&](index_type i) {
            put(extra + i, i < stride ? v[i] : polyscan::combine(op, v[i - stride], v[i]));
        });
        A* const written = extra;
        extra = v;
        v = written;
    }
    team.team_barrier(); // the prefixes are complete
    return v;
}

} // namespace polyscan::kokkos
