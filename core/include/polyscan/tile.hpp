// SPDX-License-Identifier: Apache-2.0
/// Tile geometry. A tile is what one block handles at a time. Its shape depends on the accumulator's size alone: never
/// on the backend, the device, an address or the number of threads. That is what makes results reproducible everywhere.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <polyscan/function.hpp>
#include <polyscan/policy.hpp>

namespace polyscan {

/// Element counts and indices. Signed and 64 bits wide, on every backend.
using index_type = std::int64_t;

/// The size that chooses the tile shape. Types that only the host can hold (std::string, ...) count as 16 bytes.
template <class Accumulator>
inline constexpr index_type shape_bytes =
    std::is_trivially_copyable_v<Accumulator> ? index_type{sizeof(Accumulator)} : 16;

/// The shape of a tile, in elements.
///  - kogge_stone, brent_kung: `threads` elements, one per thread (`run` is 1).
///  - coarse: `threads` runs of `run` consecutive elements.
///  - warp_shuffle: 64 rows; `run` is the row's length, `threads` the number of rows.
struct tile_shape {
    index_type threads;
    index_type run;

    /// Of a whole tile.
    POLYSCAN_FUNCTION constexpr index_type elements() const { return threads * run; }
};

namespace detail {

inline constexpr index_type kibibyte = 1024;

constexpr index_type bit_floor(index_type value) {
    return static_cast<index_type>(std::bit_floor(static_cast<std::uint64_t>(value)));
}

// One element per thread: a block has at most 1024 threads, and its elements take at most 32 KiB of shared memory, so
// that a second buffer still fits beside them on every GPU.
constexpr index_type one_per_thread(index_type bytes) {
    // Two at least, for accumulators above 16 KiB: the recursion of three_pass must get shorter.
    return std::clamp<index_type>(bit_floor(std::max<index_type>(1, 32 * kibibyte / bytes)), 2, 1024);
}

} // namespace detail

/// Tile shape of a block algorithm for accumulators of `bytes` bytes (bytes >= 1).
constexpr tile_shape shape_of(block::kogge_stone, index_type bytes) { return {detail::one_per_thread(bytes), 1}; }
constexpr tile_shape shape_of(block::brent_kung, index_type bytes) { return {detail::one_per_thread(bytes), 1}; }
constexpr tile_shape shape_of(block::coarse, index_type bytes) {
    // Runs of 4; shorter where the tile would pass the 48 KiB of static shared memory.
    const index_type threads = detail::one_per_thread(bytes);
    return {threads, std::clamp<index_type>(48 * detail::kibibyte / (threads * bytes), 1, 4)};
}
constexpr tile_shape shape_of(block::warp_shuffle, index_type bytes) {
    // A row is what a warp holds as one 16-byte vector per lane; 64 rows of 4-, 8- and 16-byte elements are 32 KiB.
    // Above 16 bytes a quarter more where that doubles the elements (20, 40 bytes and some below): carries cost the
    // same for each tile, and rows of 320 bytes would need almost twice as many as rows of 640.
    const index_type row_bytes = bytes <= 16 ? 512 : 640;
    return {64, std::clamp<index_type>(detail::bit_floor(std::max<index_type>(1, row_bytes / bytes)), 1, 128)};
}

/// Tile shape of block algorithm `Block` for accumulator type `Accumulator`.
template <class Block, class Accumulator>
inline constexpr tile_shape shape_for = shape_of(Block{}, shape_bytes<Accumulator>);

/// value / divisor, rounded up; value >= 0.
POLYSCAN_FUNCTION constexpr index_type ceil_div(index_type value, index_type divisor) {
    return value / divisor + (value % divisor != 0 ? 1 : 0);
}

} // namespace polyscan
