// SPDX-License-Identifier: Apache-2.0
/// Histograms on a host: each thread counts into bins of its own. Where those would take too much memory, all count
/// into the output.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <polyscan/histogram.hpp>
#include <polyscan/openmp/scratch.hpp>
#include <polyscan/openmp/team.hpp>
#include <polyscan/openmp/tuning.hpp>

namespace polyscan::openmp {

namespace detail {

/// work(first element, end) for pieces of the input, until there are no more.
template <class Work>
void for_each_piece(ticket_counter& tickets, index_type n, const failure& others, Work work) {
    for (index_type first; (first = tickets.take() * tuning::histogram_piece) < n && !others.stopped();)
        work(first, std::min(n, first + tuning::histogram_piece));
}

template <class Request, class Team>
void count_privately(const Request& request, index_type n, const Team& team, int threads, scratch_pool& pool) {
    // One place more than there are bins, in front of them, for what is in no bin: no branch. And several sets of bins
    // in turn where they are small, so that equal neighbours do not wait for each other.
    static_assert(polyscan::detail::no_bin == -1);
    const index_type sets = request.bins <= tuning::bins_in_sets ? tuning::histogram_sets : 1;
    const index_type set_length = request.bins + 1;
    const index_type per_thread =
        ceil_div(sets * set_length * static_cast<index_type>(sizeof(index_type)), index_type{tuning::separate}) *
        index_type{tuning::separate} / static_cast<index_type>(sizeof(index_type));
    auto memory = pool.take<index_type>(threads * per_thread);
    ticket_counter pieces, tables;
    team.run(threads, [&](failure& others) {
        index_type* const mine = memory.data() + tables.take() * per_thread;
        std::fill_n(mine, sets * set_length, 0);
        for_each_piece(pieces, n, others, [&](index_type first, index_type end) {
            index_type i = first;
            if (sets == tuning::histogram_sets)
                for (; i + tuning::histogram_sets <= end; i += tuning::histogram_sets)
                    for (index_type s = 0; s < tuning::histogram_sets; ++s)
                        ++mine[s * set_length + 1 + request.bin_of(request.input[i + s])];
            for (; i < end; ++i) ++mine[1 + request.bin_of(request.input[i])];
        });
    });
    const index_type used = std::min<index_type>(tables.take(), threads); // a runtime may have granted fewer threads
    for (index_type bin = 0; bin < request.bins; ++bin) {
        index_type sum = 0;
        for (index_type t = 0; t < used; ++t)
            for (index_type s = 0; s < sets; ++s) sum += memory.data()[t * per_thread + s * set_length + 1 + bin];
        request.counts[bin] = static_cast<typename Request::count_type>(sum);
    }
}

template <class Request, class Team>
void count_together(const Request& request, index_type n, const Team& team, int threads) {
    using count_type = typename Request::count_type;
    std::fill_n(request.counts, request.bins, count_type{0});
    ticket_counter pieces;
    team.run(threads, [&](failure& others) {
        for_each_piece(pieces, n, others, [&](index_type first, index_type end) {
            for (index_type i = first; i < end; ++i) {
                const index_type bin = request.bin_of(request.input[i]);
                // Relaxed: a count publishes nothing; it is read after the team has joined.
                if (bin != polyscan::detail::no_bin)
                    std::atomic_ref<count_type>(request.counts[bin]).fetch_add(1, std::memory_order_relaxed);
            }
        });
    });
}

} // namespace detail

/// Counts with at most `threads` threads of the team; done on return.
template <class Request, class Team>
void histogram(const Request& request, const Team& team, int threads, scratch_pool& pool) {
    if constexpr (requires { request.bin_of.check(); }) request.bin_of.check();
    const index_type n = live_count(request.size, request.count);
    const int useful = static_cast<int>(std::clamp<index_type>(ceil_div(n, tuning::histogram_piece), 1, threads));
    if (useful * request.bins > tuning::private_bins)
        detail::count_together(request, n, team, useful);
    else
        detail::count_privately(request, n, team, useful, pool);
}

} // namespace polyscan::openmp
