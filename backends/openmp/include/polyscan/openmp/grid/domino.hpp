// SPDX-License-Identifier: Apache-2.0
/// Domino: one pass, chained. A thread scans its section, waits for the left neighbour's carry, passes its own on and
/// only then finishes the section. Sections come from a counter, so the section waited for has always been started: no
/// deadlock under any schedule. S. Yan, G. Long, Y. Zhang: "StreamScan: fast scan algorithms for GPUs without global
/// barrier synchronization" (2013).
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <optional>
#include <vector>

#include <polyscan/openmp/grid/tile_pass.hpp>
#include <polyscan/openmp/team.hpp>

namespace polyscan::openmp {

/// The chain: where section s finds what lies before it. A ring, because a link is free again as soon as its one reader
/// has passed the carry on.
template <class T>
class carry_chain {
public:
    /// The carry of the first section: init, or none.
    explicit carry_chain(const std::optional<T>& init) { pass_on(0, init); }

    /// Publishes the carry of section s. Called once per section, by the owner of section s - 1.
    void pass_on(index_type s, const std::optional<T>& carry) {
        link& to = at(s);
        // Nobody reads this link any more: its last reader owned section s - ring, read it before it passed on the
        // carry of s - ring + 1, and by that chain before this thread received the carry of s - 1.
        to.carry = carry;
        // Release, read by the acquire in `receive`: the carry above is complete.
        to.ready.store(s, std::memory_order_release);
    }

    /// Waits for the carry of section s. False if another thread failed. Called once, by the owner of section s.
    bool receive(index_type s, const failure& others, std::optional<T>& carry) {
        link& from = at(s);
        // Acquire, pairs with the release in `pass_on`.
        if (!wait_until(others, [&] { return from.ready.load(std::memory_order_acquire) == s; })) return false;
        carry = from.carry;
        return true;
    }

private:
    struct link {
        alignas(tuning::separate) std::atomic<index_type> ready = -1;
        std::optional<T> carry;
    };
    // One would do; more keep a fast thread from writing to a line that a slow one still has in its cache.
    static constexpr index_type ring = 16;

    link& at(index_type s) { return links_[static_cast<std::size_t>(s % ring)]; }

    std::array<link, ring> links_;
};

template <class Block, class Request, class Team>
void grid_scan(policy<grid::domino, Block>, const Request& request, const Team& team, int threads) {
    using value_type = typename Request::accumulator_type;
    const tiling<Block, Request> cut(request);
    ticket_counter tickets;
    carry_chain<value_type> chain(request.init);

    team.run(threads, [&](failure& others) {
        // One pass per tile of a section: all local prefixes are ready before the carry arrives.
        std::deque<tile_pass<Block, Request>> passes; // they stay where they are made
        for (index_type i = 0; i < std::min(cut.section_tiles, cut.tiles); ++i) passes.emplace_back(request);

        for (index_type s; (s = tickets.take()) < cut.sections;) {
            const index_type begin = cut.first_tile(s), end = cut.first_tile(s + 1);
            std::vector<value_type> aggregates;
            aggregates.reserve(passes.size());
            for (index_type t = begin; t < end; ++t)
                aggregates.push_back(passes[static_cast<std::size_t>(t - begin)].scan(t));

            std::optional<value_type> carry;
            if (!chain.receive(s, others, carry)) return;
            std::optional<value_type> next = carry;
            for (const value_type& aggregate : aggregates) next.emplace(combine(request.op, next, aggregate));
            chain.pass_on(s + 1, next);

            for (index_type t = begin; t < end; ++t)
                carry.emplace(passes[static_cast<std::size_t>(t - begin)].store(t, carry));
        }
    });
}

} // namespace polyscan::openmp
