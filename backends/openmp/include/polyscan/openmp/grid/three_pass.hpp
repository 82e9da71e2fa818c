// SPDX-License-Identifier: Apache-2.0
/// Three-pass: (1) the aggregate of every tile, (2) a scan of the aggregates by the same policy, recursively until one
/// tile remains, (3) a second scan of every tile, with what lies before it in front. Reads the input twice: 3n elements
/// of memory traffic. Tile 0 has no predecessor and reads none.
/// S. Sengupta, M. Harris, Y. Zhang, J. Owens: "Scan primitives for GPU computing" (2007).
#pragma once

#include <vector>

#include <polyscan/openmp/grid/tile_pass.hpp>
#include <polyscan/openmp/team.hpp>

namespace polyscan::openmp {

template <class Block, class Request, class Team>
void grid_scan(policy<grid::three_pass, Block> how, const Request& request, const Team& team, int threads) {
    using value_type = typename Request::accumulator_type;
    const tiling<Block, Request> cut(request);

    // Pass 1: aggregates. No tile needs the last one.
    std::vector<std::optional<value_type>> aggregates(static_cast<std::size_t>(cut.tiles - 1));
    ticket_counter reduce_tickets;
    team.run(threads, [&](failure& others) {
        tile_pass<Block, Request> pass(request);
        for (index_type s; (s = reduce_tickets.take()) < cut.sections && !others.stopped();)
            for (index_type t = cut.first_tile(s); t < std::min(cut.first_tile(s + 1), cut.tiles - 1); ++t)
                aggregates[static_cast<std::size_t>(t)].emplace(pass.reduce(t));
    });

    // Pass 2: scan of the aggregates.
    value_buffer<value_type> earlier(cut.tiles - 1); // a std::vector of bools has no data()
    if (cut.tiles > 1) {
        earlier.fill(cut.tiles - 1, [&](index_type t) { return *aggregates[static_cast<std::size_t>(t)]; });
        using inner = scan_request<value_type, const value_type*, value_type*, typename Request::operator_type>;
        grid_scan(how,
                  inner{earlier.data(),
                        earlier.data(),
                        earlier.size(),
                        request.op,
                        {},
                        std::nullopt,
                        scan_kind::inclusive,
                        nullptr},
                  team, threads);
    }

    // Pass 3: scan again and combine.
    const auto carry_of = [&](index_type t) {
        return t == 0 ? request.init : std::optional(combine(request.op, request.init, earlier.data()[t - 1]));
    };
    // The last output of tile t - 1. It differs in association from the carry of tile t, which comes from the scan of
    // the aggregates.
    const auto last_before = [&](index_type t) {
        return t == 0
                   ? request.init
                   : std::optional(combine(request.op, carry_of(t - 1), *aggregates[static_cast<std::size_t>(t - 1)]));
    };
    ticket_counter scan_tickets;
    team.run(threads, [&](failure& others) {
        tile_pass<Block, Request> pass(request);
        for (index_type s; (s = scan_tickets.take()) < cut.sections && !others.stopped();)
            for (index_type t = cut.first_tile(s); t < cut.first_tile(s + 1); ++t) {
                // The carry is known: where a pass can, the scan needs no buffer.
                if constexpr (requires { pass.scan_and_store(t, carry_of(t), last_before(t)); }) {
                    pass.scan_and_store(t, carry_of(t), last_before(t));
                } else {
                    pass.scan(t);
                    pass.store(t, carry_of(t), last_before(t));
                }
            }
    });
}

} // namespace polyscan::openmp
