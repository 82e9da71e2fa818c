// SPDX-License-Identifier: Apache-2.0
// Part of row_kernels.inl, which includes it.
//
// Local prefixes in a buffer, and the block algorithms that make them: Kogge-Stone, Brent-Kung, coarse. Called, too.

namespace polyscan::host::POLYSCAN_HOST_ISA {

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

} // namespace polyscan::host::POLYSCAN_HOST_ISA
