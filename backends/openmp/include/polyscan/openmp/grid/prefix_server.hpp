// SPDX-License-Identifier: Apache-2.0
/// Prefix server, the default: a thread reduces its next section while it scans the section that it already holds, so
/// that it never stops reading memory; one server folds the published aggregates in order and hands out carries. The
/// role of the server goes to whoever needs it: a thread that waits for its carry serves while it waits. When a section
/// is scanned, its reduction has left it in the cache.
#pragma once

#include <atomic>
#include <bit>
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

    /// Publishes the aggregates of section s. False if another thread failed. Called once, by the owner of s, which
    /// must have fetched the carries of its earlier sections: they may sit at the same desk.
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

template <class Block, class Request, class Team>
void grid_scan(policy<grid::prefix_server, Block>, const Request& request, const Team& team, int threads) {
    using value_type = typename Request::accumulator_type;
    if (threads <= 1) return scan_in_order<Block>(request); // the same carries, without aggregates

    const tiling<Block, Request> cut(request);
    ticket_counter tickets;
    // A thread holds three sections at most; more desks keep fast threads from waiting for slow ones.
    prefix_server<value_type, typename Request::operator_type> server(cut.sections, 4 * index_type{threads},
                                                                      request.init, request.op);
    team.run(threads, [&](failure& others) {
        tile_pass<Block, Request> pass(request);
        std::vector<value_type> aggregates;
        const auto keep = [&](const value_type& aggregate) { aggregates.push_back(aggregate); };
        // Nobody needs the aggregate of the last tile, which may be partial.
        const auto end_of_reduction = [&](index_type s) { return std::min(cut.first_tile(s + 1), cut.tiles - 1); };

        index_type held = tickets.take();
        if (held >= cut.sections) return;
        for (index_type t = cut.first_tile(held); t < end_of_reduction(held); ++t) keep(pass.reduce(t));
        if (!server.publish(held, aggregates, others)) return;
        for (index_type next = tickets.take(); held < cut.sections;) {
            std::optional<value_type> carry;
            if (!server.fetch(held, others, carry)) return;
            // Drawn before it is needed, because its memory is asked for while `next` is being reduced.
            const index_type following = next < cut.sections ? tickets.take() : cut.sections;
            aggregates.clear();
            tile_ahead ahead{cut.first_tile(std::min(next, cut.sections)), tile_ahead::no_tile};
            for (index_type t = cut.first_tile(held); t < cut.first_tile(held + 1); ++t) {
                if (next >= cut.sections || ahead.tile >= end_of_reduction(next)) {
                    carry.emplace(pass.scan_and_store(t, carry));
                    continue;
                }
                ahead.following = ahead.tile + 1 < cut.first_tile(next + 1) ? ahead.tile + 1
                                  : following < cut.sections                ? cut.first_tile(following)
                                                                            : tile_ahead::no_tile;
                carry.emplace(pass.scan_and_store(t, carry, ahead, keep));
                ++ahead.tile;
            }
            if (next < cut.sections && !server.publish(next, aggregates, others)) return;
            held = next;
            next = following;
        }
    });
}

} // namespace polyscan::openmp
