// SPDX-License-Identifier: Apache-2.0
// Included by tile_kernels.hpp once for each instruction set, with POLYSCAN_HOST_ISA (a namespace),
// POLYSCAN_HOST_TARGET (what makes the compiler use that set), POLYSCAN_HOST_BYTES (the width of its vectors) and
// POLYSCAN_HOST_FMA and POLYSCAN_HOST_AVX512 (1 if it has fused multiply-add, or AVX-512) defined. Every function here
// carries the target, because a vector wider than the function's own instruction set is taken apart before inlining;
// for the same reason there are no lambdas.
//
// The default tree on rows of vectors, for numbers and for structs of words:
//  - lanes are combined by vector instructions where the operator is known, else by a plain loop over `combine`, which
//    compilers turn into vector instructions;
//  - strides below a vector: both operands are brought into place by a permutation. An operator sees nothing but nodes
//  of
//    the tree: those of two vectors are brought into one, or a lane that has nothing to do repeats the work of a
//    neighbour. Built-in operators take whatever stands there, and their result is dropped;
//  - strides of a vector and more: the last lane of the lower half, broadcast, before every vector of the upper half.
namespace polyscan::host::POLYSCAN_HOST_ISA {

#define POLYSCAN_HOST_INLINE POLYSCAN_HOST_TARGET [[gnu::always_inline]] inline

// ---- Vectors

/// `count` elements; word p of each is in part[p].
template <class T>
struct lanes {
    using word = word_of<T>;
    static constexpr int parts = words_in<T>;
    static constexpr int count = POLYSCAN_HOST_BYTES / static_cast<int>(sizeof(word));
    typedef word native __attribute__((vector_size(POLYSCAN_HOST_BYTES)));
    typedef word anywhere __attribute__((vector_size(POLYSCAN_HOST_BYTES), aligned(alignof(word)), may_alias));
    native part[parts];
};

template <int N>
using sequence = std::make_integer_sequence<int, N>;

/// Lane i of the result is lane Pattern::at(i) of `a`, or of `b` counting on from there.
template <class Pattern, class Native, int... I>
POLYSCAN_HOST_INLINE Native shuffle_part(const Native& a, const Native& b, std::integer_sequence<int, I...>) {
    return __builtin_shufflevector(a, b, Pattern::at(I)...);
}
template <class Pattern, class T>
POLYSCAN_HOST_INLINE lanes<T> shuffle(const lanes<T>& a, const lanes<T>& b) {
    lanes<T> result;
    for (int p = 0; p < lanes<T>::parts; ++p)
        result.part[p] = shuffle_part<Pattern>(a.part[p], b.part[p], sequence<lanes<T>::count>{});
    return result;
}

/// Word `Part` of each element of two vectors in memory, and back: for structs of two words.
template <int Part>
struct gather_words {
    static constexpr int at(int i) { return 2 * i + Part; }
};
template <int Half, int Count>
struct scatter_words {
    static constexpr int at(int i) { return i % 2 * Count + Half * (Count / 2) + i / 2; }
};

/// The lower or the upper half.
template <int Half, class Native, int... I>
POLYSCAN_HOST_INLINE auto half_of(const Native& a, std::integer_sequence<int, I...>) {
    return __builtin_shufflevector(a, a, (Half * static_cast<int>(sizeof...(I)) + I)...);
}

template <class T>
POLYSCAN_HOST_INLINE typename lanes<T>::native load_native(const T* from, int vector) {
    return *reinterpret_cast<const typename lanes<T>::anywhere*>(reinterpret_cast<const word_of<T>*>(from) +
                                                                 vector * lanes<T>::count);
}
template <class T>
POLYSCAN_HOST_INLINE lanes<T> load(const T* from) {
    constexpr int parts = lanes<T>::parts, count = lanes<T>::count;
    if constexpr (parts == 1) {
        return {{load_native(from, 0)}};
    } else if constexpr (parts == 2) {
        const auto a = load_native(from, 0), b = load_native(from, 1);
        return {{shuffle_part<gather_words<0>>(a, b, sequence<count>{}),
                 shuffle_part<gather_words<1>>(a, b, sequence<count>{})}};
    } else {
        using word = word_of<T>;
        alignas(POLYSCAN_HOST_BYTES) word words[parts][count];
        // As loops over addresses, g++ 12 -O1 lets `words` share its place in memory with what is still in use.
        POLYSCAN_UNROLL
        for (int i = 0; i < count; ++i) {
            POLYSCAN_UNROLL
            for (int p = 0; p < parts; ++p)
                std::memcpy(&words[p][i],
                            reinterpret_cast<const std::byte*>(from + i) + static_cast<std::size_t>(p) * sizeof(word),
                            sizeof(word));
        }
        lanes<T> result;
        for (int p = 0; p < parts; ++p)
            result.part[p] = *reinterpret_cast<const typename lanes<T>::anywhere*>(words[p]);
        return result;
    }
}

/// Past the caches, where the processor can: `to` is aligned to the vector.
template <class Native>
POLYSCAN_HOST_INLINE void stream_native(void* to, const Native& value) {
#if !defined(__x86_64__)
    std::memcpy(to, &value, sizeof(Native));
#elif POLYSCAN_HOST_BYTES == 64
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), reinterpret_cast<__m512i>(value));
#elif POLYSCAN_HOST_BYTES == 32
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to), reinterpret_cast<__m256i>(value));
#else
    _mm_stream_si128(reinterpret_cast<__m128i*>(to), reinterpret_cast<__m128i>(value));
#endif
}

/// Vector number `Half` of the two that a struct of two words is stored as.
template <int Half, class T>
POLYSCAN_HOST_INLINE typename lanes<T>::native interleaved(const lanes<T>& value) {
    return shuffle_part<scatter_words<Half, lanes<T>::count>>(value.part[0], value.part[1],
                                                              sequence<lanes<T>::count>{});
}

template <class T>
POLYSCAN_HOST_INLINE void store(T* to, const lanes<T>& value) {
    using anywhere = typename lanes<T>::anywhere;
    using word = word_of<T>;
    constexpr int parts = lanes<T>::parts, count = lanes<T>::count;
    auto* const words = reinterpret_cast<word*>(to);
    if constexpr (parts == 1) {
        *reinterpret_cast<anywhere*>(words) = value.part[0];
    } else if constexpr (parts == 2) {
        *reinterpret_cast<anywhere*>(words) = interleaved<0>(value);
        *reinterpret_cast<anywhere*>(words + count) = interleaved<1>(value);
    } else {
        for (int i = 0; i < count; ++i)
            for (int p = 0; p < parts; ++p) {
                const word w = value.part[p][i];
                std::memcpy(reinterpret_cast<std::byte*>(to + i) + static_cast<std::size_t>(p) * sizeof(word), &w,
                            sizeof(word));
            }
    }
}
template <class T>
POLYSCAN_HOST_INLINE void stream(T* to, const lanes<T>& value) {
    auto* const words = reinterpret_cast<word_of<T>*>(to);
    if constexpr (lanes<T>::parts == 1) {
        stream_native(words, value.part[0]);
    } else if constexpr (lanes<T>::parts == 2) {
        stream_native(words, interleaved<0>(value));
        stream_native(words + lanes<T>::count, interleaved<1>(value));
    } else {
        store(to, value);
    }
}

template <class T>
POLYSCAN_HOST_INLINE lanes<T> broadcast(const T& value) {
    alignas(std::max<std::size_t>(POLYSCAN_HOST_BYTES, alignof(T))) T values[lanes<T>::count];
    for (int i = 0; i < lanes<T>::count; ++i) values[i] = value;
    return load(values);
}

/// Keeps the compiler from looking through a vector at its lanes (it would compute them one by one) or at its value.
template <class Native>
POLYSCAN_HOST_INLINE void hide(Native& value) {
#if defined(__x86_64__)
    asm("" : "+x"(value));
#elif defined(__aarch64__)
    asm("" : "+w"(value));
#endif
}

// ---- Input

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

// ---- Operators

/// Floating-point minimum and maximum compare integers: what stands in the vectors is each number's place in the order
/// that the operator takes them in, with every NaN at its winning end. One instruction instead of half a dozen.
template <class Operator, class T>
inline constexpr bool by_rank =
    std::is_floating_point_v<T> && (std::is_same_v<Operator, minimum> || std::is_same_v<Operator, maximum>);

template <class T>
POLYSCAN_HOST_INLINE auto ranks(const lanes<T>& value) {
    return reinterpret_cast<typename lanes<rank_of<T>>::native>(value.part[0]);
}

/// Negative numbers in reverse, and back.
template <class T>
POLYSCAN_HOST_INLINE auto flip_negatives(const lanes<T>& value) {
    const auto bits = ranks(value);
    return bits ^ ((bits >> (8 * static_cast<int>(sizeof(T)) - 1)) & std::numeric_limits<rank_of<T>>::max());
}

/// From elements to what stands in the vectors. All NaNs become one.
template <class Operator, class T>
POLYSCAN_HOST_INLINE lanes<T> encoded(const lanes<T>& value) {
    if constexpr (by_rank<Operator, T>) {
        using limits = std::numeric_limits<rank_of<T>>;
        const auto nan =
            typename lanes<rank_of<T>>::native{} + (std::is_same_v<Operator, maximum> ? limits::max() : limits::min());
        const auto result = value.part[0] != value.part[0] ? nan : flip_negatives(value);
        return {{reinterpret_cast<typename lanes<T>::native>(result)}};
    } else {
        return value;
    }
}
/// And back.
template <class Operator, class T>
POLYSCAN_HOST_INLINE lanes<T> decoded(const lanes<T>& value) {
    if constexpr (by_rank<Operator, T>)
        return {{reinterpret_cast<typename lanes<T>::native>(flip_negatives(value))}};
    else
        return value;
}

/// Without NaN, AVX-512 has one instruction for each, which tells -0 from +0: rows are asked for NaN first.
template <class Operator, class Source, class T = typename Source::value_type>
inline constexpr bool asks_for_nan = POLYSCAN_HOST_AVX512 != 0 && by_rank<Operator, T> && Source::is_plain;

/// An operator on vectors.
template <class Operator, class T>
struct vector_operator {
    /// Sums use the adders and, for every other addition, the multipliers: x * 1 + y has the bits of x + y. This is the
    /// 1, which the compiler must not know.
    static constexpr bool has_one =
        POLYSCAN_HOST_FMA != 0 && std::is_same_v<Operator, plus> && std::is_floating_point_v<T>;

    const Operator& op;
    typename lanes<T>::native one;

    POLYSCAN_HOST_INLINE explicit vector_operator(const Operator& scalar) : op(scalar) {
        if constexpr (has_one) {
            one = broadcast(T{1}).part[0];
            hide(one);
        }
    }
};

// Word by word: copies of whole structs may keep the compiler from seeing vectors.
template <class T, int... P>
POLYSCAN_HOST_INLINE T element(const word_of<T> (*words)[lanes<T>::count], int i, std::integer_sequence<int, P...>) {
    T value;
    (std::memcpy(reinterpret_cast<std::byte*>(&value) + P * sizeof(word_of<T>), &words[P][i], sizeof(word_of<T>)), ...);
    return value;
}
template <class T, int... P>
POLYSCAN_HOST_INLINE void put_element(word_of<T> (*words)[lanes<T>::count], int i, const T& value,
                                      std::integer_sequence<int, P...>) {
    (std::memcpy(&words[P][i], reinterpret_cast<const std::byte*>(&value) + P * sizeof(word_of<T>), sizeof(word_of<T>)),
     ...);
}

/// Lane by lane, for any operator.
template <class T, class Operator>
POLYSCAN_HOST_INLINE lanes<T> combine_each(const Operator& op, lanes<T> earlier, lanes<T> later) {
    using word = word_of<T>;
    constexpr int parts = lanes<T>::parts, count = lanes<T>::count;
    alignas(POLYSCAN_HOST_BYTES) word e[parts][count], l[parts][count], r[parts][count];
    for (int p = 0; p < parts; ++p) {
        hide(earlier.part[p]);
        hide(later.part[p]);
        *reinterpret_cast<typename lanes<T>::anywhere*>(e[p]) = earlier.part[p];
        *reinterpret_cast<typename lanes<T>::anywhere*>(l[p]) = later.part[p];
    }
    POLYSCAN_LANES
    for (int i = 0; i < count; ++i)
        put_element<T>(r, i, combine(op, element<T>(e, i, sequence<parts>{}), element<T>(l, i, sequence<parts>{})),
                       sequence<parts>{});
    lanes<T> result;
    for (int p = 0; p < parts; ++p) result.part[p] = *reinterpret_cast<const typename lanes<T>::anywhere*>(r[p]);
    return result;
}

#if POLYSCAN_HOST_AVX512
template <class Operator, class T>
POLYSCAN_HOST_INLINE lanes<T> combine_ordered(const lanes<T>& earlier, const lanes<T>& later) {
    using native = typename lanes<T>::native;
    constexpr int how = std::is_base_of_v<maximum, Operator> ? 5 : 4; // the sign is the result's own
    const native a = earlier.part[0], b = later.part[0];
#if POLYSCAN_HOST_BYTES == 64
    if constexpr (std::is_same_v<T, float>)
        return {
            {reinterpret_cast<native>(_mm512_range_ps(reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b), how))}};
    else
        return {{reinterpret_cast<native>(
            _mm512_range_pd(reinterpret_cast<__m512d>(a), reinterpret_cast<__m512d>(b), how))}};
#else
    if constexpr (std::is_same_v<T, float>)
        return {
            {reinterpret_cast<native>(_mm256_range_ps(reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b), how))}};
    else
        return {{reinterpret_cast<native>(
            _mm256_range_pd(reinterpret_cast<__m256d>(a), reinterpret_cast<__m256d>(b), how))}};
#endif
}
/// A bit for each lane in which one of the two is NaN.
template <class T>
POLYSCAN_HOST_INLINE unsigned nan_lanes(const lanes<T>& v, const lanes<T>& w) {
    const auto a = v.part[0], b = w.part[0];
#if POLYSCAN_HOST_BYTES == 64
    if constexpr (std::is_same_v<T, float>)
        return _mm512_cmp_ps_mask(reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b), _CMP_UNORD_Q);
    else
        return _mm512_cmp_pd_mask(reinterpret_cast<__m512d>(a), reinterpret_cast<__m512d>(b), _CMP_UNORD_Q);
#else
    if constexpr (std::is_same_v<T, float>)
        return _mm256_cmp_ps_mask(reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b), _CMP_UNORD_Q);
    else
        return _mm256_cmp_pd_mask(reinterpret_cast<__m256d>(a), reinterpret_cast<__m256d>(b), _CMP_UNORD_Q);
#endif
}
/// Whether there is a NaN in the row at `at`.
template <class Source, int... I>
POLYSCAN_HOST_INLINE bool has_nan(const Source& in, index_type at, std::integer_sequence<int, I...>) {
    constexpr int count = lanes<typename Source::value_type>::count;
    return (nan_lanes(load_lanes(in, at + 2 * I * count), load_lanes(in, at + (2 * I + 1) * count)) | ...) != 0;
}
#endif

#if POLYSCAN_HOST_FMA
/// a * one + b
template <class T, class Native>
POLYSCAN_HOST_INLINE Native fused_sum(const Native& a, const Native& one, const Native& b) {
#if POLYSCAN_HOST_BYTES == 64
    if constexpr (std::is_same_v<T, float>)
        return reinterpret_cast<Native>(
            _mm512_fmadd_ps(reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(one), reinterpret_cast<__m512>(b)));
    else
        return reinterpret_cast<Native>(_mm512_fmadd_pd(reinterpret_cast<__m512d>(a), reinterpret_cast<__m512d>(one),
                                                        reinterpret_cast<__m512d>(b)));
#else
    if constexpr (std::is_same_v<T, float>)
        return reinterpret_cast<Native>(
            _mm256_fmadd_ps(reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(one), reinterpret_cast<__m256>(b)));
    else
        return reinterpret_cast<Native>(_mm256_fmadd_pd(reinterpret_cast<__m256d>(a), reinterpret_cast<__m256d>(one),
                                                        reinterpret_cast<__m256d>(b)));
#endif
}
#else
template <class T, class Native>
POLYSCAN_HOST_INLINE Native fused_sum(const Native& a, const Native&, const Native& b) {
    return a + b;
}
#endif

/// Fused: on the multipliers, if there is a choice.
template <bool Fused = false, class T, class Operator>
POLYSCAN_HOST_INLINE lanes<T> combine_lanes(const vector_operator<Operator, T>& how, const lanes<T>& earlier,
                                            const lanes<T>& later) {
    if constexpr (!std::is_arithmetic_v<T> || !takes_anything<Operator>) {
        return combine_each(how.op, earlier, later);
    } else if constexpr (is_ordered<Operator>) {
        return combine_ordered<Operator>(earlier, later);
    } else if constexpr (by_rank<Operator, T>) {
        const auto a = ranks(earlier), b = ranks(later);
        const auto chosen = std::is_same_v<Operator, maximum> ? (a < b ? b : a) : (b < a ? b : a);
        return {{reinterpret_cast<typename lanes<T>::native>(chosen)}};
    } else {
        const auto a = earlier.part[0], b = later.part[0];
        if constexpr (std::is_same_v<Operator, minimum>) return {{b < a ? b : a}};
        if constexpr (std::is_same_v<Operator, maximum>) return {{a < b ? b : a}};
        if constexpr (std::is_same_v<Operator, bit_and>) return {{a & b}};
        if constexpr (std::is_same_v<Operator, bit_or>) return {{a | b}};
        if constexpr (std::is_same_v<Operator, bit_xor>) return {{a ^ b}};
        if constexpr (std::is_integral_v<T>) {
            // Unsigned: they wrap around.
            using bits = typename lanes<std::make_unsigned_t<T>>::native;
            const auto x = reinterpret_cast<bits>(a), y = reinterpret_cast<bits>(b);
            if constexpr (std::is_same_v<Operator, plus>) return {{reinterpret_cast<decltype(a)>(x + y)}};
            if constexpr (std::is_same_v<Operator, multiplies>) return {{reinterpret_cast<decltype(a)>(x * y)}};
        } else if constexpr (std::is_same_v<Operator, multiplies>) {
            return {{a * b}};
        } else if constexpr (std::is_same_v<Operator, plus>) {
            if constexpr (Fused && vector_operator<Operator, T>::has_one) return {{fused_sum<T>(a, how.one, b)}};
            return {{a + b}};
        }
    }
}

/// One pair of what stands in the vectors.
template <class T, class Operator>
POLYSCAN_HOST_INLINE T combine_encoded(const vector_operator<Operator, T>& how, const T& earlier, const T& later) {
    if constexpr (by_rank<Operator, T>) {
        const auto a = std::bit_cast<rank_of<T>>(earlier), b = std::bit_cast<rank_of<T>>(later);
        return std::bit_cast<T>(std::is_same_v<Operator, maximum> ? std::max(a, b) : std::min(a, b));
    } else {
        return combine(how.op, earlier, later);
    }
}

// ---- Patterns

/// The round with this stride: the last lane of the lower half, for every lane of a group of 2 * Stride.
template <int Stride>
struct lower_half {
    static constexpr int at(int i) { return (i & ~(2 * Stride - 1)) + Stride - 1; }
};
/// The lane of the upper half, for itself and for its partner in the lower half.
template <int Stride>
struct upper_half {
    static constexpr int at(int i) { return i | Stride; }
};
template <int Count>
struct last_lane {
    static constexpr int at(int) { return Count - 1; }
};

/// Even and odd lanes of two vectors in a row, within 16 bytes, or in units of 16 bytes: one instruction each. Applied
/// at ascending strides they leave the results of log2(Count) such levels in order.
template <int Level, int Odd, int Count, int Unit>
struct every_other {
    static constexpr int at(int i) {
        if constexpr ((1 << Level) < Unit) {
            constexpr int half = Unit / 2;
            const int block = i / Unit * Unit, place = i % Unit;
            return (place < half ? 0 : Count) + block + 2 * (place % half) + Odd;
        } else {
            constexpr int units = Count / Unit;
            const int unit = i / Unit;
            return (unit < units / 2 ? 0 : Count) + (2 * (unit % (units / 2)) + Odd) * Unit + i % Unit;
        }
    }
};

// ---- Inside a vector

template <class Pattern, class Mask, int... I>
POLYSCAN_HOST_INLINE Mask mask_of(std::integer_sequence<int, I...>) {
    return Mask{(Pattern::chosen(I) ? -1 : 0)...};
}
/// `made` in the lanes that the pattern chooses, `kept` in the others. A choice by a mask is one blend; the same thing
/// as a shuffle costs more on many processors.
template <class Pattern, class T>
POLYSCAN_HOST_INLINE lanes<T> choose(const lanes<T>& made, const lanes<T>& kept) {
    using mask = decltype(typename lanes<T>::native{} < typename lanes<T>::native{});
    lanes<T> result;
    for (int p = 0; p < lanes<T>::parts; ++p)
        result.part[p] = mask_of<Pattern, mask>(sequence<lanes<T>::count>{}) ? made.part[p] : kept.part[p];
    return result;
}

template <int Stride>
struct upper_halves {
    static constexpr bool chosen(int i) { return (i & Stride) != 0; }
};

/// The round with this stride.
template <int Stride, class T, class Operator>
POLYSCAN_HOST_INLINE lanes<T> rounded(const vector_operator<Operator, T>& how, const lanes<T>& v) {
    const lanes<T> lower = shuffle<lower_half<Stride>>(v, v);
    if constexpr (takes_anything<Operator>)
        return choose<upper_halves<Stride>>(combine_lanes(how, lower, v), v);
    else
        return choose<upper_halves<Stride>>(combine_lanes(how, lower, shuffle<upper_half<Stride>>(v, v)), v);
}

// Rounds of two vectors, where operators may see nothing but nodes: half of each vector's lanes have one. So the lanes
// are dealt out to two others, of which the one holds those that wait, the other those that have a node. The next deal
// does the same for the next stride; one more after the last brings them back.

/// Inside of 16 bytes, and of such units: see `every_other`.
template <class T, bool Units>
struct dealt {
    static constexpr int count = lanes<T>::count, unit = 16 / static_cast<int>(sizeof(word_of<T>)),
                         level = Units ? std::countr_zero(static_cast<unsigned>(unit)) : 0;
    static constexpr int rounds = std::countr_zero(static_cast<unsigned>(Units ? count / unit : unit));
    using evens = every_other<level, 0, count, unit>;
    using odds = every_other<level, 1, count, unit>;
    /// For each lane what stands before its node: the same lane of those that wait, or the end of the unit.
    struct ends {
        static constexpr int at(int i) { return Units ? i | (unit - 1) : i; }
    };
    struct even_ends {
        static constexpr int at(int i) { return ends::at(evens::at(i) % count); }
    };
};
template <class Dealt, class T>
POLYSCAN_HOST_INLINE void deal(lanes<T>& a, lanes<T>& b) {
    const lanes<T> evens = shuffle<typename Dealt::evens>(a, b);
    b = shuffle<typename Dealt::odds>(a, b);
    a = evens;
}
template <class Dealt, class T, class Operator>
POLYSCAN_HOST_INLINE void first_round(const vector_operator<Operator, T>& how, lanes<T>& a, lanes<T>& b) {
    deal<Dealt>(a, b);
    b = combine_lanes(how, shuffle<typename Dealt::ends>(a, a), b);
}
template <class Dealt, class T, class Operator>
POLYSCAN_HOST_INLINE void second_round(const vector_operator<Operator, T>& how, lanes<T>& a, lanes<T>& b) {
    const lanes<T> earlier = shuffle<typename Dealt::even_ends>(b, b);
    deal<Dealt>(a, b);
    b = combine_lanes(how, earlier, b);
}
template <class Dealt, class T, class Operator, int... I>
POLYSCAN_HOST_INLINE void scan_dealt(const vector_operator<Operator, T>& how, lanes<T>* v,
                                     std::integer_sequence<int, I...>) {
    static_assert(Dealt::rounds == 1 || Dealt::rounds == 2);
    (first_round<Dealt>(how, v[2 * I], v[2 * I + 1]), ...);
    if constexpr (Dealt::rounds == 2) (second_round<Dealt>(how, v[2 * I], v[2 * I + 1]), ...);
    (deal<Dealt>(v[2 * I], v[2 * I + 1]), ...);
}
/// Worth it where there are instructions that deal.
template <class Operator, class T>
inline constexpr bool deals = POLYSCAN_HOST_BYTES >= 32 && !takes_anything<Operator> && sizeof(word_of<T>) >= 4;

/// All rounds, for N vectors side by side: one of them alone would wait for its own results.
template <int Stride, class T, class Operator, int... I>
POLYSCAN_HOST_INLINE void scan_lanes(const vector_operator<Operator, T>& how, lanes<T>* v,
                                     std::integer_sequence<int, I...> all) {
    if constexpr (Stride < lanes<T>::count) {
        constexpr int n = sizeof...(I);
        if constexpr (deals<Operator, T> && n % 2 == 0) {
            scan_dealt<dealt<T, false>>(how, v, sequence<n / 2>{});
            scan_dealt<dealt<T, true>>(how, v, sequence<n / 2>{});
        } else {
            ((v[I] = rounded<Stride>(how, v[I])), ...);
            scan_lanes<2 * Stride>(how, v, all);
        }
    }
}

// ---- Rows

template <class T>
struct row_shape {
    static constexpr int length = static_cast<int>(shape_for<block::warp_shuffle, T>.run);
    static constexpr int rows = static_cast<int>(shape_for<block::warp_shuffle, T>.threads);
    static constexpr int vectors = length / lanes<T>::count;
    static constexpr int levels = std::countr_zero(static_cast<unsigned>(vectors));
    static constexpr int lane_levels = std::countr_zero(static_cast<unsigned>(lanes<T>::count));
    static_assert(vectors >= 1 && rows % lanes<T>::count == 0);
};

/// How many vectors of a row are worked on side by side: what fits the registers.
template <class T>
inline constexpr int block_vectors = std::min(lanes<T>::parts == 1 ? 4 : 2, row_shape<T>::vectors);

template <class T, class Operator, int... I>
POLYSCAN_HOST_INLINE void put_before(const vector_operator<Operator, T>& how, const lanes<T>& earlier, lanes<T>* v,
                                     std::integer_sequence<int, I...>) {
    ((v[I] = combine_lanes<true>(how, earlier, v[I])), ...);
}
template <class T>
POLYSCAN_HOST_INLINE lanes<T> last_of(const lanes<T>& v) {
    return shuffle<last_lane<lanes<T>::count>>(v, v);
}

/// The upper halves of groups of 2 * Stride vectors, from the one that begins at Middle on.
template <int Stride, int Middle, int N, class T, class Operator>
POLYSCAN_HOST_INLINE void join_halves(const vector_operator<Operator, T>& how, lanes<T>* v) {
    if constexpr (Middle < N) {
        put_before(how, last_of(v[Middle - 1]), v + Middle, sequence<std::min(Stride, N - Middle)>{});
        join_halves<Stride, Middle + 2 * Stride, N>(how, v);
    }
}
/// Levels of a stride of a vector and more, inside a block of N vectors.
template <int Stride, int N, class T, class Operator>
POLYSCAN_HOST_INLINE void join_block(const vector_operator<Operator, T>& how, lanes<T>* v) {
    if constexpr (Stride < N) {
        join_halves<Stride, Stride, N>(how, v);
        join_block<2 * Stride, N>(how, v);
    }
}

/// The state of a scan, in every lane. Where an operator has a neutral element it stands for what is absent.
template <class T, class Operator>
struct vector_state {
    static constexpr bool branchless = has_neutral<Operator, T>;
    /// Where operands may be reordered, the offset is both.
    static constexpr bool carries = !may_reorder<Operator, T>;

    lanes<T> offset, carry;
    bool has_offset, has_carry;

    POLYSCAN_HOST_INLINE explicit vector_state(const scan_state<T>& from)
        : offset(start(from.offset, from.has_offset)), carry(start(from.carry, from.has_carry)),
          has_offset(branchless || from.has_offset), has_carry(carries && (branchless || from.has_carry)) {}

    POLYSCAN_HOST_INLINE static lanes<T> start(const T& value, [[maybe_unused]] bool present) {
        if constexpr (branchless)
            return encoded<Operator>(broadcast(present ? value : neutral<Operator, T>));
        else
            return broadcast(value);
    }
    template <int N>
    POLYSCAN_HOST_INLINE void put_before_all(const vector_operator<Operator, T>& how, lanes<T>* v) const {
        if (branchless || has_offset) put_before(how, offset, v, sequence<N>{});
        if (carries && (branchless || has_carry)) put_before(how, carry, v, sequence<N>{});
    }
    POLYSCAN_HOST_INLINE void append(const vector_operator<Operator, T>& how, const lanes<T>& total) {
        offset = branchless || has_offset ? combine_lanes(how, offset, total) : total;
        has_offset = true;
    }
};

/// Block j of a row, N vectors: from elements to outputs. totals[l] is the total of the 2^l blocks before the group of
/// 2^l blocks that j lies in, where j lies in an upper half. Where operands may be reordered there are no totals: the
/// offset runs along.
template <int N, class T, class Operator>
POLYSCAN_HOST_INLINE void scan_block(const vector_operator<Operator, T>& how, lanes<T>* v, int j, lanes<T>* totals,
                                     vector_state<T, Operator>& state) {
    scan_lanes<1>(how, v, sequence<N>{});
    join_block<1, N>(how, v);
    if constexpr (may_reorder<Operator, T>) {
        put_before(how, state.offset, v, sequence<N>{});
        state.offset = last_of(v[N - 1]);
        return;
    }
    int level = 0;
    for (; (j >> level & 1) != 0; ++level) put_before(how, totals[level], v, sequence<N>{});
    totals[level] = last_of(v[N - 1]); // the end of a group of 2^level blocks
    for (; 1 << level <= j; ++level)
        if ((j >> level & 1) != 0) put_before(how, totals[level], v, sequence<N>{});
    state.template put_before_all<N>(how, v);
}

/// Pairs of neighbours, folded: half as many values, in the order that `every_other` leaves.
template <int Level, class T, class Operator>
POLYSCAN_HOST_INLINE lanes<T> fold_pairs(const vector_operator<Operator, T>& how, const lanes<T>& a,
                                         const lanes<T>& b) {
    if constexpr (may_reorder<Operator, T>) {
        return combine_lanes(how, a, b); // lanes are sorted out at the end
    } else {
        constexpr int count = lanes<T>::count, unit = 16 / sizeof(word_of<T>),
                      level = Level % row_shape<T>::lane_levels;
        return combine_lanes<true>(how, shuffle<every_other<level, 0, count, unit>>(a, b),
                                   shuffle<every_other<level, 1, count, unit>>(a, b));
    }
}

// Sums of a row of small integers are exact in a float, whatever the order: they are made as integers, of pairs of
// neighbours, so that a vector of pairs stands for two to four of floats.

template <class Source, class Operator>
inline constexpr bool sums_integers =
    POLYSCAN_HOST_BYTES >= 32 && sums_exactly<Source, Operator> && converts<typename Source::element, float>;

/// What holds two of the elements, or the sum of a row of them.
template <class Element>
using pair_of = std::conditional_t<sizeof(Element) == 2, std::int32_t, std::int16_t>;

/// Of pairs in memory, the elements; `first` and `second` of a pair.
template <class Element>
struct pairs {
    using native = typename lanes<pair_of<Element>>::native;
    using raw = typename lanes<std::conditional_t<std::is_signed_v<Element>, pair_of<Element>,
                                                  std::make_unsigned_t<pair_of<Element>>>>::native;
    static constexpr int half = 8 * static_cast<int>(sizeof(Element));

    native second, sum;

    POLYSCAN_HOST_INLINE explicit pairs(const Element* from) {
        const auto both = reinterpret_cast<raw>(load(from).part[0]);
        second = reinterpret_cast<native>(both >> half);
        sum = reinterpret_cast<native>(both << half >> half) + second;
    }
};
template <class Source>
POLYSCAN_HOST_INLINE lanes<float> sum_row(const Source& in, index_type at) {
    using element = typename Source::element;
    using integers = typename lanes<std::int32_t>::native;
    typename pairs<element>::native sums{};
    POLYSCAN_UNROLL
    for (int i = 0; i < row_shape<float>::length; i += lanes<element>::count)
        sums += pairs<element>(in.input + at + i).sum;
    integers result;
    if constexpr (sizeof(element) == 2)
        result = sums;
    else
        result = (reinterpret_cast<integers>(sums) << 16 >> 16) + (reinterpret_cast<integers>(sums) >> 16);
    return {{__builtin_convertvector(result, typename lanes<float>::native)}};
}

/// Folds `Vectors` vectors of input into one.
template <int Vectors, class T, class Operator, class Source>
POLYSCAN_HOST_INLINE lanes<T> fold_row(const vector_operator<Operator, T>& how, const Source& in, index_type at) {
    if constexpr (sums_integers<Source, Operator> && Vectors == row_shape<T>::vectors) {
        return sum_row(in, at);
    } else if constexpr (asks_for_nan<Operator, Source> && Vectors == row_shape<T>::vectors) {
        const ordered<Operator> op;
        const lanes<T> folded = fold_row<Vectors>(vector_operator<ordered<Operator>, T>(op), in, at);
        const bool nan = has_nan(in, at, sequence<Vectors / 2>{});
        return encoded<Operator>(nan ? broadcast(std::numeric_limits<T>::quiet_NaN()) : folded);
    } else if constexpr (Vectors == 1) {
        return encoded<Operator>(load_lanes(in, at));
    } else {
        constexpr int half = Vectors / 2;
        return fold_pairs<std::countr_zero(static_cast<unsigned>(half))>(
            how, fold_row<half, T>(how, in, at), fold_row<half, T>(how, in, at + half * lanes<T>::count));
    }
}

/// Folds `Parts` vectors, each of which `fold_row` has made of `Vectors` vectors, into one.
template <int Parts, int Vectors, class T, class Operator>
POLYSCAN_HOST_INLINE lanes<T> fold_parts(const vector_operator<Operator, T>& how, const lanes<T>* parts) {
    if constexpr (Parts == 1) {
        return *parts;
    } else {
        constexpr int half = Parts / 2;
        return fold_pairs<std::countr_zero(static_cast<unsigned>(half * Vectors))>(
            how, fold_parts<half, Vectors>(how, parts), fold_parts<half, Vectors>(how, parts + half));
    }
}

template <class T, int... I>
POLYSCAN_HOST_INLINE void store_all(T* to, const lanes<T>* v, bool past_caches, std::integer_sequence<int, I...>) {
    if (past_caches)
        (stream(to + I * lanes<T>::count, v[I]), ...);
    else
        (store(to + I * lanes<T>::count, v[I]), ...);
}

/// Outputs that are not where the vectors of a row begin, because they are exclusive or their memory is not aligned:
/// each vector in memory ends with what the next one in the row begins with, `by` lanes of it fewer than all.
template <class T>
struct shift_state {
#if defined(__x86_64__) && POLYSCAN_HOST_BYTES >= 32
    static constexpr bool possible = lanes<T>::parts == 1 && (sizeof(T) == 4 || sizeof(T) == 8);
#else
    static constexpr bool possible = false;
#endif
    static constexpr int count = lanes<T>::count;

    int by = 0;      ///< 0: not at all
    int foreign = 0; ///< lanes of the first vector in memory that lie before the first output
    T* to = nullptr; ///< the first vector in memory
    lanes<T> previous{};
    alignas(POLYSCAN_HOST_BYTES) std::int32_t index[POLYSCAN_HOST_BYTES / 4]{}; ///< of each word of 4 bytes

    template <class Outputs>
    POLYSCAN_HOST_INLINE shift_state(Outputs& out, index_type first) {
        if constexpr (possible && Outputs::same_elements) {
            if (!out.is_staged()) return;
            T* const begin = out.request().output + first;
            if (out.past_caches())
                foreign = static_cast<int>(reinterpret_cast<std::uintptr_t>(begin) % POLYSCAN_HOST_BYTES / sizeof(T));
            to = begin - foreign;
            by = foreign + (out.is_exclusive() ? 1 : 0);
            previous = broadcast(out.is_exclusive() ? *out.staged_outputs() : T{});
            constexpr int words = sizeof(T) / 4;
            for (int i = 0; i < words * count; ++i)
                index[i] = POLYSCAN_HOST_BYTES == 64 && words == 2 ? (i % 2 == 0 ? i / 2 + count - by : 0)
                                                                   : i + words * (count - by);
        }
    }
    POLYSCAN_HOST_INLINE lanes<T> next([[maybe_unused]] const lanes<T>& v) {
        lanes<T> result;
#if defined(__x86_64__) && POLYSCAN_HOST_BYTES == 64
        const auto places = _mm512_load_si512(index);
        const auto a = reinterpret_cast<__m512i>(previous.part[0]), b = reinterpret_cast<__m512i>(v.part[0]);
        result.part[0] = reinterpret_cast<typename lanes<T>::native>(
            sizeof(T) == 4 ? _mm512_permutex2var_epi32(a, places, b) : _mm512_permutex2var_epi64(a, places, b));
        previous = v;
#elif defined(__x86_64__) && POLYSCAN_HOST_BYTES == 32
        const auto places = _mm256_load_si256(reinterpret_cast<const __m256i*>(index));
        const auto a = reinterpret_cast<__m256i>(previous.part[0]), b = reinterpret_cast<__m256i>(v.part[0]);
        result.part[0] = reinterpret_cast<typename lanes<T>::native>(
            _mm256_blendv_epi8(_mm256_permutevar8x32_epi32(a, places), _mm256_permutevar8x32_epi32(b, places),
                               _mm256_cmpgt_epi32(places, _mm256_set1_epi32(7))));
        previous = v;
#else
        result = v;
#endif
        return result;
    }
    /// The first row, of which another tile has the beginning, has been put into `row`.
    POLYSCAN_HOST_INLINE void finish_first_row(const T* row) const {
        std::memcpy(to + foreign, row + foreign, static_cast<std::size_t>(count - foreign) * sizeof(T));
        for (int i = count; i < row_shape<T>::length; i += count) stream(to + i, load(row + i));
    }
    /// After `rows` rows: what is left of the last vector belongs before the next tile's outputs.
    POLYSCAN_HOST_INLINE void finish(int rows) const {
        alignas(POLYSCAN_HOST_BYTES) T values[count];
        store(values, previous);
        std::memcpy(to + index_type{rows} * row_shape<T>::length, values + (count - by),
                    static_cast<std::size_t>(foreign) * sizeof(T));
    }
};

/// Vector `Part` of the floats that a vector of pairs stands for: `firsts` and `seconds` in turn.
template <int Half, int Count>
struct in_turn {
    static constexpr int at(int i) { return Half * (Count / 2) + i / 2 + i % 2 * Count; }
};
template <int Part, class Sum>
POLYSCAN_HOST_INLINE lanes<float> floats_of(const lanes<Sum>& firsts, const lanes<Sum>& seconds) {
    constexpr int each = sizeof(float) / sizeof(Sum);
    return to_floats<Part % each>(shuffle<in_turn<Part / each, lanes<Sum>::count>>(firsts, seconds));
}
template <class T, class Operator, class Sum, int... I>
POLYSCAN_HOST_INLINE void put_sums(const vector_operator<Operator, T>& how, const lanes<Sum>& firsts,
                                   const lanes<Sum>& seconds, T* to, bool past_caches, shift_state<T>& shift,
                                   const vector_state<T, Operator>& state, lanes<T>& last,
                                   std::integer_sequence<int, I...> all) {
    constexpr int n = sizeof...(I);
    lanes<T> v[n] = {combine_lanes<true>(how, state.offset, floats_of<I>(firsts, seconds))...};
    last = v[n - 1];
    ((v[I] = combine_lanes(how, state.carry, v[I])), ...);
    if (shift.by > 0) ((v[I] = shift.next(v[I])), ...);
    store_all(to, v, past_caches, all);
}
template <class T, class Operator, class Source, int... I>
POLYSCAN_HOST_INLINE void scan_integer_row(const vector_operator<Operator, T>& how, const Source& in, index_type at,
                                           T* to, bool past_caches, shift_state<T>& shift,
                                           vector_state<T, Operator>& state, std::integer_sequence<int, I...>) {
    using element = typename Source::element;
    using sum = pair_of<element>;
    constexpr int n = sizeof...(I), count = lanes<element>::count, blocks = row_shape<T>::length / (n * count);
    const vector_operator<Operator, sum> adds(how.op);
    lanes<sum> before{};
    lanes<T> last;
    POLYSCAN_UNROLL_4
    for (int j = 0; j < blocks; ++j) {
        const pairs<element> in_pairs[n] = {pairs<element>(in.input + at + (j * n + I) * count)...};
        lanes<sum> v[n] = {{{in_pairs[I].sum}}...};
        scan_lanes<1>(adds, v, sequence<n>{});
        join_block<1, n>(adds, v);
        if (j > 0) put_before(adds, before, v, sequence<n>{});
        before = last_of(v[n - 1]);
        (put_sums(how, lanes<sum>{{v[I].part[0] - in_pairs[I].second}}, v[I], to + (j * n + I) * count, past_caches,
                  shift, state, last, sequence<count / lanes<T>::count>{}),
         ...);
    }
    state.offset = last_of(last);
}

/// Scans the full row at `at` and adds its total to the offset.
template <class T, class Operator, class Source, int... I>
POLYSCAN_HOST_INLINE void scan_row(const vector_operator<Operator, T>& how, const Source& in, index_type at, T* to,
                                   bool past_caches, [[maybe_unused]] shift_state<T>& shift,
                                   vector_state<T, Operator>& state, std::integer_sequence<int, I...> all) {
    if constexpr (sums_integers<Source, Operator>)
        return scan_integer_row(how, in, at, to, past_caches, shift, state,
                                sequence<std::min(4, row_shape<T>::length / lanes<typename Source::element>::count)>{});
    if constexpr (asks_for_nan<Operator, Source>) {
        const lanes<T> offset = decoded<Operator>(state.offset);
        if (!has_nan(in, at, sequence<row_shape<T>::vectors / 2>{}) && nan_lanes(offset, offset) == 0) [[likely]] {
            const ordered<Operator> op;
            vector_state<T, ordered<Operator>> quick(scan_state<T>{});
            quick.offset = offset;
            scan_row(vector_operator<ordered<Operator>, T>(op), in, at, to, past_caches, shift, quick, all);
            state.offset = encoded<Operator>(quick.offset);
            return;
        }
    }
    constexpr int count = lanes<T>::count, n = sizeof...(I), blocks = row_shape<T>::vectors / n;
    lanes<T> totals[row_shape<T>::levels + 1];
    POLYSCAN_UNROLL_4
    for (int j = 0; j < blocks; ++j) {
        lanes<T> v[n] = {encoded<Operator>(load_lanes(in, at + (j * n + I) * count))...};
        scan_block<n>(how, v, j, totals, state);
        lanes<T> outputs[n] = {decoded<Operator>(v[I])...};
        if constexpr (shift_state<T>::possible)
            if (shift.by > 0) ((outputs[I] = shift.next(outputs[I])), ...);
        store_all(to + j * n * count, outputs, past_caches, all);
    }
    if constexpr (!may_reorder<Operator, T>) state.append(how, totals[std::countr_zero(static_cast<unsigned>(blocks))]);
}

/// In which lane each of `count` values is found after `Levels` levels of `fold_pairs`.
template <class T, int Levels>
struct lane_of_value {
    static constexpr int count = lanes<T>::count;

    template <int Level>
    static constexpr int value_at(int vector, int lane) {
        if constexpr (Level < 0) {
            return vector * count + lane;
        } else {
            const int from = every_other<Level, 0, count, 16 / sizeof(word_of<T>)>::at(lane);
            return value_at<Level - 1>(2 * vector + from / count, from % count) / 2;
        }
    }
    static constexpr std::array<int, count> table = [] {
        std::array<int, count> result{};
        for (int lane = 0; lane < count; ++lane)
            result[static_cast<std::size_t>(value_at<Levels % row_shape<T>::lane_levels - 1>(0, lane))] = lane;
        return result;
    }();
};

/// Appends a group of `count` rows to the fold.
template <class T, class Operator>
POLYSCAN_HOST_INLINE void append_rows(const vector_operator<Operator, T>& how, const lanes<T>* rows,
                                      fold_state<T>& fold) {
    constexpr int count = lanes<T>::count;
    alignas(std::max<std::size_t>(POLYSCAN_HOST_BYTES, alignof(T))) T totals[count];
    store(totals, decoded<Operator>(fold_parts<count, row_shape<T>::vectors>(how, rows)));
    if constexpr (may_reorder<Operator, T>) {
        for (int half = count / 2; half >= 1; half /= 2)
            for (int i = 0; i < half; ++i) totals[i] = combine(how.op, totals[i], totals[i + half]);
        fold.append(how.op, totals[0]);
    } else {
        constexpr int levels = std::countr_zero(static_cast<unsigned>(row_shape<T>::length));
        for (const int lane : lane_of_value<T, levels>::table) fold.append(how.op, totals[lane]);
    }
}

template <class T>
POLYSCAN_HOST_INLINE T first_lane(const lanes<T>& value) {
    alignas(std::max<std::size_t>(POLYSCAN_HOST_BYTES, alignof(T))) T values[lanes<T>::count];
    store(values, value);
    return values[0];
}

// ---- Outputs

/// Appends bytes to a stream of whole lines past the caches.
POLYSCAN_HOST_TARGET [[gnu::noinline]] inline void write_lines(line_writer& lines, const void* source,
                                                               std::size_t bytes) {
    using vector = lanes<std::uint64_t>;
    constexpr std::size_t line = line_writer::line;
    const auto* from = static_cast<const std::byte*>(source);
    if (const std::size_t filled = lines.filled(); filled > 0) {
        const std::size_t taken = std::min(line - filled, bytes);
        lines.keep(from, taken);
        if (lines.filled() > 0) return;
        lines.write_kept_line();
        from += taken;
        bytes -= taken;
    }
    for (; bytes >= line; bytes -= line, from += line) {
        std::byte* const to = lines.next_line();
        for (std::size_t part = 0; part < line; part += POLYSCAN_HOST_BYTES)
            stream_native(to + part,
                          typename vector::native(*reinterpret_cast<const typename vector::anywhere*>(from + part)));
    }
    if (bytes > 0) lines.keep(from, bytes);
}

/// Brings the staged outputs of elements [first, first + count) to their place.
template <class Outputs>
POLYSCAN_HOST_TARGET inline void deliver(Outputs& out, index_type first, index_type count) {
    const auto* const from = out.staged_outputs();
    if constexpr (!Outputs::writes_memory) {
        for (index_type i = 0; i < count; ++i) out.request().store(first + i, from[i]);
    } else if constexpr (Outputs::same_elements) {
        const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(*from);
        if (out.past_caches())
            write_lines(out.lines(), from, bytes);
        else
            std::memcpy(static_cast<void*>(out.request().output + first), from, bytes);
    } else {
        using element = typename Outputs::element;
        element* const to = out.past_caches() ? out.converted() : out.request().output + first;
        POLYSCAN_INDEPENDENT_ITERATIONS
        for (index_type i = 0; i < count; ++i) to[i] = static_cast<element>(from[i]);
        if (out.past_caches()) write_lines(out.lines(), to, static_cast<std::size_t>(count) * sizeof(element));
    }
    out.delivered(count);
}

/// Where row r of `rows` full ones that start at element `first` goes, and what is to be done when it is there.
template <class T, class Outputs>
struct row_target {
    T* to;
    bool past_caches;

    POLYSCAN_HOST_INLINE row_target(Outputs& out, const shift_state<T>& shift, int r) {
        const bool shifts = shift.by > 0, begun_elsewhere = r == 0 && shift.foreign > 0;
        to = begun_elsewhere ? out.place(0) : shifts ? shift.to + index_type{r} * Outputs::row_length : out.place(r);
        past_caches = shifts ? out.past_caches() && !begun_elsewhere : out.streams();
    }
    POLYSCAN_HOST_INLINE void finish(Outputs& out, const shift_state<T>& shift, index_type first, int r,
                                     int rows) const {
        constexpr int length = Outputs::row_length, staged = Outputs::stage_rows;
        if (shift.by > 0) {
            if (r == 0 && shift.foreign > 0) shift.finish_first_row(to);
        } else if (out.is_staged() && ((r + 1) % staged == 0 || r + 1 == rows)) {
            // What is staged is delivered when the stage is full, or with the last row.
            const int begin = r / staged * staged;
            deliver(out, first + index_type{begin} * length, index_type{r + 1 - begin} * length);
        }
    }
};

template <class T, class Operator, class Source, class Outputs>
POLYSCAN_HOST_INLINE void scan_row_to(const vector_operator<Operator, T>& how, const Source& in, index_type first,
                                      int r, int rows, Outputs& out, shift_state<T>& shift,
                                      vector_state<T, Operator>& state) {
    const row_target<T, Outputs> target(out, shift, r);
    scan_row(how, in, first + index_type{r} * Outputs::row_length, target.to, target.past_caches, shift, state,
             sequence<block_vectors<T>>{});
    target.finish(out, shift, first, r, rows);
}
/// After `rows` rows that start at element `first`.
template <class T, class Operator, class Outputs>
POLYSCAN_HOST_INLINE void leave(const vector_operator<Operator, T>& how, index_type first, int rows, Outputs& out,
                                const shift_state<T>& shift, const vector_state<T, Operator>& vectors,
                                scan_state<T>& state) {
    state.offset = first_lane(decoded<Operator>(vectors.offset));
    state.has_offset = true;
    if (shift.by > 0) {
        shift.finish(rows);
        out.go_on_after(first + index_type{rows} * row_shape<T>::length, state.last(how.op));
    }
}

// ---- Tiles: the functions that get called

template <class T, class Operator, class Source>
POLYSCAN_HOST_TARGET [[gnu::noinline]] void fold_tile(const Operator& op, Source in, index_type at,
                                                      fold_state<T>& fold) {
    using row = row_shape<T>;
    constexpr int count = lanes<T>::count;
    const vector_operator<Operator, T> how(op);
    for (int group = 0; group < row::rows; group += count) {
        lanes<T> rows[count];
        for (int r = 0; r < count; ++r) {
            const index_type first = at + (group + r) * row::length;
            if constexpr (Source::row_bytes > 0) {
                // Half a tile further: mostly, that is folded next.
                const char* const ahead =
                    reinterpret_cast<const char*>(in.input + (first + row::rows / 2 * row::length));
                for (int line = 0; line < Source::row_bytes; line += 64) __builtin_prefetch(ahead + line, 0, 2);
            }
            rows[r] = fold_row<row::vectors, T>(how, in, first);
        }
        append_rows(how, rows, fold);
    }
}

template <class T, class Operator, class Source, class Outputs>
POLYSCAN_HOST_TARGET [[gnu::noinline]] void scan_rows(const Operator& op, Source in, index_type at, int rows,
                                                      Outputs& out, scan_state<T>& state) {
    const vector_operator<Operator, T> how(op);
    vector_state<T, Operator> s(state);
    shift_state<T> shift(out, at);
    for (int r = 0; r < rows; ++r) scan_row_to(how, in, at, r, rows, out, shift, s);
    leave(how, at, rows, out, shift, s, state);
}

template <class T, class Operator, class Source, class Outputs>
POLYSCAN_HOST_TARGET [[gnu::noinline]] void scan_and_fold_tile(const Operator& op, Source in, index_type at,
                                                               Outputs& out, scan_state<T>& state, index_type ahead,
                                                               fold_state<T>& fold, const prefetch_plan& plan) {
    using row = row_shape<T>;
    constexpr int length = row::length, count = lanes<T>::count;
    const vector_operator<Operator, T> how(op);
    vector_state<T, Operator> s(state);
    shift_state<T> shift(out, at);
    for (int group = 0; group < row::rows; group += count) {
        lanes<T> rows[count];
        for (int r = group; r < group + count; ++r) {
            const char* const prefetch = r < row::rows / 2 ? plan.first_half : plan.second_half;
            if (prefetch != nullptr)
                for (int line = 0; line < Source::row_bytes; line += 64)
                    __builtin_prefetch(prefetch + r % (row::rows / 2) * Source::row_bytes + line, 0, 2);
            rows[r - group] = fold_row<row::vectors, T>(how, in, ahead + r * length);
            scan_row_to(how, in, at, r, row::rows, out, shift, s);
        }
        append_rows(how, rows, fold);
    }
    leave(how, at, row::rows, out, shift, s, state);
}

/// At most a row, in blocks of which the last may be incomplete: lanes beyond the end hold anything.
template <class Operator, class T>
inline constexpr bool scans_parts = takes_anything<Operator> && has_masks<T>;

template <class T>
POLYSCAN_HOST_INLINE void store_part(T* to, const lanes<T>& value, int left) {
    if (left >= lanes<T>::count)
        store(to, value);
    else if (left > 0)
        store_first(to, value, left);
}

template <class T, class Operator, int... I>
POLYSCAN_HOST_INLINE void scan_parts(const vector_operator<Operator, T>& how, const T* in, int length, T* out,
                                     vector_state<T, Operator>& state, std::integer_sequence<int, I...>) {
    constexpr int count = lanes<T>::count, n = sizeof...(I);
    lanes<T> totals[row_shape<T>::levels + 1];
    for (int j = 0, done = 0; done < length; ++j, done += n * count) {
        const int left = length - done;
        lanes<T> v[n] = {encoded<Operator>(load_first(in + done + I * count, left - I * count))...};
        scan_block<n>(how, v, j, totals, state);
        (store_part(out + done + I * count, decoded<Operator>(v[I]), left - I * count), ...);
    }
    constexpr int blocks = row_shape<T>::vectors / n;
    if (!may_reorder<Operator, T> && length == row_shape<T>::length)
        state.append(how, totals[std::countr_zero(static_cast<unsigned>(blocks))]);
}

/// The first `length` elements of a row, length less than a full one. Returns the last output.
template <class T, class Operator, class Source>
POLYSCAN_HOST_INLINE T scan_row_part(const Operator& op, Source in, index_type at, int length, T* out,
                                     const scan_state<T>& before) {
    constexpr int count = lanes<T>::count;
    const vector_operator<Operator, T> how(op);
    vector_state<T, Operator> state(before);
    if constexpr (scans_parts<Operator, T> && Source::is_plain) {
        scan_parts(how, in.data() + at, length, out, state, sequence<block_vectors<T>>{});
        return out[length - 1];
    }
    lanes<T> totals[row_shape<T>::levels + 1];
    const int vectors = length / count, rest = length % count;
    for (int j = 0; j < vectors; ++j) {
        lanes<T> v = encoded<Operator>(load_lanes(in, at + j * count));
        scan_block<1>(how, &v, j, totals, state);
        store(out + j * count, decoded<Operator>(v));
    }
    if (rest == 0) return out[length - 1];

    // What does not fill a vector.
    out += vectors * count;
    in.skip(at + vectors * count);
    alignas(std::max<std::size_t>(POLYSCAN_HOST_BYTES, alignof(T))) T v[count]{};
    for (int i = 0; i < rest; ++i) v[i] = in.load(i);
    if constexpr (takes_anything<Operator>) {
        lanes<T> last = encoded<Operator>(load(v));
        scan_block<1>(how, &last, vectors, totals, state);
        store(v, decoded<Operator>(last));
        for (int i = 0; i < rest; ++i) out[i] = v[i];
    } else {
        for (int stride = 1; stride < rest; stride *= 2)
            for (int i = stride; i < rest; ++i)
                if ((i & stride) != 0) v[i] = combine(op, v[(i & ~(2 * stride - 1)) + stride - 1], v[i]);
        for (int level = 0; 1 << level <= vectors; ++level) {
            if ((vectors >> level & 1) == 0) continue;
            const T total = first_lane(totals[level]);
            for (int i = 0; i < rest; ++i) v[i] = combine(op, total, v[i]);
        }
        for (int i = 0; i < rest; ++i) {
            if (before.has_offset) v[i] = combine(op, before.offset, v[i]);
            if (before.has_carry) v[i] = combine(op, before.carry, v[i]);
            out[i] = v[i];
        }
    }
    return out[rest - 1];
}

template <class T, class Operator, class Source, class Outputs>
POLYSCAN_HOST_TARGET [[gnu::noinline]] T scan_short_row(const Operator& op, Source in, index_type at, int length,
                                                        Outputs& out, int rows, const scan_state<T>& state) {
    if (!out.is_staged()) return scan_row_part<T>(op, in, at, length, out.place(rows), state);
    // What has been staged before is delivered: the stage starts anew.
    const T last = scan_row_part<T>(op, in, at, length, out.place(0), state);
    deliver(out, at, length);
    return last;
}

/// What comes before the next row of few.
template <class T>
struct few_state {
    lanes<T> offset, carry;
    bool has_offset, has_carry;
};

/// Vectors for fewer than N: up to 8 each number has code of its own, because what is computed in vain takes time.
constexpr int one_size_down(int n) { return n <= 8 ? n - 1 : n / 2; }

/// At most a row, in N vectors at once, for which fewer would not do.
template <class T, class Operator, int... I>
POLYSCAN_HOST_INLINE void scan_vectors(const vector_operator<Operator, T>& how, const T* in, int length, T* out,
                                       few_state<T>& state, std::integer_sequence<int, I...> all) {
    constexpr int count = lanes<T>::count, n = sizeof...(I), full = one_size_down(n);
    lanes<T> v[n] = {
        encoded<Operator>(I < full ? load(in + I * count) : load_first(in + I * count, length - I * count))...};
    scan_lanes<1>(how, v, all);
    join_block<1, n>(how, v);
    if (state.has_offset) put_before(how, state.offset, v, all);
    if (length == row_shape<T>::length) {
        state.offset = last_of(v[n - 1]);
        state.has_offset = true;
    }
    if (state.has_carry) put_before(how, state.carry, v, all);
    ((I < full ? store(out + I * count, decoded<Operator>(v[I]))
               : store_part(out + I * count, decoded<Operator>(v[I]), length - I * count)),
     ...);
}
/// The same in as many vectors as it takes, N at least.
template <int N, class T, class Operator>
POLYSCAN_HOST_INLINE void scan_few_of_row(const vector_operator<Operator, T>& how, const T* in, int length, T* out,
                                          few_state<T>& state) {
    constexpr int next = N < 8 ? N + 1 : 2 * N;
    if constexpr (next <= row_shape<T>::vectors)
        if (length > N * lanes<T>::count) return scan_few_of_row<next>(how, in, length, out, state);
    scan_vectors(how, in, length, out, state, sequence<N>{});
}

/// A scan of a few rows from memory to memory, all in one. `init` may be null.
template <class T, class Operator>
POLYSCAN_HOST_TARGET [[gnu::noinline]] void scan_few_rows(const Operator& op, const T* in, int length, T* out,
                                                          const T* init) {
    constexpr int row = row_shape<T>::length;
    const vector_operator<Operator, T> how(op);
    few_state<T> state{{}, {}, false, init != nullptr};
    if (init != nullptr) state.carry = encoded<Operator>(broadcast(*init));
    for (; length > row; length -= row, in += row, out += row)
        scan_few_of_row<row_shape<T>::vectors>(how, in, row, out, state);
    scan_few_of_row<1>(how, in, length, out, state);
}
/// The same; a scan of one vector or two has a way of its own, with few registers to be saved.
template <class T, class Operator>
POLYSCAN_HOST_TARGET [[gnu::noinline]] bool scan_few([[maybe_unused]] const Operator& op, [[maybe_unused]] const T* in,
                                                     [[maybe_unused]] int length, [[maybe_unused]] T* out,
                                                     [[maybe_unused]] const T* init) {
    if constexpr (scans_parts<Operator, T>) {
        constexpr int count = lanes<T>::count;
        if (init != nullptr || length > 2 * count) {
            scan_few_rows(op, in, length, out, init);
            return true;
        }
        const vector_operator<Operator, T> how(op);
        few_state<T> state{{}, {}, false, false};
        if (length <= count)
            scan_vectors(how, in, length, out, state, sequence<1>{});
        else
            scan_vectors(how, in, length, out, state, sequence<2>{});
        return true;
    }
    return false;
}

// ---- Local prefixes, and the block algorithms that make them in a buffer

template <class T, class Operator, int... I>
POLYSCAN_HOST_INLINE void put_row(const vector_operator<Operator, T>& how, const T* local, bool has_carry,
                                  const lanes<T>& carry, T* to, bool past_caches,
                                  [[maybe_unused]] shift_state<T>& shift, std::integer_sequence<int, I...> all) {
    constexpr int count = lanes<T>::count, n = sizeof...(I);
    for (int i = 0; i < row_shape<T>::length; i += n * count) {
        lanes<T> v[n] = {load(local + i + I * count)...};
        if (has_carry) ((v[I] = decoded<Operator>(combine_lanes(how, carry, encoded<Operator>(v[I])))), ...);
        if constexpr (shift_state<T>::possible)
            if (shift.by > 0) ((v[I] = shift.next(v[I])), ...);
        store_all(to + i, v, past_caches, all);
    }
}

/// Puts a carry, if there is one, before `rows` rows of local prefixes and brings them to their places from element
/// `at` on.
template <class T, class Operator, class Outputs>
POLYSCAN_HOST_TARGET [[gnu::noinline]] void put_rows(const Operator& op, const T* local, const std::optional<T>& before,
                                                     index_type at, int rows, Outputs& out) {
    const vector_operator<Operator, T> how(op);
    const lanes<T> carry = encoded<Operator>(broadcast(before ? *before : T{}));
    shift_state<T> shift(out, at);
    constexpr int length = Outputs::row_length;
    for (int r = 0; r < rows; ++r) {
        const row_target<T, Outputs> target(out, shift, r);
        put_row(how, local + r * length, before.has_value(), carry, target.to, target.past_caches, shift,
                sequence<block_vectors<T>>{});
        target.finish(out, shift, at, r, rows);
    }
    if (shift.by > 0) {
        shift.finish(rows);
        const T& last = local[rows * length - 1];
        out.go_on_after(at + index_type{rows} * length, before ? combine(op, *before, last) : last);
    }
}

template <class T, class Source>
POLYSCAN_HOST_TARGET [[gnu::noinline]] void load_rows(Source in, index_type at, int rows, T* to) {
    constexpr int count = lanes<T>::count;
    for (int i = 0; i < rows * row_shape<T>::length; i += count) store(to + i, load_lanes(in, at + i));
}

/// Lane i - Stride, for the lanes that have one; the others repeat the work of lane Stride.
template <int Stride>
struct lane_before {
    static constexpr int at(int i) { return i < Stride ? 0 : i - Stride; }
    static constexpr bool chosen(int i) { return i >= Stride; }
};
template <int Stride>
struct lane_from {
    static constexpr int at(int i) { return i < Stride ? Stride : i; }
};

/// Kogge-Stone's rounds with strides below a vector, from right to left: what a vector reads on its left is from before
/// the round.
template <int Stride, class T, class Operator>
POLYSCAN_HOST_INLINE void kogge_stone_rounds(const vector_operator<Operator, T>& how, T* v, int vectors) {
    constexpr int count = lanes<T>::count;
    if constexpr (Stride < count) {
        for (int j = vectors - 1; j >= 1; --j)
            store(v + j * count, combine_lanes(how, load(v + j * count - Stride), load(v + j * count)));
        const lanes<T> first = load(v);
        const lanes<T> made =
            combine_lanes(how, shuffle<lane_before<Stride>>(first, first), shuffle<lane_from<Stride>>(first, first));
        store(v, choose<lane_before<Stride>>(made, first));
        kogge_stone_rounds<2 * Stride>(how, v, vectors);
    }
}
template <class T, class Operator>
POLYSCAN_HOST_INLINE void scan_block_of(block::kogge_stone, const vector_operator<Operator, T>& how, T* v, int m) {
    constexpr int count = lanes<T>::count;
    const int vectors = m / count;
    kogge_stone_rounds<1>(how, v, vectors);
    for (int stride = 1; stride < vectors; stride *= 2)
        for (int j = vectors - 1; j >= stride; --j)
            store(v + j * count, combine_lanes<true>(how, load(v + (j - stride) * count), load(v + j * count)));
}

/// Up: the last lane of each group of 2 * Stride takes the end of the group's left half. The others repeat it.
template <int Stride>
struct group_middle {
    static constexpr int at(int i) { return (i | (2 * Stride - 1)) - Stride; }
    static constexpr bool chosen(int i) { return i % (2 * Stride) == 2 * Stride - 1; }
};
template <int Stride>
struct group_end {
    static constexpr int at(int i) { return i | (2 * Stride - 1); }
};
/// Down: the middle of each group takes the end of the group before: of the vector before, at the first operand's end.
template <int Stride, int Count>
struct group_before {
    static constexpr int at(int i) { return Count + i / (2 * Stride) * (2 * Stride) - 1; }
    static constexpr bool chosen(int i) { return i % (2 * Stride) == Stride - 1; }
};
/// The same in the first vector, whose first group has none before it: it repeats the second one's.
template <int Stride, int Count>
struct group_before_or_second {
    static constexpr int at(int i) { return Count + std::max(i / (2 * Stride), 1) * (2 * Stride) - 1; }
    static constexpr bool chosen(int i) { return i >= 2 * Stride && i % (2 * Stride) == Stride - 1; }
};
template <int Stride>
struct group_middle_of_same {
    static constexpr int at(int i) { return i / (2 * Stride) * (2 * Stride) + Stride - 1; }
};
template <int Stride>
struct group_middle_of_second {
    static constexpr int at(int i) { return std::max(i / (2 * Stride), 1) * (2 * Stride) + Stride - 1; }
};

template <int Stride, class T, class Operator>
POLYSCAN_HOST_INLINE void brent_kung_up(const vector_operator<Operator, T>& how, lanes<T>& v) {
    if constexpr (Stride < lanes<T>::count) {
        const lanes<T> made = combine_lanes(how, shuffle<group_middle<Stride>>(v, v), shuffle<group_end<Stride>>(v, v));
        v = choose<group_middle<Stride>>(made, v);
        brent_kung_up<2 * Stride>(how, v);
    }
}
template <int Stride, bool First, class T, class Operator>
POLYSCAN_HOST_INLINE void brent_kung_down(const vector_operator<Operator, T>& how, const lanes<T>& before,
                                          lanes<T>& v) {
    constexpr int count = lanes<T>::count;
    if constexpr (Stride >= 1) {
        if constexpr (!First) {
            const lanes<T> made = combine_lanes(how, shuffle<group_before<Stride, count>>(before, v),
                                                shuffle<group_middle_of_same<Stride>>(v, v));
            v = choose<group_before<Stride, count>>(made, v);
        } else if constexpr (2 * Stride < count) {
            const lanes<T> made = combine_lanes(how, shuffle<group_before_or_second<Stride, count>>(v, v),
                                                shuffle<group_middle_of_second<Stride>>(v, v));
            v = choose<group_before_or_second<Stride, count>>(made, v);
        }
        brent_kung_down<Stride / 2, First>(how, before, v);
    }
}
template <int Count>
struct last_lane_only {
    static constexpr bool chosen(int i) { return i == Count - 1; }
};

template <class T, class Operator>
POLYSCAN_HOST_INLINE void scan_block_of(block::brent_kung, const vector_operator<Operator, T>& how, T* v, int m) {
    constexpr int count = lanes<T>::count;
    const int vectors = m / count;
    alignas(POLYSCAN_HOST_BYTES) T ends[shape_for<block::brent_kung, T>.elements() / count];
    for (int j = 0; j < vectors; ++j) {
        lanes<T> x = load(v + j * count);
        brent_kung_up<1>(how, x);
        store(v + j * count, x);
        ends[j] = v[(j + 1) * count - 1];
    }
    // Strides of a vector and more have to do with the ends of vectors only.
    int stride = 1;
    for (; stride < vectors; stride *= 2)
        for (int j = 2 * stride - 1; j < vectors; j += 2 * stride)
            ends[j] = combine_encoded(how, ends[j - stride], ends[j]);
    for (stride /= 2; stride >= 1; stride /= 2)
        for (int j = 2 * stride - 1; j + stride < vectors; j += 2 * stride)
            ends[j + stride] = combine_encoded(how, ends[j], ends[j + stride]);
    for (int j = 0; j < vectors; ++j) {
        lanes<T> x = choose<last_lane_only<count>>(broadcast(ends[j]), load(v + j * count));
        if (j == 0)
            brent_kung_down<count / 2, true>(how, x, x);
        else
            brent_kung_down<count / 2, false>(how, broadcast(ends[j - 1]), x);
        store(v + j * count, x);
    }
}

/// Element `Step` of each run of four takes the one before it; the run's other lanes repeat that.
template <int Step>
struct run_step {
    static constexpr int at(int i) { return i / 4 * 4 + Step; }
    static constexpr bool chosen(int i) { return i % 4 == Step; }
};
/// The ends of runs, in front of anything; and for each lane the run that it lies in.
template <int Count>
struct run_ends {
    static constexpr int at(int i) { return (4 * i + 3) % Count; }
};
struct run_of_lane {
    static constexpr int at(int i) { return i / 4; }
};

template <int Step, class T, class Operator>
POLYSCAN_HOST_INLINE void scan_runs(const vector_operator<Operator, T>& how, lanes<T>& v) {
    if constexpr (Step < 4) {
        v = choose<run_step<Step>>(combine_lanes(how, shuffle<run_step<Step - 1>>(v, v), shuffle<run_step<Step>>(v, v)),
                                   v);
        scan_runs<Step + 1>(how, v);
    }
}
template <class T, class Operator>
POLYSCAN_HOST_INLINE void scan_block_of(block::coarse, const vector_operator<Operator, T>& how, T* v, int m) {
    constexpr int count = lanes<T>::count, runs_each = count / 4;
    static_assert(shape_for<block::coarse, T>.run == 4);
    const int vectors = m / count;
    // A vector of ends is written whole, and read from one end before it on.
    alignas(POLYSCAN_HOST_BYTES) T ends[shape_for<block::coarse, T>.threads + 2 * count];
    T* const end = ends + count;
    if constexpr (runs_each == 0) { // two lanes
        for (int r = 0; r < m / 4; ++r) {
            for (int i = 4 * r + 1; i < 4 * r + 4; ++i) v[i] = combine_encoded(how, v[i - 1], v[i]);
            end[r] = v[4 * r + 3];
        }
        scan_block_of(block::kogge_stone{}, how, end, m / 4);
        for (int i = 4; i < m; ++i) v[i] = combine_encoded(how, end[i / 4 - 1], v[i]);
        return;
    }
    for (int j = 0; j < vectors; ++j) {
        lanes<T> x = load(v + j * count);
        scan_runs<1>(how, x);
        store(v + j * count, x);
        store(end + j * runs_each, shuffle<run_ends<count>>(x, x));
    }
    scan_block_of(block::kogge_stone{}, how, end, m / 4);
    end[-1] = end[0];
    for (int j = 0; j < vectors; ++j) {
        const lanes<T> x = load(v + j * count), earlier = load(end + j * runs_each - 1);
        const lanes<T> made = combine_lanes<true>(how, shuffle<run_of_lane>(earlier, earlier), x);
        store(v + j * count, j == 0 ? choose<lane_before<4>>(made, x) : made);
    }
}

/// Replaces a full tile by its local prefixes.
/// Aligned: at 32 and 48 mod 64, Kogge-Stone's short loops took a quarter longer than at 0 and 16 on Zen 4.
template <class Block, class T, class Operator>
POLYSCAN_HOST_TARGET [[gnu::noinline, gnu::aligned(64)]] void scan_block_in(const Operator& op, T* v) {
    constexpr int count = lanes<T>::count, m = static_cast<int>(shape_for<Block, T>.elements());
    const vector_operator<Operator, T> how(op);
    if constexpr (by_rank<Operator, T>)
        for (int i = 0; i < m; i += count) store(v + i, encoded<Operator>(load(v + i)));
    scan_block_of(Block{}, how, v, m);
    if constexpr (by_rank<Operator, T>)
        for (int i = 0; i < m; i += count) store(v + i, decoded<Operator>(load(v + i)));
}

/// The last prefix of a full tile of Kogge-Stone's or Brent-Kung's: neighbours are folded, level by level.
template <class Block, class T, class Operator, class Source>
POLYSCAN_HOST_TARGET [[gnu::noinline]] T fold_block(const Operator& op, Source in, index_type at) {
    using row = row_shape<T>;
    constexpr int count = lanes<T>::count, m = static_cast<int>(shape_for<Block, T>.elements());
    constexpr int rows = m / row::length, levels = std::countr_zero(static_cast<unsigned>(m / count));
    const vector_operator<Operator, T> how(op);
    lanes<T> parts[rows];
    for (int r = 0; r < rows; ++r) {
        // Tiles are short, and a processor's own look-ahead ends with the page: ask for what comes 16 KiB later, as an
        // address, because it may lie behind the input.
        if constexpr (Source::row_bytes > 0)
            for (int line = 0; line < Source::row_bytes; line += 64)
                __builtin_prefetch(
                    reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(in.input + at + r * row::length) +
                                                  16384 + static_cast<std::uintptr_t>(line)),
                    0, 2);
        parts[r] = fold_row<row::vectors, T>(how, in, at + r * row::length);
    }
    alignas(POLYSCAN_HOST_BYTES) T found[count], values[count];
    store(found, decoded<Operator>(fold_parts<rows, row::vectors>(how, parts)));
    for (int i = 0; i < count; ++i) {
        const int lane = may_reorder<Operator, T> ? i : lane_of_value<T, levels>::table[static_cast<std::size_t>(i)];
        values[i] = found[lane];
    }
    for (int length = count / 2; length >= 1; length /= 2)
        for (int i = 0; i < length; ++i) values[i] = combine(op, values[2 * i], values[2 * i + 1]);
    return values[0];
}

#undef POLYSCAN_HOST_INLINE

} // namespace polyscan::host::POLYSCAN_HOST_ISA
