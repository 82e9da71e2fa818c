// SPDX-License-Identifier: Apache-2.0
/// Kokkos' host threads as workers of the host algorithms, which are written once, for OpenMP, and ask only for a team
/// with a `run` (polyscan/openmp/team.hpp).
#pragma once

#include <Kokkos_Core.hpp>

#include <polyscan/kokkos/space.hpp>
#include <polyscan/openmp/team.hpp>

namespace polyscan::kokkos {

template <class ExecutionSpace>
class host_team {
    static_assert(runs_on_host<ExecutionSpace>);

public:
    explicit host_team(const ExecutionSpace& space) : space_(space) {}

    /// Runs `worker` on at most `threads` threads at once, on at least one; returns when all are done. Rethrows the
    /// first exception.
    template <class Worker>
    void run(int threads, Worker&& worker) const {
        openmp::failure shared;
        if (threads <= 1) {
            space_.fence("polyscan: what was launched before this scan"); // it may still be writing the input
            openmp::run_guarded(shared, worker);
        } else {
            Kokkos::parallel_for("polyscan host workers",
                                 Kokkos::RangePolicy<ExecutionSpace>(space_, 0, threads, Kokkos::ChunkSize(1)),
                                 start<std::remove_reference_t<Worker>>{&shared, &worker});
            space_.fence("polyscan: the workers use the caller's stack");
        }
        shared.rethrow();
    }

    /// What the backend asks for where its caller does not say.
    static int processors() { return ExecutionSpace().concurrency(); }

private:
    template <class Worker>
    struct start {
        openmp::failure* shared;
        Worker* worker;
        void operator()(int) const { openmp::run_guarded(*shared, *worker); }
    };

    ExecutionSpace space_;
};

} // namespace polyscan::kokkos
