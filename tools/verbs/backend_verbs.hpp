// SPDX-License-Identifier: Apache-2.0
/// The verbs of a polyscan backend, for its registration source.
#pragma once

#include "verbs/verb.hpp"

#include <polyscan/primitives.hpp>

#include <string>
#include <utility>

namespace polyscan::tool {

template <class Backend>
class backend_verbs final : public verb_runner {
public:
    explicit backend_verbs(Backend backend) : on_(std::move(backend)) {}

    std::string_view name() const override {
        static const std::string policy = default_policy::name();
        return policy;
    }
    std::string_view backend() const override { return Backend::name(); }
    bool is_peer() const override { return false; }
    bool has(verb) const override { return true; }

    void run(const verb_call& call) override {
        visit_verb_type(call.type, [&]<class T>(std::type_identity<T>) {
            const auto in = counted(static_cast<const T*>(call.in), call.size);
            const auto keys = counted(call.keys, call.size);
            T* const out = static_cast<T*>(call.out);
            switch (call.what) {
            case verb::reduce: return reduce(on_, in, out);
            case verb::copy_if: return copy_if(on_, in, out, call.count, is_small<T>{});
            case verb::segmented_scan:
                return inclusive_segmented_scan(on_, in, head_flags(counted(call.flags, call.size)), out);
            case verb::scan_by_key: return inclusive_scan_by_key(on_, keys, in, out);
            case verb::reduce_by_key: return reduce_by_key(on_, keys, in, call.keys_out, out, call.count);
            case verb::radix_sort: return radix_sort(on_, in, out);
            case verb::histogram:
                return histogram(on_, in, counted(static_cast<std::int32_t*>(call.out), bins),
                                 even_bins<T>{T(0), upper_end<T>});
            }
        });
    }

private:
    Backend on_;
};

} // namespace polyscan::tool
