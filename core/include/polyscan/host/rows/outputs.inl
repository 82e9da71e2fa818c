// SPDX-License-Identifier: Apache-2.0
// Part of row_kernels.inl, which includes it.
//
// Where the outputs of rows go: to memory, past the caches, or through a buffer.

namespace polyscan::host::POLYSCAN_HOST_ISA {

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

} // namespace polyscan::host::POLYSCAN_HOST_ISA
