// SPDX-License-Identifier: Apache-2.0
/// Two oracles, sequential and boring on purpose. Nothing here is shared with a backend, and no backend switch removes
/// it.
///
///  - `reference::sequential`: the left fold of the textbooks. Integers and exact operators must equal it bit for bit.
///  - `reference::policy_order`: the policy's association tree (docs/determinism.md), evaluated one operation after the
///    other. Every backend must equal it bit for bit, floating point included.
///
/// Both return the inclusive prefixes of n accumulators; `reference::outputs` turns them into what a verb writes.
#pragma once

#include <optional>
#include <vector>

#include <polyscan/operators.hpp>
#include <polyscan/policy.hpp>
#include <polyscan/request.hpp>
#include <polyscan/tile.hpp>

namespace polyscan::reference {

/// y_i = op(...op(op(init, x_0), x_1)..., x_i); without init it starts with x_0.
template <class T, class Operator>
std::vector<T> sequential(const std::vector<T>& x, const Operator& op, const std::optional<T>& init = std::nullopt) {
    std::vector<T> y;
    y.reserve(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (i > 0)
            y.push_back(combine(op, T(y[i - 1]), x[i]));
        else
            y.push_back(init ? combine(op, *init, x[0]) : x[0]);
    }
    return y;
}

namespace detail {

// Each local_scan replaces the elements of one tile, v[0, m), by their prefixes in its block algorithm's order. The
// last prefix is the tile's aggregate. Nodes of the tree that would need an element beyond m do not exist.

// Round with stride s: element i >= s becomes op(v[i - s], v[i]), all with the values from before the round.
template <class T, class Operator>
void local_scan(block::kogge_stone, T* v, index_type m, tile_shape, const Operator& op) {
    for (index_type s = 1; s < m; s *= 2) {
        const std::vector<T> before(v, v + m);
        for (index_type i = s; i < m; ++i)
            v[i] = combine(op, before[static_cast<std::size_t>(i - s)], before[static_cast<std::size_t>(i)]);
    }
}

// Up: the right end of every block of 2s absorbs its left half. Down: the middle of every next block absorbs what is
// complete on its left.
template <class T, class Operator>
void local_scan(block::brent_kung, T* v, index_type m, tile_shape shape, const Operator& op) {
    for (index_type s = 1; s < shape.elements(); s *= 2)
        for (index_type i = 2 * s - 1; i < m; i += 2 * s) v[i] = combine(op, T(v[i - s]), T(v[i]));
    for (index_type s = shape.elements() / 4; s >= 1; s /= 2)
        for (index_type i = 2 * s - 1; i + s < m; i += 2 * s) v[i + s] = combine(op, T(v[i]), T(v[i + s]));
}

// A left fold in every run; Kogge-Stone over the run totals; the total of the earlier runs before each prefix.
template <class T, class Operator>
void local_scan(block::coarse, T* v, index_type m, tile_shape shape, const Operator& op) {
    std::vector<T> totals;
    for (index_type first = 0; first < m; first += shape.run) {
        const index_type last = std::min(first + shape.run, m) - 1;
        for (index_type i = first + 1; i <= last; ++i) v[i] = combine(op, T(v[i - 1]), T(v[i]));
        totals.push_back(v[last]);
    }
    local_scan(block::kogge_stone{}, totals.data(), static_cast<index_type>(totals.size()), shape, op);
    for (index_type i = shape.run; i < m; ++i)
        v[i] = combine(op, totals[static_cast<std::size_t>(i / shape.run - 1)], T(v[i]));
}

// Sklansky in every row, then the left fold of the totals of the earlier rows before each prefix.
template <class T, class Operator>
void local_scan(block::warp_shuffle, T* v, index_type m, tile_shape shape, const Operator& op) {
    std::optional<T> offset;
    for (index_type row = 0; row < m; row += shape.run) {
        T* const r = v + row;
        const index_type length = std::min(shape.run, m - row);
        for (index_type s = 1; s < length; s *= 2)
            for (index_type i = 0; i < length; ++i)
                if ((i & s) != 0) r[i] = combine(op, T(r[(i & ~(2 * s - 1)) + s - 1]), T(r[i]));
        const T total = r[length - 1];
        if (offset)
            for (index_type i = 0; i < length; ++i) r[i] = combine(op, *offset, T(r[i]));
        offset.emplace(offset ? combine(op, *offset, total) : total);
    }
}

// The carry of every tile: the strict left fold of the earlier aggregates, starting from init.
template <class Grid, class Block, class T, class Operator>
std::vector<std::optional<T>> carries(policy<Grid, Block>, const std::vector<T>& aggregates, const Operator& op,
                                      const std::optional<T>& init) {
    std::vector<std::optional<T>> result{init};
    for (const T& aggregate : aggregates)
        result.emplace_back(result.back() ? combine(op, *result.back(), aggregate) : aggregate);
    return result;
}

} // namespace detail

/// The inclusive prefixes in the order that `Policy` fixes.
template <class Grid, class Block, class T, class Operator>
std::vector<T> policy_order(policy<Grid, Block> how, std::vector<T> x, const Operator& op,
                            const std::optional<T>& init = std::nullopt);

namespace detail {

// three_pass: the aggregates are scanned by the same policy, without init; init goes before the result.
template <class Block, class T, class Operator>
std::vector<std::optional<T>> carries(policy<grid::three_pass, Block> how, const std::vector<T>& aggregates,
                                      const Operator& op, const std::optional<T>& init) {
    std::vector<std::optional<T>> result{init};
    if (aggregates.size() < 2) return result; // nothing needs the last aggregate
    for (const T& earlier : policy_order(how, aggregates, op))
        result.emplace_back(init ? combine(op, *init, earlier) : earlier);
    return result;
}

} // namespace detail

template <class Grid, class Block, class T, class Operator>
std::vector<T> policy_order(policy<Grid, Block> how, std::vector<T> x, const Operator& op,
                            const std::optional<T>& init) {
    constexpr tile_shape shape = shape_for<Block, T>;
    const auto n = static_cast<index_type>(x.size());
    std::vector<T> aggregates;
    for (index_type first = 0; first < n; first += shape.elements()) {
        const index_type length = std::min(shape.elements(), n - first);
        detail::local_scan(Block{}, x.data() + first, length, shape, op);
        aggregates.push_back(x[static_cast<std::size_t>(first + length - 1)]);
    }
    const std::vector<std::optional<T>> carry = detail::carries(how, aggregates, op, init);
    for (index_type i = 0; i < n; ++i)
        if (const auto& before = carry[static_cast<std::size_t>(i / shape.elements())])
            x[static_cast<std::size_t>(i)] = combine(op, *before, T(x[static_cast<std::size_t>(i)]));
    return x;
}

/// What a verb writes, from the inclusive prefixes (with init): the same for inclusive, shifted by one behind init for
/// exclusive.
template <class T>
std::vector<T> outputs(std::vector<T> inclusive, scan_kind kind, const std::optional<T>& init) {
    if (kind == scan_kind::inclusive || inclusive.empty()) return inclusive;
    inclusive.insert(inclusive.begin(), init.value());
    inclusive.pop_back();
    return inclusive;
}

} // namespace polyscan::reference
