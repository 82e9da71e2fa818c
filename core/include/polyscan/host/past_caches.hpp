// SPDX-License-Identifier: Apache-2.0
/// Copying past the caches.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#if defined(__unix__)
#include <unistd.h>
#endif
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace polyscan::host {

/// Size of the last-level cache; POLYSCAN_LAST_LEVEL_BYTES in the environment says another one.
inline std::size_t last_level_bytes() {
    static const std::size_t bytes = [] {
        if (const char* const said = std::getenv("POLYSCAN_LAST_LEVEL_BYTES"))
            return static_cast<std::size_t>(std::strtoull(said, nullptr, 10));
        long found = 0;
#if defined(_SC_LEVEL3_CACHE_SIZE)
        found = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
        return found > 0 ? static_cast<std::size_t>(found) : std::size_t{32} << 20;
    }();
    return bytes;
}

/// Copies with non-temporal stores, which spare reading the destination into the cache first. They are not ordered with
/// other stores: `order_past_caches` comes after the last of them.
inline void copy_past_caches(void* to, const void* from, std::size_t bytes) {
#if defined(__SSE2__)
    constexpr std::size_t line = 64;
    auto* const target = static_cast<std::byte*>(to);
    const auto* const source = static_cast<const std::byte*>(from);
    // Incomplete lines go the ordinary way; others may write the rest of them.
    const std::size_t head = std::min(bytes, (line - reinterpret_cast<std::uintptr_t>(to) % line) % line);
    std::memcpy(target, source, head);
    std::size_t i = head;
    for (; i + line <= bytes; i += line)
        for (std::size_t part = 0; part < line; part += sizeof(__m128i))
            _mm_stream_si128(reinterpret_cast<__m128i*>(target + i + part),
                             _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + i + part)));
    std::memcpy(target + i, source + i, bytes - i);
#else
    std::memcpy(to, from, bytes);
#endif
}

/// Makes what this thread has written past the caches part of what its next release publishes.
inline void order_past_caches() {
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

/// Consecutive bytes on their way past the caches, in whole lines: an incomplete line waits here for its rest. Its
/// bytes go the ordinary way where they are not followed by a rest, or not preceded by a beginning; others may write
/// those.
class line_writer {
public:
    static constexpr std::size_t line = 64;

    line_writer() = default;
    line_writer(const line_writer&) = delete;
    line_writer& operator=(const line_writer&) = delete;
    ~line_writer() { flush(); }

    /// The next byte goes to `to`.
    void begin(void* to) {
        if (to == next_) return;
        flush();
        next_ = static_cast<std::byte*>(to);
        foreign_ = filled();
    }
    void flush() {
        if (filled() > foreign_) std::memcpy(next_ - filled() + foreign_, kept_ + foreign_, filled() - foreign_);
        foreign_ = filled();
    }

    /// Bytes of the current line that lie before the next one.
    std::size_t filled() const { return reinterpret_cast<std::uintptr_t>(next_) % line; }
    /// Not beyond the end of the line.
    void keep(const void* from, std::size_t bytes) {
        std::memcpy(kept_ + filled(), from, bytes);
        next_ += bytes;
    }
    /// When the kept bytes have reached the end of their line.
    void write_kept_line() {
        if (foreign_ == 0)
            copy_past_caches(next_ - line, kept_, line);
        else
            std::memcpy(next_ - line + foreign_, kept_ + foreign_, line - foreign_);
        foreign_ = 0;
    }
    /// Any number of bytes.
    void append(const void* from, std::size_t bytes) {
        const auto* at = static_cast<const std::byte*>(from);
        if (const std::size_t begun = filled(); begun > 0) {
            const std::size_t rest = std::min(bytes, line - begun);
            keep(at, rest);
            if (filled() > 0) return;
            write_kept_line();
            at += rest;
            bytes -= rest;
        }
        const std::size_t whole = bytes / line * line;
        copy_past_caches(next_, at, whole);
        next_ += whole;
        if (bytes > whole) keep(at + whole, bytes - whole);
    }
    /// A line that the caller writes itself, when nothing is kept.
    std::byte* next_line() {
        next_ += line;
        return next_ - line;
    }

private:
    alignas(line) std::byte kept_[line];
    std::byte* next_ = nullptr;
    std::size_t foreign_ = 0; ///< bytes at the start of the current line that are not this writer's, or are written
};

} // namespace polyscan::host
