// SPDX-License-Identifier: Apache-2.0
/// Compaction: a thread brings what is selected of its next section together in a buffer while what it has of an
/// earlier section goes to its place. Where that is, the prefix server says, whose values are counts. So the input is
/// read once, each element is asked for once, and nothing is written that is not selected. A partition counts first,
/// because the others' places begin where the selected ones end.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <polyscan/host/past_caches.hpp>
#include <polyscan/host/select_kernels.hpp>
#include <polyscan/openmp/grid/prefix_server.hpp>
#include <polyscan/openmp/scratch.hpp>
#include <polyscan/openmp/team.hpp>
#include <polyscan/select.hpp>

namespace polyscan::openmp {

/// Elements that are copied like bytes, several of which may lie on a stack.
template <class Request>
inline constexpr bool has_select =
    std::is_trivially_copyable_v<host::selected_type<Request>> && sizeof(host::selected_type<Request>) <= 4096 &&
    alignof(host::selected_type<Request>) <= tuning::separate;

/// Outputs in a row, some at a time.
template <class T, class Output>
class output_run {
    static constexpr bool same_elements = std::is_same_v<Output, T*>;

public:
    output_run(const Output& out, bool past_caches) : out_(out), past_caches_(past_caches && same_elements) {}

    void begin(index_type place) {
        place_ = place;
        if constexpr (same_elements)
            if (past_caches_) lines_.begin(out_ + place);
    }
    void append(const T* from, index_type n) {
        if constexpr (same_elements) {
            const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(T);
            if (past_caches_)
                lines_.append(from, bytes);
            else if (n > 0)
                std::memcpy(static_cast<void*>(out_ + place_), from, bytes);
        } else {
            for (index_type i = 0; i < n; ++i) polyscan::detail::put(out_, place_ + i, from[i]);
        }
        place_ += n;
    }
    void flush() { lines_.flush(); }

private:
    const Output& out_;
    const bool past_caches_;
    index_type place_ = 0;
    host::line_writer lines_;
};

/// What all threads of a selection know. `Both`: the others come behind the selected ones, which are `selected`.
template <bool Both, class Request>
struct selection {
    using T = host::selected_type<Request>;
    using output_type = std::remove_cv_t<decltype(Request::out)>;
    static constexpr index_type piece = host::piece_length<T>;
    static constexpr index_type section_pieces =
        std::max<index_type>(1, std::min(tuning::select_section_bytes / static_cast<index_type>(sizeof(T)),
                                         tuning::select_section_elements) /
                                    piece);
    static constexpr index_type section = section_pieces * piece;
    static constexpr index_type lists = Both ? 2 : 1;
    static constexpr index_type ahead = std::min(section_pieces, tuning::select_pieces_ahead) * piece;

    const Request& request;
    const index_type size;
    index_type selected = 0;
    const bool past_caches;

    selection(const Request& r, index_type live)
        : request(r), size(live), past_caches(bytes(live) > host::last_level_bytes()) {}

    index_type sections() const { return ceil_div(size, section); }
    index_type section_end(index_type s) const { return std::min((s + 1) * section, size); }
    /// The piece whose memory is to be asked for with the piece at `at`, in a thread that goes on with section
    /// `following`; -1: none.
    index_type fetched_after(index_type at, index_type following) const {
        const index_type section_last = (at / section + 1) * section, there = at + ahead;
        const index_type i = there < section_last ? there : following * section + (there - section_last);
        return past_caches && i + piece <= size ? i : -1;
    }

private:
    static std::size_t bytes(index_type n) {
        std::size_t each = std::is_pointer_v<decltype(Request::in)> ? sizeof(T) : 0;
        if constexpr (std::is_pointer_v<output_type>) each += sizeof(*std::declval<output_type>());
        return static_cast<std::size_t>(n) * each;
    }
};

/// What a thread has selected of a section.
template <bool Both, class Request>
class selected_section {
    using T = host::selected_type<Request>;

public:
    /// Room for a section in each list.
    selected_section(T* chosen, T* others) : lists_{chosen, others} {}

    /// Begins anew, before element `first`.
    void begin(index_type first) {
        first_ = first;
        size_ = chosen_ = 0;
    }
    /// Selects of the next `count` elements, at most a piece. Those from `fetched` on come later; -1: nothing does.
    void add(const Request& request, int count, index_type fetched) {
        host::piece_values<Request> values;
        const index_type at = first_ + size_;
        chosen_ += host::select_piece<Both>(values.of(request, at, count), request.test, at, count, lists_[0] + chosen_,
                                            Both ? lists_[1] + others() : nullptr, values.address(request, fetched));
        size_ += count;
    }
    index_type first() const { return first_; }
    index_type chosen() const { return chosen_; }
    index_type others() const { return size_ - chosen_; }
    const T* list(int which) const { return lists_[which]; }

private:
    T* lists_[2];
    index_type first_ = 0;
    index_type size_ = 0;
    index_type chosen_ = 0;
};

/// A thread's outputs.
template <bool Both, class Request>
class selection_writer {
    using work = selection<Both, Request>;
    using run = output_run<typename work::T, typename work::output_type>;

public:
    explicit selection_writer(const work& all)
        : all_(all), chosen_(all.request.out, all.past_caches), others_(all.request.out, all.past_caches) {}
    ~selection_writer() {
        flush();
        if (all_.past_caches) host::order_past_caches();
    }
    selection_writer(const selection_writer&) = delete;
    selection_writer& operator=(const selection_writer&) = delete;

    /// `section` comes next; `before` elements before it are selected.
    void begin(const selected_section<Both, Request>& section, index_type before) {
        section_ = &section;
        written_ = {0, 0};
        chosen_.begin(before);
        if constexpr (Both) others_.begin(all_.selected + (section.first() - before));
    }
    /// Writes on until `parts` of `of` are written.
    void write(index_type parts, index_type of) {
        append(chosen_, 0, section_->chosen() * parts / of);
        if constexpr (Both) append(others_, 1, section_->others() * parts / of);
    }
    void flush() {
        chosen_.flush();
        others_.flush();
    }

private:
    void append(run& to, int which, index_type end) {
        index_type& begin = written_[static_cast<std::size_t>(which)];
        to.append(section_->list(which) + begin, end - begin);
        begin = end;
    }

    const work& all_;
    run chosen_, others_;
    const selected_section<Both, Request>* section_ = nullptr;
    std::array<index_type, 2> written_{};
};

/// In the calling thread, piece by piece. Returns how many are selected.
template <bool Both, class Request>
index_type select_in_order(const selection<Both, Request>& all) {
    using work = selection<Both, Request>;
    using T = typename work::T;
    alignas(tuning::separate) std::byte room[static_cast<std::size_t>(work::lists * work::piece) * sizeof(T)];
    T* const lists = reinterpret_cast<T*>(room);
    selected_section<Both, Request> part(lists, lists + (work::lists - 1) * work::piece);
    selection_writer<Both, Request> writer(all);
    index_type before = 0;
    for (index_type first = 0; first < all.size; first += work::piece) {
        part.begin(first);
        part.add(all.request, static_cast<int>(std::min(work::piece, all.size - first)),
                 all.fetched_after(first, all.sections()));
        writer.begin(part, before);
        writer.write(1, 1);
        before += part.chosen();
    }
    return before;
}

/// By several threads, two at least.
template <bool Both, class Request, class Team>
index_type select_in_sections(const selection<Both, Request>& all, const Team& team, int threads, scratch_pool& pool) {
    using work = selection<Both, Request>;
    using T = typename work::T;
    constexpr index_type rooms = tuning::sections_waiting + 1; // for those that wait and the one that is selected
    constexpr index_type room = work::lists * work::section;
    const auto memory = pool.take<T>(threads * rooms * room);
    const index_type sections = all.sections();
    index_type total = 0;
    ticket_counter tickets, workers;
    prefix_server<index_type, plus> server(sections, desks_for(threads), index_type{0}, plus{});
    team.run(threads, [&](failure& others) {
        T* const mine = memory.data() + workers.take() * rooms * room;
        std::vector<selected_section<Both, Request>> parts;
        for (index_type r = 0; r < rooms; ++r) {
            T* const chosen = mine + r * room;
            parts.emplace_back(chosen, chosen + (work::lists - 1) * work::section);
        }
        // Sections are written in the order in which they were selected.
        std::size_t selected = 0, written = 0;
        selection_writer<Both, Request> writer(all);
        std::vector<index_type> count(1);

        const auto select = [&](index_type s, index_type following, const auto& meanwhile) {
            auto& into = parts[selected++ % parts.size()];
            into.begin(s * work::section);
            const index_type end = all.section_end(s);
            for (index_type at = into.first(), done = 1; at < end; at += work::piece, ++done) {
                into.add(all.request, static_cast<int>(std::min(work::piece, end - at)),
                         all.fetched_after(at, following));
                meanwhile(done);
            }
            count.front() = into.chosen();
        };
        const auto write = [&](index_type s, index_type before, const auto& meanwhile) {
            const auto& from = parts[written++ % parts.size()];
            writer.begin(from, before);
            meanwhile();
            writer.write(1, 1);
            writer.flush();
            if (s + 1 == sections) total = before + from.chosen();
        };
        work_through(
            sections, tickets, server, others,
            [&](index_type s, index_type following) -> const auto& {
                select(s, following, [](index_type) {});
                return count;
            },
            [&](index_type s, const std::optional<index_type>& before) { write(s, *before, [] {}); },
            [&](const sections_in_hand& hand, const std::optional<index_type>& before) -> const auto& {
                write(hand.scanned, *before, [&] {
                    select(hand.reduced, hand.reduced_next,
                           [&](index_type pieces) { writer.write(pieces, work::section_pieces); });
                });
                return count;
            });
    });
    return total;
}

/// How many are selected, by one thread or more.
template <class Request, class Team>
index_type count_selected(const selection<true, Request>& all, const Team& team, int threads) {
    using work = selection<true, Request>;
    ticket_counter tickets;
    std::atomic<index_type> total = 0;
    team.run(threads, [&](failure& others) {
        host::piece_values<Request> values;
        index_type sum = 0;
        for (index_type s; (s = tickets.take()) < all.sections() && !others.stopped();)
            for (index_type at = s * work::section; at < all.section_end(s); at += work::piece) {
                const int count = static_cast<int>(std::min(work::piece, all.section_end(s) - at));
                sum += host::count_piece(values.of(all.request, at, count), all.request.test, at, count,
                                         values.address(all.request, all.fetched_after(at, s + 1)));
            }
        // Relaxed: it is read when the team has joined.
        total.fetch_add(sum, std::memory_order_relaxed);
    });
    return total.load(std::memory_order_relaxed);
}

/// `threads(elements)`: how many are worth it. `Both`: a partition.
template <bool Both, class Request, class Team, class Threads>
void select(const Request& request, const Team& team, const Threads& threads, scratch_pool& pool) {
    const index_type size = polyscan::live_count(request.size, request.live);
    selection<Both, Request> all(request, size);
    const int workers = static_cast<int>(std::min<index_type>(all.sections(), threads(size)));
    if constexpr (Both) all.selected = count_selected(all, team, workers);
    const index_type selected = workers <= 1 ? select_in_order(all) : select_in_sections(all, team, workers, pool);
    if (request.count != nullptr) *request.count = selected;
}

} // namespace polyscan::openmp
