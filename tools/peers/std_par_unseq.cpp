// SPDX-License-Identifier: Apache-2.0
// The standard library's parallel scans, which run on TBB here.
#include "peers/host_peer.hpp"

#include <tbb/task_arena.h>

#include <execution>
#include <numeric>

namespace polyscan::tool {

namespace {
struct std_par_unseq {
    static constexpr std::string_view name = "std par_unseq";
    static constexpr bool inherits_affinity = true;

    static tbb::task_arena arena(int threads) {
        return tbb::task_arena(threads > 0 ? threads : tbb::task_arena::automatic);
    }

    template <class T, class Operator>
    static void inclusive(const T* in, T* out, index_type n, Operator op, int threads) {
        arena(threads).execute([&] { std::inclusive_scan(std::execution::par_unseq, in, in + n, out, op); });
    }
    template <class T, class Operator>
    static void exclusive(const T* in, T* out, index_type n, Operator op, T identity, int threads) {
        arena(threads).execute([&] { std::exclusive_scan(std::execution::par_unseq, in, in + n, out, identity, op); });
    }
};

const bool registered = register_peer(std::make_unique<host_peer<std_par_unseq>>());
} // namespace

} // namespace polyscan::tool
