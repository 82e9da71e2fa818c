// SPDX-License-Identifier: Apache-2.0
/// A lane's run of elements as it lies in memory. Runs of 4, 8 or 16 bytes are held as 32-bit words: small elements
/// would take a register each. Such runs are read from shared memory and written to global memory in one access, at any
/// address: where the address is not a multiple of the run's size, the words around it are read and shifted.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <polyscan/cuda/request.cuh>
#include <polyscan/cuda/value.cuh>

namespace polyscan::cuda {

/// Words i, i + 1, ... of `word` move to 0, 1, ..., where `shift` = 4 i + b bytes; what lies b bytes on is shifted in.
/// `shift` is a multiple of Granule. The upper half of `word` is lost.
template <int Granule, int N>
__device__ void shift_down(std::uint32_t (&word)[N], unsigned shift) {
    constexpr int word_bytes = sizeof(std::uint32_t);
    // Selections by the bits of the shift: a selection by its value would put the words into local memory.
#pragma unroll
    for (int by = N / 4; by >= 1; by /= 2) {
        if (by * word_bytes < Granule) continue;
        const bool moves = (shift & static_cast<unsigned>(by * word_bytes)) != 0;
#pragma unroll
        for (int i = 0; i + by < N; ++i) word[i] = moves ? word[i + by] : word[i];
    }
    if constexpr (Granule < word_bytes) {
        const unsigned bits = shift % word_bytes * 8;
#pragma unroll
        for (int i = 0; i + 1 < N; ++i) word[i] = __funnelshift_r(word[i], word[i + 1], bits);
    }
}

template <class T, int Run>
class packed_run {
public:
    static constexpr int bytes = Run * static_cast<int>(sizeof(T));
    static constexpr bool has_words = bytes == 4 || bytes == 8 || bytes == 16;
    static constexpr int words = has_words ? bytes / 4 : 1;
    /// Registers that it takes. Elements of bytes take one a byte.
    static constexpr int registers = has_words ? words : std::max(1, bytes / std::min(4, static_cast<int>(alignof(T))));
    /// Bytes that one instruction reads at most.
    static constexpr int access_bytes = has_words ? bytes : std::max(4, static_cast<int>(alignof(T)));
    static constexpr int granule = static_cast<int>(alignof(T)); ///< addresses are multiples of this

    /// From shared memory, at any multiple of the granule; `base` is aligned to 16, and 16 bytes more than the run's
    /// can be read.
    __device__ void load(const unsigned char* base, unsigned offset) {
        if constexpr (has_words) {
            const unsigned past = offset % bytes;
            const auto* const whole = reinterpret_cast<const word_type*>(base + (offset - past));
            if (granule % bytes == 0 || past == 0) {
                const word_type only = *whole;
                std::memcpy(word_, &only, bytes);
            } else {
                const word_type both[2] = {whole[0], whole[1]};
                std::uint32_t word[2 * words];
                std::memcpy(word, both, 2 * bytes);
                shift_down<granule>(word, past);
#pragma unroll
                for (int i = 0; i < words; ++i) word_[i] = word[i];
            }
        } else {
#pragma unroll
            for (int e = 0; e < Run; ++e) element_[e].value = reinterpret_cast<const T*>(base + offset)[e];
        }
    }

    __device__ void unpack(slot<T> (&element)[Run]) const {
        if constexpr (has_words) {
            std::memcpy(static_cast<void*>(element), word_, bytes);
        } else {
#pragma unroll
            for (int e = 0; e < Run; ++e) element[e].value = element_[e].value;
        }
    }
    __device__ void pack(const slot<T> (&element)[Run]) {
        if constexpr (has_words) {
            std::memcpy(word_, static_cast<const void*>(element), bytes);
        } else {
#pragma unroll
            for (int e = 0; e < Run; ++e) element_[e].value = element[e].value;
        }
    }

    // Integers of one byte, each in a register of its own, in one instruction an element or less. (Left to itself, the
    // compiler takes three.)

    static constexpr bool holds_bytes = has_words && sizeof(T) == 1 && std::is_integral_v<T>;
    template <class Wide>
    __device__ void unpack_bytes(slot<Wide> (&element)[Run]) const {
        static_assert(holds_bytes && sizeof(Wide) == sizeof(std::uint32_t));
#pragma unroll
        for (int e = 0; e < Run; ++e) {
            std::uint32_t wide;
            // Byte e % 4; the other three are its sign (selector + 8) or byte 4, which is 0.
            constexpr unsigned first = 0x4440, sign = 0x8880, step = 0x1111;
            const auto at = static_cast<unsigned>(e % 4);
            const unsigned selector = std::is_signed_v<T> ? sign + step * at : first + at;
            asm("prmt.b32 %0, %1, 0, %2;" : "=r"(wide) : "r"(word_[e / 4]), "r"(selector));
            element[e].value = static_cast<Wide>(wide);
        }
    }
    template <class Wide>
    __device__ void pack_bytes(const slot<Wide> (&element)[Run]) {
        static_assert(holds_bytes && sizeof(Wide) == sizeof(std::uint32_t));
        const auto two = [&](int e) {
            return __byte_perm(static_cast<std::uint32_t>(element[e].value),
                               static_cast<std::uint32_t>(element[e + 1].value), 0x0040);
        };
#pragma unroll
        for (int i = 0; i < words; ++i) word_[i] = __byte_perm(two(4 * i), two(4 * i + 2), 0x5410);
    }
    /// The least or greatest: two bytes a word, three words an instruction.
    template <class Wide, bool Greatest>
    __device__ Wide extreme_of_bytes() const {
        constexpr bool is_signed = std::is_signed_v<T>;
        std::uint32_t extreme = 0;
#pragma unroll
        for (int i = 0; i < words; ++i) {
            std::uint32_t even, odd; // bytes 0 and 2, 1 and 3, each followed by its sign or by 0
            asm("prmt.b32 %0, %1, 0, %2;" : "=r"(even) : "r"(word_[i]), "n"(is_signed ? 0xa280 : 0x4240));
            asm("prmt.b32 %0, %1, 0, %2;" : "=r"(odd) : "r"(word_[i]), "n"(is_signed ? 0xb391 : 0x4341));
            const std::uint32_t third = i == 0 ? odd : extreme;
            if constexpr (is_signed)
                extreme = Greatest ? __vimax3_s16x2(even, odd, third) : __vimin3_s16x2(even, odd, third);
            else
                extreme = Greatest ? __vimax3_u16x2(even, odd, third) : __vimin3_u16x2(even, odd, third);
        }
        using half = std::conditional_t<is_signed, std::int16_t, std::uint16_t>;
        const Wide low = static_cast<half>(extreme), high = static_cast<half>(extreme >> 16);
        return (low < high) == Greatest ? high : low;
    }
    /// Modulo 2^32, of which the lowest byte is that of the sum of bytes.
    __device__ std::uint32_t sum_of_bytes() const {
        std::uint32_t sum = 0;
#pragma unroll
        for (int i = 0; i < words; ++i) sum = __dp4a(word_[i], 0x01010101u, sum);
        return sum;
    }

    /// Every element moves one place on; the last one is lost.
    __device__ void push_front(const T& first) {
        if constexpr (has_words && sizeof(T) < sizeof(std::uint32_t)) {
            constexpr unsigned bits = 8 * sizeof(T);
#pragma unroll
            for (int i = words - 1; i > 0; --i) word_[i] = __funnelshift_l(word_[i - 1], word_[i], bits);
            std::uint32_t low = 0;
            std::memcpy(&low, static_cast<const void*>(&first), sizeof(T));
            word_[0] = word_[0] << bits | low;
        } else {
            slot<T> element[Run];
            unpack(element);
#pragma unroll
            for (int e = Run - 1; e > 0; --e) element[e].value = element[e - 1].value;
            element[0].value = first;
            pack(element);
        }
    }

    /// From here on, the compiler takes the words for new ones: it unpacks them again instead of keeping all elements.
    __device__ void forget() {
        if constexpr (has_words && words * 4 / static_cast<int>(sizeof(T)) > words) {
#pragma unroll
            for (int i = 0; i < words; ++i) asm volatile("" : "+r"(word_[i]));
        }
    }

    /// To global memory, at a multiple of the run's size. It is not read again soon: evict it first.
    __device__ void store_whole(T* to) const {
        static_assert(has_words);
        word_type only;
        std::memcpy(&only, word_, bytes);
        __stcs(reinterpret_cast<word_type*>(to), only);
    }

    /// The same for bytes from, ..., until - 1 alone, both multiples of the granule; `to` is where the run would start.
    __device__ void store_part(T* to, unsigned from, unsigned until) const {
        using piece = std::conditional_t<granule % 4 == 0, std::uint32_t, T>;
        constexpr int pieces = bytes / static_cast<int>(sizeof(piece));
        slot<piece> part[pieces];
        std::memcpy(static_cast<void*>(part), word_, bytes);
#pragma unroll
        for (int i = 0; i < pieces; ++i) {
            const auto at = static_cast<unsigned>(i * static_cast<int>(sizeof(piece)));
            if (from <= at && at < until) reinterpret_cast<piece*>(to)[i] = part[i].value;
        }
    }

    /// As many bytes as a run has, from `shift` bytes into this one on into the next.
    __device__ packed_run joined(const packed_run& next, unsigned shift) const {
        std::uint32_t word[2 * words];
#pragma unroll
        for (int i = 0; i < words; ++i) {
            word[i] = word_[i];
            word[words + i] = next.word_[i];
        }
        shift_down<granule>(word, shift);
        packed_run result;
#pragma unroll
        for (int i = 0; i < words; ++i) result.word_[i] = word[i];
        return result;
    }
    /// first ? a : b, word by word: a choice between references would put both into local memory.
    __device__ static packed_run either(bool first, const packed_run& a, const packed_run& b) {
        packed_run result;
#pragma unroll
        for (int i = 0; i < words; ++i) result.word_[i] = first ? a.word_[i] : b.word_[i];
        return result;
    }
    /// The run of lane `lane`. All lanes of the warp take part.
    __device__ packed_run from_lane(int lane) const {
        packed_run result;
#pragma unroll
        for (int i = 0; i < words; ++i) result.word_[i] = __shfl_sync(whole_warp, word_[i], lane);
        return result;
    }

private:
    using word_type = std::conditional_t<has_words, detail::word_of_size<bytes>, std::uint32_t>;
    std::uint32_t word_[words];            ///< where has_words
    slot<T> element_[has_words ? 1 : Run]; ///< otherwise
};

} // namespace polyscan::cuda
