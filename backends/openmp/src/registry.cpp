// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstring>
#include <fstream>
#include <new>

#include <polyscan/registry.hpp>

#include "compiled_set.hpp"
#include "copy.hpp"

namespace polyscan::openmp {
namespace {

std::string processor_name() {
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);)
        if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
    return "unknown processor";
}

class registered final : public adapted_backend<backend, compiled_set> {
public:
    explicit registered(const backend_options& options) : adapted_backend(backend(options.threads)) {}

    std::string description() const override {
        return processor_name() + ", " + std::to_string(backend_.threads()) + " threads";
    }
    int threads() const override { return backend_.threads(); }

    std::shared_ptr<void> allocate(std::size_t bytes) override {
        constexpr std::align_val_t alignment{tuning::alignment};
        return {::operator new(bytes, alignment), [](void* memory) { ::operator delete(memory, alignment); }};
    }
    void copy_to_device(void* device, const void* host, std::size_t bytes) override {
        std::memcpy(device, host, bytes);
    }
    void copy_to_host(void* host, const void* device, std::size_t bytes) override { std::memcpy(host, device, bytes); }
    bool reaches_host_memory() const override { return true; }
    void copy(void* destination, const void* source, std::size_t bytes) override {
        parallel_copy(destination, source, bytes, backend_.threads());
    }
    double elapsed(const std::function<void()>& work) override {
        const auto start = std::chrono::steady_clock::now();
        work();
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
};

const bool is_registered = register_backend(
    backend::name(), [](const backend_options& options) { return std::make_unique<registered>(options); });

} // namespace
} // namespace polyscan::openmp
