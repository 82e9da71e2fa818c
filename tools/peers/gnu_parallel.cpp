// SPDX-License-Identifier: Apache-2.0
// The OpenMP mode of GNU's standard library.
#include "peers/host_peer.hpp"

#include <omp.h>
#include <parallel/algorithm>
#include <parallel/numeric>

namespace polyscan::tool {

namespace {
struct gnu_partial_sum {
    static constexpr std::string_view name = "__gnu_parallel";
    static constexpr bool inherits_affinity = false;

    template <class T, class Operator>
    static void inclusive(const T* in, T* out, index_type n, Operator op, int threads) {
        if (threads > 0) omp_set_num_threads(threads);
        __gnu_parallel::partial_sum(in, in + n, out, op);
    }
};

const bool registered = register_peer(std::make_unique<host_peer<gnu_partial_sum>>());
} // namespace

} // namespace polyscan::tool
