// SPDX-License-Identifier: Apache-2.0
#include <polyscan/cuda.hpp>
#include <polyscan/registry.hpp>

#include "compiled_set.hpp"

namespace polyscan::cuda {
namespace {

class timer {
public:
    timer() { check(cudaEventCreate(&event_), "cudaEventCreate"); }
    timer(const timer&) = delete;
    timer& operator=(const timer&) = delete;
    ~timer() { static_cast<void>(cudaEventDestroy(event_)); }

    void record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "cudaEventRecord"); }
    double seconds_since(const timer& start) const {
        check(cudaEventSynchronize(event_), "cudaEventSynchronize");
        float milliseconds = 0;
        check(cudaEventElapsedTime(&milliseconds, start.event_, event_), "cudaEventElapsedTime");
        return 1e-3 * static_cast<double>(milliseconds);
    }

private:
    cudaEvent_t event_ = nullptr;
};

/// On a stream of its own that does not wait for others: copies in both directions run beside each other and beside
/// scans, if the host's memory is pinned.
class stream_copier final : public copier {
public:
    stream_copier() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags"); }
    stream_copier(const stream_copier&) = delete;
    stream_copier& operator=(const stream_copier&) = delete;
    ~stream_copier() override { static_cast<void>(cudaStreamDestroy(stream_)); }

    void copy_to_device(void* device, const void* host, std::size_t bytes) override {
        transfer(device, host, bytes, cudaMemcpyHostToDevice);
    }
    void copy_to_host(void* host, const void* device, std::size_t bytes) override {
        transfer(host, device, bytes, cudaMemcpyDeviceToHost);
    }

private:
    void transfer(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
        check(cudaMemcpyAsync(to, from, bytes, kind, stream_), "cudaMemcpyAsync");
        check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    }

    cudaStream_t stream_ = nullptr;
};

class registered final : public adapted_backend<backend, compiled_set> {
public:
    registered() : adapted_backend(backend()) {}

    std::string description() const override {
        if (const auto here = available(); !here) return here.reason;
        int device = 0;
        cudaDeviceProp properties{};
        check(cudaGetDevice(&device), "cudaGetDevice");
        check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
        return std::string(properties.name) + ", " + std::to_string(properties.multiProcessorCount) +
               " multiprocessors, compute capability " + std::to_string(properties.major) + "." +
               std::to_string(properties.minor);
    }
    int threads() const override { return 0; }

    std::shared_ptr<void> allocate(std::size_t bytes) override {
        auto memory = std::make_shared<buffer<std::byte>>(static_cast<index_type>(bytes));
        return {memory, memory->data()};
    }
    void copy_to_device(void* device, const void* host, std::size_t bytes) override {
        backend_.copy_to_device(static_cast<std::byte*>(device), static_cast<const std::byte*>(host),
                                static_cast<index_type>(bytes));
    }
    void copy_to_host(void* host, const void* device, std::size_t bytes) override {
        backend_.copy_to_host(static_cast<std::byte*>(host), static_cast<const std::byte*>(device),
                              static_cast<index_type>(bytes));
    }
    std::shared_ptr<void> allocate_host(std::size_t bytes) override {
        void* memory = nullptr;
        check(cudaMallocHost(&memory, bytes > 0 ? bytes : 1), "cudaMallocHost");
        return {memory, [](void* pinned) { static_cast<void>(cudaFreeHost(pinned)); }};
    }
    std::unique_ptr<copier> make_copier() override { return std::make_unique<stream_copier>(); }
    void copy(void* destination, const void* source, std::size_t bytes) override {
        check(cudaMemcpyAsync(destination, source, bytes, cudaMemcpyDeviceToDevice, backend_.stream()),
              "cudaMemcpyAsync");
    }
    double elapsed(const std::function<void()>& work) override {
        timer start, stop;
        start.record(backend_.stream());
        work();
        stop.record(backend_.stream());
        return stop.seconds_since(start);
    }
};

const bool is_registered =
    register_backend(backend::name(), [](const backend_options&) { return std::make_unique<registered>(); });

} // namespace
} // namespace polyscan::cuda
