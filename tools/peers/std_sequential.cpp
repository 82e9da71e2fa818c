// SPDX-License-Identifier: Apache-2.0
// std::inclusive_scan and std::exclusive_scan on one thread.
#include "peers/host_peer.hpp"

#include <numeric>

namespace polyscan::tool {

namespace {
struct std_sequential {
    static constexpr std::string_view name = "std sequential";
    static constexpr bool inherits_affinity = false;
    static constexpr bool takes_everything = true; // speed-ups are counted from it

    template <class T, class Operator>
    static void inclusive(const T* in, T* out, index_type n, Operator op, int) {
        std::inclusive_scan(in, in + n, out, op);
    }
    template <class T, class Operator>
    static void exclusive(const T* in, T* out, index_type n, Operator op, T identity, int) {
        std::exclusive_scan(in, in + n, out, identity, op);
    }
};
} // namespace

peer& sequential_peer() {
    static host_peer<std_sequential> only;
    return only;
}

} // namespace polyscan::tool
