// SPDX-License-Identifier: Apache-2.0
// Included by tile_kernels.hpp once for each instruction set, with POLYSCAN_HOST_ISA (a namespace),
// POLYSCAN_HOST_TARGET (what makes the compiler use that set) and POLYSCAN_HOST_BYTES (the width of its vectors)
// defined. Every function here carries the target, because a vector wider than the function's own instruction set is
// taken apart before inlining.
//
// The default tree on rows of vectors, for any operator on numbers:
//  - lanes are combined by a plain loop over `combine`, which compilers turn into one or two vector instructions;
//  - strides below a vector: both operands are brought into place by a permutation. A lane that has nothing to do
//  repeats
//    the work of a neighbour, so an operator sees nothing but nodes of the tree, some of them twice. Built-in operators
//    take whatever stands there, and their result is dropped;
//  - strides of a vector and more: the last lane of the lower half, broadcast, before every vector of the upper half.
namespace polyscan::host::POLYSCAN_HOST_ISA {

#define POLYSCAN_HOST_INLINE POLYSCAN_HOST_TARGET [[gnu::always_inline]] inline

template <class T>
struct lanes {
    static constexpr int count = POLYSCAN_HOST_BYTES / static_cast<int>(sizeof(T));
    typedef T native __attribute__((vector_size(POLYSCAN_HOST_BYTES)));
    typedef T anywhere __attribute__((vector_size(POLYSCAN_HOST_BYTES), aligned(alignof(T)), may_alias));
    native v;
};

/// Lane i of the result is lane Pattern::at(i) of `a`, or of `b` counting on from there.
template <class Pattern, class T, int... I>
POLYSCAN_HOST_INLINE lanes<T> shuffle(const lanes<T>& a, const lanes<T>& b, std::integer_sequence<int, I...>) {
    return {__builtin_shufflevector(a.v, b.v, Pattern::at(I)...)};
}
template <class Pattern, class T>
POLYSCAN_HOST_INLINE lanes<T> shuffle(const lanes<T>& a, const lanes<T>& b) {
    return shuffle<Pattern>(a, b, std::make_integer_sequence<int, lanes<T>::count>{});
}

template <class T>
POLYSCAN_HOST_INLINE lanes<T> load(const T* from) {
    return {*reinterpret_cast<const typename lanes<T>::anywhere*>(from)};
}
template <class T>
POLYSCAN_HOST_INLINE void store(T* to, const lanes<T>& value) {
    *reinterpret_cast<typename lanes<T>::anywhere*>(to) = value.v;
}
/// Elements [at, at + count) as the operator sees them.
template <class Source, class T = typename Source::value_type>
POLYSCAN_HOST_INLINE lanes<T> load_lanes(const Source& in, index_type at) {
    if constexpr (Source::is_plain) {
        return load(in.data() + at);
    } else {
        alignas(POLYSCAN_HOST_BYTES) T values[lanes<T>::count];
        POLYSCAN_INDEPENDENT_ITERATIONS
        for (int i = 0; i < lanes<T>::count; ++i) values[i] = in.load(at + i);
        return load(values);
    }
}

/// Past the caches, where the processor can: `to` is aligned to the vector.
template <class T>
POLYSCAN_HOST_INLINE void stream(T* to, const lanes<T>& value) {
#if !defined(__x86_64__)
    store(to, value);
#elif POLYSCAN_HOST_BYTES == 64
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), reinterpret_cast<__m512i>(value.v));
#elif POLYSCAN_HOST_BYTES == 32
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to), reinterpret_cast<__m256i>(value.v));
#else
    _mm_stream_si128(reinterpret_cast<__m128i*>(to), reinterpret_cast<__m128i>(value.v));
#endif
}

template <class T>
POLYSCAN_HOST_INLINE lanes<T> broadcast(T value) {
    alignas(POLYSCAN_HOST_BYTES) T values[lanes<T>::count];
    for (int i = 0; i < lanes<T>::count; ++i) values[i] = value;
    return load(values);
}

/// Keeps the compiler from looking through a vector at its lanes: it would compute them one by one.
template <class T>
POLYSCAN_HOST_INLINE lanes<T> whole(lanes<T> value) {
#if defined(__x86_64__)
    asm("" : "+x"(value.v));
#elif defined(__aarch64__)
    asm("" : "+w"(value.v));
#endif
    return value;
}

template <class T, class Operator>
POLYSCAN_HOST_INLINE lanes<T> combine_lanes(const Operator& op, const lanes<T>& earlier, const lanes<T>& later) {
    if constexpr (std::is_floating_point_v<T> &&
                  (std::is_same_v<Operator, minimum> || std::is_same_v<Operator, maximum>)) {
        // Compilers keep the branches of these two. As the scalar form: the later one unless the earlier one is NaN,
        // where it is NaN, beyond the earlier one, or the zero with the wanted sign.
        using bits = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
        constexpr bool wants_larger = std::is_same_v<Operator, maximum>;
        const auto low = wants_larger ? earlier.v : later.v, high = wants_larger ? later.v : earlier.v;
        const auto low_bits = reinterpret_cast<typename lanes<bits>::native>(low);
        const auto high_bits = reinterpret_cast<typename lanes<bits>::native>(high);
        const auto later_wins = ~(high <= low) | ((high == low) & (low_bits < high_bits));
        return {((earlier.v == earlier.v) & later_wins) ? later.v : earlier.v};
    }
    alignas(POLYSCAN_HOST_BYTES) T e[lanes<T>::count], l[lanes<T>::count], r[lanes<T>::count];
    store(e, whole(earlier));
    store(l, whole(later));
    POLYSCAN_INDEPENDENT_ITERATIONS
    for (int i = 0; i < lanes<T>::count; ++i) r[i] = combine(op, e[i], l[i]);
    return load(r);
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

template <int Stride, class Mask, int... I>
POLYSCAN_HOST_INLINE Mask upper_halves(std::integer_sequence<int, I...>) {
    return Mask{((I & Stride) != 0 ? -1 : 0)...};
}
/// All ones in the upper halves of groups of 2 * Stride. A choice by a mask is one blend; the same thing as a shuffle
/// costs more on many processors.
template <int Stride, class T>
POLYSCAN_HOST_INLINE auto upper_halves() {
    using mask = decltype(typename lanes<T>::native{} < typename lanes<T>::native{});
    return upper_halves<Stride, mask>(std::make_integer_sequence<int, lanes<T>::count>{});
}

/// The round with this stride, for N vectors side by side: one of them alone would wait for its own results.
template <int Stride, int N, class T, class Operator>
POLYSCAN_HOST_INLINE void round(const Operator& op, lanes<T>* v) {
    if constexpr (Stride < lanes<T>::count) {
        lanes<T> upper[N], made[N];
        for (int i = 0; i < N; ++i) upper[i] = v[i];
        if constexpr (!takes_anything<Operator>)
            for (int i = 0; i < N; ++i) upper[i] = shuffle<upper_half<Stride>>(v[i], v[i]);
        for (int i = 0; i < N; ++i) made[i] = combine_lanes(op, shuffle<lower_half<Stride>>(v[i], v[i]), upper[i]);
        for (int i = 0; i < N; ++i) v[i].v = upper_halves<Stride, T>() ? made[i].v : v[i].v;
    }
}
template <int N, class T, class Operator>
POLYSCAN_HOST_INLINE void scan_lanes(const Operator& op, lanes<T>* v) {
    round<1, N>(op, v);
    round<2, N>(op, v);
    round<4, N>(op, v);
    round<8, N>(op, v);
    round<16, N>(op, v);
    round<32, N>(op, v);
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
inline constexpr int block_vectors = std::min(4, row_shape<T>::vectors);

/// Levels of a stride of a vector and more, inside a block of N vectors.
template <int Stride, int N, class T, class Operator>
POLYSCAN_HOST_INLINE void join_block(const Operator& op, lanes<T>* v) {
    if constexpr (Stride < N) {
        for (int middle = Stride; middle < N; middle += 2 * Stride) {
            const lanes<T> total = shuffle<last_lane<lanes<T>::count>>(v[middle - 1], v[middle - 1]);
            for (int i = middle; i < middle + Stride; ++i) v[i] = combine_lanes(op, total, v[i]);
        }
        join_block<2 * Stride, N>(op, v);
    }
}

template <int N, class T, class Operator>
POLYSCAN_HOST_INLINE void put_before(const Operator& op, const lanes<T>& earlier, lanes<T>* v) {
    for (int i = 0; i < N; ++i) v[i] = combine_lanes(op, earlier, v[i]);
}

/// The state of a scan, in every lane.
template <class T>
struct vector_state {
    lanes<T> offset, carry;
    bool has_offset, has_carry;
    const bool past_caches;

    POLYSCAN_HOST_INLINE explicit vector_state(const scan_state<T>& from)
        : offset(broadcast(from.offset)), carry(broadcast(from.carry)), has_offset(from.has_offset),
          has_carry(from.has_carry), past_caches(from.past_caches) {}
};

/// Block j of a row, N vectors: from elements to outputs. totals[l] is the total of the 2^l blocks before the group of
/// 2^l blocks that j lies in, where j lies in an upper half.
template <int N, class T, class Operator>
POLYSCAN_HOST_INLINE void scan_block(const Operator& op, lanes<T>* v, int j, lanes<T>* totals,
                                     const vector_state<T>& state) {
    scan_lanes<N>(op, v);
    join_block<1, N>(op, v);
    int level = 0;
    for (; (j >> level & 1) != 0; ++level) put_before<N>(op, totals[level], v);
    totals[level] = shuffle<last_lane<lanes<T>::count>>(v[N - 1], v[N - 1]); // the end of a group of 2^level blocks
    for (; 1 << level <= j; ++level)
        if ((j >> level & 1) != 0) put_before<N>(op, totals[level], v);
    if (state.has_offset) put_before<N>(op, state.offset, v);
    if (state.has_carry) put_before<N>(op, state.carry, v);
}

/// Pairs of neighbours, folded: half as many values, in the order that `every_other` leaves.
template <int Level, class T, class Operator>
POLYSCAN_HOST_INLINE lanes<T> fold_pairs(const Operator& op, const lanes<T>& a, const lanes<T>& b) {
    if constexpr (may_reorder<Operator, T>) {
        return combine_lanes(op, a, b); // lanes are sorted out at the end
    } else {
        constexpr int count = lanes<T>::count, unit = 16 / sizeof(T), level = Level % row_shape<T>::lane_levels;
        return combine_lanes(op, shuffle<every_other<level, 0, count, unit>>(a, b),
                             shuffle<every_other<level, 1, count, unit>>(a, b));
    }
}

/// Folds `Vectors` vectors of input into one.
template <int Vectors, class T, class Operator, class Source>
POLYSCAN_HOST_INLINE lanes<T> fold_row(const Operator& op, const Source& in, index_type at) {
    if constexpr (Vectors == 1) {
        return load_lanes(in, at);
    } else {
        constexpr int half = Vectors / 2;
        return fold_pairs<std::countr_zero(static_cast<unsigned>(half))>(
            op, fold_row<half, T>(op, in, at), fold_row<half, T>(op, in, at + half * lanes<T>::count));
    }
}

/// Folds `Parts` vectors, each of which `fold_row` has made of `Vectors` vectors, into one.
template <int Parts, int Vectors, class T, class Operator>
POLYSCAN_HOST_INLINE lanes<T> fold_parts(const Operator& op, const lanes<T>* parts) {
    if constexpr (Parts == 1) {
        return *parts;
    } else {
        constexpr int half = Parts / 2;
        return fold_pairs<std::countr_zero(static_cast<unsigned>(half * Vectors))>(
            op, fold_parts<half, Vectors>(op, parts), fold_parts<half, Vectors>(op, parts + half));
    }
}

/// Scans the full row at `at` and adds its total to the offset.
template <class T, class Operator, class Source>
POLYSCAN_HOST_INLINE void scan_row(const Operator& op, const Source& in, index_type at, T* out,
                                   vector_state<T>& state) {
    constexpr int count = lanes<T>::count, n = block_vectors<T>, blocks = row_shape<T>::vectors / n;
    lanes<T> totals[row_shape<T>::levels + 1];
    POLYSCAN_UNROLL_4
    for (int j = 0; j < blocks; ++j) {
        lanes<T> v[n];
        for (int i = 0; i < n; ++i) v[i] = load_lanes(in, at + (j * n + i) * count);
        scan_block<n>(op, v, j, totals, state);
        T* const to = out + j * n * count;
        if (state.past_caches)
            for (int i = 0; i < n; ++i) stream(to + i * count, v[i]);
        else
            for (int i = 0; i < n; ++i) store(to + i * count, v[i]);
    }
    const lanes<T>& total = totals[std::countr_zero(static_cast<unsigned>(blocks))];
    if (state.has_offset)
        state.offset = combine_lanes(op, state.offset, total);
    else
        state.offset = total;
    state.has_offset = true;
}

/// In which lane `append_rows` finds the total of each row of a group of `count`.
template <class T>
struct lane_of_row {
    static constexpr int count = lanes<T>::count;

    template <int Level>
    static constexpr int value_at(int vector, int lane) {
        if constexpr (Level < 0) {
            return vector * count + lane;
        } else {
            const int from = every_other<Level, 0, count, 16 / sizeof(T)>::at(lane);
            return value_at<Level - 1>(2 * vector + from / count, from % count) / 2;
        }
    }
    static constexpr std::array<int, count> table = [] {
        constexpr int levels = std::countr_zero(static_cast<unsigned>(row_shape<T>::length));
        std::array<int, count> result{};
        for (int lane = 0; lane < count; ++lane)
            result[static_cast<std::size_t>(value_at<levels % row_shape<T>::lane_levels - 1>(0, lane))] = lane;
        return result;
    }();
};

// ---- Strips: what the functions below do at a time; they are the ones that get called

/// Appends a group of `count` rows to the fold.
template <class T, class Operator>
POLYSCAN_HOST_INLINE void append_rows(const Operator& op, const lanes<T>* rows, fold_state<T>& fold) {
    constexpr int count = lanes<T>::count;
    alignas(POLYSCAN_HOST_BYTES) T totals[count];
    if constexpr (may_reorder<Operator, T>) {
        store(totals, fold_parts<count, row_shape<T>::vectors>(op, rows));
        for (int half = count / 2; half >= 1; half /= 2)
            for (int i = 0; i < half; ++i) totals[i] = combine(op, totals[i], totals[i + half]);
        fold.append(op, totals[0]);
    } else {
        store(totals, fold_parts<count, row_shape<T>::vectors>(op, rows));
        for (const int lane : lane_of_row<T>::table) fold.append(op, totals[lane]);
    }
}

template <class T, class Operator, class Source>
POLYSCAN_HOST_TARGET [[gnu::noinline]] void fold_strip(const Operator& op, Source in, index_type at,
                                                       fold_state<T>& fold) {
    using row = row_shape<T>;
    constexpr int count = lanes<T>::count;
    for (int group = 0; group < strip_rows<T>; group += count) {
        lanes<T> rows[count];
        for (int r = 0; r < count; ++r) rows[r] = fold_row<row::vectors, T>(op, in, at + (group + r) * row::length);
        append_rows(op, rows, fold);
    }
}

template <class T>
POLYSCAN_HOST_INLINE T first_lane(const lanes<T>& value) {
    alignas(POLYSCAN_HOST_BYTES) T values[lanes<T>::count];
    store(values, value);
    return values[0];
}

template <class T, class Operator, class Source>
POLYSCAN_HOST_TARGET [[gnu::noinline]] void scan_rows(const Operator& op, Source in, index_type at, int rows, T* out,
                                                      scan_state<T>& state) {
    constexpr int length = row_shape<T>::length;
    vector_state<T> s(state);
    for (int r = 0; r < rows; ++r) scan_row(op, in, at + r * length, out + r * length, s);
    state.offset = first_lane(s.offset);
    state.has_offset = true;
}

template <class T, class Operator, class Source>
POLYSCAN_HOST_TARGET [[gnu::noinline]] void scan_and_fold_strip(const Operator& op, Source in, index_type at, T* out,
                                                                scan_state<T>& state, index_type ahead,
                                                                fold_state<T>& fold, const char* prefetch) {
    constexpr int length = row_shape<T>::length, count = lanes<T>::count;
    vector_state<T> s(state);
    for (int group = 0; group < strip_rows<T>; group += count) {
        lanes<T> rows[count];
        for (int r = group; r < group + count; ++r) {
            if (prefetch != nullptr)
                for (int line = 0; line < Source::row_bytes; line += 64)
                    __builtin_prefetch(prefetch + r * Source::row_bytes + line, 0, 2);
            rows[r - group] = fold_row<row_shape<T>::vectors, T>(op, in, ahead + r * length);
            scan_row(op, in, at + r * length, out + r * length, s);
        }
        append_rows(op, rows, fold);
    }
    state.offset = first_lane(s.offset);
    state.has_offset = true;
}

/// The first `length` elements of a row, length less than a full one: the last row of an input.
template <class T, class Operator, class Source>
POLYSCAN_HOST_TARGET [[gnu::noinline]] void scan_short_row(const Operator& op, Source in, index_type at, int length,
                                                           T* out, const scan_state<T>& before) {
    constexpr int count = lanes<T>::count;
    const vector_state<T> state(before);
    lanes<T> totals[row_shape<T>::levels + 1];
    const int vectors = length / count, rest = length % count;
    for (int j = 0; j < vectors; ++j) {
        lanes<T> v = load_lanes(in, at + j * count);
        scan_block<1>(op, &v, j, totals, state);
        store(out + j * count, v);
    }
    if (rest == 0) return;

    // What does not fill a vector.
    in.skip(at + vectors * count);
    out += vectors * count;
    alignas(POLYSCAN_HOST_BYTES) T v[count]{};
    if constexpr (takes_anything<Operator>) {
        for (int i = 0; i < rest; ++i) v[i] = in.load(i);
        lanes<T> last = load(v);
        scan_block<1>(op, &last, vectors, totals, state);
        store(v, last);
        for (int i = 0; i < rest; ++i) out[i] = v[i];
    } else {
        for (int i = 0; i < rest; ++i) v[i] = in.load(i);
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
}

#undef POLYSCAN_HOST_INLINE

} // namespace polyscan::host::POLYSCAN_HOST_ISA
