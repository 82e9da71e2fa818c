// SPDX-License-Identifier: Apache-2.0
// Included by select_kernels.hpp once for each instruction set, with POLYSCAN_HOST_ISA, POLYSCAN_HOST_TARGET and
// POLYSCAN_HOST_BYTES defined as for row_kernels.inl. Every function here carries the target.
//
// A piece of the input is asked for its flags first, words as wide as what the predicate looks at, in a loop that
// compilers turn into vector instructions for most predicates (with narrower words they do not). Then its elements move
// together by the flags, a vector at a time, or one after the other: none of it asks a question that depends on a flag,
// so that it costs the same whatever is selected.
namespace polyscan::host::POLYSCAN_HOST_ISA::selecting {

#define POLYSCAN_HOST_INLINE POLYSCAN_HOST_TARGET [[gnu::always_inline]] inline

inline constexpr int group = 64; // flags, whose bits make a word

/// Asks for the memory of elements [first, first + count), unless `from` is null.
template <class T>
POLYSCAN_HOST_INLINE void fetch(const T* from, int first, int count) {
    if (from == nullptr) return;
    const char* const bytes = reinterpret_cast<const char*>(from + first);
    for (int byte = 0; byte < count * static_cast<int>(sizeof(T)); byte += 64) __builtin_prefetch(bytes + byte, 0, 2);
}

/// flags[j] becomes -1 if element first + j is selected, else 0.
/// Meanwhile the memory of the first 1 / Share of as many elements from `fetched` on is asked for: little by little,
/// because a processor waits when too much is under way.
template <int Share, class T, class Test, class Flag>
POLYSCAN_HOST_INLINE void flag_elements(const T* values, const Test& test, index_type first, int count,
                                        const T* fetched, Flag* flags) {
    constexpr Flag yes{-1}, no{0};
    int begin = 0;
    if (first == 0) flags[begin++] = test.of(index_type{0}, values[0]) ? yes : no;
    for (; begin + group <= count; begin += group) {
        const index_type at = first + begin;
        if (at < 1) POLYSCAN_UNREACHABLE(); // all of these have a neighbour on their left, and compilers know it
        fetch(fetched, begin / Share, group / Share);
        POLYSCAN_LANES
        for (int j = 0; j < group; ++j) flags[begin + j] = test.of(at + j, values[begin + j]) ? yes : no;
    }
    for (; begin < count; ++begin) flags[begin] = test.of(first + begin, values[begin]) ? yes : no;
}

/// The flags of a vector as bits.
template <class Flag>
POLYSCAN_HOST_INLINE std::uint64_t bits_of_vector([[maybe_unused]] const Flag* flags) {
#if defined(__x86_64__) && POLYSCAN_HOST_BYTES == 64
    const __m512i all = _mm512_loadu_si512(flags);
    if constexpr (sizeof(Flag) == 1) return _mm512_movepi8_mask(all);
    if constexpr (sizeof(Flag) == 2) return _mm512_movepi16_mask(all);
    if constexpr (sizeof(Flag) == 4) return _mm512_movepi32_mask(all);
    if constexpr (sizeof(Flag) == 8) return _mm512_movepi64_mask(all);
#elif defined(__x86_64__) && POLYSCAN_HOST_BYTES == 32
    const __m256i all = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(flags));
    if constexpr (sizeof(Flag) == 1) return static_cast<std::uint32_t>(_mm256_movemask_epi8(all));
    if constexpr (sizeof(Flag) == 2) {
        const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
        return static_cast<std::uint32_t>(_mm_movemask_epi8(bytes));
    }
    if constexpr (sizeof(Flag) == 4) return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(all)));
    if constexpr (sizeof(Flag) == 8) return static_cast<std::uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(all)));
#else
    return 0;
#endif
}
/// Those of a group.
template <class Flag>
POLYSCAN_HOST_INLINE std::uint64_t bits_of(const Flag* flags) {
    constexpr int width = POLYSCAN_HOST_BYTES / static_cast<int>(sizeof(Flag));
    if constexpr (width == group) return bits_of_vector(flags);
    std::uint64_t bits = 0;
    POLYSCAN_UNROLL
    for (int i = 0; i < group; i += width) bits |= bits_of_vector(flags + i) << i;
    return bits;
}

/// Elements that move together at once; 0: one after the other.
template <class T>
inline constexpr int moved_at_once =
#if defined(__x86_64__) && POLYSCAN_HOST_BYTES == 64
    sizeof(T) == 8                                       ? 8
    : sizeof(T) == 4 || sizeof(T) == 2 || sizeof(T) == 1 ? 16
                                                         : 0;
#elif defined(__x86_64__) && POLYSCAN_HOST_BYTES == 32
    sizeof(T) == 8                                       ? 4
    : sizeof(T) == 4 || sizeof(T) == 2 || sizeof(T) == 1 ? 8
                                                         : 0;
#else
    0;
#endif

/// The elements of a vector whose bit is set, in front; what lies behind them, up to a vector, means nothing.
template <class T>
POLYSCAN_HOST_INLINE void move_together([[maybe_unused]] const T* from, [[maybe_unused]] unsigned bits,
                                        [[maybe_unused]] T* to) {
    // Into a register and from there to memory whole: compressing stores are slow on several processors.
#if defined(__x86_64__) && POLYSCAN_HOST_BYTES == 64
    const auto mask = static_cast<__mmask16>(bits);
    if constexpr (sizeof(T) == 8) {
        _mm512_storeu_si512(to, _mm512_maskz_compress_epi64(static_cast<__mmask8>(bits), _mm512_loadu_si512(from)));
    } else if constexpr (sizeof(T) == 4) {
        _mm512_storeu_si512(to, _mm512_maskz_compress_epi32(mask, _mm512_loadu_si512(from)));
    } else if constexpr (sizeof(T) == 2) {
        const __m256i narrow = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
        const __m512i wide = _mm512_maskz_cvtepu16_epi32(static_cast<__mmask16>(-1), narrow);
        _mm256_storeu_si256(
            reinterpret_cast<__m256i*>(to),
            _mm512_maskz_cvtepi32_epi16(static_cast<__mmask16>(-1), _mm512_maskz_compress_epi32(mask, wide)));
    } else {
        const __m128i narrow = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
        const __m512i wide = _mm512_maskz_cvtepu8_epi32(static_cast<__mmask16>(-1), narrow);
        _mm_storeu_si128(
            reinterpret_cast<__m128i*>(to),
            _mm512_maskz_cvtepi32_epi8(static_cast<__mmask16>(-1), _mm512_maskz_compress_epi32(mask, wide)));
    }
#elif defined(__x86_64__) && POLYSCAN_HOST_BYTES == 32
    if constexpr (sizeof(T) == 8) {
        // As pairs of words.
        const unsigned spread = (bits | bits << 2) & 0x33, pairs = ((spread | spread << 1) & 0x55) * 3;
        const __m128i places = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(set_bits.table[pairs].data()));
        const __m256i all = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                            _mm256_permutevar8x32_epi32(all, _mm256_cvtepu8_epi32(places)));
    } else {
        const __m128i places = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(set_bits.table[bits].data()));
        if constexpr (sizeof(T) == 4) {
            const __m256i all = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                                _mm256_permutevar8x32_epi32(all, _mm256_cvtepu8_epi32(places)));
        } else if constexpr (sizeof(T) == 2) {
            const __m128i all = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
            const __m128i twice = _mm_slli_epi16(_mm_unpacklo_epi8(places, places), 1); // of at most 7: no carry
            _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                             _mm_shuffle_epi8(all, _mm_add_epi8(twice, _mm_set1_epi16(0x0100))));
        } else {
            const __m128i all = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
            _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_shuffle_epi8(all, places));
        }
    }
#endif
}

/// The second half of host::select_piece.
template <bool Both, class T, class Flag>
POLYSCAN_HOST_INLINE int move_selected(const T* values, const Flag* flags, int count, T* chosen,
                                       [[maybe_unused]] T* others, [[maybe_unused]] const T* fetched) {
    int j = 0, k = 0;
    if constexpr (moved_at_once<T> > 0) {
        constexpr int width = moved_at_once<T>;
        constexpr unsigned lanes = (1u << width) - 1;
        for (; j + group <= count;) {
            fetch(fetched, (count + j) / 2, group / 2);
            std::uint64_t bits = bits_of(flags + j);
            for (const int end = j + group; j < end; j += width, bits >>= width) {
                const unsigned mine = static_cast<unsigned>(bits) & lanes;
                move_together(values + j, mine, chosen + k);
                if constexpr (Both) move_together(values + j, mine ^ lanes, others + (j - k));
                k += std::popcount(mine);
            }
        }
    }
    for (; j < count; ++j) {
        std::memcpy(static_cast<void*>(chosen + k), values + j, sizeof(T));
        if constexpr (Both) std::memcpy(static_cast<void*>(others + (j - k)), values + j, sizeof(T));
        k += flags[j] & 1;
    }
    return k;
}

template <bool Both, class T, class Test>
POLYSCAN_HOST_TARGET [[gnu::noinline]] int select_piece(const T* values, const Test& test, index_type first, int count,
                                                        T* chosen, T* others, const T* fetched) {
    alignas(64) flag_word<Test, T> flags[std::max(group, piece_length<T>)];
    flag_elements<moved_at_once<T> == 0 ? 1 : 2>(values, test, first, count, fetched, flags);
    return move_selected<Both>(values, flags, count, chosen, others, fetched);
}

template <class T, class Test>
POLYSCAN_HOST_TARGET [[gnu::noinline]] int count_piece(const T* values, const Test& test, index_type first, int count,
                                                       const T* fetched) {
    alignas(64) flag_word<Test, T> flags[std::max(group, piece_length<T>)];
    flag_elements<1>(values, test, first, count, fetched, flags);
    int sum = 0;
    for (int j = 0; j < count; ++j) sum += flags[j] & 1;
    return sum;
}

#undef POLYSCAN_HOST_INLINE

} // namespace polyscan::host::POLYSCAN_HOST_ISA::selecting
