// SPDX-License-Identifier: Apache-2.0
/// Threads that run one worker function each. Scans need only one worker to make progress, so a runtime that grants
/// fewer threads than asked for (OMP_THREAD_LIMIT, OMP_DYNAMIC, a call from inside a parallel region) changes nothing.
#pragma once

#include <atomic>
#include <concepts>
#include <exception>
#include <thread>

#if defined(_OPENMP)
#include <omp.h>
#endif

#include <polyscan/openmp/tuning.hpp>

namespace polyscan::openmp {

/// What the workers of one call share when one of them throws: the first exception, and the order to stop waiting.
class failure {
public:
    void record() noexcept {
        if (!claimed_.exchange(true, std::memory_order_relaxed)) {
            first_ = std::current_exception();
            // Relaxed: it tells others to stop and publishes nothing; `first_` is read after the team has joined.
            stopped_.store(true, std::memory_order_relaxed);
        }
    }
    bool stopped() const noexcept { return stopped_.load(std::memory_order_relaxed); }
    void rethrow() const {
        if (first_) std::rethrow_exception(first_);
    }

private:
    std::atomic<bool> claimed_ = false;
    std::atomic<bool> stopped_ = false;
    std::exception_ptr first_;
};

/// Repeats `ready()` until it is true or another worker failed. Returns whether it is true.
template <std::predicate Ready>
bool wait_until(const failure& others, Ready ready) {
    for (int spins = 0; !ready();) {
        if (others.stopped()) return false;
        if (++spins < tuning::spins_before_yield) {
#if defined(__x86_64__) || defined(__i386__)
            __builtin_ia32_pause();
#elif defined(__aarch64__)
            asm volatile("yield");
#endif
        } else {
            std::this_thread::yield();
        }
    }
    return true;
}

/// Runs `worker(failure&)` in a thread of the calling team, keeps its exception.
template <class Worker>
void run_guarded(failure& shared, Worker& worker) noexcept {
    try {
        worker(shared);
    } catch (...) {
        shared.record();
    }
}

#if defined(_OPENMP) // the Kokkos backend uses the rest without it
/// A team of OpenMP threads. Anything with the same `run` can take its place (the tests run std::threads in reverse
/// order through it).
struct omp_team {
    /// Runs `worker` on at most `threads` threads at once, on at least one; returns when all are done. Rethrows the
    /// first exception.
    template <class Worker>
    void run(int threads, Worker&& worker) const {
        failure shared;
        if (threads <= 1) {
            run_guarded(shared, worker); // no parallel region: a small scan does not wake a sleeping team
        } else {
#pragma omp parallel num_threads(threads) default(none) shared(shared, worker)
            run_guarded(shared, worker);
        }
        shared.rethrow();
    }

    /// Threads that can run at once: not more than there are processors for this process, however large
    /// OMP_NUM_THREADS is. Three threads on two processors run at a quarter of the speed of two.
    static int processors() { return std::max(1, std::min(omp_get_max_threads(), omp_get_num_procs())); }
};
#endif

/// Hands out indices in ascending order, each once.
class ticket_counter {
public:
    /// Relaxed: a ticket publishes nothing. Whatever a later tile needs from an earlier one is published by that tile.
    index_type take() noexcept { return next_.fetch_add(1, std::memory_order_relaxed); }

private:
    alignas(tuning::separate) std::atomic<index_type> next_ = 0;
};

} // namespace polyscan::openmp
