// SPDX-License-Identifier: Apache-2.0
/// What teams tell each other about tiles. Plain addresses and numbers: kernels take these objects by value.
///
/// All orderings have device scope: teams of one kernel.
#pragma once

#include <cstdint>
#include <thread>

#include <polyscan/kokkos/value.hpp>
#include <polyscan/tile.hpp>
#include <polyscan/tile_status.hpp>

namespace polyscan::kokkos {

using relaxed = desul::MemoryOrderRelaxed;
using acquire = desul::MemoryOrderAcquire;
using release = desul::MemoryOrderRelease;
using between_teams = desul::MemoryScopeDevice;

/// Repeats `ready()` until it is true. What it waits for has been started by a running team, always.
template <class Ready>
KOKKOS_FUNCTION void wait_until(const Ready& ready) {
    while (!ready()) {
        KOKKOS_IF_ON_HOST((std::this_thread::yield();)) // the awaited thread may need this processor
    }
}

/// Hands out tile indices in ascending order, each once. The count goes on from call to call; a call knows where it
/// began.
struct ticket_counter {
    std::uint64_t* count;
    std::uint64_t base;

    /// Relaxed: a ticket publishes nothing. Whatever a later tile needs from an earlier one is published by that tile.
    KOKKOS_FUNCTION index_type take() const {
        return static_cast<index_type>(desul::atomic_fetch_add(count, std::uint64_t{1}, relaxed(), between_teams()) -
                                       base);
    }
};

/// The published state of each tile: nothing yet, its aggregate, or its carry (the fold of everything up to and
/// including it). Written by the owner of the tile or the server, aggregate first and carry later; read by owners of
/// later tiles.
template <class A>
struct tile_descriptors {
    std::uint32_t* status;
    A* aggregates;
    A* carries;
    std::uint32_t epoch;

    KOKKOS_FUNCTION void publish_aggregate(index_type t, const A& value) const {
        put(aggregates + t, value);
        publish(t, tile_state::aggregate);
    }
    KOKKOS_FUNCTION void publish_carry(index_type t, const A& value) const {
        // In a place of its own: a reader that saw the aggregate's status may still be reading the aggregate.
        put(carries + t, value);
        publish(t, tile_state::carry);
    }

    /// The state of tile t; where it is not `empty`, `value` is set.
    KOKKOS_FUNCTION tile_state read(index_type t, maybe<A>& value) const {
        // Acquire, pairs with the release in `publish`: the value that the status speaks of is complete.
        const tile_state state = tile_status::state(desul::atomic_load(status + t, acquire(), between_teams()), epoch);
        if (state == tile_state::aggregate) value.set(aggregates[t]);
        if (state == tile_state::carry) value.set(carries[t]);
        return state;
    }

private:
    KOKKOS_FUNCTION void publish(index_type t, tile_state state) const {
        // Release, read by the acquire in `read`: the value stored before is complete.
        desul::atomic_store(status + t, tile_status::pack(epoch, state), release(), between_teams());
    }
};

/// Small values: status and value in one word, so that no ordering is needed.
template <class A>
    requires fits_status_word<A>
struct tile_descriptors<A> {
    std::uint64_t* words;
    std::uint32_t epoch;

    KOKKOS_FUNCTION void publish_aggregate(index_type t, const A& value) const {
        publish(t, tile_state::aggregate, value);
    }
    KOKKOS_FUNCTION void publish_carry(index_type t, const A& value) const { publish(t, tile_state::carry, value); }

    KOKKOS_FUNCTION tile_state read(index_type t, maybe<A>& value) const {
        // Relaxed: value and status come from the same load.
        const std::uint64_t word = desul::atomic_load(words + t, relaxed(), between_teams());
        const tile_state state = tile_status::state(tile_status_word::status(word), epoch);
        if (state != tile_state::empty) value.set(tile_status_word::value<A>(word));
        return state;
    }

private:
    KOKKOS_FUNCTION void publish(index_type t, tile_state state, const A& value) const {
        // Relaxed: the word publishes nothing but itself.
        desul::atomic_store(words + t, tile_status_word::pack(tile_status::pack(epoch, state), value), relaxed(),
                            between_teams());
    }
};

/// Waits for the carry of everything before tile t > 0, as its predecessor publishes it.
template <class A>
KOKKOS_FUNCTION maybe<A> wait_for_carry(const tile_descriptors<A>& tiles, index_type t) {
    maybe<A> carry;
    wait_until([&] { return tiles.read(t - 1, carry) == tile_state::carry; });
    return carry;
}

} // namespace polyscan::kokkos
