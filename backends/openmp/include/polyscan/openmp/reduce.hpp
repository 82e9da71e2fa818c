// SPDX-License-Identifier: Apache-2.0
/// The total of a scan, without the scan: every tile is folded once, by whoever takes it, and the aggregates are put
/// together as the policy says. Reads the input once and writes nothing.
#pragma once

#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <polyscan/openmp/grid/tile_pass.hpp>
#include <polyscan/openmp/team.hpp>

namespace polyscan::openmp {

namespace detail {

/// The aggregate of tile t, the last one included, which may be partial.
template <class Block, class Request>
typename Request::accumulator_type aggregate_of(tile_pass<Block, Request>& pass, const Request& request, index_type t) {
    return (t + 1) * tiling<Block, Request>::tile <= request.size ? pass.reduce(t) : pass.scan(t);
}

} // namespace detail

/// The total of a request with elements. Its output is not used.
template <class Grid, class Block, class Request, class Team>
typename Request::accumulator_type grid_reduce(policy<Grid, Block> how, const Request& request, const Team& team,
                                               int threads) {
    using value_type = typename Request::accumulator_type;
    constexpr bool left_fold = !std::is_same_v<Grid, grid::three_pass>;
    const tiling<Block, Request> cut(request);
    if (left_fold && threads <= 1) {
        tile_pass<Block, Request> pass(request);
        std::optional<value_type> sum = request.init;
        for (index_type t = 0; t < cut.tiles; ++t)
            sum.emplace(combine(request.op, sum, detail::aggregate_of(pass, request, t)));
        return *std::move(sum);
    }

    std::vector<std::optional<value_type>> aggregates(static_cast<std::size_t>(cut.tiles));
    // Nobody waits for a section: several at once, so that little is fetched ahead in vain.
    const index_type sections_each =
        std::clamp<index_type>(cut.sections / (tuning::reduce_tickets_each * threads), 1, tuning::reduce_sections);
    ticket_counter tickets;
    team.run(threads, [&](failure& others) {
        tile_pass<Block, Request> pass(request);
        for (index_type s; (s = tickets.take() * sections_each) < cut.sections && !others.stopped();)
            for (index_type t = cut.first_tile(s); t < cut.first_tile(s + sections_each); ++t)
                aggregates[static_cast<std::size_t>(t)].emplace(detail::aggregate_of(pass, request, t));
    });

    std::optional<value_type> sum = request.init;
    if constexpr (left_fold) {
        for (const std::optional<value_type>& aggregate : aggregates) sum.emplace(combine(request.op, sum, *aggregate));
    } else {
        // The carry of the last tile is init before the scanned aggregates of the others; its own comes last.
        value_buffer<value_type> earlier(cut.tiles - 1); // a std::vector of bools has no data()
        if (cut.tiles > 1) {
            earlier.fill(cut.tiles - 1, [&](index_type t) { return *aggregates[static_cast<std::size_t>(t)]; });
            using inner = scan_request<value_type, const value_type*, value_type*, typename Request::operator_type>;
            const inner above{earlier.data(),       nullptr, earlier.size(), request.op, {}, std::nullopt,
                              scan_kind::inclusive, nullptr};
            sum.emplace(combine(request.op, sum, grid_reduce(how, above, team, threads)));
        }
        sum.emplace(combine(request.op, sum, *aggregates.back()));
    }
    return *std::move(sum);
}

} // namespace polyscan::openmp
