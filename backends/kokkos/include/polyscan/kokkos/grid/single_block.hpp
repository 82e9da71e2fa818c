// SPDX-License-Identifier: Apache-2.0
/// Single block: one team walks over the tiles and keeps the running total. No other team, no waiting.
#pragma once

#include <polyscan/kokkos/grid/call.hpp>

namespace polyscan::kokkos {

struct single_block_algorithm {
    template <class Pass, class Request>
    KOKKOS_FUNCTION void operator()(Pass& pass, const Request& request, index_type tiles, int, int) const {
        maybe<typename Request::accumulator_type> carry = request.init;
        for (index_type t = 0; t < tiles; ++t) {
            pass.scan(t);
            carry.set(pass.store(t, carry));
        }
    }
};

template <class Block, class Request, class ExecutionSpace>
void grid_scan(policy<grid::single_block, Block>, const Request& request, const call<ExecutionSpace>& how) {
    how.template launch<Block>("polyscan single_block", request, single_block_algorithm{}, 1);
}

} // namespace polyscan::kokkos
