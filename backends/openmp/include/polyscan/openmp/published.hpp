// SPDX-License-Identifier: Apache-2.0
/// What look-back reads of a tile: nothing yet, its aggregate, or its carry (the fold up to and including the tile).
/// Written by the tile's thread, aggregate first and carry later; read by the threads of all later tiles.
#pragma once

#include <atomic>
#include <optional>
#include <utility>

#include <polyscan/openmp/tuning.hpp>
#include <polyscan/tile_status.hpp>

namespace polyscan::openmp {

/// General form: values of any type, each published by a release store of the status.
template <class T>
class published {
public:
    void publish_aggregate(const T& value) {
        aggregate_.emplace(value);
        // Release, read by the acquire in `read`: the aggregate above is complete for whoever sees the status.
        status_.store(tile_state::aggregate, std::memory_order_release);
    }
    void publish_carry(const T& value) {
        carry_.emplace(value);
        // Release, read by the acquire in `read`: the carry above is complete. The aggregate stays where it is, because
        // a reader that saw the earlier status may still be reading it.
        status_.store(tile_state::carry, std::memory_order_release);
    }
    /// State and value; the value is null when nothing is published.
    std::pair<tile_state, const T*> read() const {
        // Acquire, pairs with the two releases above.
        const tile_state state = status_.load(std::memory_order_acquire);
        if (state == tile_state::carry) return {state, &*carry_};
        if (state == tile_state::aggregate) return {state, &*aggregate_};
        return {state, nullptr};
    }

private:
    alignas(tuning::alignment) std::atomic<tile_state> status_ = tile_state::empty;
    std::optional<T> aggregate_;
    std::optional<T> carry_;
};

/// Small values: status and value in one word, so that no ordering is needed.
template <class T>
    requires fits_status_word<T>
class published<T> {
public:
    void publish_aggregate(const T& value) { publish(tile_state::aggregate, value); }
    void publish_carry(const T& value) { publish(tile_state::carry, value); }

    /// A value that came with its status; dereferenced like the pointer of the general form.
    class loaded {
    public:
        explicit loaded(std::uint64_t word) : word_(word) {}
        T operator*() const { return tile_status_word::value<T>(word_); }

    private:
        std::uint64_t word_;
    };

    std::pair<tile_state, loaded> read() const {
        // Relaxed: value and status come from the same load.
        const std::uint64_t word = word_.load(std::memory_order_relaxed);
        return {tile_status::state(tile_status_word::status(word), epoch), loaded(word)};
    }

private:
    static constexpr std::uint32_t epoch = 1; // descriptors are new in every call on this backend

    void publish(tile_state state, const T& value) {
        // Relaxed: the word publishes nothing but itself.
        word_.store(tile_status_word::pack(tile_status::pack(epoch, state), value), std::memory_order_relaxed);
    }

    alignas(tuning::alignment) std::atomic<std::uint64_t> word_ = 0;
};

} // namespace polyscan::openmp
