// SPDX-License-Identifier: Apache-2.0
/// A policy says *how* a scan runs: a grid algorithm (where the carry of a tile comes from) times a block algorithm
/// (how a tile is scanned) times a tile shape. The shape follows from the accumulator's size (tile.hpp), so a policy is
/// named by the first two: `domino/kogge_stone`.
///
///     polyscan::inclusive_scan(cpu, in, out, polyscan::plus{}, polyscan::policies::domino);
///     polyscan::inclusive_scan(cpu, in, out, polyscan::plus{},
///                              polyscan::policy<polyscan::grid::look_back, polyscan::block::brent_kung>{});
///
/// All grid algorithms except `three_pass` give the same bits over the same block algorithm: they all fold the tile
/// aggregates strictly from left to right. docs/determinism.md states every tree.
///
/// Adding an algorithm: one tag and one entry in the list below, one file per backend.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace polyscan {

/// Where the carry of a tile comes from.
namespace grid {
/// One block walks over the tiles and keeps the running total.
struct single_block {
    static constexpr std::string_view name = "single_block";
};
/// Tile aggregates are computed, scanned (recursively) and then combined with a second scan of each tile.
/// Hillis & Steele's blocked form; Sengupta, Harris, Zhang, Owens: "Scan primitives for GPU computing" (2007).
struct three_pass {
    static constexpr std::string_view name = "three_pass";
};
/// Each tile waits for its left neighbour's carry and passes its own on: chained scan, adjacent synchronisation.
/// Yan, Long, Zhang: "StreamScan" (2013).
struct domino {
    static constexpr std::string_view name = "domino";
};
/// Each tile publishes its aggregate and walks back to the nearest published carry.
/// Merrill, Garland: "Single-pass parallel prefix scan with decoupled look-back" (2016).
struct look_back {
    static constexpr std::string_view name = "look_back";
};
/// Aggregates are published early; one server folds them and hands out the carries.
struct prefix_server {
    static constexpr std::string_view name = "prefix_server";
};
} // namespace grid

/// How a tile is scanned.
namespace block {
/// Step doubling: ceil(log2 T) rounds, every element active. Kogge, Stone (1973).
struct kogge_stone {
    static constexpr std::string_view name = "kogge_stone";
};
/// Reduction tree up, distribution tree down: O(T) work. Brent, Kung (1982).
struct brent_kung {
    static constexpr std::string_view name = "brent_kung";
};
/// A sequential run per thread, Kogge-Stone over the run totals.
struct coarse {
    static constexpr std::string_view name = "coarse";
};
/// Rows of up to 640 bytes scanned by Sklansky's tree (1960) across the lanes of a warp, row totals folded from the
/// left.
struct warp_shuffle {
    static constexpr std::string_view name = "warp_shuffle";
};
} // namespace block

/// Types as a value.
template <class... Types>
struct type_list {};

/// The two lists that the run-time names, the tests and the comparison are made from.
using grid_algorithms =
    type_list<grid::single_block, grid::three_pass, grid::domino, grid::look_back, grid::prefix_server>;
/// The other one.
using block_algorithms = type_list<block::kogge_stone, block::brent_kung, block::coarse, block::warp_shuffle>;

/// A grid algorithm and a block algorithm.
template <class Grid, class Block>
struct policy {
    using grid_type = Grid;
    using block_type = Block;
    /// "grid/block"
    static std::string name() { return std::string(Grid::name) + "/" + std::string(Block::name); }
};

template <class T>
inline constexpr bool is_policy = false;
template <class Grid, class Block>
inline constexpr bool is_policy<policy<Grid, Block>> = true;

/// `policy<Grid, Block>`.
template <class T>
concept scan_policy = is_policy<std::remove_cvref_t<T>>;

/// What a call without a policy means.
using default_policy = policy<grid::prefix_server, block::warp_shuffle>;

/// Short names, as in the literature: the single-block ones run over any length by streaming tiles through one block.
namespace policies {
inline constexpr policy<grid::single_block, block::kogge_stone> kogge_stone{};   ///< single_block/kogge_stone
inline constexpr policy<grid::single_block, block::brent_kung> brent_kung{};     ///< single_block/brent_kung
inline constexpr policy<grid::single_block, block::coarse> coarse{};             ///< single_block/coarse
inline constexpr policy<grid::single_block, block::warp_shuffle> warp_shuffle{}; ///< single_block/warp_shuffle
inline constexpr policy<grid::three_pass, block::kogge_stone> three_pass{};      ///< three_pass/kogge_stone
inline constexpr policy<grid::domino, block::kogge_stone> domino{};              ///< domino/kogge_stone
inline constexpr policy<grid::look_back, block::kogge_stone> look_back{};        ///< look_back/kogge_stone
inline constexpr default_policy prefix_server{};                                 ///< prefix_server/warp_shuffle
} // namespace policies

/// Calls `visit(policy<Grid, Block>{})` for all combinations, grid by grid.
template <class Visitor>
constexpr void for_each_policy(Visitor&& visit) {
    [&]<class... Grids>(type_list<Grids...>) {
        ([&]<class Grid, class... Blocks>(Grid, type_list<Blocks...>) { (visit(policy<Grid, Blocks>{}), ...); }(
             Grids{}, block_algorithms{}),
         ...);
    }(grid_algorithms{});
}

/// Turns an alias or a full name into the full name: "domino" -> "domino/kogge_stone", "default" ->
/// "prefix_server/warp_shuffle". Nothing for a name that is neither.
inline std::optional<std::string> canonical_policy_name(std::string_view name) {
    if (name == "default") return default_policy::name();
    std::optional<std::string> found;
    const auto alias = [&](std::string_view short_name, auto named) {
        if (name == short_name) found = named.name();
    };
    alias("kogge_stone", policies::kogge_stone);
    alias("brent_kung", policies::brent_kung);
    alias("coarse", policies::coarse);
    alias("warp_shuffle", policies::warp_shuffle);
    alias("three_pass", policies::three_pass);
    alias("domino", policies::domino);
    alias("look_back", policies::look_back);
    alias("prefix_server", policies::prefix_server);
    for_each_policy([&](auto candidate) {
        if (name == candidate.name()) found = candidate.name();
    });
    return found;
}

/// Calls `visit` with the policy of that name (alias or full); false if there is none.
template <class Visitor>
bool visit_policy(std::string_view name, Visitor&& visit) {
    const std::optional<std::string> wanted = canonical_policy_name(name);
    bool found = false;
    for_each_policy([&](auto candidate) {
        if (!found && wanted && *wanted == candidate.name()) {
            found = true;
            visit(candidate);
        }
    });
    return found;
}

} // namespace polyscan
