// SPDX-License-Identifier: Apache-2.0
/// What the CPU peers share. `Scan` is the peer itself, one function template:
///     template <class T, class Operator> static void inclusive(const T* in, T* out, index_type n, Operator op);
///     template <class T, class Operator> static void exclusive(..., T identity);       // if it has one
/// All but the sequential one are compiled for the frequent types and operators only.
#pragma once

#include "operations.hpp"
#include "peers/frequent.hpp"
#include "peers/peer.hpp"

#include <string>

namespace polyscan::tool {

template <class Scan>
class host_peer : public peer {
public:
    std::string_view name() const override { return Scan::name; }
    bool inherits_affinity() const override { return Scan::inherits_affinity; }

    std::optional<std::string> unsupported(const scan_call& call) const override {
        if (call.kind == scan_kind::exclusive && !has_exclusive)
            return std::string(Scan::name) + " has no exclusive form";
        if (!takes_everything && !is_frequent(call)) return outside_frequent;
        return std::nullopt;
    }

    void run(const scan_call& call, int threads) override {
        const auto scan = [&]<class T, class Operator>(std::type_identity<T>, Operator op) {
            const T* const in = static_cast<const T*>(call.input);
            T* const out = static_cast<T*>(call.output);
            if (call.kind == scan_kind::inclusive) {
                Scan::inclusive(in, out, call.size, op, threads);
            } else if constexpr (has_exclusive) {
                Scan::exclusive(in, out, call.size, op, identity_of<T>(op), threads);
            }
        };
        if constexpr (takes_everything)
            visit_operation(call.op, call.type, scan);
        else
            visit_frequent(call, scan);
    }

private:
    static constexpr bool takes_everything = requires { requires Scan::takes_everything; };
    static constexpr bool has_exclusive =
        requires(const int* in, int* out) { Scan::exclusive(in, out, index_type{}, plus{}, 0, 0); };
};

} // namespace polyscan::tool
