// SPDX-License-Identifier: Apache-2.0
/// The OpenMP backend. All policies, any length, any number of threads, any copyable accumulator.
#pragma once

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include <polyscan/backend.hpp>
#include <polyscan/openmp/grid/domino.hpp>
#include <polyscan/openmp/grid/look_back.hpp>
#include <polyscan/openmp/grid/prefix_server.hpp>
#include <polyscan/openmp/grid/segmented_pass.hpp>
#include <polyscan/openmp/grid/single_block.hpp>
#include <polyscan/openmp/grid/three_pass.hpp>
#include <polyscan/openmp/histogram.hpp>
#include <polyscan/openmp/radix_sort.hpp>
#include <polyscan/openmp/reduce.hpp>
#include <polyscan/openmp/scratch.hpp>
#include <polyscan/openmp/select.hpp>
#include <polyscan/openmp/team.hpp>

namespace polyscan::openmp {

/// How a backend object works. None of it changes a bit of a result.
struct options {
    /// Threads to ask for; 0: as many as can run at once. More than that is slow but correct.
    int threads = 0;
    /// A scan of fewer input bytes runs in the calling thread.
    index_type parallel_bytes = tuning::parallel_bytes;
};

/// Scans run in the calling thread and a team; they are complete when the call returns. Objects hold no state between
/// calls but memory that a call may use again, so several host threads may share one.
template <class Team>
class basic_backend {
public:
    basic_backend() : basic_backend(options{}) {}
    explicit basic_backend(int threads) : basic_backend(options{threads, tuning::parallel_bytes}) {}
    explicit basic_backend(const options& wanted, Team team = {}) : options_(wanted), team_(std::move(team)) {
        if (wanted.threads < 0) reject("threads", "must not be negative");
        if (wanted.threads == 0) {
            if constexpr (requires { Team::processors(); })
                options_.threads = Team::processors();
            else
                options_.threads = 1; // a team that does not say how many
        }
    }

    static constexpr std::string_view name() { return "openmp"; }
    availability available() const { return {}; }
    /// Threads that a long scan asks for.
    int threads() const { return options_.threads; }

    template <scan_policy Policy>
    static constexpr bool supports = true;

    template <scan_policy Policy, class Request>
    void scan(const Request& request) const {
        if (scan_few<typename Policy::block_type>(request)) return;
        // A copy, so that the request above may stay in registers.
        with_elements<Policy>(Request(request),
                              [&](const Request& r, int threads) { grid_scan(Policy{}, r, team_, threads); });
    }
    /// The total alone.
    template <scan_policy Policy, class Request>
    void reduce(const Request& request) const {
        with_elements<Policy>(
            request, [&](const Request& r, int threads) { *r.total = grid_reduce(Policy{}, r, team_, threads); });
    }

    /// Compaction, in one pass.
    template <class Request>
        requires(has_select<Request>)
    void select(const Request& request) const {
        openmp::select<false>(request, team_, threads_of<Request>(), scratch_);
    }
    /// A stable partition: a count, then one pass.
    template <class Request>
        requires(has_select<Request>)
    void partition(const Request& request) const {
        openmp::select<true>(request, team_, threads_of<Request>(), scratch_);
    }

    template <class Key, class Value>
    void radix_sort(const polyscan::detail::sort_request<Key, Value>& request) const {
        openmp::radix_sort(request, team_, threads_for(request.size, sizeof(Key) + request.value_bytes), scratch_);
    }
    template <class Input, class Bins, class Count>
    void histogram(const polyscan::detail::histogram_request<Input, Bins, Count>& request) const {
        openmp::histogram(request, team_, threads_for(request.size, sizeof(request.input[0])), scratch_);
    }

    /// In parallel from two calls on: what a call of f costs is not known here.
    template <class Function>
    void for_each(index_type n, const Function& f) const {
        ticket_counter tickets;
        const index_type piece = std::max<index_type>(1, n / (tuning::pieces_each * threads()));
        team_.run(static_cast<int>(std::min<index_type>(ceil_div(n, piece), threads())), [&](failure& others) {
            for (index_type first; (first = tickets.take() * piece) < n && !others.stopped();)
                for (index_type i = first; i < std::min(n, first + piece); ++i) f(i);
        });
    }
    template <class T>
    scratch_pool::lease<T> scratch(index_type n) const {
        return scratch_.take<T>(n);
    }

    void synchronize() const {}

    /// Memory from `allocate`. (Not a std::vector, which has no data() where T is bool.)
    template <class T>
    class buffer {
    public:
        T* data() const { return elements_.get(); }
        index_type size() const { return size_; }

    private:
        friend basic_backend;
        explicit buffer(index_type size)
            : elements_(std::make_unique<T[]>(static_cast<std::size_t>(size))), size_(size) {}
        std::unique_ptr<T[]> elements_;
        index_type size_;
    };

    template <class T>
    buffer<T> allocate(index_type n) const {
        if (n < 0) reject("allocate", "the number of elements must not be negative");
        return buffer<T>(n);
    }
    template <class T>
    void copy_to_device(T* device, const T* host, index_type n) const {
        std::copy_n(host, n, device);
    }
    template <class T>
    void copy_to_host(T* host, const T* device, index_type n) const {
        std::copy_n(device, n, host);
    }

private:
    /// Calls run(request, threads), where there are elements.
    template <class Policy, class Request, class Run>
    void with_elements(const Request& request, const Run& run) const {
        if (request.count != nullptr) {
            Request live = request;
            live.size = request.live_size();
            live.count = nullptr;
            with_elements<Policy>(live, run);
            return;
        }
        if (request.size == 0) {
            if (request.total != nullptr && request.empty_total) *request.total = *request.empty_total;
            return;
        }
        constexpr std::size_t bytes_each =
            std::max(sizeof(typename Request::accumulator_type), sizeof(request.input[0]));
        const index_type sections = tiling<typename Policy::block_type, Request>(request).sections;
        run(request, static_cast<int>(std::min<index_type>(sections, threads_for(request.size, bytes_each))));
    }
    int threads_for(index_type elements, std::size_t bytes_each) const {
        return elements >= ceil_div(options_.parallel_bytes, static_cast<index_type>(bytes_each)) ? threads() : 1;
    }

    template <class Request>
    auto threads_of() const {
        return
            [this](index_type elements) { return threads_for(elements, sizeof(std::declval<const Request&>().in[0])); };
    }

    options options_;
    Team team_;
    mutable scratch_pool scratch_;
};

#if defined(_OPENMP)
/// Threads are OpenMP's.
using backend = basic_backend<omp_team>;
static_assert(polyscan::backend<backend>);
#endif

} // namespace polyscan::openmp
