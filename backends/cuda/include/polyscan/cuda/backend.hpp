// SPDX-License-Identifier: Apache-2.0
/// The CUDA backend. Readable by a host compiler; `scan` is defined in scan.cuh, for the CUDA compiler.
///
///     polyscan::cuda::backend gpu(stream);
///     auto in = gpu.allocate<float>(n), out = gpu.allocate<float>(n);
///     polyscan::inclusive_scan(gpu, polyscan::counted(in.data(), n), out.data());   // returns at once
///     gpu.synchronize();
///
/// Calls are ordered on the stream. A call does not wait for the device, and allocates nothing once the workspace has
/// grown to what the longest call needs; then it can be captured into a graph, and the graph be replayed with other
/// data. Accumulators and operators are trivially copyable, accumulators up to 64 bytes. One object serves one host
/// thread at a time and one stream; use one object per stream.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include <polyscan/backend.hpp>
#include <polyscan/cuda/error.hpp>
#include <polyscan/cuda/workspace.hpp>
#include <polyscan/histogram.hpp>
#include <polyscan/radix_sort.hpp>

namespace polyscan::cuda {

class launcher;

/// For tests: forces what seldom happens.
struct test_hooks {
    int most_blocks = 0;        ///< of a launch; 0: no limit
    bool refuse_launch = false; ///< ask the runtime for a launch that it refuses
};

/// Device memory for `size` elements.
template <class T>
class buffer {
public:
    explicit buffer(index_type size) : size_(size) {
        if (size < 0) reject("allocate", "the number of elements must not be negative");
        void* memory = nullptr;
        if (size > 0) {
            if (static_cast<std::uint64_t>(size) > PTRDIFF_MAX / sizeof(T))
                throw backend_error("cuda", "cudaMalloc", cudaGetErrorString(cudaErrorMemoryAllocation));
            check(cudaMalloc(&memory, static_cast<std::size_t>(size) * sizeof(T)), "cudaMalloc");
        }
        memory_.reset(static_cast<T*>(memory));
    }
    T* data() const { return memory_.get(); }
    index_type size() const { return size_; }

private:
    struct release {
        void operator()(T* memory) const { static_cast<void>(cudaFree(memory)); }
    };
    std::unique_ptr<T, release> memory_;
    index_type size_;
};

namespace detail {
/// Says whether this program has code for the current device. Set by the translation units that have device code.
inline availability (*image_check)() = nullptr;
} // namespace detail

/// Totals that have a kernel of their own (reduce.cuh). Others are found by a scan that stores nothing else.
template <class Policy, class Request>
inline constexpr bool has_reduce =
    std::is_same_v<typename Policy::block_type, block::warp_shuffle> &&
    !std::is_same_v<typename Policy::grid_type, grid::three_pass> && sizeof(typename Request::accumulator_type) <= 16;

/// Selections and partitions that have a kernel of their own (select.cuh): of elements that are copied like bytes, up
/// to 16 of them.
template <class Request>
inline constexpr bool has_select = [] {
    using element = std::remove_cvref_t<decltype(std::declval<const Request&>().in[0])>;
    return std::is_trivially_copyable_v<element> && sizeof(element) <= 16;
}();

/// Scans on one stream.
class backend {
public:
    backend() : backend(nullptr) {}
    explicit backend(cudaStream_t stream) : stream_(stream), memory_(std::make_unique<workspace>()) {}
    backend(backend&&) = default;
    backend& operator=(backend&&) = default;

    static constexpr std::string_view name() { return "cuda"; }

    availability available() const {
        int devices = 0;
        const cudaError_t status = cudaGetDeviceCount(&devices);
        static_cast<void>(cudaGetLastError());
        if (status == cudaErrorInsufficientDriver) {
            int driver = 0;
            static_cast<void>(cudaDriverGetVersion(&driver));
            if (driver == 0) return availability::no("no CUDA device (no driver)");
            return availability::no("the driver is too old: it is for CUDA " + version(driver) + ", the program for " +
                                    version(CUDART_VERSION));
        }
        if (status == cudaErrorNoDevice || (status == cudaSuccess && devices == 0))
            return availability::no("no CUDA device");
        if (status != cudaSuccess)
            return availability::no(std::string("no CUDA device: ") + cudaGetErrorString(status));
        return detail::image_check != nullptr ? detail::image_check() : availability{};
    }

    template <scan_policy Policy>
    static constexpr bool supports = true;

    template <scan_policy Policy, class Request>
    void scan(const Request& request);
    /// The total alone, where reading is faster than scanning. (Defined for the CUDA compiler.)
    template <scan_policy Policy, class Request>
        requires(has_reduce<Policy, Request>)
    void reduce(const Request& request);
    /// Compaction. (Defined for the CUDA compiler.)
    template <class Request>
        requires(has_select<Request>)
    void select(const Request& request);
    /// A stable partition. (Defined for the CUDA compiler.)
    template <class Request>
        requires(has_select<Request>)
    void partition(const Request& request);

    // Verbs beside scan, and what others of them are made of. (Defined for the CUDA compiler.)
    template <class Key, class Value>
    void radix_sort(const polyscan::detail::sort_request<Key, Value>& request);
    template <class Input, class Bins, class Count>
    void histogram(const polyscan::detail::histogram_request<Input, Bins, Count>& request);
    template <class Function>
    void for_each(index_type n, const Function& f);
    /// Memory of the workspace that scans leave alone, aligned to 128 bytes.
    template <class T>
    struct lent {
        T* place;
        T* data() const { return place; }
    };
    template <class T>
    lent<T> scratch(index_type n) {
        return {
            reinterpret_cast<T*>(memory().get(region::verbs, static_cast<std::size_t>(n) * sizeof(T), stream_).data)};
    }

    void synchronize() { check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

    template <class T>
    buffer<T> allocate(index_type n) {
        return buffer<T>(n);
    }
    template <class T>
    void copy_to_device(T* device, const T* host, index_type n) {
        transfer(device, host, n * static_cast<index_type>(sizeof(T)), cudaMemcpyHostToDevice);
    }
    template <class T>
    void copy_to_host(T* host, const T* device, index_type n) {
        transfer(host, device, n * static_cast<index_type>(sizeof(T)), cudaMemcpyDeviceToHost);
    }

    /// What calls are ordered on.
    cudaStream_t stream() const { return stream_; }

    // --- workspace ---------------------------------------------------------------------------------------------------

    /// Bytes of workspace that a call takes, at whatever address they start. Calls with accumulators of up to 4 bytes
    /// and larger ones take memory of their own, as do those of three_pass: add theirs up. (A segmented scan of numbers
    /// counts by its numbers, not by its pairs. Defined for the CUDA compiler.)
    template <scan_policy Policy, class Request>
    static constexpr std::size_t workspace_bytes(index_type n);

    /// Uses the caller's device memory as workspace, which lives longer than this object's calls; null: the own again.
    /// Initialise it before the first call.
    void set_workspace(void* memory, std::size_t bytes) {
        given_ = {static_cast<unsigned char*>(memory), bytes};
        initialised_ = memory == nullptr;
        memory_->use(memory, bytes);
    }
    /// Zeroes the caller's workspace, in stream order. Once: garbage could look like a published value.
    void initialise_workspace() {
        if (given_.data == nullptr) return;
        check(cudaMemsetAsync(given_.data, 0, given_.bytes, stream_), "cudaMemsetAsync");
        memory_->use(given_.data, given_.bytes);
        initialised_ = true;
    }
    /// Grows the own workspace to what a call with up to `n` elements needs, so that it can be captured. (Defined for
    /// the CUDA compiler.)
    template <scan_policy Policy, class Request>
    void reserve(index_type n);

    // --- for the kernels' launch code, and tests ---------------------------------------------------------------------

    /// The workspace that is in use.
    workspace& memory() {
        if (!initialised_) reject("workspace", "initialise_workspace() comes before the first call");
        return *memory_;
    }
    /// What the next launches are forced to.
    test_hooks& hooks() { return hooks_; }
    /// The next launch on each region has this epoch.
    void force_epoch(std::uint32_t epoch) {
        for (const region which : {region::words, region::wide_words}) {
            unsigned char* const data = memory_->current(which).data;
            if (data == nullptr) continue;
            const unsigned long long counter = static_cast<unsigned long long>(epoch) << region_header::epoch_shift;
            check(cudaMemcpyAsync(data, &counter, sizeof counter, cudaMemcpyHostToDevice, stream_), "cudaMemcpyAsync");
        }
        synchronize();
    }
    /// What is known of a kernel; 0: not yet.
    struct kernel_facts {
        int resident_blocks = 0;
        int compiled_for = 0; ///< architecture
        std::size_t shared_memory_limit = 0;
        int largest_cluster = 0;                        ///< that the device holds, of what was asked for
        std::size_t shared_memory_prepared = 48 * 1024; ///< dynamic; more has to be asked for
    };
    /// To be filled in by the first launch of a kernel.
    kernel_facts& kernel(const void* function) { return kernels_[function]; }
    /// Of the current device.
    int multiprocessors() {
        if (multiprocessors_ == 0) {
            int device = 0;
            check(cudaGetDevice(&device), "cudaGetDevice");
            check(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, device),
                  "cudaDeviceGetAttribute");
        }
        return multiprocessors_;
    }

private:
    static std::string version(int number) {
        return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
    }

    void transfer(void* to, const void* from, index_type bytes, cudaMemcpyKind kind) {
        if (bytes == 0) return;
        check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), kind, stream_), "cudaMemcpyAsync");
        synchronize();
    }

    cudaStream_t stream_;
    std::unique_ptr<workspace> memory_;
    workspace::piece given_{};
    bool initialised_ = true;
    int multiprocessors_ = 0;
    std::unordered_map<const void*, kernel_facts> kernels_;
    test_hooks hooks_;
};

static_assert(polyscan::backend<backend>);

} // namespace polyscan::cuda
