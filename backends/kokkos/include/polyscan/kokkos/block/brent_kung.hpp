// SPDX-License-Identifier: Apache-2.0
/// Brent-Kung by a team: a reduction tree up, a distribution tree down, in place. Work O(m), depth about 2 log m.
/// R. Brent, H. T. Kung: "A regular layout for parallel adders" (1982).
#pragma once

#include <polyscan/kokkos/value.hpp>
#include <polyscan/tile.hpp>

namespace polyscan::kokkos {

template <class A>
constexpr index_type extra_values(block::brent_kung) {
    return 0;
}

/// As block_scan(kogge_stone). Nodes that would need an element at m or beyond do not exist.
template <class Team, class A, class Operator>
KOKKOS_FUNCTION A* block_scan(block::brent_kung, const Team& team, A* v, A*, index_type m, const Operator& op) {
    index_type stride = 1;
    // Up: the last element of each group of 2 * stride absorbs the group's left half.
    for (; stride < m; stride *= 2) {
        team.team_barrier(); // the nodes of the level below are complete
        Kokkos::parallel_for(Kokkos::TeamVectorRange(team, m / (2 * stride)), [&](index_type node) {
            A* const last = v + 2 * stride * (node + 1) - 1;
            put(last, polyscan::combine(op, last[-stride], *last));
        });
    }
    // Down: what is complete at the end of a group is handed to the middle of the next group.
    for (stride /= 2; stride >= 1; stride /= 2) {
        team.team_barrier();                                       // the prefixes of the level above are complete
        const index_type groups = (m + stride) / (2 * stride) - 1; // whose next group has a middle
        Kokkos::parallel_for(Kokkos::TeamVectorRange(team, groups), [&](index_type group) {
            A* const last = v + 2 * stride * (group + 1) - 1;
            put(last + stride, polyscan::combine(op, *last, last[stride]));
        });
    }
    team.team_barrier(); // the prefixes are complete
    return v;
}

} // namespace polyscan::kokkos
