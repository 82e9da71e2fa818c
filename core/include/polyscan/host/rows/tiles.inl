// SPDX-License-Identifier: Apache-2.0
// Part of row_kernels.inl, which includes it.
//
// The functions that get called under the default tree: fold a tile, scan a tile, scan few elements.

namespace polyscan::host::POLYSCAN_HOST_ISA {

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

} // namespace polyscan::host::POLYSCAN_HOST_ISA
