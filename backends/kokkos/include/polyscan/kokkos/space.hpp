// SPDX-License-Identifier: Apache-2.0
/// What this backend asks of an execution space, and of Kokkos itself.
#pragma once

#include <type_traits>

#include <Kokkos_Core.hpp>

#include <polyscan/error.hpp>

namespace polyscan::kokkos {

/// Kernels of this space run on the host: they may use whatever the host can, from std::string to exceptions.
template <class ExecutionSpace>
inline constexpr bool runs_on_host = std::is_same_v<typename ExecutionSpace::memory_space, Kokkos::HostSpace>;

/// Why nothing can run now; available where it can.
inline availability kokkos_state() {
    if (Kokkos::is_finalized())
        return availability::no("Kokkos has been finalised; scan before Kokkos::finalize() is called");
    if (!Kokkos::is_initialized())
        return availability::no(
            "Kokkos is not initialised; call Kokkos::initialize() first, or create a Kokkos::ScopeGuard");
    return {};
}

/// Throws std::invalid_argument unless Kokkos is running.
inline void require_kokkos() {
    if (const availability state = kokkos_state(); !state) reject("kokkos", state.reason);
}

/// An exception of Kokkos', which throws std::runtime_error of one kind or another, as this project's.
template <class Call>
decltype(auto) translating_errors(const char* what, Call&& call) {
    try {
        return call();
    } catch (const std::exception& error) {
        throw backend_error("kokkos", what, error.what());
    }
}

} // namespace polyscan::kokkos
