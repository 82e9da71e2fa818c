// SPDX-License-Identifier: Apache-2.0
/// The published status of a tile: what another block may read of it, and when.
///
/// A single-pass scan hands values from block to block through memory. A reader must never pair a new status with an
/// old value. Two ways give that:
///  - status and value share one 64-bit word that is loaded and stored as a whole (accumulators up to 4 bytes). Relaxed
///    accesses suffice, because the word publishes nothing but itself;
///  - the value is stored first, then the status with release; the reader loads the status with acquire, then the
///  value.
///
/// A status carries an epoch, so that words left from earlier calls on the same workspace read as `empty` and no launch
/// is spent on clearing them.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <polyscan/function.hpp>

namespace polyscan {

enum class tile_state : std::uint32_t {
    empty = 0,     ///< nothing published in this epoch
    aggregate = 1, ///< the fold of this tile alone
    carry = 2      ///< the fold of everything up to and including this tile (with init)
};

/// Epoch and state in 32 bits: 30 bits of epoch, 2 of state. A word of zeros is `empty` in every epoch.
struct tile_status {
    static constexpr std::uint32_t epoch_limit = 1u << 30;

    POLYSCAN_FUNCTION static constexpr std::uint32_t pack(std::uint32_t epoch, tile_state state) {
        return epoch << 2 | static_cast<std::uint32_t>(state);
    }
    /// The state that `word` holds, `empty` if it was written in another epoch.
    POLYSCAN_FUNCTION static constexpr tile_state state(std::uint32_t word, std::uint32_t epoch) {
        return word >> 2 == epoch ? static_cast<tile_state>(word & 3u) : tile_state::empty;
    }
};

/// Value and status fit one 64-bit word.
template <class T>
inline constexpr bool fits_status_word = std::is_trivially_copyable_v<T> && sizeof(T) <= 4;

/// Status in the upper, value in the lower 32 bits.
struct tile_status_word {
    template <class T>
    POLYSCAN_FUNCTION static std::uint64_t pack(std::uint32_t status, const T& value) {
        static_assert(fits_status_word<T>, "value and status must fit one 64-bit word");
        std::uint32_t low = 0;
        std::memcpy(&low, &value, sizeof(T));
        return std::uint64_t{status} << 32 | low;
    }
    POLYSCAN_FUNCTION static std::uint32_t status(std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32); }
    template <class T>
    POLYSCAN_FUNCTION static T value(std::uint64_t word) {
        static_assert(fits_status_word<T>, "value and status must fit one 64-bit word");
        // An array of T's size turned into a T: T need not have a default constructor.
        struct storage {
            unsigned char bytes[sizeof(T)];
        } low;
        const auto bits = static_cast<std::uint32_t>(word);
        std::memcpy(&low, &bits, sizeof(T));
        return std::bit_cast<T>(low);
    }
};

} // namespace polyscan
