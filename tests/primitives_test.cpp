// SPDX-License-Identifier: Apache-2.0
/// The verbs beside scan, in the shared matrix: one test case per verb and case. A failing cell names backend, policy,
/// case, verb, size, run-time count, segments and workers. The last line says how many cells ran. Then chains of verbs
/// over counts that stay on the device, and the calls that are refused.
///
/// POLYSCAN_TEST_BACKEND names the header that defines `backend_under_test`.
#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "inputs.hpp"
#include "primitives.hpp"
#include "under_test.hpp"

namespace polyscan::test {

#ifdef POLYSCAN_TEST_CUB
/// Names of verbs, empty if there are none (tests/cuda/primitives_judge.cu).
std::string verbs_that_differ_from_cub(backend_under_test::type& on, index_type n);
#endif

namespace {

#ifdef POLYSCAN_TEST_PRIMITIVES_LIMIT
constexpr index_type elements_limit = POLYSCAN_TEST_PRIMITIVES_LIMIT, long_elements = elements_limit;
#else
constexpr index_type elements_limit = 60'000, long_elements = 3'000'000;
#endif

template <class... Policies, class Check>
void under_policies(type_list<Policies...>, std::string_view what, const Check& check) {
    if (skipped(what)) return;
    const auto on = pointers();
    (check(on, Policies::name()), ...);
}

// A prefix of strings is as long as all of them together: three tiles.
template <class Case>
constexpr index_type limit_for =
    std::is_trivially_copyable_v<typename Case::accumulator_type> ? elements_limit : index_type{5'000};

#define POLYSCAN_TEST_VERB(verb, case_name, policies)                                                                  \
    TEST_CASE(#verb ": " #case_name) {                                                                                 \
        using arguments = verb##_arguments<cases::case_name>;                                                          \
        const primitive_function<arguments> run = [](target& on, std::string_view policy, const arguments& a) {        \
            run_##verb<policies>(object(on), policy, a);                                                               \
        };                                                                                                             \
        under_policies(policies{}, #verb, [&](const auto& on, const std::string& policy) {                             \
            check_##verb<cases::case_name>(on, run, policy, limit_for<cases::case_name>, cells);                       \
        });                                                                                                            \
    }
#define POLYSCAN_TEST_REDUCE(name, policies) POLYSCAN_TEST_VERB(reduce, name, policies)
#define POLYSCAN_TEST_SELECT(name, policies) POLYSCAN_TEST_VERB(select, name, policies)
#define POLYSCAN_TEST_SEGMENTED(name, policies) POLYSCAN_TEST_VERB(segmented, name, policies)
#define POLYSCAN_TEST_RUNS(name, policies) POLYSCAN_TEST_VERB(runs, name, policies)
POLYSCAN_REDUCE_CASES(POLYSCAN_TEST_REDUCE)
POLYSCAN_SELECT_CASES(POLYSCAN_TEST_SELECT)
POLYSCAN_SEGMENTED_CASES(POLYSCAN_TEST_SEGMENTED)
POLYSCAN_OPERATOR_CASES(POLYSCAN_TEST_SEGMENTED)
POLYSCAN_RUNS_CASES(POLYSCAN_TEST_RUNS)
#ifdef POLYSCAN_TEST_HOST
POLYSCAN_PRIMITIVE_HOST_CASES(POLYSCAN_TEST_REDUCE)
POLYSCAN_PRIMITIVE_HOST_CASES(POLYSCAN_TEST_SEGMENTED)
POLYSCAN_PRIMITIVE_HOST_CASES(POLYSCAN_TEST_RUNS)
#endif

#define POLYSCAN_TEST_LONG(verb, case_name, policies)                                                                  \
    TEST_CASE("long " #verb ": " #case_name) {                                                                         \
        if (skipped("long " #verb)) return;                                                                            \
        using arguments = verb##_arguments<cases::case_name>;                                                          \
        const primitive_function<arguments> run = [](target& on, std::string_view policy, const arguments& a) {        \
            run_##verb<policies>(object(on), policy, a);                                                               \
        };                                                                                                             \
        check_long_##verb<cases::case_name>(pointers(), run, long_elements, cells);                                    \
    }
#define POLYSCAN_TEST_LONG_REDUCE(name, policies) POLYSCAN_TEST_LONG(reduce, name, policies)
#define POLYSCAN_TEST_LONG_SEGMENTED(name, policies) POLYSCAN_TEST_LONG(segmented, name, policies)
#define POLYSCAN_TEST_LONG_RUNS(name, policies) POLYSCAN_TEST_LONG(runs, name, policies)
POLYSCAN_LONG_REDUCE_CASES(POLYSCAN_TEST_LONG_REDUCE)
POLYSCAN_LONG_SEGMENTED_CASES(POLYSCAN_TEST_LONG_SEGMENTED)
POLYSCAN_LONG_RUNS_CASES(POLYSCAN_TEST_LONG_RUNS)

// --- chains ----------------------------------------------------------------------------------------------------------

template <class T>
std::vector<T> fetched(backend_type& on, const T* device, index_type n) {
    std::vector<T> host(static_cast<std::size_t>(n));
    on.copy_to_host(host.data(), device, n);
    return host;
}

TEST_CASE("a chain of verbs over counts that the host never sees") {
    if (skipped("chain")) return;
    using Case = cases::int32_plus;
    for (const auto& each : targets()) {
        CAPTURE(each->workers());
        backend_type& on = object(*each);
        for (const index_type n : {0, 1, 5'000, 40'000}) {
            CAPTURE(n);
            // Values in runs of two or three, so that all verbs have something to do.
            std::vector<int> input;
            for (index_type i = 0; i < n; ++i) input.push_back(static_cast<int>(random_bits(12, i / 5) % 1000));
            auto in = on.template allocate<int>(n), chosen = on.template allocate<int>(n),
                 firsts = on.template allocate<int>(n), sums = on.template allocate<int>(n),
                 keys = on.template allocate<int>(n), lengths = on.template allocate<int>(n),
                 total = on.template allocate<int>(1);
            auto counts = on.template allocate<index_type>(3);
            auto flags = on.template allocate<std::uint8_t>(n);
            on.copy_to_device(in.data(), input.data(), n);
            const std::vector<std::uint8_t> heads(input.size(), 0); // a single segment
            on.copy_to_device(flags.data(), heads.data(), n);

            const std::string policy = default_policy::name();
            select_arguments<Case> choose{selection_verb::copy_if, in.data(),    nullptr, n, nullptr,
                                          chosen.data(),           counts.data()};
            run_select<primitive_policies>(on, policy, choose);
            select_arguments<Case> first{selection_verb::unique, chosen.data(), nullptr,          n,
                                         counts.data(),          firsts.data(), counts.data() + 1};
            run_select<primitive_policies>(on, policy, first);
            runs_arguments<Case> runs;
            runs.lengths = true;
            runs.keys = chosen.data();
            runs.size = n;
            runs.live = counts.data();
            runs.keys_out = keys.data();
            runs.lengths_out = lengths.data();
            runs.count = counts.data() + 2;
            run_runs<primitive_policies>(on, policy, runs);
            segmented_arguments<cases::int32_bit_xor> segmented;
            segmented.flags = flags.data();
            segmented.in = firsts.data();
            segmented.size = n;
            segmented.live = counts.data() + 1;
            segmented.out = sums.data();
            run_segmented<default_alone>(on, policy, segmented);
            reduce_arguments<Case> reduction;
            reduction.in = sums.data();
            reduction.size = n;
            reduction.live = counts.data() + 1;
            reduction.result = total.data();
            run_reduce<primitive_policies>(on, policy, reduction);
            on.synchronize();

            // The same in words of the standard library.
            std::vector<int> right;
            std::copy_if(input.begin(), input.end(), std::back_inserter(right), is_chosen{});
            const std::vector<int> right_chosen = right;
            std::vector<int> right_keys, right_lengths;
            for (const int value : right_chosen) {
                if (right_keys.empty() || right_keys.back() != value) {
                    right_keys.push_back(value);
                    right_lengths.push_back(0);
                }
                ++right_lengths.back();
            }
            right.erase(std::unique(right.begin(), right.end(), same_residue{}), right.end());
            const auto found_counts = fetched(on, counts.data(), 3);
            CHECK(found_counts == std::vector<index_type>{static_cast<index_type>(right_chosen.size()),
                                                          static_cast<index_type>(right.size()),
                                                          static_cast<index_type>(right_keys.size())});
            CHECK(fetched(on, chosen.data(), found_counts[0]) == right_chosen);
            CHECK(fetched(on, firsts.data(), found_counts[1]) == right);
            CHECK(fetched(on, keys.data(), found_counts[2]) == right_keys);
            CHECK(fetched(on, lengths.data(), found_counts[2]) == right_lengths);
            std::partial_sum(right.begin(), right.end(), right.begin(), std::bit_xor<int>{});
            CHECK(fetched(on, sums.data(), found_counts[1]) == right);
            CHECK(fetched(on, total.data(), 1).front() == std::accumulate(right.begin(), right.end(), 0));
        }
    }
}

// --- the standard library's judgement -------------------------------------------------------------------------------

TEST_CASE("the standard library agrees") {
    if (skipped("standard library")) return;
    using Case = cases::int32_plus;
    const std::string policy = default_policy::name();
    for (const auto& each : targets()) {
        CAPTURE(each->workers());
        backend_type& on = object(*each);
        constexpr index_type n = 30'011;
        std::vector<int> input, keys;
        std::vector<float> floats; // small whole numbers: sums are exact in every order
        std::vector<std::uint8_t> flags;
        for (index_type i = 0; i < n; ++i) {
            input.push_back(static_cast<int>(random_bits(21, i)));
            keys.push_back(static_cast<int>(i / 7 % 3));
            floats.push_back(static_cast<float>(random_bits(22, i) % 8));
            flags.push_back(random_bits(23, i) % 50 == 0);
        }
        auto in = on.template allocate<int>(n), out = on.template allocate<int>(n),
             total = on.template allocate<int>(1);
        auto keys_in = on.template allocate<int>(n), keys_out = on.template allocate<int>(n);
        auto floats_in = on.template allocate<float>(n), floats_out = on.template allocate<float>(n);
        auto marks = on.template allocate<std::uint8_t>(n);
        auto count = on.template allocate<index_type>(1);
        on.copy_to_device(in.data(), input.data(), n);
        on.copy_to_device(keys_in.data(), keys.data(), n);
        on.copy_to_device(floats_in.data(), floats.data(), n);
        on.copy_to_device(marks.data(), flags.data(), n);
        const auto found = [&] { return fetched(on, count.data(), 1).front(); };
        const auto select = [&](selection_verb verb) {
            run_select<primitive_policies>(
                on, policy,
                select_arguments<Case>{verb, in.data(), marks.data(), n, nullptr, out.data(), count.data()});
            on.synchronize();
            return fetched(on, out.data(), verb == selection_verb::partition ? n : found());
        };

        std::vector<int> right;
        std::copy_if(input.begin(), input.end(), std::back_inserter(right), is_chosen{});
        CHECK(select(selection_verb::copy_if) == right);
        right.clear();
        std::remove_copy_if(input.begin(), input.end(), std::back_inserter(right), is_chosen{});
        CHECK(select(selection_verb::remove_if) == right);
        right = input;
        const auto middle = std::stable_partition(right.begin(), right.end(), is_chosen{});
        CHECK(select(selection_verb::partition) == right);
        CHECK(found() == middle - right.begin());
        right = input;
        right.erase(std::unique(right.begin(), right.end(), same_residue{}), right.end());
        CHECK(select(selection_verb::unique) == right);

        reduce_arguments<Case> reduction;
        reduction.in = in.data();
        reduction.size = n;
        reduction.result = total.data();
        run_reduce<primitive_policies>(on, policy, reduction);
        on.synchronize();
        CHECK(fetched(on, total.data(), 1).front() ==
              std::accumulate(input.begin(), input.end(), 0, [](int a, int b) { return plus{}(a, b); }));

        segmented_arguments<cases::float_plus> scan;
        scan.in = floats_in.data();
        scan.flags = marks.data();
        scan.size = n;
        scan.out = floats_out.data();
        run_segmented<primitive_policies>(on, policy, scan);
        on.synchronize();
        std::vector<float> sums(floats.size());
        for (std::size_t begin = 0; begin < sums.size();) {
            const auto end = std::find_if(flags.begin() + static_cast<std::ptrdiff_t>(begin) + 1, flags.end(),
                                          [](std::uint8_t flag) { return flag != 0; }) -
                             flags.begin();
            std::partial_sum(floats.begin() + static_cast<std::ptrdiff_t>(begin), floats.begin() + end,
                             sums.begin() + static_cast<std::ptrdiff_t>(begin));
            begin = static_cast<std::size_t>(end);
        }
        CHECK(fetched(on, floats_out.data(), n) == sums);

        runs_arguments<Case> runs;
        runs.keys = keys_in.data();
        runs.in = in.data();
        runs.size = n;
        runs.keys_out = keys_out.data();
        runs.out = out.data();
        runs.count = count.data();
        run_runs<primitive_policies>(on, policy, runs);
        on.synchronize();
        std::vector<int> names, folds;
        for (auto begin = keys.begin(); begin != keys.end();) {
            const auto end = std::find_if(begin, keys.end(), [&](int key) { return key != *begin; });
            names.push_back(*begin);
            folds.push_back(std::accumulate(input.begin() + (begin - keys.begin()),
                                            input.begin() + (end - keys.begin()), 0,
                                            [](int a, int b) { return plus{}(a, b); }));
            begin = end;
        }
        CHECK(found() == static_cast<index_type>(names.size()));
        CHECK(fetched(on, keys_out.data(), found()) == names);
        CHECK(fetched(on, out.data(), found()) == folds);
    }
}

// --- selections of more than the matrix has --------------------------------------------------------------------------

#ifdef POLYSCAN_TEST_HOST
/// Elements of every size that a backend may move in a way of its own, at lengths around its vectors and its pieces,
/// and once so many that every hand-over takes place; inputs and outputs at odd places; a predicate that looks at
/// neither.
template <class T>
void check_selections_of(backend_type& on, index_type n, int density) {
    CAPTURE(sizeof(T));
    CAPTURE(n);
    CAPTURE(density);
    constexpr index_type shift = 3; // from where memory is aligned
    std::vector<T> input(static_cast<std::size_t>(n + shift));
    std::vector<std::uint8_t> flags;
    for (index_type i = 0; i < n; ++i) {
        unsigned char bytes[sizeof(T)];
        for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random_bits(31, i) >> 8);
        bytes[0] = static_cast<unsigned char>(density == 0   ? 0
                                              : density == 4 ? 2
                                              : density == 1 ? (random_bits(32, i) % 64 == 0 ? 2 : 1)
                                              : density == 3 ? (random_bits(32, i) % 64 == 0 ? 1 : 2)
                                                             : random_bits(32, i) & 15);
        std::memcpy(static_cast<void*>(&input[static_cast<std::size_t>(i + shift)]), bytes, sizeof(T));
        flags.push_back(static_cast<std::uint8_t>(bytes[0] & 6));
    }
    const auto same = [](const T& a, const T& b) { return std::memcmp(&a, &b, sizeof(T)) == 0; };
    const T* const first = input.data() + shift;
    std::vector<T> chosen, others, marked, runs;
    for (index_type i = 0; i < n; ++i) {
        if (flags[static_cast<std::size_t>(i)] != 0) marked.push_back(first[i]);
        (is_chosen{}(first[i]) ? chosen : others).push_back(first[i]);
        if (i == 0 || !same_residue{}(first[i - 1], first[i])) runs.push_back(first[i]);
    }
    auto in = on.template allocate<T>(n + shift), out = on.template allocate<T>(n + shift);
    auto marks = on.template allocate<std::uint8_t>(n);
    auto count = on.template allocate<index_type>(1);
    on.copy_to_device(in.data(), input.data(), n + shift);
    on.copy_to_device(marks.data(), flags.data(), n);
    const auto agrees = [&](const std::vector<T>& expected, std::size_t selected, int out_shift) {
        on.synchronize();
        const std::vector<T> found = fetched<T>(on, out.data(), n + shift);
        const bool elements = std::equal(expected.begin(), expected.end(), found.begin() + out_shift, same);
        return elements && fetched(on, count.data(), 1).front() == static_cast<index_type>(selected) &&
               std::all_of(found.begin() + out_shift + static_cast<std::ptrdiff_t>(expected.size()), found.end(),
                           [&](const T& x) { return same(x, T{}); });
    };
    const auto cleared = [&](int out_shift) {
        const std::vector<T> nothing(static_cast<std::size_t>(n + shift));
        on.copy_to_device(out.data(), nothing.data(), n + shift);
        return out.data() + out_shift;
    };
    const auto source = counted(static_cast<const T*>(in.data() + shift), n);
    copy_if(on, source, cleared(0), count.data(), is_chosen{});
    CHECK(agrees(chosen, chosen.size(), 0));
    copy_if(on, source, cleared(1), count.data(), flagged(counted(static_cast<const std::uint8_t*>(marks.data()), n)));
    CHECK(agrees(marked, marked.size(), 1));
    remove_if(on, source, cleared(2), count.data(), is_chosen{});
    CHECK(agrees(others, others.size(), 2));
    unique(on, source, cleared(3), count.data(), same_residue{});
    CHECK(agrees(runs, runs.size(), 3));
    std::vector<T> all = chosen;
    all.insert(all.end(), others.begin(), others.end());
    partition(on, source, cleared(1), count.data(), is_chosen{});
    CHECK(agrees(all, chosen.size(), 1));
}

template <class T>
void check_selections(std::string_view what) {
    if (skipped(what)) return;
    for (const auto& each : targets()) {
        CAPTURE(each->workers());
        for (const index_type n : {1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 191, 193})
            for (int density = 0; density < 5; ++density) check_selections_of<T>(object(*each), n, density);
        const auto length = static_cast<index_type>(4096 / sizeof(T));
        for (const index_type n : {length - 1, length, length + 1, 5 * length + 77, 3 * elements_limit + 5})
            for (const int density : {0, 2, 4}) check_selections_of<T>(object(*each), n, density);
    }
}

TEST_CASE("selections of elements of 1 byte") { check_selections<std::uint8_t>("selections"); }
TEST_CASE("selections of elements of 2 bytes") { check_selections<std::uint16_t>("selections"); }
TEST_CASE("selections of elements of 4 bytes") { check_selections<std::int32_t>("selections"); }
TEST_CASE("selections of elements of 8 bytes") { check_selections<std::int64_t>("selections"); }

/// Elements that are not copied like bytes, inputs that are not memory, outputs that are not, another type of output.
TEST_CASE("selections from iterators to functions, of strings, into another type") {
    if (skipped("selections")) return;
    for (const auto& each : targets()) {
        CAPTURE(each->workers());
        backend_type& on = object(*each);
        constexpr index_type n = 100'003;
        index_type count = -1;
        const auto third = [](index_type i) { return i % 3 == 1; };
        std::vector<index_type> found(static_cast<std::size_t>(n), -1);
        index_type* const to = found.data();
        copy_if(on, counted(index_iterator{}, n), to_function([=](index_type i, index_type value) { to[i] = value; }),
                &count, third);
        CHECK(count == 33'334);
        bool good = true;
        for (index_type i = 0; i < n; ++i) good = good && to[i] == (i < count ? 3 * i + 1 : -1);
        CHECK(good);

        std::vector<float> floats(static_cast<std::size_t>(n), -1.0f);
        partition(on, counted(index_iterator{}, n), floats, &count, third);
        CHECK(count == 33'334);
        index_type next = 0;
        for (index_type i = 0; i < n; ++i)
            good =
                good && floats[static_cast<std::size_t>(third(i) ? next++ : count + i - next)] == static_cast<float>(i);
        CHECK(good);

        std::vector<std::string> words, left(1000, "untouched");
        for (int i = 0; i < 1000; ++i) words.push_back("a word of some length, number " + std::to_string(i / 4));
        unique(on, words, left, &count);
        CHECK(count == 250);
        CHECK(left[249] == words[999]);
        CHECK(left[250] == "untouched");
    }
}

template <class Backend>
concept selects_by_itself = requires(
    Backend& on, const polyscan::detail::select_request<const int*, int*, polyscan::detail::flag_test<const int*>>& r) {
    on.select(r);
};
TEST_CASE("a predicate that throws ends a selection") {
    if constexpr (selects_by_itself<backend_type>) // in teams predicates do not throw
        for (const auto& each : targets()) {
            CAPTURE(each->workers());
            std::vector<int> in(200'000, 1);
            in[150'000] = -1;
            std::vector<int> out(in.size());
            index_type count = -1;
            const auto throws = [](int x) { return x > 0 ? true : throw std::runtime_error("no answer"); };
            CHECK_THROWS_WITH_AS(copy_if(object(*each), in, out, &count, throws), "no answer", std::runtime_error);
            CHECK_THROWS_WITH_AS(partition(object(*each), in, out, &count, throws), "no answer", std::runtime_error);
            CHECK(count == -1);
            copy_if(object(*each), in, out, &count, [](int x) { return x > 0; });
            CHECK(count == 199'999);
        }
}
#endif

#ifdef POLYSCAN_TEST_CUB
TEST_CASE("CUB agrees") {
    if (skipped("CUB")) return;
    for (const auto& each : targets()) {
        CAPTURE(each->workers());
        for (const index_type n : {1, 1'000, 1'000'003}) CHECK(verbs_that_differ_from_cub(object(*each), n) == "");
    }
}
#endif

// --- contract --------------------------------------------------------------------------------------------------------

#define CHECK_REJECTED(call, message) CHECK_THROWS_WITH_AS(call, doctest::Contains(message), std::invalid_argument)

TEST_CASE("broken contracts are named, and nothing is written") {
    if (skipped("contract")) return;
    using Case = cases::int32_plus;
    backend_type& on = object(*targets().front());
    const std::string policy = default_policy::name();
    constexpr index_type n = 100;
    const auto ones = std::vector<int>(2 * n, 1);
    auto memory = on.template allocate<int>(2 * n), other = on.template allocate<int>(2 * n);
    auto counts = on.template allocate<index_type>(2);
    on.copy_to_device(memory.data(), ones.data(), 2 * n);
    on.copy_to_device(other.data(), ones.data(), 2 * n);
    int* const m = memory.data();

    select_arguments<Case> choose{selection_verb::copy_if, m, nullptr, n, nullptr, m, counts.data()};
    const auto select = [&] { run_select<primitive_policies>(on, policy, choose); };
    CHECK_REJECTED(select(), "out: overlaps in"); // in place
    choose.out = m + n - 1;
    CHECK_REJECTED(select(), "out: overlaps in"); // one element
    choose.out = nullptr;
    CHECK_REJECTED(select(), "out: is null although it has elements");
    choose.out = other.data();
    choose.count = reinterpret_cast<index_type*>(m + 2);
    CHECK_REJECTED(select(), "count: overlaps in");
    choose.count = reinterpret_cast<index_type*>(other.data() + 2);
    CHECK_REJECTED(select(), "count: overlaps out");
    choose.count = counts.data();
    choose.live = counts.data(); // the count of a call cannot be what the call is about
    CHECK_REJECTED(select(), "count: overlaps count");
    choose.live = nullptr;
    choose.verb = selection_verb::partition;
    choose.count = nullptr;
    CHECK_REJECTED(select(), "count: is null; partition needs it");
    choose.verb = selection_verb::copy_flagged;
    choose.count = counts.data();
    choose.flags = reinterpret_cast<std::uint8_t*>(other.data());
    CHECK_REJECTED(select(), "out: overlaps flags");
    choose.flags = nullptr;
    CHECK_REJECTED(select(), "flags: is null although it has elements");
    choose.size = -1;
    CHECK_REJECTED(select(), "counted: the number of elements must not be negative");

    // Behind a pointer there need not be room for more than what is selected: here for one.
    select_arguments<Case> narrow{selection_verb::unique, m + 1, nullptr, n, nullptr, m, counts.data()};
    run_select<primitive_policies>(on, policy, narrow);
    index_type found = 0;
    on.copy_to_host(&found, counts.data(), 1);
    CHECK(found == 1);
    narrow.out = m + 1;
    CHECK_REJECTED(run_select<primitive_policies>(on, policy, narrow), "out: overlaps in");

    // Numbers of the same size: nothing is read or written.
    segmented_arguments<cases::float_plus> scan;
    scan.in = reinterpret_cast<float*>(m);
    scan.size = n;
    scan.out = reinterpret_cast<float*>(m + 1);
    scan.flags = reinterpret_cast<std::uint8_t*>(other.data());
    const auto segmented = [&] { run_segmented<primitive_policies>(on, policy, scan); };
    CHECK_REJECTED(segmented(), "out: overlaps in");
    scan.out = reinterpret_cast<float*>(other.data());
    CHECK_REJECTED(segmented(), "out: overlaps flags");
    scan.by = segments_by::keys; // ROCm/rocm-libraries#1835: the output over the keys is a race
    scan.keys = other.data();
    CHECK_REJECTED(segmented(), "out: overlaps keys");
    scan.by = segments_by::offsets;
    scan.offsets = counts.data();
    scan.offsets_size = 2;
    scan.out = reinterpret_cast<float*>(counts.data());
    CHECK_REJECTED(segmented(), "out: overlaps offsets");

    runs_arguments<Case> runs;
    runs.keys = m;
    runs.in = m; // keys and values may be the same
    runs.size = n;
    runs.keys_out = other.data();
    runs.out = other.data() + n - 1;
    runs.count = counts.data();
    const auto by_key = [&] { run_runs<primitive_policies>(on, policy, runs); };
    CHECK_REJECTED(by_key(), "out: overlaps keys_out");
    runs.out = m + n - 1;
    CHECK_REJECTED(by_key(), "out: overlaps keys");
    runs.out = other.data() + n;
    runs.keys_out = m;
    CHECK_REJECTED(by_key(), "keys_out: overlaps keys");

    reduce_arguments<Case> reduction;
    reduction.in = m;
    reduction.size = n;
    reduction.result = m + n - 1;
    const auto reduced = [&] { run_reduce<primitive_policies>(on, policy, reduction); };
    CHECK_REJECTED(reduced(), "result: overlaps in");
    reduction.result = nullptr;
    CHECK_REJECTED(reduced(), "result: is null");

    on.synchronize();
    CHECK(fetched(on, m, 2 * n) == ones);
    CHECK(fetched<int>(on, other.data(), 2 * n) == ones);
}

} // namespace
} // namespace polyscan::test
