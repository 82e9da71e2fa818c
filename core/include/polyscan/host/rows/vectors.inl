// SPDX-License-Identifier: Apache-2.0
// Part of row_kernels.inl, which includes it.
//
// A vector of each word of an element: loads, stores, lanes.

namespace polyscan::host::POLYSCAN_HOST_ISA {

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

} // namespace polyscan::host::POLYSCAN_HOST_ISA
