// SPDX-License-Identifier: Apache-2.0
/// Launches of teams. A team is a block; a league of teams is what runs at once, give or take: teams draw tiles until
/// none are left, so any number of teams does the work, one too.
#pragma once

#include <algorithm>
#include <cstddef>

#include <polyscan/kokkos/space.hpp>
#include <polyscan/kokkos/tuning.hpp>
#include <polyscan/tile.hpp>

namespace polyscan::kokkos {

/// What a caller may say about leagues; 0: this backend's choice.
struct team_options {
    int threads = 0;   ///< threads of all teams together, at most
    int team_size = 0; ///< members per team
};

/// Runs `kernel`, which says how much team scratch it needs (`scratch_bytes`), on at most `useful_teams` teams. Returns
/// their number; asynchronous.
template <class ExecutionSpace, class Kernel>
index_type run_league(const char* label, const ExecutionSpace& space, const team_options& wanted,
                      index_type useful_teams, Kernel kernel) {
    using policy = Kokkos::TeamPolicy<ExecutionSpace>;
    constexpr bool host = runs_on_host<ExecutionSpace>;
    const int lanes = host ? 1 : std::min(tuning::vector_lanes, policy::vector_length_max());
    const auto scratch = Kokkos::PerTeam(static_cast<int>(Kernel::scratch_bytes));
    // Level 0 is the fast one; what does not fit takes level 1.
    kernel.scratch_level = Kernel::scratch_bytes <= static_cast<std::size_t>(policy::scratch_size_max(0)) ? 0 : 1;

    return translating_errors(label, [&] {
        policy probe(space, 1, 1, lanes);
        probe.set_scratch_size(kernel.scratch_level, scratch);
        const int most = probe.team_size_max(kernel, Kokkos::ParallelForTag{});
        // On the host members of a team would only wait for each other.
        const int preferred = host ? 1 : tuning::team_threads / lanes;
        const int team_size = std::clamp(wanted.team_size > 0 ? wanted.team_size : preferred, 1, std::max(1, most));
        const int threads = wanted.threads > 0 ? std::min(wanted.threads, space.concurrency()) : space.concurrency();
        const int resident = std::max(1, threads / (team_size * lanes));
        const auto teams = static_cast<int>(std::clamp<index_type>(useful_teams, 1, resident));
        policy league(space, teams, team_size, lanes);
        league.set_scratch_size(kernel.scratch_level, scratch);
        Kokkos::parallel_for(label, league, kernel);
        return index_type{teams};
    });
}

} // namespace polyscan::kokkos
