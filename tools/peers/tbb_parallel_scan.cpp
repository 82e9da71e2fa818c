// SPDX-License-Identifier: Apache-2.0
#include "peers/host_peer.hpp"

#include <tbb/blocked_range.h>
#include <tbb/parallel_scan.h>
#include <tbb/task_arena.h>

namespace polyscan::tool {

namespace {
struct tbb_parallel_scan {
    static constexpr std::string_view name = "tbb::parallel_scan";
    static constexpr bool inherits_affinity = true;

    enum class shift { none, by_one };

    template <class T, class Operator>
    static void scan(const T* in, T* out, index_type n, Operator op, int threads, shift where) {
        tbb::task_arena arena(threads > 0 ? threads : tbb::task_arena::automatic);
        arena.execute([&] {
            tbb::parallel_scan(
                tbb::blocked_range<index_type>(0, n), identity_of<T>(op),
                [&](const tbb::blocked_range<index_type>& range, T sum, bool is_final) {
                    for (index_type i = range.begin(); i < range.end(); ++i) {
                        const T before = sum;
                        sum = combine(op, sum, in[i]);
                        if (is_final) out[i] = where == shift::none ? sum : before;
                    }
                    return sum;
                },
                [&](const T& earlier, const T& later) { return combine(op, earlier, later); });
        });
    }

    template <class T, class Operator>
    static void inclusive(const T* in, T* out, index_type n, Operator op, int threads) {
        scan(in, out, n, op, threads, shift::none);
    }
    template <class T, class Operator>
    static void exclusive(const T* in, T* out, index_type n, Operator op, T, int threads) {
        scan(in, out, n, op, threads, shift::by_one);
    }
};

const bool registered = register_peer(std::make_unique<host_peer<tbb_parallel_scan>>());
} // namespace

} // namespace polyscan::tool
