// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include <Kokkos_Core.hpp>

namespace polyscan::kokkos {

/// Copies by threads of the default host execution space, past the caches where that is faster. The roof that scans on
/// the host are compared with: Kokkos::deep_copy reaches half of it.
void host_copy(const Kokkos::DefaultHostExecutionSpace& space, void* destination, const void* source, std::size_t bytes,
               int threads);

} // namespace polyscan::kokkos
