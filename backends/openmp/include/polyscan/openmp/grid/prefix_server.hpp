// SPDX-License-Identifier: Apache-2.0
/// Prefix server, the default: a thread reduces one section while it scans another that it reduced before, so that it
/// never stops reading memory; one server folds the published aggregates in order and hands out carries. The role of
/// the server goes to whoever needs it: a thread that waits for its carry serves while it waits. When a section is
/// scanned, its reduction has left it in the cache.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include <polyscan/openmp/grid/tile_pass.hpp>
#include <polyscan/openmp/team.hpp>

namespace polyscan::openmp {

/// The server and the desks at which it deals with sections. Section s uses desk s % desks, after section s - desks has
/// left it.
template <class T, class Operator>
class prefix_server {
public:
    prefix_server(index_type sections, index_type desks, const std::optional<T>& init, const Operator& op)
        : sections_(sections), count_(desks), desks_(new desk[static_cast<std::size_t>(desks)]), running_(init),
          op_(op) {
        for (index_type s = 0; s < desks; ++s)
            at(s).free_for.store(s, std::memory_order_relaxed); // no other thread yet
    }

    /// Whether nobody sits at the desk of section s any more: `publish` will not wait.
    bool desk_is_free(index_type s) {
        return at(s).free_for.load(std::memory_order_relaxed) == s; // `publish` acquires
    }

    /// Publishes the aggregates of section s. False if another thread failed. Called once, by the owner of s. It waits
    /// for the desk, where one of the caller's earlier sections may sit: then the caller has to fetch that carry first.
    bool publish(index_type s, const std::vector<T>& aggregates, const failure& others) {
        desk& mine = at(s);
        // Acquire, pairs with the release in `fetch`: the owner of s - desks has read its carry, and, as that carry was
        // handed out after its aggregates were folded, the server has read those.
        if (!wait_until(others, [&] { return mine.free_for.load(std::memory_order_acquire) == s; })) return false;
        mine.aggregates = aggregates;
        // Release, read by the acquire in `serve`: the aggregates above are complete.
        mine.published.store(s, std::memory_order_release);
        return true;
    }

    /// Waits for the carry of section s, serving meanwhile. False if another thread failed. Called once, by the owner.
    bool fetch(index_type s, const failure& others, std::optional<T>& carry) {
        desk& mine = at(s);
        // Acquire, pairs with the release in `serve`: the carry is complete.
        const auto handed_out = [&] {
            if (mine.handed_out.load(std::memory_order_acquire) == s) return true;
            serve();
            return mine.handed_out.load(std::memory_order_acquire) == s;
        };
        if (!wait_until(others, handed_out)) return false;
        carry = mine.carry;
        // Release, read by the acquire in `publish`: this desk's values have been read and may be overwritten.
        mine.free_for.store(s + count_, std::memory_order_release);
        return true;
    }

private:
    struct desk {
        alignas(tuning::separate) std::atomic<index_type> free_for = -1;
        std::atomic<index_type> published = -1;
        std::vector<T> aggregates;
        alignas(tuning::separate) std::atomic<index_type> handed_out = -1;
        std::optional<T> carry;
    };

    // Hands out every carry whose aggregates have been published. One thread at a time; others return at once, and look
    // again when they still have no carry, so nothing is left lying.
    void serve() {
        // Acquire, pairs with the release below: the state of the last server (`next_`, `running_`) is complete.
        if (busy_.load(std::memory_order_relaxed) || busy_.exchange(true, std::memory_order_acquire)) return;
        struct leave {
            std::atomic<bool>& busy;
            ~leave() { busy.store(false, std::memory_order_release); } // also when the operator throws
        } const guard{busy_};
        // Acquire, pairs with the release in `publish`.
        while (next_ < sections_ && at(next_).published.load(std::memory_order_acquire) == next_) {
            desk& customer = at(next_);
            customer.carry = running_;
            // In a value of its own: if the operator throws, the next server finds `running_` as it was.
            std::optional<T> after = running_;
            for (const T& aggregate : customer.aggregates) after.emplace(combine(op_, after, aggregate));
            running_ = std::move(after);
            // Release, read by the acquire in `fetch`: the carry is complete and the aggregates have been read.
            customer.handed_out.store(next_, std::memory_order_release);
            ++next_;
        }
    }

    desk& at(index_type s) { return desks_[static_cast<std::size_t>(s % count_)]; }

    const index_type sections_;
    const index_type count_;
    const std::unique_ptr<desk[]> desks_;
    alignas(tuning::separate) std::atomic<bool> busy_ = false;
    index_type next_ = 0;      // the section to be served next
    std::optional<T> running_; // its carry
    const Operator& op_;
};

/// What a thread has in hand: it scans one section while it reduces another. The memory of those that follow may be
/// asked for; where there is none, its number is the number of sections.
struct sections_in_hand {
    index_type scanned, scanned_next;
    index_type reduced, reduced_next;
};

/// The work of one thread. Between a section's reduction and its scan lies a section's time, in which the others
/// publish what its carry needs. `reduce(section, following)` returns the aggregates of a section, `scan(section,
/// carry)` finishes it, and `scan_and_reduce(sections_in_hand, carry)` does the one while it does the other.
template <class T, class Operator, class Reduce, class Scan, class ScanAndReduce>
void work_through(index_type sections, ticket_counter& tickets, prefix_server<T, Operator>& server,
                  const failure& others, const Reduce& reduce, const Scan& scan, const ScanAndReduce& scan_and_reduce) {
    std::array<index_type, tuning::sections_waiting> waiting; // published and not yet scanned, the oldest first
    std::size_t count = 0;
    std::optional<T> carry;
    const auto fetch_oldest = [&] {
        carry.reset();
        if (!server.fetch(waiting.front(), others, carry)) return false;
        std::shift_left(waiting.begin(), waiting.end(), 1);
        --count;
        return true;
    };
    const auto scan_waiting = [&] {
        while (count > 0) {
            const index_type oldest = waiting.front();
            if (!fetch_oldest()) return false;
            scan(oldest, carry);
        }
        return true;
    };
    for (index_type next = tickets.take(), following; next < sections; next = following) {
        // Drawn before it is needed, because its memory is asked for while `next` is reduced.
        following = std::min(tickets.take(), sections);
        const std::vector<T>* aggregates = nullptr;
        if (count < waiting.size()) {
            aggregates = &reduce(next, following);
        } else {
            const index_type oldest = waiting.front();
            if (!fetch_oldest()) return;
            aggregates =
                &scan_and_reduce(sections_in_hand{oldest, count > 0 ? waiting.front() : next, next, following}, carry);
        }
        // A thread that fell far behind may have a section of its own at that desk. It must not wait for itself.
        if (!server.desk_is_free(next) && !scan_waiting()) return;
        if (!server.publish(next, *aggregates, others)) return;
        waiting[count++] = next;
    }
    scan_waiting();
}

/// How many desks a server of so many threads has. A thread holds the sections that wait, one that it reduces and one
/// that it will; more desks keep fast threads from waiting for slow ones.
constexpr index_type desks_for(int threads) { return (tuning::sections_waiting + 3) * index_type{threads}; }

template <class Block, class Request, class Team>
void grid_scan(policy<grid::prefix_server, Block>, const Request& request, const Team& team, int threads) {
    using value_type = typename Request::accumulator_type;
    if (threads <= 1) return scan_in_order<Block>(request); // the same carries, without aggregates

    const tiling<Block, Request> cut(request);
    ticket_counter tickets;
    prefix_server<value_type, typename Request::operator_type> server(cut.sections, desks_for(threads), request.init,
                                                                      request.op);
    team.run(threads, [&](failure& others) {
        tile_pass<Block, Request> pass(request);
        std::vector<value_type> aggregates;
        const auto keep = [&](const value_type& aggregate) { aggregates.push_back(aggregate); };
        // Nobody needs the aggregate of the last tile, which may be partial.
        const auto end_of_reduction = [&](index_type s) { return std::min(cut.first_tile(s + 1), cut.tiles - 1); };

        const auto reduce = [&](index_type s, index_type) -> const auto& {
            aggregates.clear();
            for (index_type t = cut.first_tile(s); t < end_of_reduction(s); ++t) keep(pass.reduce(t));
            return aggregates;
        };
        const auto scan = [&](index_type s, std::optional<value_type>& carry) {
            for (index_type t = cut.first_tile(s); t < cut.first_tile(s + 1); ++t)
                carry.emplace(pass.scan_and_store(t, carry));
        };
        const auto scan_and_reduce = [&](const sections_in_hand& hand,
                                         std::optional<value_type>& carry) -> const auto& {
            aggregates.clear();
            tile_ahead ahead{cut.first_tile(hand.reduced), tile_ahead::no_tile, cut.first_tile(hand.scanned_next)};
            for (index_type t = cut.first_tile(hand.scanned); t < cut.first_tile(hand.scanned + 1); ++t) {
                if (ahead.tile >= end_of_reduction(hand.reduced)) {
                    carry.emplace(pass.scan_and_store(t, carry));
                    continue;
                }
                ahead.following = ahead.tile + 1 < cut.first_tile(hand.reduced + 1) ? ahead.tile + 1
                                  : hand.reduced_next < cut.sections                ? cut.first_tile(hand.reduced_next)
                                                                                    : tile_ahead::no_tile;
                carry.emplace(pass.scan_and_store(t, carry, ahead, keep));
                ++ahead.tile;
            }
            return aggregates;
        };
        work_through(cut.sections, tickets, server, others, reduce, scan, scan_and_reduce);
    });
}

} // namespace polyscan::openmp
