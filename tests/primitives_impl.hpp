// SPDX-License-Identifier: Apache-2.0
/// Definitions of the `run_...` of primitives.hpp, for the translation units that instantiate them.
#pragma once

#include <stdexcept>
#include <string>

#include "primitives.hpp"

namespace polyscan::test {

template <class... Policies, class Call>
void with_policy(type_list<Policies...>, std::string_view name, const Call& call) {
    bool found = false;
    ((name == Policies::name() ? (found = true, call(Policies{})) : void()), ...);
    if (!found) throw std::logic_error("not a policy of this case: " + std::string(name));
}

template <class T>
counted_view<const T*> input(const T* first, index_type size, const index_type* live) {
    return live == nullptr ? counted(first, size) : counted(first, size, live);
}

template <class Policies, class Backend, class Case>
void run_reduce(Backend& backend, std::string_view policy, const reduce_arguments<Case>& a) {
    using A = typename Case::accumulator_type;
    const typename Case::operator_type op{};
    const typename Case::transform_type transform{};
    with_policy(Policies{}, policy, [&](auto how) {
        const auto in = input(a.in, a.size, a.live);
        // One verb with init, the other without.
        if (a.init)
            transform_reduce<A>(backend, in, a.result, op, transform, how, with_init{*a.init});
        else
            reduce<A>(backend, in, a.result, op, how, with_transform{transform});
    });
}

template <class Policies, class Backend, class Case>
void run_select(Backend& backend, std::string_view policy, const select_arguments<Case>& a) {
    with_policy(Policies{}, policy, [&]<class Policy>(Policy how) {
        const auto in = input(a.in, a.size, a.live);
        if (a.verb == selection_verb::copy_if)
            return copy_if(backend, in, counted(a.out, a.size), a.count, is_chosen{}, how);
        if (a.verb == selection_verb::partition) return partition(backend, in, a.out, a.count, is_chosen{}, how);
        if (a.verb == selection_verb::unique) return unique(backend, in, a.out, a.count, same_residue{}, how);
        if constexpr (forms_of<Case, Policy> == forms::all) {
            if (a.verb == selection_verb::copy_flagged)
                return copy_if(backend, in, counted(a.out, a.size), a.count, flagged(a.flags), how);
            if (a.verb == selection_verb::remove_if) return remove_if(backend, in, a.out, a.count, is_chosen{}, how);
        }
        throw std::logic_error("run_select: not a form of this case");
    });
}

/// Exclusive without init uses the identity and must not be asked of an operator that has none.
template <class Policies, class Backend, class Case>
void run_segmented(Backend& backend, std::string_view policy, const segmented_arguments<Case>& a) {
    using A = typename Case::accumulator_type;
    using operator_type = typename Case::operator_type;
    const operator_type op{};
    const with_transform transform{typename Case::transform_type{}};
    const auto in = input(a.in, a.size, a.live);
    const auto keys = input(a.keys, a.size, a.live);
    const auto flags = head_flags(a.flags);
    const bool inclusive = a.kind == scan_kind::inclusive;
    with_policy(Policies{}, policy, [&]<class Policy>(Policy how) {
        constexpr forms those = forms_of<Case, Policy>;
        if (inclusive && a.by == segments_by::flags && !a.init)
            return inclusive_segmented_scan<A>(backend, in, flags, a.out, op, how, transform);
        if constexpr (those != forms::one) {
            if (!inclusive && a.by == segments_by::keys)
                return exclusive_scan_by_key<A>(backend, keys, a.in, a.out, a.init.value(), op, equal_to{}, how,
                                                transform);
        }
        if constexpr (those == forms::all) {
            const auto offsets = segment_offsets(counted(a.offsets, a.offsets_size));
            if (inclusive && a.by == segments_by::offsets)
                return inclusive_segmented_scan<A>(backend, in, offsets, a.out, op, how, transform);
            if (inclusive && a.by == segments_by::flags)
                return inclusive_segmented_scan<A>(backend, in, flags, a.out, op, how, with_init{*a.init}, transform);
            if (inclusive) return inclusive_scan_by_key<A>(backend, keys, a.in, a.out, op, equal_to{}, how, transform);
            if (a.by == segments_by::flags && a.init)
                return exclusive_segmented_scan<A>(backend, in, flags, a.out, *a.init, op, how, transform);
            if (a.by == segments_by::flags)
                return exclusive_segmented_scan<A>(backend, in, flags, a.out, no_init, op, how, transform);
            return exclusive_segmented_scan<A>(backend, in, offsets, a.out, a.init.value(), op, how, transform);
        }
        throw std::logic_error("run_segmented: not a form of this case");
    });
}

template <class Policies, class Backend, class Case>
void run_runs(Backend& backend, std::string_view policy, const runs_arguments<Case>& a) {
    using A = typename Case::accumulator_type;
    with_policy(Policies{}, policy, [&](auto how) {
        const auto keys = input(a.keys, a.size, a.live);
        if (!a.lengths)
            return reduce_by_key<A>(backend, keys, a.in, counted(a.keys_out, a.size), counted(a.out, a.size), a.count,
                                    typename Case::operator_type{}, equal_to{}, how,
                                    with_transform{typename Case::transform_type{}});
        // Nothing of it depends on the case.
        if constexpr (std::is_same_v<Case, cases::int32_plus>)
            return run_length_encode(backend, keys, a.keys_out, a.lengths_out, a.count, equal_to{}, how);
        throw std::logic_error("run_runs: lengths are for the case int32_plus");
    });
}

} // namespace polyscan::test
