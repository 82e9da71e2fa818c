// SPDX-License-Identifier: Apache-2.0
/// Decoupled look-back: one pass. A tile publishes its aggregate at once, then walks back over the published aggregates
/// to the nearest published carry, and folds what it passed from left to right. It never waits for a neighbour's carry,
/// only for aggregates, of tiles that running teams hold. D. Merrill, M. Garland: "Single-pass parallel prefix scan
/// with decoupled look-back" (2016).
#pragma once

#include <polyscan/kokkos/grid/call.hpp>

namespace polyscan::kokkos {

/// The carry of everything before tile t > 0.
template <class A, class Operator>
KOKKOS_FUNCTION maybe<A> look_back(const tile_descriptors<A>& tiles, index_type t, const Operator& op) {
    maybe<A> carry;
    // Back to the nearest carry. Tile 0 never publishes an aggregate, so the walk ends there at the latest.
    index_type nearest = t - 1;
    for (;; --nearest) {
        tile_state state = tile_state::empty;
        wait_until([&] { return (state = tiles.read(nearest, carry)) != tile_state::empty; });
        if (state == tile_state::carry) break;
    }
    // Forth again: the strict left fold of the window. A tile that has its carry by now saves the fold so far; the bits
    // are the same, because that carry is the same left fold.
    for (index_type tile = nearest + 1; tile < t; ++tile) {
        maybe<A> value;
        const tile_state state = tiles.read(tile, value);
        carry.set(state == tile_state::carry ? *value : combine(op, carry, *value));
    }
    return carry;
}

template <class A>
struct look_back_algorithm {
    ticket_counter tickets;
    tile_descriptors<A> published;

    template <class Pass, class Request>
    KOKKOS_FUNCTION void operator()(Pass& pass, const Request& request, index_type tiles, int, int) const {
        for (index_type t; (t = pass.take(tickets)) < tiles;) {
            const A aggregate = pass.scan(t);
            const maybe<A> carry = pass.carry_from([&] {
                maybe<A> found = request.init;
                if (t > 0) {
                    published.publish_aggregate(t, aggregate);
                    found = look_back(published, t, request.op);
                }
                published.publish_carry(t, combine(request.op, found, aggregate));
                return found;
            });
            pass.store(t, carry);
        }
    }
};

template <class Block, class Request, class ExecutionSpace>
void grid_scan(policy<grid::look_back, Block>, const Request& request, const call<ExecutionSpace>& how) {
    using value_type = typename Request::accumulator_type;
    const index_type tiles = tiles_of<Block>(request);
    how.memory.begin_call();
    const look_back_algorithm<value_type> algorithm{how.memory.tickets(),
                                                    how.memory.template descriptors<value_type>(tiles)};
    const index_type teams = how.template launch<Block>("polyscan look_back", request, algorithm, tiles);
    how.memory.end_call(tiles + teams, 0); // each team draws one ticket too many
}

} // namespace polyscan::kokkos
