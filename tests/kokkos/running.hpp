// SPDX-License-Identifier: Apache-2.0
/// Kokkos for test programs whose main() knows nothing of it.
#pragma once

#include <cstdlib>
#include <vector>

#include <Kokkos_Core.hpp>

namespace polyscan::test {

/// Threads of the host spaces: more than the machine has, so that teams are descheduled while others wait for them.
inline constexpr int kokkos_threads = 8;

/// Initialises Kokkos; it is finalised at the end of the program.
inline void start_kokkos() {
    if (Kokkos::is_initialized()) return;
    Kokkos::initialize(Kokkos::InitializationSettings().set_num_threads(kokkos_threads).set_disable_warnings(true));
    std::atexit([] { Kokkos::finalize(); });
}

/// An instance of its own, with `threads` threads where the space has several.
template <class ExecutionSpace>
ExecutionSpace instance_of(int threads) {
    start_kokkos();
    const ExecutionSpace whole;
    if (threads >= whole.concurrency()) return whole;
    return Kokkos::Experimental::partition_space(whole, std::vector<int>{threads, whole.concurrency() - threads})
        .front();
}

} // namespace polyscan::test
