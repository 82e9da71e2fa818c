// SPDX-License-Identifier: Apache-2.0
/// A lane's run of elements as it lies in memory. Runs of 4, 8 or 16 bytes are held as 32-bit words: small elements
/// would take a register each. Such runs are read from shared memory and written to global memory in one access, at any
/// address: where the address is not a multiple of the run's size, the words around it are read and shifted.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include <polyscan/cuda/request.cuh>
#include <polyscan/cuda/value.cuh>

namespace polyscan::cuda {

/// Words i, i + 1, ... of `word` move to 0, 1, ..., where `shift` = 4 i + b bytes; what lies b bytes on is shifted in.
/// `shift` is a multiple of Granule, and less than half of the words or 16. The upper ones that move are lost.
template <int Granule, int N>
__device__ void shift_down(std::uint32_t (&word)[N], unsigned shift) {
    constexpr int word_bytes = sizeof(std::uint32_t), most = std::min(N / 2 * word_bytes, 16) / 2 / word_bytes;
    // Selections by the bits of the shift: a selection by its value would put the words into local memory, and so would
    // an inner loop whose length depends on the outer one.
#pragma unroll
    for (int by = most; by >= 1; by /= 2) {
        if (by * word_bytes < Granule) continue;
        const bool moves = (shift & static_cast<unsigned>(by * word_bytes)) != 0;
#pragma unroll
        for (int i = 0; i < N; ++i) {
            const std::uint32_t stays = word[i], comes = i + by < N ? word[i + by] : 0;
            word[i] = moves ? comes : stays;
        }
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
    /// Runs that fill several accesses of 16 bytes.
    static constexpr bool fills_accesses = !has_words && bytes % sizeof(uint4) == 0;
    /// Those of elements that are none, for which the whole accesses are worth joining the words around them.
    static constexpr bool joins_accesses =
        fills_accesses && sizeof(T) != sizeof(uint4) && alignof(T) % sizeof(std::uint32_t) == 0;
    /// Bytes that one instruction reads at most.
    static constexpr int access_bytes = has_words        ? bytes
                                        : fills_accesses ? static_cast<int>(sizeof(uint4))
                                                         : std::max(4, static_cast<int>(alignof(T)));
    static constexpr int granule = static_cast<int>(alignof(T)); ///< addresses are multiples of this

    /// From shared memory, at any multiple of the granule; `base` is aligned to 16, and 16 bytes more than the run's
    /// can be read. `Aligned`: at a multiple of the run's size.
    template <bool Aligned = false>
    __device__ void load(const unsigned char* base, unsigned offset) {
        if constexpr (has_words) {
            const unsigned past = Aligned ? 0 : offset % bytes;
            const auto* const whole = reinterpret_cast<const word_type*>(base + (offset - past));
            if (Aligned || granule % bytes == 0 || past == 0) {
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
            if constexpr (fills_accesses) {
                if (offset % sizeof(uint4) == 0) {
                    uint4 word[bytes / sizeof(uint4)];
#pragma unroll
                    for (std::size_t i = 0; i < bytes / sizeof(uint4); ++i)
                        word[i] = reinterpret_cast<const uint4*>(base + offset)[i];
                    std::memcpy(static_cast<void*>(element_), word, bytes);
                    return;
                }
            }
            if constexpr (joins_accesses) {
                load_across(base, offset);
            } else {
#pragma unroll
                for (int e = 0; e < Run; ++e) element_[e].value = reinterpret_cast<const T*>(base + offset)[e];
            }
        }
    }
    /// The counterpart. A run that is held as words goes to a multiple of its size.
    __device__ void store_back(unsigned char* base, unsigned offset) const {
        if constexpr (has_words) {
            word_type only;
            std::memcpy(&only, word_, bytes);
            *reinterpret_cast<word_type*>(base + offset) = only;
        } else {
            if constexpr (fills_accesses) {
                if (offset % sizeof(uint4) == 0) {
                    uint4 word[bytes / sizeof(uint4)];
                    std::memcpy(word, static_cast<const void*>(element_), bytes);
#pragma unroll
                    for (std::size_t i = 0; i < bytes / sizeof(uint4); ++i)
                        reinterpret_cast<uint4*>(base + offset)[i] = word[i];
                    return;
                }
            }
#pragma unroll
            for (int e = 0; e < Run; ++e) reinterpret_cast<T*>(base + offset)[e] = element_[e].value;
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

    // Integers of one byte. Each in a register of its own, in one instruction an element or less (left to itself, the
    // compiler takes three):

    static constexpr bool holds_bytes =
        has_words && sizeof(T) == 1 && std::is_integral_v<T> && !std::is_same_v<T, bool>;
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
        const auto at = [&](int e) { return static_cast<std::uint32_t>(element[e].value); };
#pragma unroll
        for (int i = 0; i < words; ++i) word_[i] = four_bytes(at(4 * i), at(4 * i + 1), at(4 * i + 2), at(4 * i + 3));
    }
    /// The lowest bytes of four words.
    __device__ static std::uint32_t four_bytes(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
        return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
    }

    // Or as they are, several in an instruction, by these operators. Sums are formed modulo 2^32, of which only the
    // lowest byte counts. The least or greatest of bytes is that of 16-bit numbers with the bytes above and anything
    // below, two in a word: bytes 1 and 3 are there, bytes 0 and 2 come there by a shift.

    template <class Operator>
    static constexpr bool knows =
        std::is_same_v<Operator, plus> || std::is_same_v<Operator, minimum> || std::is_same_v<Operator, maximum>;
    /// op(neutral, x) == x
    template <class Operator>
    static constexpr T neutral() {
        if (std::is_same_v<Operator, plus>) return T{0};
        return std::is_same_v<Operator, maximum> ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
    }
    /// Folds of one run or several: begun, added to, ended.
    template <class Operator>
    __device__ static std::uint32_t begin_fold() {
        return static_cast<std::uint8_t>(neutral<Operator>()) * 0x01000100u;
    }
    template <class Operator>
    __device__ std::uint32_t add_to_fold(std::uint32_t folded) const {
        static_assert(holds_bytes && knows<Operator>);
#pragma unroll
        for (int i = 0; i < words; ++i) {
            if constexpr (std::is_same_v<Operator, plus>)
                folded = __dp4a(word_[i], 0x01010101u, folded);
            else
                folded = extreme_of<Operator>(word_[i] << 8, word_[i], folded);
        }
        return folded;
    }
    template <class Operator, class Wide>
    __device__ static Wide end_fold(std::uint32_t folded) {
        if constexpr (std::is_same_v<Operator, plus>)
            return static_cast<Wide>(folded);
        else
            return static_cast<Wide>(extreme_of<Operator>(folded, folded << 16)) >> 24;
    }
    /// Every byte becomes the fold of `before` and the bytes up to it. Returns the last.
    template <class Operator, class Wide>
    __device__ Wide spread(Wide before) {
        static_assert(holds_bytes && knows<Operator> && sizeof(Wide) == sizeof(std::uint32_t));
        auto so_far = static_cast<std::uint32_t>(before);
        if constexpr (std::is_same_v<Operator, plus>) {
#pragma unroll
            for (int i = 0; i < words; ++i) {
                std::uint32_t sum[4];
#pragma unroll
                for (int e = 0; e < 4; ++e) sum[e] = __dp4a(word_[i], 0x01010101u >> (8 * (3 - e)), so_far);
                so_far = sum[3];
                word_[i] = four_bytes(sum[0], sum[1], sum[2], sum[3]);
            }
            return static_cast<Wide>(so_far);
        } else {
            so_far = __byte_perm(so_far, 0, 0x0404); // in both halves
#pragma unroll
            for (int i = 0; i < words; ++i) {
                const std::uint32_t even = word_[i] << 8, odd = word_[i], pair = extreme_of<Operator>(even, odd);
                // Byte 2 comes after bytes 0 and 1; byte 0 after none, so it is put before itself.
                const std::uint32_t before_even = __byte_perm(even, pair, 0x5410);
                const std::uint32_t to_even = extreme_of<Operator>(even, before_even, so_far);
                const std::uint32_t to_odd = extreme_of<Operator>(odd, to_even);
                word_[i] = __byte_perm(to_even, to_odd, 0x7351);
                so_far = __byte_perm(to_odd, 0, 0x3232); // the last one, in both halves
            }
            return static_cast<Wide>(so_far) >> 24;
        }
    }
    /// Bytes first, ..., until - 1 stay, others become `other`.
    __device__ void keep(unsigned first, unsigned until, T other) {
        static_assert(holds_bytes);
        const std::uint32_t filled = static_cast<std::uint8_t>(other) * 0x01010101u;
        const auto from = [](unsigned byte, int i) { // a mask of word i
            const int bits = min(max(static_cast<int>(byte) - 4 * i, 0), 4) * 8;
            return static_cast<std::uint32_t>(0xffffffffull << bits);
        };
#pragma unroll
        for (int i = 0; i < words; ++i) {
            const std::uint32_t mask = from(first, i) & ~from(until, i);
            word_[i] = (word_[i] & mask) | (filled & ~mask);
        }
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

    /// To global memory, at a multiple of the run's size. With the L2 cache's ordinary priority: stored as what shall
    /// be evicted first (__stcs), 2^26 and 2^28 floats took 134.4 and 525 us, so 133.5 and 520. A plain assignment,
    /// which compilers move, took 135.5 and 527.
    __device__ void store_whole(T* to) const {
        static_assert(has_words);
        word_type only;
        std::memcpy(&only, word_, bytes);
        __stwb(reinterpret_cast<word_type*>(to), only);
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
    /// The same bytes as elements of another type.
    template <class U>
    __device__ packed_run<U, Run> as() const {
        static_assert(has_words && packed_run<U, Run>::has_words && sizeof(U) == sizeof(T));
        packed_run<U, Run> result;
#pragma unroll
        for (int i = 0; i < words; ++i) result.word_[i] = word_[i];
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
    /// From a place inside of an access of 16 bytes: the whole ones, and the words before and behind those, which are
    /// as many as one access has. Neighbours' are not touched: they may be writing them.
    __device__ void load_across(const unsigned char* base, unsigned offset) {
        constexpr int word_bytes = sizeof(std::uint32_t), of_access = sizeof(uint4) / word_bytes;
        constexpr int accesses = bytes / static_cast<int>(sizeof(uint4)); // from the first that has a part of the run
        const unsigned past = offset % sizeof(uint4);
        const unsigned char* const first = base + (offset - past);
        std::uint32_t word[(accesses + 1) * of_access];
#pragma unroll
        for (int i = 0; i < of_access; ++i) { // word i of the first access or, where that is not the run's, of the last
            const auto at = static_cast<unsigned>(i * word_bytes);
            word[i] = *reinterpret_cast<const std::uint32_t*>(first + at + (at < past ? bytes : 0));
            word[accesses * of_access + i] = word[i];
        }
#pragma unroll
        for (int k = 1; k < accesses; ++k) {
            const uint4 whole = reinterpret_cast<const uint4*>(first)[k];
            word[k * of_access] = whole.x;
            word[k * of_access + 1] = whole.y;
            word[k * of_access + 2] = whole.z;
            word[k * of_access + 3] = whole.w;
        }
        shift_down<granule>(word, past);
        std::uint32_t own[bytes / word_bytes];
#pragma unroll
        for (int i = 0; i < bytes / word_bytes; ++i) own[i] = word[i];
        std::memcpy(static_cast<void*>(element_), own, bytes);
    }

    /// Of 16-bit numbers, two in a word.
    template <class Operator>
    __device__ static std::uint32_t extreme_of(std::uint32_t a, std::uint32_t b) {
        constexpr bool greatest = std::is_same_v<Operator, maximum>;
        if constexpr (std::is_signed_v<T>)
            return greatest ? __vmaxs2(a, b) : __vmins2(a, b);
        else
            return greatest ? __vmaxu2(a, b) : __vminu2(a, b);
    }
    template <class Operator>
    __device__ static std::uint32_t extreme_of(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
        constexpr bool greatest = std::is_same_v<Operator, maximum>;
        if constexpr (std::is_signed_v<T>)
            return greatest ? __vimax3_s16x2(a, b, c) : __vimin3_s16x2(a, b, c);
        else
            return greatest ? __vimax3_u16x2(a, b, c) : __vimin3_u16x2(a, b, c);
    }

    template <class, int>
    friend class packed_run;

    using word_type = std::conditional_t<has_words, detail::word_of_size<bytes>, std::uint32_t>;
    std::uint32_t word_[words];            ///< where has_words
    slot<T> element_[has_words ? 1 : Run]; ///< otherwise
};

} // namespace polyscan::cuda
