// SPDX-License-Identifier: Apache-2.0
/// Values in device code. An accumulator is trivially copyable, has up to 64 bytes, and may have neither a default
/// constructor nor an identity: so places for values start empty, and "no value yet" is said with a flag, never with a
/// made-up value.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include <polyscan/operators.hpp>

namespace polyscan::cuda {

inline constexpr int warp_size = 32;
inline constexpr unsigned whole_warp = 0xffffffffu;

/// Room for one value. (The value is the only member: with another one, of another size, nvcc copies rooms in bytes.)
template <class A>
union slot {
    A value;

    __host__ __device__ slot() {}
    __host__ __device__ slot(const A& v) : value(v) {}
};

/// A value or nothing.
template <class A>
struct maybe {
    slot<A> place;
    bool present = false;

    __host__ __device__ maybe() {}
    __host__ __device__ maybe(const A& v) : place(v), present(true) {}
    __host__ __device__ void set(const A& v) {
        place.value = v;
        present = true;
    }
};

/// op(earlier, later), where there may be nothing earlier.
template <class Operator, class A>
__device__ A combine(const Operator& op, const maybe<A>& earlier, const A& later) {
    return earlier.present ? polyscan::combine(op, earlier.place.value, later) : later;
}

/// N values in shared memory. Its constructor does nothing: shared memory has none.
template <class A, int N>
struct shared_array {
    static constexpr int alignment = alignof(A) > sizeof(std::uint64_t) ? alignof(A) : sizeof(std::uint64_t);
    alignas(alignment) unsigned char bytes[N * sizeof(A)];

    __device__ A& operator[](int i) { return reinterpret_cast<A*>(bytes)[i]; }
    __device__ const A& operator[](int i) const { return reinterpret_cast<const A*>(bytes)[i]; }
};

namespace detail {
/// The library's operators over numbers: they commute, and applied to any bits they do no harm. Of an operator of a
/// user's own, nobody knows.
template <class Operator, class A>
inline constexpr bool takes_anything =
    std::is_arithmetic_v<A> &&
    (std::is_same_v<Operator, plus> || std::is_same_v<Operator, multiplies> || std::is_same_v<Operator, minimum> ||
     std::is_same_v<Operator, maximum> || std::is_same_v<Operator, bit_and> || std::is_same_v<Operator, bit_or> ||
     std::is_same_v<Operator, bit_xor>);
} // namespace detail

/// The values of other lanes, whatever their size. All lanes of the warp take part.
template <class A, class Shuffle>
__device__ A shuffle_words(const A& value, Shuffle shuffle) {
    constexpr int words = (sizeof(A) + sizeof(std::uint32_t) - 1) / sizeof(std::uint32_t);
    std::uint32_t word[words] = {};
    std::memcpy(word, &value, sizeof(A));
#pragma unroll
    for (int i = 0; i < words; ++i) word[i] = shuffle(word[i]);
    slot<A> result;
    std::memcpy(static_cast<void*>(&result.value), word, sizeof(A));
    return result.value;
}
/// The value of lane `lane` of the caller's group of `width` lanes.
template <class A>
__device__ A shuffle_from(const A& value, int lane, int width = warp_size) {
    return shuffle_words(value, [=](std::uint32_t word) { return __shfl_sync(whole_warp, word, lane, width); });
}
/// The value of the lane `distance` before; lanes without one get their own.
template <class A>
__device__ A shuffle_up(const A& value, int distance) {
    return shuffle_words(value, [=](std::uint32_t word) { return __shfl_up_sync(whole_warp, word, distance); });
}
/// The value of the lane `distance` further on; lanes without one get their own.
template <class A>
__device__ A shuffle_down(const A& value, int distance) {
    return shuffle_words(value, [=](std::uint32_t word) { return __shfl_down_sync(whole_warp, word, distance); });
}
/// The value of the lane whose number differs in the bits `mask`.
template <class A>
__device__ A shuffle_xor(const A& value, int mask) {
    return shuffle_words(value, [=](std::uint32_t word) { return __shfl_xor_sync(whole_warp, word, mask); });
}

/// first ? a : b, without a branch.
template <class A>
__device__ A select(bool first, const A& a, const A& b) {
    constexpr int words = (sizeof(A) + sizeof(std::uint32_t) - 1) / sizeof(std::uint32_t);
    std::uint32_t x[words] = {}, y[words] = {};
    std::memcpy(x, &a, sizeof(A));
    std::memcpy(y, &b, sizeof(A));
#pragma unroll
    for (int i = 0; i < words; ++i) x[i] = first ? x[i] : y[i];
    slot<A> result;
    std::memcpy(static_cast<void*>(&result.value), x, sizeof(A));
    return result.value;
}

/// Balanced tree over groups of `lanes` lanes, in lane order; every lane of a group gets the group's fold.
template <int lanes, class Operator, class A>
__device__ A fold_lanes(const Operator& op, A value) {
    const int lane = static_cast<int>(threadIdx.x) % warp_size;
#pragma unroll
    for (int distance = 1; distance < lanes; distance *= 2) {
        const A other = shuffle_xor(value, distance);
        const bool is_later = (lane & distance) != 0;
        value = is_later ? polyscan::combine(op, other, value) : polyscan::combine(op, value, other);
    }
    return value;
}

/// The threads of a block that scan tiles. `Count` is a multiple of the warp size; a block may have further warps,
/// which do not take part in `sync`.
template <int Count, int BlockSize = Count>
struct thread_group {
    static constexpr int count = Count;
    static constexpr int warps = Count / warp_size;
    static_assert(Count % warp_size == 0);
    // Of the block.
    static constexpr int groups = 1, block_threads = BlockSize;
    __device__ static int index() { return 0; }

    __device__ static int rank() { return static_cast<int>(threadIdx.x); }
    __device__ static int lane() { return rank() % warp_size; }
    __device__ static int warp() { return rank() / warp_size; }
    __device__ static bool is_leader() { return rank() == 0; }
    __device__ static void sync() {
        if constexpr (Count == BlockSize) {
            __syncthreads();
        } else {
            constexpr unsigned group_barrier = 1; // barrier 0 is __syncthreads
            __barrier_sync_count(group_barrier, Count);
        }
    }
};

/// A warp that scans tiles on its own, beside others in its block.
template <int BlockSize>
struct lone_warp {
    static constexpr int count = warp_size;
    static constexpr int warps = 1;
    static constexpr int groups = BlockSize / warp_size, block_threads = BlockSize;
    static_assert(BlockSize % warp_size == 0);

    __device__ static int index() { return static_cast<int>(threadIdx.x) / warp_size; }
    __device__ static int rank() { return static_cast<int>(threadIdx.x) % warp_size; }
    __device__ static int lane() { return rank(); }
    __device__ static int warp() { return 0; }
    __device__ static bool is_leader() { return rank() == 0; }
    __device__ static void sync() { __syncwarp(); }
};

} // namespace polyscan::cuda
