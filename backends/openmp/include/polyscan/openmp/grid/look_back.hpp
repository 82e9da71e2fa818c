// SPDX-License-Identifier: Apache-2.0
/// Decoupled look-back: one pass. A tile publishes its aggregate at once, then walks back over the published aggregates
/// to the nearest published carry, and folds what it passed from left to right. It never waits for a neighbour's carry,
/// only for aggregates. D. Merrill, M. Garland: "Single-pass parallel prefix scan with decoupled look-back" (2016).
#pragma once

#include <optional>
#include <vector>

#include <polyscan/openmp/grid/tile_pass.hpp>
#include <polyscan/openmp/published.hpp>
#include <polyscan/openmp/team.hpp>

namespace polyscan::openmp {

/// The carry of tile t > 0; nothing if another thread failed.
template <class T, class Operator>
std::optional<T> look_back(const std::vector<published<T>>& descriptors, index_type t, const Operator& op,
                           const failure& others) {
    const auto at = [&](index_type tile) -> const published<T>& { return descriptors[static_cast<std::size_t>(tile)]; };
    // Back to the nearest carry. Tile 0 never publishes an aggregate, so the walk ends there at the latest.
    index_type nearest = t - 1;
    for (;; --nearest) {
        tile_state state = tile_state::empty;
        if (!wait_until(others, [&] { return (state = at(nearest).read().first) != tile_state::empty; })) return {};
        if (state == tile_state::carry) break;
    }
    // Forth again: the strict left fold of the window. A tile that has its carry by now saves the fold so far; the bits
    // are the same, because that carry is the same left fold.
    std::optional<T> carry(*at(nearest).read().second);
    for (index_type tile = nearest + 1; tile < t; ++tile) {
        const auto [state, value] = at(tile).read();
        if (state == tile_state::carry)
            carry.emplace(*value);
        else
            carry.emplace(polyscan::combine(op, *carry, T(*value)));
    }
    return carry;
}

template <class Block, class Request, class Team>
void grid_scan(policy<grid::look_back, Block>, const Request& request, const Team& team, int threads) {
    using value_type = typename Request::accumulator_type;
    const tiling<Block, Request> cut(request);
    ticket_counter tickets;
    std::vector<published<value_type>> descriptors(static_cast<std::size_t>(cut.tiles));

    team.run(threads, [&](failure& others) {
        tile_pass<Block, Request> pass(request);
        for (index_type t; (t = tickets.take()) < cut.tiles;) {
            published<value_type>& mine = descriptors[static_cast<std::size_t>(t)];
            const value_type aggregate = pass.scan(t);
            std::optional<value_type> carry = request.init;
            if (t > 0) {
                mine.publish_aggregate(aggregate);
                carry = look_back(descriptors, t, request.op, others);
                if (!carry) return;
            }
            mine.publish_carry(combine(request.op, carry, aggregate));
            pass.store(t, carry);
        }
    });
}

} // namespace polyscan::openmp
