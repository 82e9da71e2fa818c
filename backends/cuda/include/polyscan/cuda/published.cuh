// SPDX-License-Identifier: Apache-2.0
/// Values that one block publishes and another reads, in the same launch. A cell holds a value and its status
/// (tile_status.hpp); a reader sees both or neither. By the accumulator's size:
///
///  | bytes  | cell                              | what keeps value and status together                      |
///  |--------|-----------------------------------|-----------------------------------------------------------|
///  | 1..4   | one 64-bit word                   | the word is accessed as a whole; relaxed                  |
///  | 5..8   | one 128-bit word                  | the word is accessed as a whole; relaxed                  |
///  | 9..16  | two 128-bit words, a status each  | a reader takes the value when both statuses agree         |
///  | ..64   | a status, then the values         | the value is stored first; release and acquire            |
///
/// In the last form the aggregate and the carry of a tile have a place each, so that publishing the carry does not
/// disturb a reader of the aggregate. A cell is written once for each status in a launch. Cells of different forms are
/// never in the same memory: a value could look like a status.
#pragma once

#include <cstdint>
#include <cstring>

#include <polyscan/cuda/value.cuh>
#include <polyscan/cuda/workspace.hpp>
#include <polyscan/tile_status.hpp>

namespace polyscan::cuda {

namespace ordered {

// Scope is the device everywhere: readers and writers are blocks of one launch.

__device__ inline void store_relaxed(std::uint64_t* to, std::uint64_t word) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(word) : "memory");
}
__device__ inline std::uint64_t load_relaxed(const std::uint64_t* from) {
    std::uint64_t word;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(from) : "memory");
    return word;
}

/// 16 bytes, accessed as a whole (PTX ISA 8.3, sm_70 and later).
struct alignas(16) word128 {
    std::uint64_t low;
    std::uint64_t high;
};
__device__ inline void store_relaxed(word128* to, word128 word) {
    asm volatile("{ .reg .b128 whole; mov.b128 whole, {%1, %2}; st.relaxed.gpu.global.b128 [%0], whole; }" ::"l"(to),
                 "l"(word.low), "l"(word.high)
                 : "memory");
}
__device__ inline word128 load_relaxed(const word128* from) {
    word128 word;
    asm volatile("{ .reg .b128 whole; ld.relaxed.gpu.global.b128 whole, [%2]; mov.b128 {%0, %1}, whole; }"
                 : "=l"(word.low), "=l"(word.high)
                 : "l"(from)
                 : "memory");
    return word;
}

/// Partner of load_acquire: what this thread stored before is seen by whoever loads the new status.
__device__ inline void store_release(std::uint32_t* to, std::uint32_t word) {
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(word) : "memory");
}
/// Partner of store_release: what is loaded after it is at least as new as the status.
__device__ inline std::uint32_t load_acquire(const std::uint32_t* from) {
    std::uint32_t word;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(word) : "l"(from) : "memory");
    return word;
}

} // namespace ordered

namespace detail {

struct word_cell {
    std::uint64_t word;

    template <class A>
    __device__ void publish(std::uint32_t status, const A& value) {
        // Relaxed: the word publishes nothing but itself. Partner: read.
        ordered::store_relaxed(&word, tile_status_word::pack(status, value));
    }
    using image = std::uint64_t;
    __device__ image fetch() const { return ordered::load_relaxed(&word); } // partner: publish
    template <class A>
    __device__ static tile_state decode(image seen, std::uint32_t epoch, slot<A>& value) {
        const auto low = static_cast<std::uint32_t>(seen);
        std::memcpy(static_cast<void*>(&value.value), &low, sizeof(A));
        return tile_status::state(tile_status_word::status(seen), epoch);
    }
};

struct pair_cell {
    ordered::word128 word;

    template <class A>
    __device__ void publish(std::uint32_t status, const A& value) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, static_cast<const void*>(&value), sizeof(A));
        // Relaxed: the word publishes nothing but itself. Partner: read.
        ordered::store_relaxed(&word, {bits, status});
    }
    using image = ordered::word128;
    __device__ image fetch() const { return ordered::load_relaxed(&word); } // partner: publish
    template <class A>
    __device__ static tile_state decode(const image& seen, std::uint32_t epoch, slot<A>& value) {
        std::memcpy(static_cast<void*>(&value.value), &seen.low, sizeof(A));
        return tile_status::state(static_cast<std::uint32_t>(seen.high), epoch);
    }
};

struct quad_cell {
    ordered::word128 word[2];

    template <class A>
    __device__ void publish(std::uint32_t status, const A& value) {
        std::uint64_t bits[2] = {};
        std::memcpy(bits, static_cast<const void*>(&value), sizeof(A));
        // Relaxed, in any order: each word carries the status, and `read` waits for both.
        ordered::store_relaxed(&word[0], {bits[0], status});
        ordered::store_relaxed(&word[1], {bits[1], status});
    }
    struct image {
        ordered::word128 first, second;
    };
    __device__ image fetch() const {
        return {ordered::load_relaxed(&word[0]), ordered::load_relaxed(&word[1])};
    } // partner: publish
    template <class A>
    __device__ static tile_state decode(const image& seen, std::uint32_t epoch, slot<A>& value) {
        const std::uint64_t bits[2] = {seen.first.low, seen.second.low};
        std::memcpy(static_cast<void*>(&value.value), bits, sizeof(A));
        if (seen.first.high != seen.second.high) return tile_state::empty; // half of it is still on its way
        return tile_status::state(static_cast<std::uint32_t>(seen.first.high), epoch);
    }
};

struct record_cell {
    std::uint32_t status;
    alignas(16) unsigned char values[2][largest_accumulator];

    template <class A>
    __device__ void publish(std::uint32_t new_status, const A& value) {
        reinterpret_cast<A&>(values[new_status & place_mask]) = value;
        ordered::store_release(&status, new_status); // after the value; partner: load_acquire in read
    }
    struct image {
        const record_cell* cell;
        std::uint32_t status;
    };
    /// The status, before the value. Partner: store_release in publish.
    __device__ image fetch() const { return {this, ordered::load_acquire(&status)}; }
    template <class A>
    __device__ static tile_state decode(const image& seen, std::uint32_t epoch, slot<A>& value) {
        const tile_state state = tile_status::state(seen.status, epoch);
        if (state != tile_state::empty)
            value.value = reinterpret_cast<const A&>(seen.cell->values[seen.status & place_mask]);
        return state;
    }

private:
    // aggregate = 1 goes to place 1, carry = 2 to place 0.
    static constexpr std::uint32_t place_mask = 1;
};

static_assert(sizeof(word_cell) == cell_bytes(1) && sizeof(pair_cell) == cell_bytes(5) &&
              sizeof(quad_cell) == cell_bytes(9) && sizeof(record_cell) == cell_bytes(17));

template <class A>
using cell_for = std::conditional_t<
    sizeof(A) <= sizeof(std::uint32_t), word_cell,
    std::conditional_t<sizeof(A) <= sizeof(std::uint64_t), pair_cell,
                       std::conditional_t<sizeof(A) <= sizeof(ordered::word128), quad_cell, record_cell>>>;

} // namespace detail

/// An array of cells, seen in one launch.
template <class A>
class cells {
public:
    __device__ cells(void* memory, std::uint32_t epoch)
        : cell_(static_cast<detail::cell_for<A>*>(memory)), epoch_(epoch) {}

    /// By one thread.
    __device__ void publish(index_type i, tile_state state, const A& value) const {
        cell_[i].publish(tile_status::pack(epoch_, state), value);
    }
    /// `value` is meaningful unless the answer is `empty`.
    __device__ tile_state read(index_type i, slot<A>& value) const { return decode(fetch(i), value); }
    /// The same in two steps: between them, the read is under way.
    using image = typename detail::cell_for<A>::image;
    __device__ image fetch(index_type i) const { return cell_[i].fetch(); }
    __device__ tile_state decode(const image& seen, slot<A>& value) const {
        return detail::cell_for<A>::decode(seen, epoch_, value);
    }
    /// Until something is there. Whoever publishes it has drawn its ticket before the caller, so it is running.
    __device__ tile_state wait(index_type i, slot<A>& value) const {
        tile_state state;
        do {
            state = read(i, value);
        } while (state == tile_state::empty);
        return state;
    }

private:
    detail::cell_for<A>* cell_;
    std::uint32_t epoch_;
};

} // namespace polyscan::cuda
