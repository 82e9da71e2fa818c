// SPDX-License-Identifier: Apache-2.0
/// Three-pass: (1) the aggregate of every tile, (2) a scan of the aggregates by the same policy, recursively until one
/// tile remains, (3) a second scan of every tile, with what lies before it in front. Reads the input twice: 3n elements
/// of memory traffic. S. Sengupta, M. Harris, Y. Zhang, J. Owens: "Scan primitives for GPU computing" (2007).
#pragma once

#include <polyscan/kokkos/grid/call.hpp>

namespace polyscan::kokkos {

/// Pass 1. No tile needs the last aggregate.
template <class A>
struct reduce_algorithm {
    A* aggregates;

    template <class Pass, class Request>
    KOKKOS_FUNCTION void operator()(Pass& pass, const Request&, index_type tiles, int team, int teams) const {
        for (index_type t = team; t < tiles - 1; t += teams) pass.keep(pass.scan(t), aggregates + t);
    }
};

/// Pass 3. `earlier` is the inclusive scan of the aggregates.
template <class A>
struct rescan_algorithm {
    const A* aggregates;
    const A* earlier;

    template <class Pass, class Request>
    KOKKOS_FUNCTION void operator()(Pass& pass, const Request& request, index_type tiles, int team, int teams) const {
        const auto carry_of = [&](index_type t) {
            return t == 0 ? request.init : maybe<A>(combine(request.op, request.init, earlier[t - 1]));
        };
        for (index_type t = team; t < tiles; t += teams) {
            // The last output of tile t - 1. It differs in association from the carry of tile t, which comes from the
            // scan of the aggregates.
            const maybe<A> before =
                t == 0 ? request.init : maybe<A>(combine(request.op, carry_of(t - 1), aggregates[t - 1]));
            pass.scan(t);
            pass.store(t, carry_of(t), before);
        }
    }
};

/// Values of workspace that a scan of `tiles` tiles needs, over all levels of the recursion.
template <class Block, class A>
index_type three_pass_values(index_type tiles) {
    index_type values = 0;
    for (; tiles > 1; tiles = ceil_div(tiles - 1, shape_for<Block, A>.elements())) values += 2 * (tiles - 1);
    return values;
}

/// Kernels of one execution-space instance run in order: each pass finds what the one before it wrote.
template <class Block, class Request, class ExecutionSpace>
void three_passes(const Request& request, const call<ExecutionSpace>& how, typename Request::accumulator_type* values) {
    using value_type = typename Request::accumulator_type;
    const index_type tiles = tiles_of<Block>(request);
    value_type* const aggregates = values;
    value_type* const earlier = values + (tiles - 1);
    if (tiles > 1) {
        how.template launch<Block>("polyscan three_pass: reduce", request, reduce_algorithm<value_type>{aggregates},
                                   tiles - 1);
        using inner = scan_request<value_type, const value_type*, value_type*, typename Request::operator_type>;
        const kernel_request<inner> of_aggregates(
            inner{aggregates, earlier, tiles - 1, request.op, {}, std::nullopt, scan_kind::inclusive, nullptr},
            tiles - 1);
        three_passes<Block>(of_aggregates, how, values + 2 * (tiles - 1));
    }
    how.template launch<Block>("polyscan three_pass: rescan", request,
                               rescan_algorithm<value_type>{aggregates, earlier}, tiles);
}

template <class Block, class Request, class ExecutionSpace>
void grid_scan(policy<grid::three_pass, Block>, const Request& request, const call<ExecutionSpace>& how) {
    using value_type = typename Request::accumulator_type;
    const index_type needed = three_pass_values<Block, value_type>(tiles_of<Block>(request));
    three_passes<Block>(request, how, how.memory.template values<value_type>(needed));
}

} // namespace polyscan::kokkos
