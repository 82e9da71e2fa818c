// SPDX-License-Identifier: Apache-2.0
/// Compaction: some of the elements, in their order, without gaps.
///
///     std::vector<int> in{3, 1, 4, 1, 5, 9, 2, 6}, out(8);
///     polyscan::index_type count = 0;
///     polyscan::openmp::backend cpu;
///     const auto even = [](int x) { return x % 2 == 0; };
///     polyscan::copy_if(cpu, in, out, &count, even);       // 4 2 6, count 3
///     polyscan::remove_if(cpu, in, out, &count, even);     // 3 1 1 5 9, count 5
///     polyscan::partition(cpu, in, out, &count, even);     // 4 2 6 3 1 1 5 9, count 3
///     polyscan::copy_if(cpu, in, out, &count, polyscan::flagged(std::vector<char>{1, 0, 0, 0, 0, 1, 0, 0}));   // 3 9
///     polyscan::unique(cpu, std::vector<int>{1, 1, 2, 2, 2, 1}, out, &count);                 // 1 2 1, count 3
///
/// Arguments; those in brackets may be left out from the right:
///     copy_if(backend, in, out, count, which [, policy])        those for which `which` holds
///     remove_if(backend, in, out, count, which [, policy])      those for which it does not
///     partition(backend, in, out, count, which [, policy])      the former, then the latter, both in their order
///     unique(backend, in, out, count [, equal [, policy]])      the first of every run of equal neighbours
///
/// `which` is a predicate of an element, or `flagged(view)`: a view of as many numbers, of which 0 says no. A predicate
/// may be called several times for an element, and must say the same each time; `equal` is an equivalence.
///
/// `count`, memory of the backend or null, receives how many elements were selected; it is never null for partition,
/// whose second pass reads it. As it is where the device can read it, a later call can take it without a wait:
///     polyscan::copy_if(gpu, in, out, count, positive);
///     polyscan::inclusive_scan(gpu, polyscan::counted(out, capacity, count), sums);
///
/// Input and output: see view.hpp. The output has room for all of the input, or is a pointer, of which only what is
/// selected is written. Nothing of what is written may overlap anything that is read: in place would overwrite elements
/// that other threads have yet to read. (Behind a pointer only the first element is checked, and for partition, which
/// fills it, all of them.) Empty input: `count` receives 0. Policies differ in speed only.
///
/// As a scan of flags: G. Blelloch, "Prefix sums and their applications" (1990).
#pragma once

#include <type_traits>
#include <utility>

#include <polyscan/indexed.hpp>
#include <polyscan/reduce.hpp>

namespace polyscan {

/// Stands in the place of a predicate: element i is selected if flag i is not 0.
template <class Iterator>
struct flagged_t {
    counted_view<Iterator> flags;
};
/// See the head of this file.
template <class Flags>
auto flagged(Flags&& flags) {
    const auto view = detail::as_counted(std::forward<Flags>(flags), "flags");
    using iterator = decltype(detail::read_only(view.begin));
    return flagged_t<iterator>{{detail::read_only(view.begin), view.size, view.count}};
}

namespace detail {

// Tests: whether element i is selected; `of` for whoever has its value already.

template <class Input, class Predicate>
struct value_test {
    Input in;
    Predicate predicate;
    POLYSCAN_FUNCTION bool operator()(index_type i) const { return static_cast<bool>(predicate(in[i])); }
    template <class T>
    POLYSCAN_FUNCTION bool of(index_type, const T& value) const {
        return static_cast<bool>(predicate(value));
    }
};
template <class Flags>
struct flag_test {
    Flags flags;
    POLYSCAN_FUNCTION bool operator()(index_type i) const { return static_cast<bool>(flags[i]); }
    template <class T>
    POLYSCAN_FUNCTION bool of(index_type i, const T&) const {
        return (*this)(i);
    }
};
template <class Input, class Equal>
struct first_of_run {
    Input in;
    Equal equal;
    POLYSCAN_FUNCTION bool operator()(index_type i) const {
        return i == 0 || !static_cast<bool>(equal(in[i - 1], in[i]));
    }
    template <class T>
    POLYSCAN_FUNCTION bool of(index_type i, const T& value) const {
        return i == 0 || !static_cast<bool>(equal(in[i - 1], value));
    }
};
template <class Test>
struct none_of {
    Test test;
    POLYSCAN_FUNCTION bool operator()(index_type i) const { return !test(i); }
    template <class T>
    POLYSCAN_FUNCTION bool of(index_type i, const T& value) const {
        return !test.of(i, value);
    }
};

template <class Input, class Predicate>
auto test_of(const counted_view<Input>& in, const Predicate& predicate) {
    static_assert(std::is_invocable_r_v<bool, const Predicate&, decltype(in.begin[0])>,
                  "the predicate must be callable with an element, on a const object, and return a truth value");
    return value_test<Input, kept<Predicate>>{in.begin, predicate};
}
template <class Input, class Flags>
auto test_of(const counted_view<Input>& in, const flagged_t<Flags>& which) {
    return flag_test<Flags>{further_input(which.flags, "flags", in.size)};
}
template <class Predicate>
memory memory_of_test(const Predicate&, index_type) {
    return {"flags"};
}
template <class Flags>
memory memory_of_test(const flagged_t<Flags>& which, index_type size) {
    return memory_of("flags", which.flags.begin, size);
}

/// What a scan adds up to know where an element goes.
template <class Test>
struct selection {
    Test test;
    POLYSCAN_FUNCTION index_type operator()(index_type i) const { return test(i) ? 1 : 0; }
};

/// Output i of the exclusive sum is the place of element i among the selected ones.
template <class Test, class Input, class Output>
struct place_selected {
    Test test;
    Input in;
    Output out;
    POLYSCAN_FUNCTION void operator()(index_type i, index_type before) const {
        if (test(i)) put(out, before, in[i]);
    }
};
template <class Test, class Input, class Output>
struct place_all {
    Test test;
    Input in;
    Output out;
    const index_type* selected;
    POLYSCAN_FUNCTION void operator()(index_type i, index_type before) const {
        put(out, test(i) ? before : *selected + (i - before), in[i]);
    }
};

inline void check_selection(const memory& in, const memory& flags, const memory& live, const memory& out,
                            const index_type* count) {
    check_apart({out, {"count", count, count == nullptr ? 0 : sizeof(index_type)}}, {in, flags, live});
}

/// A selection or a partition, checked: for backends that have `select` or `partition` of their own. `live` may be
/// null, and `count` of a selection.
template <class Input, class Output, class Test>
struct select_request {
    Input in;
    Output out;
    Test test;
    index_type size;
    const index_type* live;
    index_type* count;
};

template <class Policy, class Backend, class Input, class Output, class Test>
void select(Backend& backend, const counted_view<Input>& source, const Output& target, index_type* count,
            const Test& test) {
    static_assert(Backend::template supports<Policy>, "this backend does not have this policy");
    const select_request<Input, Output, Test> request{source.begin, target, test, source.size, source.count, count};
    if constexpr (std::is_same_v<Policy, default_policy> && requires { backend.select(request); }) {
        backend.select(request);
    } else {
        scan_indices<Policy, index_type>(backend, {source.size, source.count}, selection<Test>{test},
                                         place_selected<Test, Input, Output>{test, source.begin, target}, plus{},
                                         scan_kind::exclusive, 0, count);
    }
}

template <class Policy, class Backend, class Input, class Output, class Test>
void partition(Backend& backend, const counted_view<Input>& source, const Output& target, index_type* count,
               const Test& test) {
    static_assert(Backend::template supports<Policy>, "this backend does not have this policy");
    const select_request<Input, Output, Test> request{source.begin, target, test, source.size, source.count, count};
    if constexpr (std::is_same_v<Policy, default_policy> && requires { backend.partition(request); }) {
        backend.partition(request);
    } else {
        const index_range all{source.size, source.count};
        sum_indices<Policy>(backend, all, selection<Test>{test}, count);
        scan_indices<Policy, index_type>(backend, all, selection<Test>{test},
                                         place_all<Test, Input, Output>{test, source.begin, target, count}, plus{},
                                         scan_kind::exclusive, 0);
    }
}

/// `wanted` makes the test of the elements that are selected from that of `which`.
template <class Policy, class Backend, class In, class Out, class Which, class Wanted>
void select_by(Backend& backend, In&& in, Out&& out, index_type* count, const Which& which, const Wanted& wanted) {
    const auto source = first_input(std::forward<In>(in), "in");
    const auto target = output(std::forward<Out>(out), "out", source.size);
    const auto test = test_of(source, which);
    check_selection(memory_of("in", source.begin, source.size), memory_of_test(which, source.size), count_of(source),
                    memory_of("out", target, certain_room<Out>(source.size)), count);
    select<Policy>(backend, source, target, count, wanted(test));
}

} // namespace detail

/// The elements for which `which` holds, in their order. See the head of this file.
template <backend Backend, class In, class Out, class Which, scan_policy Policy = default_policy>
void copy_if(Backend& backend, In&& in, Out&& out, index_type* count, const Which& which, const Policy& = {}) {
    detail::select_by<Policy>(backend, std::forward<In>(in), std::forward<Out>(out), count, which,
                              [](const auto& test) { return test; });
}

/// The elements for which `which` does not hold, in their order. See the head of this file.
template <backend Backend, class In, class Out, class Which, scan_policy Policy = default_policy>
void remove_if(Backend& backend, In&& in, Out&& out, index_type* count, const Which& which, const Policy& = {}) {
    detail::select_by<Policy>(backend, std::forward<In>(in), std::forward<Out>(out), count, which,
                              []<class Test>(const Test& test) { return detail::none_of<Test>{test}; });
}

/// All elements: first those for which `which` holds, then the others, both in their order. Two passes, because the
/// others' place is known when all are counted. See the head of this file.
template <backend Backend, class In, class Out, class Which, scan_policy Policy = default_policy>
void partition(Backend& backend, In&& in, Out&& out, index_type* count, const Which& which, const Policy& = {}) {
    const auto source = detail::first_input(std::forward<In>(in), "in");
    const auto target = detail::output(std::forward<Out>(out), "out", source.size);
    const auto test = detail::test_of(source, which);
    if (count == nullptr) reject("count", "is null; partition needs it");
    detail::check_selection(detail::memory_of("in", source.begin, source.size),
                            detail::memory_of_test(which, source.size), detail::count_of(source),
                            detail::memory_of("out", target, source.size), count);
    detail::partition<Policy>(backend, source, target, count, test);
}

/// The first of every run of equal neighbours. See the head of this file.
template <backend Backend, class In, class Out, class Equal = equal_to, scan_policy Policy = default_policy>
void unique(Backend& backend, In&& in, Out&& out, index_type* count, const Equal& equal = {}, const Policy& = {}) {
    const auto source = detail::first_input(std::forward<In>(in), "in");
    const auto target = detail::output(std::forward<Out>(out), "out", source.size);
    detail::check_selection(detail::memory_of("in", source.begin, source.size), {"flags"}, detail::count_of(source),
                            detail::memory_of("out", target, detail::certain_room<Out>(source.size)), count);
    detail::select<Policy>(
        backend, source, target, count,
        detail::first_of_run<std::remove_cv_t<decltype(source.begin)>, detail::kept<Equal>>{source.begin, equal});
}

} // namespace polyscan
