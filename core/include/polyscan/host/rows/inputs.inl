// SPDX-License-Identifier: Apache-2.0
// Part of row_kernels.inl, which includes it.
//
// Elements on their way into vectors: conversions that processors have instructions for, any other input lane by lane,
// and parts of vectors.

namespace polyscan::host::POLYSCAN_HOST_ISA {

#if defined(__x86_64__) && POLYSCAN_HOST_BYTES >= 32
// Compilers take several instructions for what is one. All lanes are masked in, because g++ 12 takes the plain form of
// these for a use of something uninitialised.
#if POLYSCAN_HOST_BYTES == 64
#define POLYSCAN_HOST_CONVERT(name, lanes) _mm512_maskz_##name(static_cast<__mmask##lanes>(-1), narrow)
using wide_vector = __m512i;
#else
#define POLYSCAN_HOST_CONVERT(name, lanes) _mm256_##name(narrow)
using wide_vector = __m256i;
#endif
/// In a register of 16 bytes or more.
template <int Bytes>
POLYSCAN_HOST_INLINE auto load_bytes(const void* from) {
    if constexpr (Bytes == 32) {
        return _mm256_loadu_si256(static_cast<const __m256i*>(from));
    } else if constexpr (Bytes == 16) {
        return _mm_loadu_si128(static_cast<const __m128i*>(from));
    } else if constexpr (Bytes == 8) {
        return _mm_loadl_epi64(static_cast<const __m128i*>(from));
    } else {
        std::int32_t word = 0;
        std::memcpy(&word, from, 4);
        return _mm_cvtsi32_si128(word);
    }
}
/// Integers in the lower lanes of a register, to integers of `To` bytes.
template <class From, int To, class Narrow>
POLYSCAN_HOST_INLINE wide_vector widened(const Narrow& narrow) {
    constexpr int size = static_cast<int>(sizeof(From));
    if constexpr (std::is_signed_v<From>) {
        if constexpr (size == 1 && To == 2) return POLYSCAN_HOST_CONVERT(cvtepi8_epi16, 32);
        if constexpr (size == 1 && To == 4) return POLYSCAN_HOST_CONVERT(cvtepi8_epi32, 16);
        if constexpr (size == 1 && To == 8) return POLYSCAN_HOST_CONVERT(cvtepi8_epi64, 8);
        if constexpr (size == 2 && To == 4) return POLYSCAN_HOST_CONVERT(cvtepi16_epi32, 16);
        if constexpr (size == 2 && To == 8) return POLYSCAN_HOST_CONVERT(cvtepi16_epi64, 8);
        if constexpr (size == 4 && To == 8) return POLYSCAN_HOST_CONVERT(cvtepi32_epi64, 8);
    } else {
        if constexpr (size == 1 && To == 2) return POLYSCAN_HOST_CONVERT(cvtepu8_epi16, 32);
        if constexpr (size == 1 && To == 4) return POLYSCAN_HOST_CONVERT(cvtepu8_epi32, 16);
        if constexpr (size == 1 && To == 8) return POLYSCAN_HOST_CONVERT(cvtepu8_epi64, 8);
        if constexpr (size == 2 && To == 4) return POLYSCAN_HOST_CONVERT(cvtepu16_epi32, 16);
        if constexpr (size == 2 && To == 8) return POLYSCAN_HOST_CONVERT(cvtepu16_epi64, 8);
        if constexpr (size == 4 && To == 8) return POLYSCAN_HOST_CONVERT(cvtepu32_epi64, 8);
    }
}
/// Integers in memory likewise.
template <class From, int To>
POLYSCAN_HOST_INLINE wide_vector load_widened(const From* from) {
    return widened<From, To>(load_bytes<POLYSCAN_HOST_BYTES* static_cast<int>(sizeof(From)) / To>(from));
}
template <class From, class T>
inline constexpr bool widens = std::integral<From> && !std::same_as<From, bool> && sizeof(From) < sizeof(T) &&
                               (std::integral<T> || std::same_as<T, float>);
template <class From, class T>
inline constexpr bool converts =
    widens<From, T> || (std::same_as<T, double> && (std::same_as<From, float> || std::same_as<From, std::int32_t>));

template <class T, class From>
POLYSCAN_HOST_INLINE lanes<T> load_as(const From* from) {
    using native = typename lanes<T>::native;
    if constexpr (std::integral<T>) {
        return {{reinterpret_cast<native>(load_widened<From, sizeof(T)>(from))}};
    } else if constexpr (std::same_as<T, float>) {
        const auto integers = reinterpret_cast<typename lanes<std::int32_t>::native>(load_widened<From, 4>(from));
        return {{__builtin_convertvector(integers, native)}};
    } else if constexpr (std::same_as<From, std::int32_t>) {
        const auto narrow = load_bytes<POLYSCAN_HOST_BYTES / 2>(from);
        return {{reinterpret_cast<native>(POLYSCAN_HOST_CONVERT(cvtepi32_pd, 8))}};
    } else {
#if POLYSCAN_HOST_BYTES == 64
        const __m256 narrow = _mm256_loadu_ps(from);
#else
        const __m128 narrow = _mm_loadu_ps(from);
#endif
        return {{reinterpret_cast<native>(POLYSCAN_HOST_CONVERT(cvtps_pd, 8))}};
    }
}

/// Half `Half` of a vector of integers that a float holds exactly, as floats.
template <int Half, class Sum>
POLYSCAN_HOST_INLINE lanes<float> to_floats(const lanes<Sum>& sums) {
    using words = typename lanes<std::int32_t>::native;
    words integers;
    if constexpr (sizeof(Sum) == 4) {
        integers = sums.part[0];
    } else {
#if POLYSCAN_HOST_BYTES == 64
        using half = __m256i;
#else
        using half = __m128i;
#endif
        integers = reinterpret_cast<words>(
            widened<Sum, 4>(reinterpret_cast<half>(half_of<Half>(sums.part[0], sequence<lanes<Sum>::count / 2>{}))));
    }
    return {{__builtin_convertvector(integers, typename lanes<float>::native)}};
}
#undef POLYSCAN_HOST_CONVERT
#else
template <class From, class T>
inline constexpr bool converts = false;
#endif

/// Elements [at, at + count) as the operator sees them.
template <class Source, class T = typename Source::value_type>
POLYSCAN_HOST_INLINE lanes<T> load_lanes(const Source& in, index_type at) {
    if constexpr (Source::is_plain) {
        return load(in.data() + at);
    } else if constexpr (Source::is_untouched && converts<typename Source::element, T>) {
        return load_as<T>(in.input + at);
    } else {
        alignas(std::max<std::size_t>(POLYSCAN_HOST_BYTES, alignof(T))) T values[lanes<T>::count];
        POLYSCAN_LANES
        for (int i = 0; i < lanes<T>::count; ++i) values[i] = in.load(at + i);
        return load(values);
    }
}

/// Whether a part of a vector can be loaded and stored at once.
#if defined(__x86_64__) && POLYSCAN_HOST_BYTES >= 32
template <class T>
inline constexpr bool has_masks = lanes<T>::parts == 1 && (POLYSCAN_HOST_BYTES == 64 || sizeof(T) >= 4);
#else
template <class T>
inline constexpr bool has_masks = false;
#endif

#if defined(__x86_64__) && POLYSCAN_HOST_BYTES == 32
/// All ones in the first `n` lanes.
template <class T>
POLYSCAN_HOST_INLINE __m256i first_lanes(int n) {
    typename lanes<rank_of<T>>::native index;
    for (int i = 0; i < lanes<T>::count; ++i) index[i] = i;
    return reinterpret_cast<__m256i>(index < static_cast<rank_of<T>>(n));
}
#endif

#if defined(__x86_64__) && POLYSCAN_HOST_BYTES == 64
template <class T>
POLYSCAN_HOST_INLINE std::uint64_t first_lanes(int n) {
    return n >= lanes<T>::count ? ~std::uint64_t{0} : n <= 0 ? 0 : (std::uint64_t{1} << n) - 1;
}
#endif

/// The first `n` elements, as many as there are; the other lanes are zero.
template <class T>
    requires has_masks<T>
POLYSCAN_HOST_INLINE lanes<T> load_first([[maybe_unused]] const T* from, [[maybe_unused]] int n) {
    using native [[maybe_unused]] = typename lanes<T>::native;
#if defined(__x86_64__) && POLYSCAN_HOST_BYTES == 64
    const std::uint64_t mask = first_lanes<T>(n);
    if constexpr (sizeof(T) == 1) return {{reinterpret_cast<native>(_mm512_maskz_loadu_epi8(mask, from))}};
    if constexpr (sizeof(T) == 2)
        return {{reinterpret_cast<native>(_mm512_maskz_loadu_epi16(static_cast<__mmask32>(mask), from))}};
    if constexpr (sizeof(T) == 4)
        return {{reinterpret_cast<native>(_mm512_maskz_loadu_epi32(static_cast<__mmask16>(mask), from))}};
    if constexpr (sizeof(T) == 8)
        return {{reinterpret_cast<native>(_mm512_maskz_loadu_epi64(static_cast<__mmask8>(mask), from))}};
#elif defined(__x86_64__) && POLYSCAN_HOST_BYTES == 32
    if constexpr (sizeof(T) == 4)
        return {
            {reinterpret_cast<native>(_mm256_maskload_epi32(reinterpret_cast<const int*>(from), first_lanes<T>(n)))}};
    if constexpr (sizeof(T) == 8)
        return {{reinterpret_cast<native>(
            _mm256_maskload_epi64(reinterpret_cast<const long long*>(from), first_lanes<T>(n)))}};
#endif
}
/// The first n elements, 0 < n < 2 * Half: both ends, which may overlap.
template <int Half, class T>
POLYSCAN_HOST_INLINE void copy_ends(T* to, const T* from, int n) {
    if (n >= Half) {
        std::memcpy(to, from, Half * sizeof(T));
        std::memcpy(to + (n - Half), from + (n - Half), Half * sizeof(T));
    } else if constexpr (Half > 1) {
        copy_ends<Half / 2>(to, from, n);
    }
}
/// In pieces: a store by a mask would keep whoever reads the elements next waiting.
template <class T>
    requires has_masks<T>
POLYSCAN_HOST_INLINE void store_first(T* to, const lanes<T>& value, int n) {
    T values[lanes<T>::count]; // not aligned, which would cost the function more than it saves here
    store(values, value);
    copy_ends<lanes<T>::count / 2>(to, values, n);
}

} // namespace polyscan::host::POLYSCAN_HOST_ISA
