// SPDX-License-Identifier: Apache-2.0
/// The steps of docs/tutorial.md, in order.
#include <cstdint>
#include <ranges>
#include <stdexcept>
#include <string>
#include <vector>

#include <polyscan/openmp.hpp>

#include "expect.hpp"

using snippet::expect;

namespace {

void kinds_and_init(polyscan::openmp::backend& cpu) {
    // [kinds]
    const std::vector<int> in{3, 1, 4, 1, 5};
    std::vector<int> out(5);

    polyscan::inclusive_scan(cpu, in, out);     // 3 4 8 9 14: element i is in output i
    polyscan::exclusive_scan(cpu, in, out);     // 0 3 4 8 9: only what comes before it
    polyscan::exclusive_scan(cpu, in, out, 10); // 10 13 14 18 19: the same, starting from an init
    // [kinds]
    expect(out, {10, 13, 14, 18, 19}, "exclusive with init");
    polyscan::exclusive_scan(cpu, in, out);
    expect(out, {0, 3, 4, 8, 9}, "exclusive");
    polyscan::inclusive_scan(cpu, in, out);
    expect(out, {3, 4, 8, 9, 14}, "inclusive");

    // [in place]
    std::vector<int> values{3, 1, 4, 1, 5};
    polyscan::inclusive_scan(cpu, values, values, polyscan::maximum{}); // 3 3 4 4 5, in place
    // [in place]
    expect(values, {3, 3, 4, 4, 5}, "in place");
}

void accumulators(polyscan::openmp::backend& cpu) {
    // [accumulator]
    const std::vector<std::uint8_t> bytes(1000, 255);
    std::vector<std::uint64_t> sums(1000);

    polyscan::inclusive_scan(cpu, bytes, sums);               // the output's type has room: 255 ... 255000
    polyscan::inclusive_scan<std::uint8_t>(cpu, bytes, sums); // asked for: wraps around at 256
    // [accumulator]
    expect(sums[1] == 254, "the named accumulator wraps");
    polyscan::inclusive_scan(cpu, bytes, sums);
    expect(sums.back() == 255000, "the deduced accumulator does not");
}

void options(polyscan::openmp::backend& cpu) {
    // [options]
    const std::vector<std::string> words{"one", "three", "five"};
    std::vector<std::size_t> begins(3);
    std::size_t letters = 0;

    // Where each word begins when all are written into one buffer, and how long that is.
    polyscan::exclusive_scan(cpu, words, begins, std::size_t{0}, polyscan::plus{}, polyscan::default_policy{},
                             polyscan::with_transform{[](const std::string& word) { return word.size(); }},
                             polyscan::total_to{&letters});
    // [options]
    expect(begins, {0, 3, 8}, "begins");
    expect(letters == 12, "total");
}

void inputs_and_outputs(polyscan::openmp::backend& cpu) {
    // [views]
    std::vector<int> sums(6);
    polyscan::inclusive_scan(cpu, std::views::iota(1, 7), sums);            // 1 3 6 10 15 21: nothing is stored first
    polyscan::inclusive_scan(cpu, polyscan::counted(sums.data(), 3), sums); // the first three: 1 4 10
    polyscan::inclusive_scan(cpu, std::views::iota(0, 6), polyscan::to_function([&](polyscan::index_type i, int sum) {
                                 sums[static_cast<std::size_t>(5 - i)] = sum; // backwards: an output can be a function
                             }));
    // [views]
    expect(sums, {15, 10, 6, 3, 1, 0}, "output by function");
}

void choosing_a_policy(polyscan::openmp::backend& cpu) {
    const std::vector<float> in(100000, 0.1F);
    std::vector<float> out(in.size());
    // [policies]
    polyscan::inclusive_scan(cpu, in, out, polyscan::plus{}, polyscan::policies::domino);  // a short name
    using mine = polyscan::policy<polyscan::grid::look_back, polyscan::block::brent_kung>; // or any of the 20
    polyscan::inclusive_scan(cpu, in, out, polyscan::plus{}, mine{});
    // [policies]
    const std::vector<float> first = out;
    // [same bits]
    polyscan::openmp::backend one_thread(1), three_threads(3);
    polyscan::inclusive_scan(one_thread, in, out, polyscan::plus{}, mine{});
    std::vector<float> again(in.size());
    polyscan::inclusive_scan(three_threads, in, again, polyscan::plus{}, mine{});
    // out and again are the same bits: the policy fixes the order of the additions, not the threads.
    // [same bits]
    expect(out == again && out == first, "the number of threads changes no bit");
}

void errors(polyscan::openmp::backend& cpu) {
    std::string message;
    // [errors]
    std::vector<int> values{3, 1, 4, 1, 5};
    try {
        // Output and input overlap, and do not start at the same address.
        polyscan::inclusive_scan(cpu, polyscan::counted(values.data(), 4), values.data() + 1);
    } catch (const std::invalid_argument& broken) {
        message = broken.what(); // names the argument and the rule; nothing has been written
    }
    // [errors]
    expect(message.find("out") != std::string::npos && message.find("overlap") != std::string::npos, message.c_str());
    expect(values, {3, 1, 4, 1, 5}, "nothing is written");
}

// [longest run]
// How long is the longest run of true ending here, and in all so far? A struct as an element, an operator of our own.
struct runs {
    int length;  // elements
    int prefix;  // leading ones
    int suffix;  // trailing ones
    int longest; // in a row
};

struct join_runs {
    runs operator()(const runs& earlier, const runs& later) const {
        return {earlier.length + later.length,
                earlier.prefix == earlier.length ? earlier.length + later.prefix : earlier.prefix,
                later.suffix == later.length ? earlier.suffix + later.length : later.suffix,
                std::max({earlier.longest, later.longest, earlier.suffix + later.prefix})};
    }
};
// [longest run]

void custom_operator(polyscan::openmp::backend& cpu) {
    // [use longest run]
    const std::vector<bool> hits{true, true, false, true, true, true, false, true};
    std::vector<runs> so_far(hits.size());
    polyscan::inclusive_scan<runs>(cpu, hits, so_far, join_runs{}, polyscan::default_policy{},
                                   polyscan::with_transform{[](bool hit) { return runs{1, hit, hit, hit}; }});
    // so_far[i].longest: 1 2 2 2 2 3 3 3
    // [use longest run]
    std::vector<int> longest;
    for (const runs& r : so_far) longest.push_back(r.longest);
    expect(longest, {1, 2, 2, 2, 2, 3, 3, 3}, "longest run");
}

} // namespace

// [identity]
// What an exclusive scan without init starts from.
struct multiply_modulo {
    std::uint64_t modulus = 1'000'000'007;
    std::uint64_t operator()(std::uint64_t earlier, std::uint64_t later) const { return earlier * later % modulus; }
    static constexpr std::uint64_t identity() { return 1; }
};

// Regrouping changes no bit here, so backends may regroup for speed.
template <>
inline constexpr bool polyscan::exactly_associative<multiply_modulo, std::uint64_t> = true;
// [identity]

namespace {

void identity(polyscan::openmp::backend& cpu) {
    // [use identity]
    std::vector<std::uint64_t> factorials(21);
    polyscan::exclusive_scan(cpu, std::views::iota(std::uint64_t{1}, std::uint64_t{22}), factorials, polyscan::no_init,
                             multiply_modulo{}); // 0!, 1!, 2!, ... 20! modulo a prime
    // [use identity]
    expect(factorials[0] == 1 && factorials[5] == 120 && factorials[20] == 2432902008176640000 % 1'000'000'007,
           "factorials");
}

} // namespace

int main() {
    polyscan::openmp::backend cpu;
    kinds_and_init(cpu);
    accumulators(cpu);
    options(cpu);
    inputs_and_outputs(cpu);
    choosing_a_policy(cpu);
    errors(cpu);
    custom_operator(cpu);
    identity(cpu);
}
