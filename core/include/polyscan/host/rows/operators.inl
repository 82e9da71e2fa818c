// SPDX-License-Identifier: Apache-2.0
// Part of row_kernels.inl, which includes it.
//
// An operator on vectors: by instructions where it is known, else lane by lane. How minimum and maximum of
// floating-point numbers are held.

namespace polyscan::host::POLYSCAN_HOST_ISA {

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

} // namespace polyscan::host::POLYSCAN_HOST_ISA
