// SPDX-License-Identifier: Apache-2.0
/// Definitions of launch.hpp, for the translation units that instantiate them.
#pragma once

#include <stdexcept>

#include "launch.hpp"

namespace polyscan::test {

template <class Policy, class Backend, class Case>
void run_policy(Backend& backend, const case_arguments<Case>& a) {
    using accumulator = typename Case::accumulator_type;
    const auto in = counted(a.in, a.size);
    const typename Case::transform_type transform{};
    const auto call = [&](const auto& init) {
        if (a.kind == scan_kind::inclusive) {
            inclusive_scan<accumulator>(backend, in, a.out, a.op, Policy{}, with_init{init}, with_transform{transform},
                                        total_to{a.total});
        } else {
            exclusive_scan<accumulator>(backend, in, a.out, init, a.op, Policy{}, with_transform{transform},
                                        total_to{a.total});
        }
    };
    if (a.init) {
        call(*a.init);
    } else if (a.kind == scan_kind::inclusive) {
        inclusive_scan<accumulator>(backend, in, a.out, a.op, Policy{}, with_transform{transform}, total_to{a.total});
    } else if constexpr (has_identity<typename Case::operator_type, accumulator>) {
        exclusive_scan<accumulator>(backend, in, a.out, no_init, a.op, Policy{}, with_transform{transform},
                                    total_to{a.total});
    } else {
        throw std::logic_error("run_case: exclusive without init, and the operator has no identity");
    }
}

template <class Backend, class Case>
void run_case(Backend& backend, std::string_view policy, const case_arguments<Case>& arguments) {
    bool run = false;
    visit_policy(policy, [&]<class Policy>(Policy) {
        if constexpr (Backend::template supports<Policy>) {
            run_policy<Policy>(backend, arguments);
            run = true;
        }
    });
    if (!run) throw std::logic_error("run_case: there is no such policy, or the backend does not have it");
}

template <class Backend, class Case>
void run_case_default(Backend& backend, const case_arguments<Case>& arguments) {
    if constexpr (Backend::template supports<default_policy>)
        run_policy<default_policy>(backend, arguments);
    else
        throw std::logic_error("run_case_default: the backend does not have the default policy");
}

} // namespace polyscan::test
