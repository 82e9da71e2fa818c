// SPDX-License-Identifier: Apache-2.0
/// Prefix server, the default: teams publish the aggregates of their tiles as early as they can; one server folds them
/// in order and hands out the carries. The role of the server goes to whoever needs it: a team that waits for its carry
/// serves while it waits, so one running team is enough.
#pragma once

#include <polyscan/kokkos/grid/call.hpp>

namespace polyscan::kokkos {

template <class A>
struct prefix_server_algorithm {
    ticket_counter tickets;
    tile_descriptors<A> desks;
    std::uint64_t* lock;   ///< 1 while a server is at work
    std::uint64_t* served; ///< tiles whose carry has been handed out, counted on from call to call
    std::uint64_t served_base;

    template <class Pass, class Request>
    KOKKOS_FUNCTION void operator()(Pass& pass, const Request& request, index_type tiles, int, int) const {
        for (index_type t; (t = pass.take(tickets)) < tiles;) {
            const A aggregate = pass.scan(t);
            const maybe<A> carry = pass.carry_from([&] {
                if (t + 1 < tiles) desks.publish_aggregate(t, aggregate); // nobody needs the last one
                return t == 0 ? request.init : fetch(t, request, tiles);
            });
            pass.store(t, carry);
        }
    }

private:
    /// Waits for the carry of tile t, serving meanwhile. Nothing is left lying: whoever still has no carry looks again.
    template <class Request>
    KOKKOS_FUNCTION maybe<A> fetch(index_type t, const Request& request, index_type tiles) const {
        maybe<A> carry;
        wait_until([&] {
            if (desks.read(t - 1, carry) == tile_state::carry) return true;
            serve(request, tiles);
            return desks.read(t - 1, carry) == tile_state::carry;
        });
        return carry;
    }

    /// Hands out every carry whose aggregates have been published. One server at a time; others return at once.
    template <class Request>
    KOKKOS_FUNCTION void serve(const Request& request, index_type tiles) const {
        if (desul::atomic_load(lock, relaxed(), between_teams()) != 0) return;
        // Acquire, pairs with the release below: the last server's count and carries are complete.
        if (desul::atomic_exchange(lock, std::uint64_t{1}, acquire(), between_teams()) != 0) return;
        // Relaxed: only who holds the lock touches the count.
        auto next = static_cast<index_type>(desul::atomic_load(served, relaxed(), between_teams()) - served_base);
        maybe<A> running = request.init;
        if (next > 0) desks.read(next - 1, running);
        for (; next + 1 < tiles; ++next) {
            maybe<A> aggregate;
            if (desks.read(next, aggregate) == tile_state::empty) break;
            running.set(combine(request.op, running, *aggregate));
            desks.publish_carry(next, *running);
        }
        desul::atomic_store(served, served_base + static_cast<std::uint64_t>(next), relaxed(), between_teams());
        // Release, read by the acquire above.
        desul::atomic_store(lock, std::uint64_t{0}, release(), between_teams());
    }
};

template <class Block, class Request, class ExecutionSpace>
void grid_scan(policy<grid::prefix_server, Block>, const Request& request, const call<ExecutionSpace>& how) {
    using value_type = typename Request::accumulator_type;
    const index_type tiles = tiles_of<Block>(request);
    how.memory.begin_call();
    const prefix_server_algorithm<value_type> server{
        how.memory.tickets(), how.memory.template descriptors<value_type>(tiles), how.memory.server_lock(),
        how.memory.server_count(), how.memory.served()};
    const index_type teams = how.template launch<Block>("polyscan prefix_server", request, server, tiles);
    how.memory.end_call(tiles + teams, tiles - 1); // each team draws one ticket too many
}

} // namespace polyscan::kokkos
