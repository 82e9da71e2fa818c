// SPDX-License-Identifier: Apache-2.0
// Included by segmented_kernels.hpp once for each instruction set, with POLYSCAN_HOST_ISA, POLYSCAN_HOST_TARGET and
// POLYSCAN_HOST_BYTES defined as for row_kernels.inl. Every function here carries the target.
//
// A row of pairs {value, head} is its values in vectors and its heads in the bits of one word. What a round does to the
// heads is a few operations on that word; they say which lanes of the values combine, and the others keep what they
// have. So a segmented row costs hardly more than a plain one. The tree is that of the pairs, and so are the bits.
namespace polyscan::host::POLYSCAN_HOST_ISA::segmented_rows {

#define POLYSCAN_HOST_INLINE POLYSCAN_HOST_TARGET [[gnu::always_inline]] inline
// The vectors of a row are to be registers, and so their loops no loops.
#if defined(__clang__)
#define POLYSCAN_ALL_AT_ONCE _Pragma("clang loop unroll(full)")
#else
#define POLYSCAN_ALL_AT_ONCE _Pragma("GCC unroll 16")
#endif

template <class T>
struct vector_of {
    static constexpr int count = POLYSCAN_HOST_BYTES / static_cast<int>(sizeof(T));
    typedef T native __attribute__((vector_size(POLYSCAN_HOST_BYTES)));
    typedef T anywhere __attribute__((vector_size(POLYSCAN_HOST_BYTES), aligned(alignof(T)), may_alias));
    native v;
};

template <class T>
POLYSCAN_HOST_INLINE vector_of<T> load(const T* from) {
    return {*reinterpret_cast<const typename vector_of<T>::anywhere*>(from)};
}
template <class T>
POLYSCAN_HOST_INLINE void store(T* to, const vector_of<T>& value) {
    *reinterpret_cast<typename vector_of<T>::anywhere*>(to) = value.v;
}
template <class T>
POLYSCAN_HOST_INLINE vector_of<T> all_lanes(T value) {
    return {value - typename vector_of<T>::native{}}; // 0 + value would turn -0 into 0
}

/// op(earlier, later), lane by lane; for operators that take anything.
template <class Operator, class T>
POLYSCAN_HOST_INLINE vector_of<T> combine_all(const Operator& op, const vector_of<T>& earlier,
                                              const vector_of<T>& later) {
    constexpr bool adds = std::is_same_v<Operator, plus>, multiplies_ = std::is_same_v<Operator, multiplies>;
    if constexpr (std::is_floating_point_v<T> && adds) {
        return {earlier.v + later.v};
    } else if constexpr (std::is_floating_point_v<T> && multiplies_) {
        return {earlier.v * later.v};
    } else if constexpr (std::is_integral_v<T> && (adds || multiplies_)) {
        using wrapping = typename vector_of<std::make_unsigned_t<T>>::native;
        const auto a = reinterpret_cast<wrapping>(earlier.v), b = reinterpret_cast<wrapping>(later.v);
        if constexpr (adds)
            return {reinterpret_cast<typename vector_of<T>::native>(a + b)};
        else
            return {reinterpret_cast<typename vector_of<T>::native>(a * b)};
    } else {
        alignas(POLYSCAN_HOST_BYTES) T e[vector_of<T>::count], l[vector_of<T>::count], r[vector_of<T>::count];
        store(e, earlier);
        store(l, later);
        POLYSCAN_INDEPENDENT_ITERATIONS
        for (int i = 0; i < vector_of<T>::count; ++i) r[i] = combine(op, e[i], l[i]);
        return load(r);
    }
}

template <class Native, int... I>
POLYSCAN_HOST_INLINE Native lane_bits(std::integer_sequence<int, I...>) {
    using element = std::remove_cvref_t<decltype(Native{}[0])>;
    return Native{static_cast<element>(std::uint64_t{1} << I)...};
}
/// Lanes whose bit is set from `yes`, the others from `no`.
template <class T>
POLYSCAN_HOST_INLINE vector_of<T> choose(std::uint64_t bits, const vector_of<T>& yes, const vector_of<T>& no) {
#if defined(__x86_64__) && POLYSCAN_HOST_BYTES == 64
    using native = typename vector_of<T>::native;
    if constexpr (sizeof(T) == 4)
        return {reinterpret_cast<native>(_mm512_mask_blend_epi32(
            static_cast<__mmask16>(bits), reinterpret_cast<__m512i>(no.v), reinterpret_cast<__m512i>(yes.v)))};
    else
        return {reinterpret_cast<native>(_mm512_mask_blend_epi64(
            static_cast<__mmask8>(bits), reinterpret_cast<__m512i>(no.v), reinterpret_cast<__m512i>(yes.v)))};
#else
    using word = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
    using words = typename vector_of<word>::native;
    const words each = lane_bits<words>(std::make_integer_sequence<int, vector_of<T>::count>{});
    const auto chosen = ((words{} + static_cast<word>(bits)) & each) == each;
    return {chosen ? yes.v : no.v};
#endif
}

/// op(earlier, later) in the lanes whose bit is set, the others keep `later`.
template <class Operator, class T>
POLYSCAN_HOST_INLINE vector_of<T> combine_some(const Operator& op, std::uint64_t bits, const vector_of<T>& earlier,
                                               const vector_of<T>& later) {
#if defined(__x86_64__) && POLYSCAN_HOST_BYTES == 64
    // One instruction, where compilers make two.
    using native = typename vector_of<T>::native;
    if constexpr (std::is_same_v<Operator, plus>) {
        if constexpr (std::is_same_v<T, float>)
            return {reinterpret_cast<native>(
                _mm512_mask_add_ps(later.v, static_cast<__mmask16>(bits), earlier.v, later.v))};
        else if constexpr (std::is_same_v<T, double>)
            return {
                reinterpret_cast<native>(_mm512_mask_add_pd(later.v, static_cast<__mmask8>(bits), earlier.v, later.v))};
        const auto l = reinterpret_cast<__m512i>(later.v), e = reinterpret_cast<__m512i>(earlier.v);
        if constexpr (sizeof(T) == 4)
            return {reinterpret_cast<native>(_mm512_mask_add_epi32(l, static_cast<__mmask16>(bits), e, l))};
        else
            return {reinterpret_cast<native>(_mm512_mask_add_epi64(l, static_cast<__mmask8>(bits), e, l))};
    }
#endif
    return choose(bits, combine_all(op, earlier, later), later);
}

/// The last lane, everywhere.
template <class T, int... I>
POLYSCAN_HOST_INLINE vector_of<T> last_everywhere(const vector_of<T>& value, std::integer_sequence<int, I...>) {
    return {__builtin_shufflevector(value.v, value.v, (I * 0 + vector_of<T>::count - 1)...)};
}
template <class T>
POLYSCAN_HOST_INLINE vector_of<T> last_everywhere(const vector_of<T>& value) {
    return last_everywhere(value, std::make_integer_sequence<int, vector_of<T>::count>{});
}

/// The last lane of the lower half of every group of 2 * Stride.
template <int Stride, class T, int... I>
POLYSCAN_HOST_INLINE vector_of<T> lower_ends(const vector_of<T>& value, std::integer_sequence<int, I...>) {
    return {__builtin_shufflevector(value.v, value.v, ((I & ~(2 * Stride - 1)) + Stride - 1)...)};
}

/// One bit in every group of 2 * Stride: the end of its lower half.
template <int Stride>
constexpr std::uint64_t lower_end_bits = [] {
    std::uint64_t bits = 0;
    for (int i = Stride - 1; i < 64; i += 2 * Stride) bits |= std::uint64_t{1} << i;
    return bits;
}();
/// All bits of a lower half.
template <int Stride>
constexpr std::uint64_t half_bits = (std::uint64_t{1} << Stride) - 1;

/// The rounds of one row of Length values in N vectors. `heads`: whether a segment has begun, of the row up to here.
template <int Length, int Stride, int N, class Operator, class T>
POLYSCAN_HOST_INLINE void rounds(const Operator& op, vector_of<T>* v, std::uint64_t& heads) {
    if constexpr (Stride < Length) {
        constexpr int count = vector_of<T>::count;
        constexpr std::uint64_t upper = (lower_end_bits<Stride> << 1) * half_bits<Stride>;
        const std::uint64_t combining = upper & ~heads;
        if constexpr (Stride < count) {
            POLYSCAN_ALL_AT_ONCE
            for (int k = 0; k < N; ++k) {
                const vector_of<T> lower = lower_ends<Stride>(v[k], std::make_integer_sequence<int, count>{});
                v[k] = combine_some(op, combining >> (k * count), lower, v[k]);
            }
        } else {
            constexpr int half = Stride / count; // in vectors
            POLYSCAN_ALL_AT_ONCE
            for (int first = 0; first < N; first += 2 * half) {
                const vector_of<T> lower = last_everywhere(v[first + half - 1]);
                POLYSCAN_ALL_AT_ONCE
                for (int k = first + half; k < first + 2 * half; ++k)
                    v[k] = combine_some(op, combining >> (k * count), lower, v[k]);
            }
        }
        heads |= ((heads & lower_end_bits<Stride>) << 1) * half_bits<Stride>;
        rounds<Length, 2 * Stride, N>(op, v, heads);
    }
}

/// Whether bytes [0, 8) are not 0, in 8 bits.
POLYSCAN_HOST_INLINE std::uint64_t bits_of_bytes(std::uint64_t bytes) {
    constexpr std::uint64_t low = 0x7f7f7f7f7f7f7f7fu;
    const std::uint64_t set = ((bytes & low) + low) | bytes; // the highest bit of each byte that is not 0
    return ((set & ~low) >> 7) * 0x0102040810204080u >> 56;
}

/// The heads of elements [first, first + Length), first > 0 where they are compared with their neighbours.
template <int Length, class Heads>
POLYSCAN_HOST_INLINE std::uint64_t head_bits(const Heads& heads, index_type first) {
    std::uint64_t bits = 0;
    if constexpr (has_byte_flags<Heads>) {
        const auto* const flags = reinterpret_cast<const unsigned char*>(heads.flags + first);
#if defined(__x86_64__) && POLYSCAN_HOST_BYTES == 64
        if constexpr (Length == 64) {
            const __m512i all = _mm512_loadu_si512(flags);
            return _mm512_test_epi8_mask(all, all);
        }
#endif
        POLYSCAN_ALL_AT_ONCE
        for (int i = 0; i < Length; i += 8) {
            std::uint64_t bytes;
            std::memcpy(&bytes, flags + i, sizeof bytes);
            bits |= bits_of_bytes(bytes) << i;
        }
    } else if constexpr (has_plain_keys<Heads>) {
        const auto* const key = heads.keys + first;
#if defined(__x86_64__) && POLYSCAN_HOST_BYTES == 64
        using key_type = std::remove_cvref_t<decltype(*key)>;
        if constexpr (std::is_integral_v<key_type> && (sizeof(key_type) == 4 || sizeof(key_type) == 8)) {
            constexpr int keys = 64 / static_cast<int>(sizeof(key_type));
            POLYSCAN_ALL_AT_ONCE
            for (int i = 0; i < Length; i += keys) {
                const __m512i here = _mm512_loadu_si512(key + i), before = _mm512_loadu_si512(key + i - 1);
                if constexpr (sizeof(key_type) == 4)
                    bits |= std::uint64_t{_mm512_cmpneq_epi32_mask(here, before)} << i;
                else
                    bits |= std::uint64_t{_mm512_cmpneq_epi64_mask(here, before)} << i;
            }
            return bits;
        }
#endif
        alignas(64) unsigned char differs[Length];
        POLYSCAN_INDEPENDENT_ITERATIONS
        for (int i = 0; i < Length; ++i) differs[i] = key[i] == key[i - 1] ? 0 : 1;
        POLYSCAN_ALL_AT_ONCE
        for (int i = 0; i < Length; i += 8) {
            std::uint64_t bytes;
            std::memcpy(&bytes, differs + i, sizeof bytes);
            bits |= bits_of_bytes(bytes) << i;
        }
    } else {
        bits = other_head_bits(heads, first, Length);
    }
    return bits;
}

/// Values [first, first + count of a vector) as the operator sees them.
template <class Load, class T = typename Load::value_type>
POLYSCAN_HOST_INLINE vector_of<T> values_at(const Load& load_, index_type first) {
    if constexpr (Load::is_plain) {
        return load(load_.in + first);
    } else {
        alignas(POLYSCAN_HOST_BYTES) T values[vector_of<T>::count];
        POLYSCAN_INDEPENDENT_ITERATIONS
        for (int i = 0; i < vector_of<T>::count; ++i) values[i] = load_.value(first + i);
        return load(values);
    }
}

/// The heads alone of `count` full rows from element `first` on.
template <int Length, class Load>
POLYSCAN_HOST_TARGET void find_heads(const Load& load_, index_type first, int count, std::uint64_t* heads_out) {
    for (int r = 0; r < count; ++r, first += Length)
        heads_out[r] = first == 0 ? other_head_bits(load_.heads, 0, Length) : head_bits<Length>(load_.heads, first);
}

/// `count` full rows from element `first` on. Prefixes go to `out` unless that is null, the rows' heads to `heads_out`.
/// As many elements from `fetched` on are asked for, unless that is negative.
template <int Length, class Load, class Operator, class T = typename Load::value_type>
POLYSCAN_HOST_TARGET void scan_rows(const Operator& op, const Load& load_, index_type first, int count, T* out,
                                    std::uint64_t* heads_out, segmented_state<T>& state, index_type fetched) {
    constexpr int lanes_ = vector_of<T>::count, vectors = Length / lanes_;
    constexpr std::uint64_t whole_row = Length == 64 ? ~std::uint64_t{0} : half_bits<Length % 64>;
    vector_of<T> offset = all_lanes<T>(state.offset);
    const vector_of<T> carry = all_lanes<T>(state.carry);
    bool has_offset = state.has_offset, needs_carry = state.has_carry && !state.head;
    for (int r = 0; r < count; ++r, first += Length) {
        std::uint64_t heads =
            first == 0 ? other_head_bits(load_.heads, 0, Length) : head_bits<Length>(load_.heads, first);
        heads_out[r] = heads;
        if (fetched >= 0) {
            prefetch_segmented(load_, fetched, fetched + Length);
            fetched += Length;
        }
        vector_of<T> v[vectors];
        POLYSCAN_ALL_AT_ONCE
        for (int k = 0; k < vectors; ++k) v[k] = values_at(load_, first + k * lanes_);
        if constexpr (Load::has_start) {
            const vector_of<T> start = all_lanes<T>(load_.start);
            POLYSCAN_ALL_AT_ONCE
            for (int k = 0; k < vectors; ++k) v[k] = combine_some(op, heads >> (k * lanes_), start, v[k]);
        }
        rounds<Length, 1, vectors>(op, v, heads);
        const std::uint64_t open = ~heads & whole_row; // no segment of this row has begun
        if (has_offset) {
            POLYSCAN_ALL_AT_ONCE
            for (int k = 0; k < vectors; ++k) v[k] = combine_some(op, open >> (k * lanes_), offset, v[k]);
        }
        offset = last_everywhere(v[vectors - 1]);
        has_offset = true;
        if (out != nullptr) {
            if (needs_carry) {
                POLYSCAN_ALL_AT_ONCE
                for (int k = 0; k < vectors; ++k) v[k] = combine_some(op, open >> (k * lanes_), carry, v[k]);
            }
            POLYSCAN_ALL_AT_ONCE
            for (int k = 0; k < vectors; ++k) store(out + r * Length + k * lanes_, v[k]);
        }
        needs_carry = needs_carry && heads >> (Length - 1) == 0;
        state.head = state.head || heads >> (Length - 1) != 0;
    }
    if (count > 0) state.offset = offset.v[0];
    state.has_offset = has_offset;
}

#undef POLYSCAN_ALL_AT_ONCE
#undef POLYSCAN_HOST_INLINE

} // namespace polyscan::host::POLYSCAN_HOST_ISA::segmented_rows
