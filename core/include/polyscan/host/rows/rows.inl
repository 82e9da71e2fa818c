// SPDX-License-Identifier: Apache-2.0
// Part of row_kernels.inl, which includes it.
//
// A row of the tree, or several in turn: fold and scan; outputs that start in the middle of a vector.

namespace polyscan::host::POLYSCAN_HOST_ISA {

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

} // namespace polyscan::host::POLYSCAN_HOST_ISA
