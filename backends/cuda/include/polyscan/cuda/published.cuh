// SPDX-License-Identifier: Apache-2.0
/// Values that one block publishes and another reads, in the same launch. A cell holds a value and its status
/// (tile_status.hpp); a reader sees both or neither. By the accumulator's size:
///
///  | bytes  | cell                                     | what keeps value and status together                |
///  |--------|------------------------------------------|-----------------------------------------------------|
///  | 1..4   | one 64-bit word                          | the word is accessed as a whole                     |
///  | 5..8   | one 128-bit word                         | the word is accessed as a whole                     |
///  | ..64   | a 128-bit word, with a status, for each  | a reader takes the value when all statuses agree    |
///  |        | 8 bytes                                  |                                                     |
///
/// All accesses are relaxed: a word publishes nothing but itself. A cell is written once for each status in a launch.
/// Cells of the first form are never in the same memory as others: a value could look like a status.
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

/// 8 bytes of the value in each word, beside a status.
template <int N>
struct words_cell {
    ordered::word128 word[N];

    template <class A>
    __device__ void publish(std::uint32_t status, const A& value) {
        std::uint64_t bits[N] = {};
        std::memcpy(bits, static_cast<const void*>(&value), sizeof(A));
        // Relaxed, in any order: a word publishes nothing but itself. Partner: fetch.
#pragma unroll
        for (int i = 0; i < N; ++i) ordered::store_relaxed(&word[i], {bits[i], status});
    }
    struct image {
        ordered::word128 word[N];
    };
    __device__ image fetch() const {
        image seen;
#pragma unroll
        for (int i = 0; i < N; ++i) seen.word[i] = ordered::load_relaxed(&word[i]); // partner: publish
        return seen;
    }
    template <class A>
    __device__ static tile_state decode(const image& seen, std::uint32_t epoch, slot<A>& value) {
        std::uint64_t bits[N];
        bool whole = true;
#pragma unroll
        for (int i = 0; i < N; ++i) {
            bits[i] = seen.word[i].low;
            whole = whole && seen.word[i].high == seen.word[0].high;
        }
        std::memcpy(static_cast<void*>(&value.value), bits, sizeof(A));
        if (!whole) return tile_state::empty; // a part of it is still on its way
        return tile_status::state(static_cast<std::uint32_t>(seen.word[0].high), epoch);
    }
};

static_assert(sizeof(word_cell) == cell_bytes(1) && sizeof(words_cell<1>) == cell_bytes(5) &&
              sizeof(words_cell<2>) == cell_bytes(9) && sizeof(words_cell<8>) == cell_bytes(64));

template <class A>
using cell_for = std::conditional_t<sizeof(A) <= sizeof(std::uint32_t), word_cell,
                                    words_cell<(sizeof(A) + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t)>>;

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
    /// Where cell i is.
    __device__ const void* address(index_type i) const { return cell_ + i; }
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
