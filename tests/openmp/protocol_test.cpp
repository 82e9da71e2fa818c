// SPDX-License-Identifier: Apache-2.0
/// The hand-over protocols alone, driven by std::threads: no OpenMP runtime is involved, so that the thread sanitizer
/// of any compiler sees every synchronisation. The models in models/ check the same protocols under every schedule of a
/// few steps; this checks the code over many steps of a few schedules.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <latch>
#include <new>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <polyscan/openmp.hpp>

#include "reduced.hpp"

namespace {

using polyscan::index_type;
using namespace polyscan::openmp;

/// Threads that start in descending order of their number, the last one first, while the first still sleeps.
struct reverse_team {
    std::chrono::microseconds between{50};

    template <class Worker>
    void run(int threads, Worker&& worker) const {
        failure shared;
        std::atomic<int> turn = threads;
        std::vector<std::jthread> all;
        for (int i = 0; i < threads; ++i)
            all.emplace_back([&, i] {
                while (turn.load(std::memory_order_acquire) > i) std::this_thread::yield();
                run_guarded(shared, worker);
            });
        for (int i = threads - 1; i >= 0; --i) {
            turn.store(i, std::memory_order_release);
            std::this_thread::sleep_for(between);
        }
        for (std::jthread& one : all) one.join();
        shared.rethrow();
    }
};

index_type steps(index_type full) { return polyscan::test::rounds(full, full / 10); }

/// Some sections take much longer than others: the same ones in every run, whoever owns them.
void delay(index_type section) {
    const auto mixed = static_cast<std::uint64_t>(section) * 0x9e3779b97f4a7c15u >> 56;
    if (mixed == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
    if (mixed < 24) std::this_thread::yield();
}

/// 4 bytes, published together with its status: the sections [begin, end), modulo 2^16. Only neighbours combine.
struct interval {
    std::uint16_t begin, end;
    friend bool operator==(const interval&, const interval&) = default;
};

/// The value of a type for section s, and what must lie before it; the operator is associative, not commutative.
template <class T>
struct values;

template <>
struct values<interval> {
    static interval of(index_type s) { return {static_cast<std::uint16_t>(s), static_cast<std::uint16_t>(s + 1)}; }
    static interval init() { return {0, 0}; }
    static interval before(index_type s) { return {0, static_cast<std::uint16_t>(s)}; }
    static interval combine(const interval& earlier, const interval& later) {
        // Any other pair poisons all that follows: a begin of 1 never goes away.
        return earlier.end == later.begin ? interval{earlier.begin, later.end} : interval{1, later.end};
    }
};

/// Text on the heap, in records of its own beside the status: the last 48 characters of everything so far.
template <>
struct values<std::string> {
    static constexpr std::size_t kept = 48;
    static std::string of(index_type s) { return "<" + std::to_string(s) + ">"; }
    static std::string init() { return "init"; }
    static std::string before(index_type s) {
        std::string text = s < 30 ? init() : "";
        for (index_type earlier = std::max<index_type>(0, s - 30); earlier < s; ++earlier) text += of(earlier);
        return last(text);
    }
    static std::string combine(const std::string& earlier, const std::string& later) { return last(earlier + later); }

private:
    static std::string last(const std::string& text) {
        return text.size() <= kept ? text : text.substr(text.size() - kept);
    }
};

template <class T>
struct joined {
    T operator()(const T& earlier, const T& later) const { return values<T>::combine(earlier, later); }
};

/// The same, and throws when section `at` is the later operand.
struct bomb : std::runtime_error {
    using std::runtime_error::runtime_error;
};
struct throwing {
    index_type at;
    std::string operator()(const std::string& earlier, const std::string& later) const {
        if (later == values<std::string>::of(at)) throw bomb("section " + std::to_string(at));
        return values<std::string>::combine(earlier, later);
    }
};

// ---- each protocol as its grid algorithm uses it, with one value per section ----------------------------------------
// `seen(s, carry)` is called once for each section, by its owner, while the others go on.

template <class T, class Operator, class Team, class Seen>
void run_domino(const Team& team, int threads, index_type sections, const Operator& op, const Seen& seen) {
    ticket_counter tickets;
    carry_chain<T> chain(values<T>::init());
    team.run(threads, [&](failure& others) {
        for (index_type s; (s = tickets.take()) < sections;) {
            delay(s);
            std::optional<T> carry;
            if (!chain.receive(s, others, carry)) return;
            chain.pass_on(s + 1, std::optional<T>(op(*carry, values<T>::of(s))));
            seen(s, *carry);
        }
    });
}

template <class T, class Operator, class Team, class Seen>
void run_look_back(const Team& team, int threads, index_type tiles, const Operator& op, const Seen& seen) {
    ticket_counter tickets;
    std::vector<published<T>> descriptors(static_cast<std::size_t>(tiles));
    team.run(threads, [&](failure& others) {
        for (index_type t; (t = tickets.take()) < tiles;) {
            auto& mine = descriptors[static_cast<std::size_t>(t)];
            std::optional<T> carry = values<T>::init();
            if (t > 0) {
                mine.publish_aggregate(values<T>::of(t));
                delay(t); // others must walk past this tile's aggregate
                carry = look_back(descriptors, t, op, others);
                if (!carry) return;
            }
            mine.publish_carry(op(*carry, values<T>::of(t)));
            seen(t, *carry);
        }
    });
}

template <class T, class Operator, class Team, class Seen>
void run_prefix_server(const Team& team, int threads, index_type desks, index_type sections, const Operator& op,
                       const Seen& seen) {
    ticket_counter tickets;
    prefix_server<T, Operator> server(sections, desks, values<T>::init(), op);
    team.run(threads, [&](failure& others) {
        std::vector<T> aggregates;
        const auto reduce = [&](index_type s, index_type) -> const auto& {
            delay(s);
            aggregates.assign(1, values<T>::of(s));
            return aggregates;
        };
        const auto scan = [&](index_type s, const std::optional<T>& carry) { seen(s, *carry); };
        work_through(sections, tickets, server, others, reduce, scan,
                     [&](const sections_in_hand& hand, const std::optional<T>& carry) -> const auto& {
                         scan(hand.scanned, carry);
                         return reduce(hand.reduced, hand.reduced_next);
                     });
    });
}

/// Counts sections with the right carry; doctest's own macros are not for many threads at once.
template <class T>
struct judge {
    std::atomic<index_type> right = 0;
    std::atomic<index_type> wrong = 0;
    void operator()(index_type s, const T& carry) { ++(carry == values<T>::before(s) ? right : wrong); }
};

template <class T>
void check_all(index_type sections, auto run) {
    judge<T> found;
    run([&found](index_type s, const T& carry) { found(s, carry); });
    CHECK(found.wrong == 0);
    CHECK(found.right == sections);
}

constexpr int many = 8; // more workers than most test machines have processors

} // namespace

TEST_CASE("tickets: every number once, ascending in each thread") {
    const index_type count = steps(100'000);
    ticket_counter tickets;
    std::vector<std::atomic<int>> taken(static_cast<std::size_t>(count));
    std::atomic<bool> ascending = true;
    reverse_team{}.run(many, [&](failure&) {
        index_type last = -1;
        for (index_type s; (s = tickets.take()) < count; last = s) {
            if (s <= last) ascending = false;
            ++taken[static_cast<std::size_t>(s)];
        }
    });
    CHECK(ascending);
    CHECK(std::all_of(taken.begin(), taken.end(), [](const auto& times) { return times == 1; }));
}

TEST_CASE_TEMPLATE("every section gets the fold of all earlier ones", T, interval, std::string) {
    for (const int threads : {1, 2, 3, many}) {
        CAPTURE(threads);
        // Many times round the ring of links and the desks, and past 2^16 for the interval; with more threads than
        // there may be processors, where every hand-over is a change of threads, fewer.
        const index_type sections = steps(std::is_same_v<T, interval> && threads < many ? 70'000 : 10'000);
        SUBCASE("domino") {
            check_all<T>(sections,
                         [&](auto seen) { run_domino<T>(reverse_team{}, threads, sections, joined<T>{}, seen); });
        }
        SUBCASE("look_back") {
            check_all<T>(sections,
                         [&](auto seen) { run_look_back<T>(reverse_team{}, threads, sections, joined<T>{}, seen); });
        }
        SUBCASE("prefix_server") {
            check_all<T>(sections, [&](auto seen) {
                run_prefix_server<T>(reverse_team{}, threads, 4 * threads, sections, joined<T>{}, seen);
            });
        }
    }
}

TEST_CASE_TEMPLATE("prefix server: fewer desks than workers", T, interval, std::string) {
    const index_type sections = steps(2'000);
    for (const index_type desks : {1, 2, 3, 7}) {
        CAPTURE(desks);
        check_all<T>(sections, [&](auto seen) {
            run_prefix_server<T>(reverse_team{}, many, desks, sections, joined<T>{}, seen);
        });
    }
}

TEST_CASE("fewer sections than workers") {
    for (const index_type sections : {1, 2, 3, 5}) {
        CAPTURE(sections);
        using T = std::string;
        check_all<T>(sections, [&](auto seen) { run_domino<T>(reverse_team{}, many, sections, joined<T>{}, seen); });
        check_all<T>(sections, [&](auto seen) { run_look_back<T>(reverse_team{}, many, sections, joined<T>{}, seen); });
        check_all<T>(sections, [&](auto seen) {
            run_prefix_server<T>(reverse_team{}, many, 4 * many, sections, joined<T>{}, seen);
        });
    }
}

TEST_CASE("published: a reader never pairs a status with another status's value") {
    // One writer, readers that look all the time: the aggregate of tile t is of(t), its carry before(t + 1).
    const index_type tiles = steps(2'000);
    const auto look = [&]<class T>(std::type_identity<T>) {
        std::vector<published<T>> descriptors(static_cast<std::size_t>(tiles));
        std::atomic<index_type> wrong = 0;
        std::atomic<int> number = 0;
        reverse_team{}.run(4, [&](failure&) {
            const bool writes = number++ == 0;
            for (index_type t = 0; t < tiles; ++t) {
                auto& tile = descriptors[static_cast<std::size_t>(t)];
                if (writes) {
                    tile.publish_aggregate(values<T>::of(t));
                    delay(t);
                    tile.publish_carry(values<T>::before(t + 1));
                    continue;
                }
                polyscan::tile_state last = polyscan::tile_state::empty;
                while (last != polyscan::tile_state::carry) {
                    const auto [state, value] = tile.read();
                    if (state < last) ++wrong; // went backwards
                    last = state;
                    if (state == polyscan::tile_state::aggregate && T(*value) != values<T>::of(t)) ++wrong;
                    if (state == polyscan::tile_state::carry && T(*value) != values<T>::before(t + 1)) ++wrong;
                    if (state == polyscan::tile_state::empty) std::this_thread::yield();
                }
            }
        });
        CHECK(wrong == 0);
    };
    SUBCASE("one word") { look(std::type_identity<interval>{}); }
    SUBCASE("record") { look(std::type_identity<std::string>{}); }
}

// ---- failures: everybody stops, nobody hangs, the exception arrives -------------------------------------------------

TEST_CASE("the operator throws") {
    const index_type sections = 60;
    const auto ignore = [](index_type, const std::string&) {};
    for (const int threads : {1, 2, many})
        for (const index_type at : {index_type{0}, index_type{1}, index_type{7}, sections / 2, sections - 1}) {
            CAPTURE(threads);
            CAPTURE(at);
            CHECK_THROWS_AS(run_domino<std::string>(reverse_team{}, threads, sections, throwing{at}, ignore), bomb);
            CHECK_THROWS_AS(run_look_back<std::string>(reverse_team{}, threads, sections, throwing{at}, ignore), bomb);
            CHECK_THROWS_AS(
                run_prefix_server<std::string>(reverse_team{}, threads, 4 * threads, sections, throwing{at}, ignore),
                bomb);
            CHECK_THROWS_AS(run_prefix_server<std::string>(reverse_team{}, threads, 1, sections, throwing{at}, ignore),
                            bomb);
        }
}

TEST_CASE("a server that threw leaves the state of the last complete section") {
    struct counting {
        int* calls;
        std::string operator()(const std::string& earlier, const std::string& later) const {
            if (++*calls == 2) throw bomb("the second call");
            return earlier + later;
        }
    };
    int calls = 0;
    const counting op{&calls};
    failure others;
    std::optional<std::string> carry;
    prefix_server<std::string, counting> server(2, 4, std::string("i"), op);
    REQUIRE(server.publish(0, {"a", "b"}, others));
    CHECK_THROWS_AS(server.fetch(0, others, carry), bomb); // "i" and "a" are combined, "b" is not
    REQUIRE(server.fetch(0, others, carry));
    CHECK(*carry == "i");
    REQUIRE(server.publish(1, {"c"}, others));
    REQUIRE(server.fetch(1, others, carry));
    CHECK(*carry == "iab");
}

TEST_CASE("a worker throws while others wait for it") {
    using T = std::string;
    const index_type sections = 40;
    for (const index_type at : {0, 1, 5, 39}) {
        CAPTURE(at);
        // Instead of what the others wait for: nothing is ever published for section `at`.
        ticket_counter tickets;
        carry_chain<T> chain(T("init"));
        CHECK_THROWS_AS(reverse_team{}.run(many,
                                           [&](failure& others) {
                                               for (index_type s; (s = tickets.take()) < sections;) {
                                                   if (s == at) throw bomb("before the hand-over");
                                                   std::optional<T> carry;
                                                   if (!chain.receive(s, others, carry)) return;
                                                   chain.pass_on(s + 1, carry);
                                               }
                                           }),
                        bomb);

        ticket_counter more_tickets;
        std::vector<published<T>> descriptors(static_cast<std::size_t>(sections));
        CHECK_THROWS_AS(reverse_team{}.run(many,
                                           [&](failure& others) {
                                               for (index_type t; (t = more_tickets.take()) < sections;) {
                                                   if (t == at) throw bomb("before the aggregate");
                                                   auto& mine = descriptors[static_cast<std::size_t>(t)];
                                                   std::optional<T> carry = "init";
                                                   if (t > 0) {
                                                       mine.publish_aggregate(values<T>::of(t));
                                                       carry = look_back(descriptors, t, joined<T>{}, others);
                                                       if (!carry) return;
                                                   }
                                                   mine.publish_carry(*carry);
                                               }
                                           }),
                        bomb);

        ticket_counter last_tickets;
        const joined<T> op;
        prefix_server<T, joined<T>> server(sections, 4 * many, T("init"), op);
        CHECK_THROWS_AS(reverse_team{}.run(many,
                                           [&](failure& others) {
                                               for (index_type s; (s = last_tickets.take()) < sections;) {
                                                   if (s == at) throw bomb("before the aggregates");
                                                   std::optional<T> carry;
                                                   if (!server.publish(s, std::vector<T>{values<T>::of(s)}, others))
                                                       return;
                                                   if (!server.fetch(s, others, carry)) return;
                                               }
                                           }),
                        bomb);
    }
}

TEST_CASE("all workers throw at once: one exception arrives") {
    std::latch together(many);
    std::atomic<int> number = 0;
    try {
        reverse_team{}.run(many, [&](failure&) {
            together.arrive_and_wait();
            throw bomb(std::to_string(number++));
        });
        FAIL("no exception");
    } catch (const bomb& caught) {
        const int which = std::atoi(caught.what());
        CHECK(which >= 0);
        CHECK(which < many);
    }
}

namespace {

/// A value whose copying fails at the n-th time, as an allocation may.
struct fragile {
    std::string text;

    fragile(std::string value) : text(std::move(value)) {}
    fragile(const fragile& other) : text(other.text) {
        if (copies_left.fetch_sub(1, std::memory_order_relaxed) == 1) throw std::bad_alloc();
    }
    fragile(fragile&&) = default;
    fragile& operator=(const fragile& other) {
        fragile copy(other);
        text.swap(copy.text);
        return *this;
    }
    fragile& operator=(fragile&&) = default;
    friend bool operator==(const fragile&, const fragile&) = default;

    static inline std::atomic<long> copies_left = 0;
};

template <>
struct values<fragile> {
    static fragile of(index_type s) { return values<std::string>::of(s); }
    static fragile init() { return values<std::string>::init(); }
    static fragile before(index_type s) { return values<std::string>::before(s); }
    static fragile combine(const fragile& earlier, const fragile& later) {
        return values<std::string>::combine(earlier.text, later.text);
    }
};

} // namespace

TEST_CASE("the n-th copy of a value throws") {
    const index_type sections = 12;
    const auto survive = [&](auto run) {
        int thrown = 0;
        for (long n = 1; n <= steps(150); ++n) {
            judge<fragile> found;
            fragile::copies_left = n;
            try {
                run([&found](index_type s, const fragile& carry) { found(s, carry); });
                // Not a copy too many: then everything was right.
                CHECK(found.right == sections);
            } catch (const std::bad_alloc&) {
                ++thrown;
            }
        }
        CHECK(thrown > 0);
    };
    const reverse_team team{std::chrono::microseconds(0)};
    survive([&](auto seen) { run_domino<fragile>(team, 3, sections, joined<fragile>{}, seen); });
    survive([&](auto seen) { run_look_back<fragile>(team, 3, sections, joined<fragile>{}, seen); });
    survive([&](auto seen) { run_prefix_server<fragile>(team, 3, 2, sections, joined<fragile>{}, seen); });
}

// ---- the grid algorithms whole, on std::threads
// ----------------------------------------------------------------------

TEST_CASE("whole scans in threads that start in reverse order") {
    const polyscan::openmp::options wanted{many, 0};
    basic_backend<reverse_team> threads(wanted, reverse_team{});
    const auto check = [&](auto policy, const auto& in, const auto& init, const auto& op) {
        using T = std::decay_t<decltype(in[0])>;
        std::vector<T> out(in.size(), init), expected(in.size(), init);
        std::inclusive_scan(in.begin(), in.end(), expected.begin(), op, init);
        polyscan::inclusive_scan(threads, in, out, op, policy, polyscan::with_init{init});
        CHECK((out == expected));
    };
    const auto all = [&](const auto& in, const auto& init, const auto& op) {
        check(polyscan::policies::domino, in, init, op);
        check(polyscan::policies::look_back, in, init, op);
        check(polyscan::policies::three_pass, in, init, op);
        check(polyscan::policies::prefix_server, in, init, op);
    };
    SUBCASE("int64_t") {
        std::vector<std::int64_t> in(static_cast<std::size_t>(steps(1'000'000)));
        std::iota(in.begin(), in.end(), -1000);
        all(in, std::int64_t{7}, polyscan::plus{});
    }
    SUBCASE("std::string") {
        std::vector<std::string> in;
        for (index_type i = 0; i < steps(50'000); ++i) in.push_back(values<std::string>::of(i));
        all(in, values<std::string>::init(), joined<std::string>{});
    }
}
