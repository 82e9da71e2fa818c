// SPDX-License-Identifier: Apache-2.0
/// The Kokkos backend. All policies, any length, on any execution space that this Kokkos was built with.
#pragma once

#include <algorithm>
#include <memory>
#include <string_view>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <polyscan/backend.hpp>
#include <polyscan/histogram.hpp>
#include <polyscan/kokkos/for_each.hpp>
#include <polyscan/kokkos/grid/domino.hpp>
#include <polyscan/kokkos/grid/look_back.hpp>
#include <polyscan/kokkos/grid/prefix_server.hpp>
#include <polyscan/kokkos/grid/single_block.hpp>
#include <polyscan/kokkos/grid/three_pass.hpp>
#include <polyscan/kokkos/host_form.hpp>
#include <polyscan/kokkos/space.hpp>
#include <polyscan/openmp/scratch.hpp>
#include <polyscan/openmp/tuning.hpp>
#include <polyscan/radix_sort.hpp>

namespace polyscan::kokkos {

/// Which of two forms of the algorithms, with the same bits.
enum class form {
    best, ///< on the host the OpenMP backend's loops, run by Kokkos' threads; elsewhere teams
    team  ///< teams with scratch and barriers, on the host too: what devices run, to be tested and read anywhere
};

/// How a backend object works. None of it changes a bit of a result.
struct options {
    /// Threads to use, at most; 0: as many as the execution space has. More than that cannot be had.
    int threads = 0;
    /// On the host, a scan of fewer input bytes runs in the calling thread. `form::best` only.
    index_type parallel_bytes = openmp::tuning::parallel_bytes;
    /// Members per team; 0: what suits the execution space. The space may grant fewer.
    int team_size = 0;
};

/// The kernel of an empty scan with a total. (Kernels are no private members: CUDA does not launch those.)
template <class Request>
struct total_of_nothing {
    Request request;
    KOKKOS_FUNCTION void operator()(int) const { put(request.total, *request.empty_total); }
};

/// Scans are launched on one execution-space instance, and asynchronous where that is. The backend never waits for it,
/// except when its workspace has to grow, when it has to read the number of elements (`counted` with a place for it)
/// and, on host spaces, where threads return what an operator throws.
///
/// An object serves one host thread at a time. Accumulators: on the host any copyable type; in teams trivially copyable
/// ones, and operators that do not throw.
template <class ExecutionSpace = Kokkos::DefaultExecutionSpace, form Form = form::best>
class backend {
public:
    using execution_space = ExecutionSpace;
    using memory_space = typename ExecutionSpace::memory_space;

    /// On the default instance. std::invalid_argument if Kokkos is not running.
    explicit backend(const options& wanted = {}) : backend(default_instance(), wanted) {}
    explicit backend(const ExecutionSpace& space, const options& wanted = {}) : backend(checked(wanted), space) {}

    static constexpr std::string_view name() { return "kokkos"; }
    availability available() const { return kokkos_state(); }
    /// The execution-space instance that scans are launched on.
    const ExecutionSpace& space() const { return memory_->space(); }
    /// Threads of the execution space that scans use.
    int threads() const {
        return options_.threads > 0 ? std::min(options_.threads, space().concurrency()) : space().concurrency();
    }

    template <scan_policy Policy>
    static constexpr bool supports = true;

    template <scan_policy Policy, class Request>
    void scan(const Request& request) {
        require_kokkos();
        constexpr bool by_value = std::is_trivially_copyable_v<typename Request::accumulator_type>;
        if constexpr (has_host_form<ExecutionSpace> && (Form == form::best || !by_value)) {
            host_scan<Policy>(space(), request, threads(), options_.parallel_bytes);
        } else {
            static_assert(by_value, "in teams accumulators must be trivially copyable");
            const kernel_request<Request> kernels_own(request, live_size(request));
            if (kernels_own.size == 0) {
                if (request.total != nullptr && request.empty_total) store_total(kernels_own);
                return;
            }
            const team_options teams{options_.threads, options_.team_size};
            grid_scan(Policy{}, kernels_own, call<ExecutionSpace>{*memory_, teams});
        }
    }

    /// The total alone; teams find it by a scan that stores nothing else.
    template <scan_policy Policy, class Request>
        requires(has_host_form<ExecutionSpace> && Form == form::best)
    void reduce(const Request& request) {
        require_kokkos();
        host_reduce<Policy>(space(), request, threads(), options_.parallel_bytes);
    }

    // Host threads select, sort and count as the OpenMP backend's do; teams run the verbs' own functions.
    /// Compaction.
    template <class Request>
        requires(has_host_form<ExecutionSpace> && Form == form::best && has_host_select<Request>)
    void select(const Request& request) {
        require_kokkos();
        host_select<false>(space(), request, threads_of<Request>(), host_scratch_);
    }
    /// A stable partition.
    template <class Request>
        requires(has_host_form<ExecutionSpace> && Form == form::best && has_host_select<Request>)
    void partition(const Request& request) {
        require_kokkos();
        host_select<true>(space(), request, threads_of<Request>(), host_scratch_);
    }
    template <class Key, class Value>
        requires(has_host_form<ExecutionSpace> && Form == form::best)
    void radix_sort(const polyscan::detail::sort_request<Key, Value>& request) {
        require_kokkos();
        host_verb(space(), request, threads_for(request.size, sizeof(Key) + request.value_bytes), host_scratch_);
    }
    template <class Input, class Bins, class Count>
        requires(has_host_form<ExecutionSpace> && Form == form::best)
    void histogram(const polyscan::detail::histogram_request<Input, Bins, Count>& request) {
        require_kokkos();
        host_verb(space(), request, threads_for(request.size, sizeof(request.input[0])), host_scratch_);
    }

    template <class Function>
    void for_each(index_type n, const Function& f) {
        require_kokkos();
        for_each_index(space(), n, f);
    }
    template <class T>
    auto scratch(index_type n) {
        require_kokkos();
        return memory_->scratch().template lend<T>(space(), n);
    }

    void synchronize() {
        require_kokkos();
        translating_errors("fence", [&] { space().fence("polyscan: synchronize"); });
    }

    /// Memory from `allocate`.
    template <class T>
    class buffer {
    public:
        T* data() const { return elements_.data(); }
        index_type size() const { return static_cast<index_type>(elements_.size()); }

    private:
        friend backend;
        using view = Kokkos::View<T*, memory_space>;
        explicit buffer(view elements) : elements_(std::move(elements)) {}
        view elements_;
    };

    /// Elements are not initialised, unless they must be.
    template <class T>
    buffer<T> allocate(index_type n) const {
        require_kokkos();
        return translating_errors("allocation", [&] {
            using view = typename buffer<T>::view;
            const auto count = static_cast<std::size_t>(n);
            if constexpr (std::is_trivially_copyable_v<T>)
                return buffer<T>(view(Kokkos::view_alloc(space(), Kokkos::WithoutInitializing, "polyscan"), count));
            else
                return buffer<T>(view(Kokkos::view_alloc(space(), "polyscan"), count));
        });
    }

    template <class T>
    void copy_to_device(T* device, const T* host, index_type n) const {
        copy<memory_space, Kokkos::HostSpace>(device, host, n);
    }
    template <class T>
    void copy_to_host(T* host, const T* device, index_type n) const {
        copy<Kokkos::HostSpace, memory_space>(host, device, n);
    }

private:
    using workspace_type = workspace<ExecutionSpace>;

    int threads_for(index_type elements, std::size_t bytes_each) const {
        return elements >= ceil_div(options_.parallel_bytes, static_cast<index_type>(bytes_each)) ? threads() : 1;
    }

    template <class Request>
    auto threads_of() const {
        return
            [this](index_type elements) { return threads_for(elements, sizeof(std::declval<const Request&>().in[0])); };
    }

    // Neither memory nor instances can be given back once Kokkos is gone: an object that outlives it leaves both to the
    // end of the process.
    struct release_workspace {
        void operator()(workspace_type* memory) const {
            if (!Kokkos::is_finalized()) delete memory;
        }
    };

    backend(const options& wanted, const ExecutionSpace& space)
        : options_(wanted), memory_(new workspace_type(space)) {}

    static ExecutionSpace default_instance() {
        require_kokkos(); // Kokkos would end the program
        return ExecutionSpace();
    }
    static const options& checked(const options& wanted) {
        require_kokkos();
        if (wanted.threads < 0) reject("threads", "must not be negative");
        if (wanted.team_size < 0) reject("team_size", "must not be negative");
        return wanted;
    }

    // The number of elements; where it stands in the space's memory, earlier work may still be writing it.
    template <class Request>
    index_type live_size(const Request& request) const {
        if (request.count == nullptr) return request.size;
        index_type found = 0;
        copy_to_host(&found, request.count, 1);
        return live_count(request.size, &found);
    }

    template <class Request>
    void store_total(const Request& request) const {
        translating_errors("total of nothing", [&] {
            Kokkos::parallel_for("polyscan: total of nothing", Kokkos::RangePolicy<ExecutionSpace>(space(), 0, 1),
                                 total_of_nothing<Request>{request});
        });
    }

    template <class To, class From, class T>
    void copy(T* to, const T* from, index_type n) const {
        require_kokkos();
        translating_errors("copy", [&] {
            if constexpr (runs_on_host<ExecutionSpace>) {
                space().fence("polyscan: copy");
                std::copy_n(from, n, to);
            } else {
                using unmanaged = Kokkos::MemoryTraits<Kokkos::Unmanaged>;
                const auto count = static_cast<std::size_t>(n);
                Kokkos::deep_copy(space(), Kokkos::View<T*, To, unmanaged>(to, count),
                                  Kokkos::View<const T*, From, unmanaged>(from, count));
                space().fence("polyscan: copy");
            }
        });
    }

    options options_;
    std::unique_ptr<workspace_type, release_workspace> memory_;
    openmp::scratch_pool host_scratch_;
};

static_assert(polyscan::backend<backend<>>);
static_assert(polyscan::backend<backend<Kokkos::DefaultHostExecutionSpace, form::team>>);

} // namespace polyscan::kokkos
