// SPDX-License-Identifier: Apache-2.0
/// Definition of `scan_elements`, for the translation units that instantiate it: one or a few element types each.
#pragma once

#include <polyscan/adapted_backend.hpp>
#include <polyscan/scan.hpp>

namespace polyscan {

template <class Backend, class T, class Set>
void scan_elements(Backend& backend, const scan_call& call) {
    const auto in = counted(static_cast<const T*>(call.input), call.size);
    auto* const out = static_cast<T*>(call.output);
    const total_to total{static_cast<T*>(call.total)};
    const auto* const init = static_cast<const T*>(call.init);
    detail::visit_operator<T>(call.op, [&]<class Operator>(Operator op) {
        visit_policy(call.policy, [&]<class Policy>(Policy how) {
            if constexpr (Backend::template supports<Policy> && Set::template contains<T, Operator, Policy>) {
                if (call.kind == scan_kind::exclusive && init != nullptr)
                    exclusive_scan<T>(backend, in, out, *init, op, how, total);
                else if (call.kind == scan_kind::exclusive)
                    exclusive_scan<T>(backend, in, out, no_init, op, how, total);
                else if (init != nullptr)
                    inclusive_scan<T>(backend, in, out, op, how, with_init{*init}, total);
                else
                    inclusive_scan<T>(backend, in, out, op, how, total);
            }
        });
    });
}

} // namespace polyscan
