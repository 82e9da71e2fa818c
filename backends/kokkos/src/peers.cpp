// SPDX-License-Identifier: Apache-2.0
// Kokkos' own scans, as peers for the comparison.
#include <Kokkos_Core.hpp>
#include <Kokkos_StdAlgorithms.hpp>

#include "peers/frequent.hpp"
#include "peers/peer.hpp"

#include <polyscan/kokkos/backend.hpp>

#include "runtime.hpp"

namespace polyscan::kokkos {

namespace {

using space = Kokkos::DefaultExecutionSpace;
template <class T>
using elements = Kokkos::View<T*, space::memory_space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

// Kokkos::parallel_scan makes two passes: one for the blocks' totals, one for the results.
template <class T, class Operator>
struct scan_kernel {
    using value_type = T;
    const T* in;
    T* out;
    Operator op;
    T identity;
    bool exclusive;

    KOKKOS_FUNCTION void operator()(index_type i, T& earlier, bool final) const {
        const T value = in[i];
        if (final && exclusive) out[i] = earlier;
        earlier = op(earlier, value);
        if (final && !exclusive) out[i] = earlier;
    }
    KOKKOS_FUNCTION void init(T& value) const { value = identity; }
    KOKKOS_FUNCTION void join(T& earlier, const T& later) const { earlier = op(earlier, later); }
};

struct parallel_scan {
    static constexpr std::string_view name = "Kokkos::parallel_scan";

    template <class T, class Operator>
    static void run(const T* in, T* out, index_type n, Operator op, scan_kind kind) {
        using policy = Kokkos::RangePolicy<space, Kokkos::IndexType<index_type>>;
        Kokkos::parallel_scan("peer", policy(0, n),
                              scan_kernel<T, Operator>{in, out, op, identity_of<T>(op), kind == scan_kind::exclusive});
    }
};

struct algorithm_scan {
    static constexpr std::string_view name = "Kokkos::Experimental::inclusive_scan";

    template <class T, class Operator>
    static void run(const T* in, T* out, index_type n, Operator op, scan_kind kind) {
        namespace algorithms = Kokkos::Experimental;
        const elements<const T> from(in, static_cast<std::size_t>(n));
        const elements<T> to(out, static_cast<std::size_t>(n));
        if (kind == scan_kind::exclusive)
            algorithms::exclusive_scan(space(), algorithms::cbegin(from), algorithms::cend(from), algorithms::begin(to),
                                       identity_of<T>(op), op);
        else
            algorithms::inclusive_scan(space(), algorithms::cbegin(from), algorithms::cend(from), algorithms::begin(to),
                                       op);
    }
};

template <class Scan>
class kokkos_peer final : public tool::peer {
public:
    std::string_view name() const override { return Scan::name; }
    std::string_view backend() const override { return "kokkos"; }

    std::optional<std::string> unsupported(const scan_call& call) const override {
        if (tool::is_frequent(call)) return std::nullopt;
        return tool::outside_frequent;
    }

    // Its threads are those that Kokkos was initialised with.
    void run(const scan_call& call, int) override {
        ensure_running(0);
        translating_errors(std::string(Scan::name).c_str(), [&] {
            tool::visit_frequent(call, [&]<class T, class Operator>(std::type_identity<T>, Operator op) {
                Scan::run(static_cast<const T*>(call.input), static_cast<T*>(call.output), call.size, op, call.kind);
            });
        });
    }
};

const bool registered = tool::register_peer(std::make_unique<kokkos_peer<parallel_scan>>()) &&
                        tool::register_peer(std::make_unique<kokkos_peer<algorithm_scan>>());

} // namespace

} // namespace polyscan::kokkos
