// SPDX-License-Identifier: Apache-2.0
/// The stable radix sort on a host: a pass for each digit, chunks of the elements in parallel.
///
/// The first sweep counts the digits of all passes at once. A pass whose digit is the same in all keys is left out. Any
/// other one needs its own counts for each chunk, gets the place of each chunk's first element of each digit by a scan
/// of them, and moves the elements there. What goes to one digit's place is gathered in a cache line first, which is
/// written as a whole: past the caches where the elements do not fit them, so that memory sees each line once.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <polyscan/host/past_caches.hpp>
#include <polyscan/openmp/scratch.hpp>
#include <polyscan/openmp/team.hpp>
#include <polyscan/openmp/tuning.hpp>
#include <polyscan/radix_sort.hpp>

namespace polyscan::openmp {

namespace detail {

using polyscan::detail::digit_of;
using polyscan::detail::digit_values;
using polyscan::detail::no_value;
using polyscan::detail::sort_elements;
using polyscan::detail::sort_request;

using digit_counts = std::array<index_type, digit_values>;

/// How a pass writes.
enum class writes {
    direct,     ///< element by element: what fits the caches
    past_caches ///< line by line, to memory
};

/// A line of memory for each digit.
struct digit_lines {
    alignas(tuning::line) unsigned char bytes[digit_values][tuning::line];
};

/// The elements of one array that are on their way to their digits' places.
template <class T>
class line_buffer {
public:
    /// Whole elements fill a line. Others are written directly.
    static constexpr bool possible = std::has_single_bit(sizeof(T)) && sizeof(T) < tuning::line;

    /// `first`: where each digit's first element goes. (The lines are no member: what is stored in them is then known
    /// not to change the members, nor the places.)
    line_buffer(T* out, const digit_counts& first, digit_lines& lines)
        : lines_(lines.bytes), out_(out), first_(first.data()),
          phase_(static_cast<index_type>(reinterpret_cast<std::uintptr_t>(out) % tuning::line / sizeof(T))) {}

    void put(unsigned digit, index_type place, const T& value) const {
        const index_type slot = (place + phase_) & (per_line - 1);
        // A full line is written when the next one begins: just after its last element, the processor would have to
        // wait until that element's store is done.
        if (slot == 0) write_line(digit, place);
        std::memcpy(lines_[digit] + slot * size, static_cast<const void*>(&value), sizeof(T));
    }
    /// The last lines. `end`: where each digit's next element would have gone.
    void finish(const digit_counts& end) const {
        for (unsigned digit = 0; digit < digit_values; ++digit) {
            const index_type slot = (end[digit] + phase_) & (per_line - 1);
            if (slot == 0)
                write_line(digit, end[digit]);
            else
                write(digit, end[digit] - slot, end[digit]);
        }
    }

private:
    static constexpr index_type size = sizeof(T);
    static constexpr index_type per_line = possible ? static_cast<index_type>(tuning::line) / size : 1;

    /// The line that ends before `end`, where one line ends and the next begins.
    void write_line(unsigned digit, index_type end) const {
        const index_type begin = end - per_line;
#if defined(__SSE2__)
        if (begin >= first_[digit]) {
            auto* const target = reinterpret_cast<__m128i*>(out_ + begin);
            const auto* const source = reinterpret_cast<const __m128i*>(lines_[digit]);
            for (int i = 0; i < static_cast<int>(tuning::line / sizeof(__m128i)); ++i)
                _mm_stream_si128(target + i, _mm_load_si128(source + i));
            return;
        }
#endif
        write(digit, begin, end);
    }
    /// Elements [begin, end) of a line, those from the digit's first on: what is before them is another chunk's or
    /// digit's.
    void write(unsigned digit, index_type begin, index_type end) const {
        begin = std::max(begin, first_[digit]);
        if (begin < end)
            std::memcpy(static_cast<void*>(out_ + begin), lines_[digit] + ((begin + phase_) & (per_line - 1)) * size,
                        static_cast<std::size_t>((end - begin) * size));
    }

    unsigned char (*lines_)[tuning::line];
    T* out_;
    const index_type* first_;
    index_type phase_; // elements between the line that `out` is in, and `out`
};

/// Writes each element at once.
template <class T>
class no_buffer {
public:
    no_buffer(T* out, const digit_counts&, digit_lines&) : out_(out) {}
    void put(unsigned, index_type place, const T& value) const { out_[place] = value; }
    void finish(const digit_counts&) const {}

private:
    T* out_;
};

template <class T, writes How>
using buffer_for =
    std::conditional_t<How == writes::past_caches && line_buffer<T>::possible, line_buffer<T>, no_buffer<T>>;

/// Moves elements [first, end) to the places of their digits.
template <writes How, class Key, class Value>
void move_chunk(const sort_elements<const Key, const Value>& from, const sort_elements<Key, Value>& to,
                index_type first, index_type end, digit_of<Key> digit, const digit_counts& places) {
    digit_counts next = places;
    digit_lines key_lines;
    const buffer_for<Key, How> keys(to.keys, places, key_lines);
    const Key* const last = from.keys + end;
    if constexpr (std::is_same_v<Value, no_value>) {
        for (const Key* at = from.keys + first; at != last; ++at) {
            const unsigned d = digit(*at);
            keys.put(d, next[d]++, *at);
        }
    } else {
        digit_lines value_lines;
        const buffer_for<Value, How> values(to.values, places, value_lines);
        const Value* value = from.values + first;
        for (const Key* at = from.keys + first; at != last; ++at, ++value) {
            const unsigned d = digit(*at);
            const index_type place = next[d]++;
            keys.put(d, place, *at);
            values.put(d, place, *value);
        }
        values.finish(next);
    }
    keys.finish(next);
    if constexpr (How == writes::past_caches) host::order_past_caches();
}

/// One sort, on `threads` threads at most.
template <class Key, class Value, class Team>
class sorter {
public:
    sorter(const sort_request<Key, Value>& request, index_type size, const Team& team, int threads)
        : request_(request), n_(size), team_(team), threads_(threads),
          chunks_(std::clamp<index_type>(n_ / tuning::least_sort_chunk, 1,
                                         threads > 1 ? tuning::pieces_each * threads : 1)),
          places_(static_cast<std::size_t>(chunks_)) {
        const auto bytes = static_cast<std::size_t>(n_) * (sizeof(Key) + request.value_bytes);
        how_ = 2 * bytes > host::last_level_bytes() ? writes::past_caches : writes::direct;
    }

    void run(scratch_pool& pool) {
        const std::vector<int> passes = count_all();
        const sort_elements<const Key, const Value> input{request_.keys, request_.values};
        const sort_elements<Key, Value> output{request_.keys_out, request_.values_out};
        if (passes.empty()) return copy(input, output);

        // Two copies take turns, and the last pass writes the output.
        const bool needs_copy = passes.size() > 1 || request_.in_place();
        const index_type keys_bytes = polyscan::detail::aligned_offset(n_ * static_cast<index_type>(sizeof(Key)));
        auto memory =
            pool.take<unsigned char>(needs_copy ? keys_bytes + n_ * static_cast<index_type>(request_.value_bytes) : 0);
        const sort_elements<Key, Value> other{reinterpret_cast<Key*>(memory.data()),
                                              reinterpret_cast<Value*>(memory.data() + keys_bytes)};
        sort_elements<const Key, const Value> from = input;
        if (request_.in_place() && passes.size() % 2 == 1) {
            copy(input, other);
            from = other.read_only();
        }
        for (std::size_t i = 0; i < passes.size(); ++i) {
            const sort_elements<Key, Value> to = (passes.size() - i) % 2 == 1 ? output : other;
            pass(from, to, passes[i], i == 0);
            from = to.read_only();
        }
    }

private:
    /// Elements of a chunk: 32 bits count them.
    using narrow_counts = std::array<std::uint32_t, digit_values>;

    index_type chunk_begin(index_type chunk) const { return n_ / chunks_ * chunk + std::min(chunk, n_ % chunks_); }

    /// work(chunk, first element, end) for all chunks.
    template <class Work>
    void for_each_chunk(Work work) {
        ticket_counter tickets;
        team_.run(static_cast<int>(std::min<index_type>(threads_, chunks_)), [&](failure& others) {
            for (index_type c; (c = tickets.take()) < chunks_ && !others.stopped();)
                work(c, chunk_begin(c), chunk_begin(c + 1));
        });
    }

    /// Counts the digits of all passes; leaves those of the first that is needed in `places_`. Returns the passes that
    /// are needed.
    std::vector<int> count_all() {
        const int passes = request_.order.passes();
        std::vector<std::array<digit_counts, sizeof(Key)>> counts(static_cast<std::size_t>(chunks_));
        for_each_chunk([&](index_type c, index_type first, index_type end) {
            // As many passes as a compiler can unroll: one after another where there are more.
            for (int pass = 0; pass < passes;) {
                const int left = passes - pass;
                auto* const to = &counts[static_cast<std::size_t>(c)][static_cast<std::size_t>(pass)];
                pass += left >= 4   ? count_digits<4>(first, end, pass, to)
                        : left >= 2 ? count_digits<2>(first, end, pass, to)
                                    : count_digits<1>(first, end, pass, to);
            }
        });
        std::vector<int> needed;
        for (int pass = 0; pass < passes; ++pass) {
            const auto p = static_cast<std::size_t>(pass);
            bool constant = false;
            for (std::size_t d = 0; d < digit_values && !constant; ++d) {
                index_type total = 0;
                for (const auto& of_chunk : counts) total += of_chunk[p][d];
                constant = total == n_;
            }
            if (constant) continue;
            needed.push_back(pass);
            if (chunks_ == 1) totals_.push_back(counts[0][p]);
            if (needed.size() == 1)
                for (std::size_t c = 0; c < counts.size(); ++c) places_[c] = counts[c][p];
        }
        return needed;
    }

    /// Digits of `Passes` passes from `pass` on. Returns their number.
    template <int Passes>
    int count_digits(index_type first, index_type end, int pass, digit_counts* to) const {
        if constexpr (Passes <= polyscan::detail::key_order<Key>::most_passes) {
            digit_of<Key> digit[Passes];
            for (int p = 0; p < Passes; ++p) digit[p] = request_.order.digit(pass + p);
            std::array<narrow_counts, Passes> counts;
            for (int p = 0; p < Passes; ++p) to[p].fill(0);
            for (index_type begin = first; begin < end; begin += tuning::counted_at_once) {
                for (auto& c : counts) c.fill(0);
                const index_type stop = std::min(end, begin + tuning::counted_at_once);
                for (index_type i = begin; i < stop; ++i)
                    for (std::size_t p = 0; p < Passes; ++p) ++counts[p][digit[p](request_.keys[i])];
                for (std::size_t p = 0; p < Passes; ++p)
                    for (std::size_t d = 0; d < digit_values; ++d) to[p][d] += counts[p][d];
            }
        }
        return Passes;
    }

    void pass(const sort_elements<const Key, const Value>& from, const sort_elements<Key, Value>& to, int number,
              bool is_first) {
        const digit_of<Key> digit = request_.order.digit(number);
        if (!is_first) {
            if (chunks_ == 1) // the keys are in another order, and as many as before
                places_[0] = totals_[++counted_];
            else
                for_each_chunk([&](index_type c, index_type first, index_type end) {
                    digit_counts& counts = places_[static_cast<std::size_t>(c)];
                    counts.fill(0);
                    for (index_type i = first; i < end; ++i) ++counts[digit(from.keys[i])];
                });
        }
        index_type sum = 0;
        for (std::size_t d = 0; d < digit_values; ++d)
            for (digit_counts& of_chunk : places_) {
                const index_type count = of_chunk[d];
                of_chunk[d] = sum;
                sum += count;
            }
        for_each_chunk([&](index_type c, index_type first, index_type end) {
            const digit_counts& places = places_[static_cast<std::size_t>(c)];
            if (how_ == writes::direct)
                move_chunk<writes::direct>(from, to, first, end, digit, places);
            else
                move_chunk<writes::past_caches>(from, to, first, end, digit, places);
        });
    }

    void copy(const sort_elements<const Key, const Value>& from, const sort_elements<Key, Value>& to) {
        for_each_chunk([&](index_type, index_type first, index_type end) {
            if (from.keys != to.keys) std::copy(from.keys + first, from.keys + end, to.keys + first);
            if constexpr (request_type::has_values)
                if (from.values != to.values) std::copy(from.values + first, from.values + end, to.values + first);
        });
    }

    using request_type = sort_request<Key, Value>;
    const request_type& request_;
    index_type n_;
    const Team& team_;
    int threads_;
    index_type chunks_;
    writes how_;
    std::vector<digit_counts> places_; // of each chunk: counts, and then places
    std::vector<digit_counts> totals_; // of the needed passes, where there is one chunk
    std::size_t counted_ = 0;
};

} // namespace detail

/// Sorts with at most `threads` threads of the team; done on return.
template <class Key, class Value, class Team>
void radix_sort(const polyscan::detail::sort_request<Key, Value>& request, const Team& team, int threads,
                scratch_pool& pool) {
    const index_type n = live_count(request.size, request.count);
    if (n > 0) detail::sorter<Key, Value, Team>(request, n, team, threads).run(pool);
}

} // namespace polyscan::openmp
