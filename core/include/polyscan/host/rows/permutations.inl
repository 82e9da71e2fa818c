// SPDX-License-Identifier: Apache-2.0
// Part of row_kernels.inl, which includes it.
//
// Rounds inside of a vector: what goes where, and how the nodes of two vectors are dealt out to one.

namespace polyscan::host::POLYSCAN_HOST_ISA {

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

} // namespace polyscan::host::POLYSCAN_HOST_ISA
