// SPDX-License-Identifier: Apache-2.0
#include <chrono>

#include <polyscan/registry.hpp>

#include "compiled_set.hpp"
#include "copy.hpp"
#include "runtime.hpp"

namespace polyscan::kokkos {
namespace {

class registered final : public adapted_backend<registry_backend, compiled_set> {
    using space = registry_backend::execution_space;
    using bytes_view = Kokkos::View<unsigned char*, registry_backend::memory_space>;

public:
    explicit registered(const options& wanted) : adapted_backend(registry_backend(wanted)) {}

    std::string description() const override {
        std::string text = "Kokkos " + std::to_string(KOKKOS_VERSION_MAJOR) + '.' +
                           std::to_string(KOKKOS_VERSION_MINOR) + '.' + std::to_string(KOKKOS_VERSION_PATCH) + ", " +
                           space::name();
        if constexpr (runs_on_host<space>) text += ", " + std::to_string(threads()) + " threads";
        return text;
    }
    int threads() const override { return runs_on_host<space> ? backend_.threads() : 0; }

    std::shared_ptr<void> allocate(std::size_t bytes) override {
        auto owner = std::make_shared<registry_backend::buffer<unsigned char>>(
            backend_.allocate<unsigned char>(static_cast<index_type>(bytes)));
        return {owner, owner->data()};
    }
    void copy_to_device(void* device, const void* host, std::size_t bytes) override {
        backend_.copy_to_device(static_cast<unsigned char*>(device), static_cast<const unsigned char*>(host),
                                static_cast<index_type>(bytes));
    }
    void copy_to_host(void* host, const void* device, std::size_t bytes) override {
        backend_.copy_to_host(static_cast<unsigned char*>(host), static_cast<const unsigned char*>(device),
                              static_cast<index_type>(bytes));
    }
    bool reaches_host_memory() const override { return runs_on_host<space>; }
    void copy(void* destination, const void* source, std::size_t bytes) override {
        if constexpr (runs_on_host<space>) {
            host_copy(backend_.space(), destination, source, bytes, backend_.threads());
        } else {
            Kokkos::deep_copy(backend_.space(), bytes_view(static_cast<unsigned char*>(destination), bytes),
                              bytes_view(const_cast<unsigned char*>(static_cast<const unsigned char*>(source)), bytes));
        }
    }
    double elapsed(const std::function<void()>& work) override {
        backend_.synchronize();
        const auto start = std::chrono::steady_clock::now();
        work();
        backend_.synchronize();
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
};

const bool is_registered = register_backend(registry_backend::name(), [](const backend_options& wanted) {
    ensure_running(wanted.threads);
    options with;
    with.threads = wanted.threads;
    return std::make_unique<registered>(with);
});

} // namespace
} // namespace polyscan::kokkos
