// SPDX-License-Identifier: Apache-2.0
/// The host form of the algorithms: the OpenMP backend's loops, in Kokkos' threads.
#pragma once

#include <polyscan/kokkos/space.hpp>

// nvcc cannot read the vector extensions that those loops are written with. What it compiles runs teams everywhere.
#if defined(KOKKOS_COMPILER_NVCC)

namespace polyscan::kokkos {
template <class ExecutionSpace>
inline constexpr bool has_host_form = false;
template <class Request>
inline constexpr bool has_host_select = false;
} // namespace polyscan::kokkos

#else

#include <polyscan/kokkos/host_team.hpp>
#include <polyscan/openmp/backend.hpp>

namespace polyscan::kokkos {

template <class ExecutionSpace>
inline constexpr bool has_host_form = runs_on_host<ExecutionSpace>;
template <class Request>
inline constexpr bool has_host_select = openmp::has_select<Request>;

/// With at most `threads` threads; with one where the input has fewer than `parallel_bytes` bytes. Done on return.
template <class Policy, class ExecutionSpace, class Request>
void host_scan(const ExecutionSpace& space, const Request& request, int threads, index_type parallel_bytes) {
    // Earlier work of the space may be writing what is read or written here by the caller's thread: a count, a total,
    // or all of a scan that is too short for a team.
    space.fence("polyscan: the host reads and stores values");
    const host_team<ExecutionSpace> team(space);
    const openmp::basic_backend<host_team<ExecutionSpace>> host({threads, parallel_bytes}, team);
    host.template scan<Policy>(request);
}

/// The total alone, likewise.
template <class Policy, class ExecutionSpace, class Request>
void host_reduce(const ExecutionSpace& space, const Request& request, int threads, index_type parallel_bytes) {
    space.fence("polyscan: the host reads and stores values");
    const openmp::basic_backend<host_team<ExecutionSpace>> host({threads, parallel_bytes},
                                                                host_team<ExecutionSpace>(space));
    host.template reduce<Policy>(request);
}

/// A sort or a histogram, with at most `threads` threads. Done on return.
template <class ExecutionSpace, class Key, class Value>
void host_verb(const ExecutionSpace& space, const polyscan::detail::sort_request<Key, Value>& request, int threads,
               openmp::scratch_pool& pool) {
    space.fence("polyscan: the host reads the count");
    openmp::radix_sort(request, host_team<ExecutionSpace>(space), threads, pool);
}
template <class ExecutionSpace, class Input, class Bins, class Count>
void host_verb(const ExecutionSpace& space, const polyscan::detail::histogram_request<Input, Bins, Count>& request,
               int threads, openmp::scratch_pool& pool) {
    space.fence("polyscan: the host reads the count and the edges");
    openmp::histogram(request, host_team<ExecutionSpace>(space), threads, pool);
}

/// A selection or, `Both`, a partition. Done on return.
template <bool Both, class ExecutionSpace, class Request, class Threads>
void host_select(const ExecutionSpace& space, const Request& request, const Threads& threads,
                 openmp::scratch_pool& pool) {
    space.fence("polyscan: the host reads and stores counts");
    openmp::select<Both>(request, host_team<ExecutionSpace>(space), threads, pool);
}

} // namespace polyscan::kokkos

#endif
