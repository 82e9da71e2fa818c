// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>

#include <Kokkos_Core.hpp>

namespace polyscan::kokkos {

/// For polyscan's own programs, which need not know of Kokkos: initialises it if nobody has, and then finalises it at
/// the end of the program. `threads` for host spaces, 0: Kokkos' choice. The number cannot be changed later.
inline void ensure_running(int threads) {
    if (Kokkos::is_initialized() || Kokkos::is_finalized()) return;
    Kokkos::InitializationSettings settings;
    settings.set_disable_warnings(true); // about unbound threads: binding them would hurt the peers measured beside
    if (threads > 0) settings.set_num_threads(threads);
    Kokkos::initialize(settings);
    std::atexit([] {
        if (!Kokkos::is_finalized()) Kokkos::finalize();
    });
}

} // namespace polyscan::kokkos
