// SPDX-License-Identifier: Apache-2.0
/// Domino: one pass, chained. A team scans its tile, waits for its left neighbour's carry, passes its own on and only
/// then finishes the tile. Tiles come from a counter, so the tile waited for belongs to a team that is running: no
/// deadlock, however few teams run at once. S. Yan, G. Long, Y. Zhang: "StreamScan: fast scan algorithms for GPUs
/// without global barrier synchronization" (2013).
#pragma once

#include <polyscan/kokkos/grid/call.hpp>

namespace polyscan::kokkos {

template <class A>
struct domino_algorithm {
    ticket_counter tickets;
    tile_descriptors<A> chain;

    template <class Pass, class Request>
    KOKKOS_FUNCTION void operator()(Pass& pass, const Request& request, index_type tiles, int, int) const {
        for (index_type t; (t = pass.take(tickets)) < tiles;) {
            const A aggregate = pass.scan(t);
            const maybe<A> carry = pass.carry_from([&] {
                const maybe<A> received = t == 0 ? request.init : wait_for_carry(chain, t);
                if (t + 1 < tiles) chain.publish_carry(t, combine(request.op, received, aggregate));
                return received;
            });
            pass.store(t, carry);
        }
    }
};

template <class Block, class Request, class ExecutionSpace>
void grid_scan(policy<grid::domino, Block>, const Request& request, const call<ExecutionSpace>& how) {
    using value_type = typename Request::accumulator_type;
    const index_type tiles = tiles_of<Block>(request);
    how.memory.begin_call();
    const domino_algorithm<value_type> domino{how.memory.tickets(), how.memory.template descriptors<value_type>(tiles)};
    const index_type teams = how.template launch<Block>("polyscan domino", request, domino, tiles);
    how.memory.end_call(tiles + teams, 0); // each team draws one ticket too many
}

} // namespace polyscan::kokkos
