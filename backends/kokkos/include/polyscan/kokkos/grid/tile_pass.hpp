// SPDX-License-Identifier: Apache-2.0
/// The pass of a team over a tile, written once for all grid algorithms: load, block scan, (the grid algorithm finds
/// the carry), combine, store. Grid algorithm and block algorithm meet here: an aggregate goes out, a carry comes in.
///
/// All members of the team call all functions, with the same arguments, and get the same results.
#pragma once

#include <algorithm>
#include <cstddef>

#include <polyscan/kokkos/block/brent_kung.hpp>
#include <polyscan/kokkos/block/coarse.hpp>
#include <polyscan/kokkos/block/kogge_stone.hpp>
#include <polyscan/kokkos/block/warp_shuffle.hpp>
#include <polyscan/kokkos/request.hpp>
#include <polyscan/kokkos/tiles.hpp>

namespace polyscan::kokkos {

template <class Block, class Request>
inline constexpr index_type tile_elements = shape_for<Block, typename Request::accumulator_type>.elements();

template <class Block, class Request>
index_type tiles_of(const Request& request) {
    return ceil_div(request.size, tile_elements<Block, Request>);
}

template <class Block, class Request, class Team>
class tile_pass {
public:
    using value_type = typename Request::accumulator_type;

    /// Team scratch that one pass needs.
    static constexpr std::size_t scratch_bytes() {
        return value_bytes + sizeof(note) + 2 * static_cast<std::size_t>(alignment); // and what aligning both may cost
    }

    KOKKOS_FUNCTION tile_pass(const Team& team, int scratch_level, const Request& request)
        : team_(team), request_(request), values_(scratch<value_type>(team, scratch_level, value_bytes)),
          note_(scratch<note>(team, scratch_level, sizeof(note))) {}

    /// The next tile, the same for all members.
    KOKKOS_FUNCTION index_type take(const ticket_counter& tickets) {
        Kokkos::single(Kokkos::PerTeam(team_), [&]() { note_->ticket = tickets.take(); });
        team_.team_barrier(); // the ticket is complete
        // The next `take` overwrites it after the barriers of a tile's scan, when all members have read it.
        return note_->ticket;
    }

    /// Loads tile t and scans it. Returns the last local prefix, the tile's aggregate.
    KOKKOS_FUNCTION value_type scan(index_type t) {
        const index_type first = t * tile;
        count_ = request_.size - first < tile ? request_.size - first : tile;
        team_.team_barrier(); // the last tile's prefixes, and the carry, have been read
        Kokkos::parallel_for(Kokkos::TeamVectorRange(team_, count_),
                             [&](index_type i) { put(values_ + i, request_.load(first + i)); });
        local_ = block_scan(Block{}, team_, values_, values_ + tile, count_, request_.op);
        return local_[count_ - 1];
    }

    /// Stores `value`, once.
    KOKKOS_FUNCTION void keep(const value_type& value, value_type* place) {
        Kokkos::single(Kokkos::PerTeam(team_), [&]() { put(place, value); });
    }

    /// One member runs find(), which returns the carry; all get it.
    template <class Find>
    KOKKOS_FUNCTION maybe<value_type> carry_from(const Find& find) {
        Kokkos::single(Kokkos::PerTeam(team_), [&]() { put(&note_->carry, maybe<value_type>(find())); });
        team_.team_barrier(); // the carry is complete
        return note_->carry;
    }

    /// Puts the carry before the local prefixes of tile t, which `scan` has left here, and stores them: exclusive
    /// outputs one place later, behind `before`, the last inclusive output of the tile before. Returns this tile's.
    KOKKOS_FUNCTION value_type store(index_type t, const maybe<value_type>& carry, const maybe<value_type>& before) {
        const index_type first = t * tile;
        const index_type shift = request_.kind == scan_kind::exclusive ? 1 : 0;
        Kokkos::parallel_for(Kokkos::TeamVectorRange(team_, count_), [&](index_type i) {
            request_.store(first + i, i < shift ? *before : combine(request_.op, carry, local_[i - shift]));
        });
        const value_type last = combine(request_.op, carry, local_[count_ - 1]);
        if (request_.total != nullptr && first + count_ == request_.size) keep(last, request_.total);
        return last;
    }
    /// The same where aggregates are folded from the left: there the last output of a tile is the next tile's carry.
    KOKKOS_FUNCTION value_type store(index_type t, const maybe<value_type>& carry) { return store(t, carry, carry); }

private:
    // What the leader tells the others.
    struct note {
        index_type ticket;
        maybe<value_type> carry;
    };
    static constexpr index_type tile = tile_elements<Block, Request>;
    static constexpr std::ptrdiff_t alignment = std::max(alignof(value_type), alignof(note));
    static constexpr std::size_t value_bytes =
        sizeof(value_type) * static_cast<std::size_t>(tile + extra_values<value_type>(Block{}));

    // By value: device code has no addresses of static members.
    template <class T>
    KOKKOS_FUNCTION static T* scratch(const Team& team, int level, std::size_t bytes) {
        return static_cast<T*>(team.team_scratch(level).get_shmem_aligned(bytes, std::ptrdiff_t{alignment}));
    }

    const Team& team_;
    const Request& request_;
    value_type* values_;
    note* note_;
    value_type* local_ = nullptr;
    index_type count_ = 0;
};

/// What all kernels of this backend consist of; `Algorithm` says what a team does:
///     template <class Pass> KOKKOS_FUNCTION void operator()(Pass& pass, const Request& request, index_type tiles,
///                                                           int team, int teams) const;
template <class ExecutionSpace, class Block, class Request, class Algorithm>
struct tile_kernel {
    using team_type = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;
    using pass_type = tile_pass<Block, Request, team_type>;
    static constexpr std::size_t scratch_bytes = pass_type::scratch_bytes();

    Request request;
    Algorithm algorithm;
    index_type tiles;
    int scratch_level = 0;

    KOKKOS_FUNCTION void operator()(const team_type& team) const {
        pass_type pass(team, scratch_level, request);
        algorithm(pass, request, tiles, team.league_rank(), team.league_size());
    }
};

} // namespace polyscan::kokkos
