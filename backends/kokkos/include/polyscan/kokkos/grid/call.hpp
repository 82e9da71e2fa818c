// SPDX-License-Identifier: Apache-2.0
/// One call as the grid algorithms see it on the host: where to launch, with which memory.
#pragma once

#include <polyscan/kokkos/grid/tile_pass.hpp>
#include <polyscan/kokkos/league.hpp>
#include <polyscan/kokkos/workspace.hpp>

namespace polyscan::kokkos {

template <class ExecutionSpace>
struct call {
    workspace<ExecutionSpace>& memory;
    const team_options& teams;

    /// Launches `algorithm` over the request's tiles on at most `useful_teams` teams; returns their number.
    template <class Block, class Request, class Algorithm>
    index_type launch(const char* label, const Request& request, const Algorithm& algorithm,
                      index_type useful_teams) const {
        using kernel = tile_kernel<ExecutionSpace, Block, Request, Algorithm>;
        return run_league(label, memory.space(), teams, useful_teams,
                          kernel{request, algorithm, tiles_of<Block>(request)});
    }
};

} // namespace polyscan::kokkos
