// SPDX-License-Identifier: Apache-2.0
/// Who works on what. A block takes the number of its next piece of work from a counter, when it is ready for it, and
/// never from its place in the launch: so whatever a piece waits for was taken earlier, by a block that is running. One
/// resident block is enough to finish, whatever order the blocks start in.
///
/// The counter holds the launch's epoch too, and resets itself: one call is one launch, and a captured graph can be
/// replayed.
#pragma once

#include <cstdint>

#include <polyscan/cuda/workspace.hpp>
#include <polyscan/tile_status.hpp>

namespace polyscan::cuda {

struct ticket {
    std::uint32_t number;
    std::uint32_t epoch;
};

/// The kernel's view of a workspace region: its counter and, behind it, its cells.
struct ticket_counter {
    region_header* header;
    std::uint64_t region_bytes;

    __device__ void* cells_memory() const { return header + 1; }

    __device__ ticket draw() const {
        // Relaxed: the ticket publishes nothing.
        const unsigned long long drawn = atomicAdd(&header->counter, 1ull);
        return {static_cast<std::uint32_t>(drawn), static_cast<std::uint32_t>(drawn >> region_header::epoch_shift)};
    }

    /// How many have been drawn.
    __device__ std::uint32_t drawn() const {
        return static_cast<std::uint32_t>(*static_cast<const volatile unsigned long long*>(&header->counter));
    }

    /// The launch after this epoch's has epoch 0 again.
    __device__ static bool wraps(std::uint32_t epoch) { return epoch + 1 >= tile_status::epoch_limit; }

    /// By one thread of each block, after the block's last ticket and, if the epoch wraps, after its last use of a
    /// cell. The last block starts the next epoch.
    __device__ void retire(std::uint32_t epoch) const {
        std::uint32_t next = epoch + 1;
        const bool clears = wraps(epoch);
        if (clears) __threadfence(); // partner: the fence below; this block's cells are written before they are cleared
        if (atomicAdd(&header->retired, 1u) + 1 < gridDim.x) return;
        if (clears) {
            // Numbers start again: nothing written under an old number may be left.
            __threadfence(); // partner: the fence above, in every other block
            auto* const words = static_cast<std::uint64_t*>(cells_memory());
            const std::uint64_t count = (region_bytes - sizeof(region_header)) / sizeof(std::uint64_t);
            for (std::uint64_t i = 0; i < count; ++i) words[i] = 0;
            next = 0;
        }
        // Every block has drawn its last ticket before it retired, and this block has seen all of them retire.
        __threadfence(); // the counters of the next launch come after every draw and every retirement of this one
        atomicExch(&header->retired, 0u);
        atomicExch(&header->counter, static_cast<unsigned long long>(next) << region_header::epoch_shift);
    }
};

} // namespace polyscan::cuda
