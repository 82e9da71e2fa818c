// SPDX-License-Identifier: Apache-2.0
// Backends for the tests of the program: one that is right, and three that are each wrong in one way.
#include "elements.hpp"
#include "oracle.hpp"

#include <polyscan/registry.hpp>

#include <chrono>
#include <cstring>
#include <new>

namespace polyscan::tool {

namespace {

enum class fault {
    none,
    takes_turns, ///< right, but copies and scans cannot overlap
    last_bit,    ///< one bit of the total is flipped, and so of the last inclusive output
    throws,      ///< every scan of more than one element fails in the backend's runtime
    absent       ///< there is no such device
};

class memory_copier final : public copier {
public:
    void copy_to_device(void* device, const void* host, std::size_t bytes) override {
        std::memcpy(device, host, bytes);
    }
    void copy_to_host(void* host, const void* device, std::size_t bytes) override { std::memcpy(host, device, bytes); }
};

// Scans with the program's own oracle: what the tests of the program need is that it is wrong on demand.
class test_backend : public any_backend {
public:
    test_backend(std::string_view name, fault what) : name_(name), fault_(what) {}

    std::string_view name() const override { return name_; }
    polyscan::availability available() const override {
        return fault_ == fault::absent ? availability::no("no such device") : availability{};
    }
    std::string description() const override { return "one thread, the reference"; }
    int threads() const override { return 1; }
    std::optional<std::string> unsupported(const scan_call&) const override { return std::nullopt; }

    void scan(const scan_call& call) override {
        if (fault_ == fault::throws && call.size > 1) throw backend_error(name_, "scan", "out of order");
        const std::size_t width = size_of(call.type);
        const auto bytes_of = [&](const void* value) {
            const auto* const bytes = static_cast<const std::byte*>(value);
            return scalar(bytes, bytes + width);
        };
        std::optional<scalar> init;
        if (call.init) init = bytes_of(call.init);
        if (!init && call.kind == scan_kind::exclusive) init = identity_of(call.op, call.type);

        const auto n = static_cast<std::size_t>(call.size);
        buffer inclusive(n * width);
        expected_outputs(tree_of(call.policy, call.op, call.type), call.op, call.type, scan_kind::inclusive, init,
                         call.input, inclusive.data(), n);
        if (fault_ == fault::last_bit && n > 0) inclusive.data()[(n - 1) * width] ^= std::byte{1};
        const std::byte* const end = inclusive.data() + n * width;
        if (call.total && n > 0) std::memcpy(call.total, end - width, width);
        if (call.total && n == 0 && init) std::memcpy(call.total, init->data(), width);

        auto* out = static_cast<std::byte*>(call.output);
        if (call.kind == scan_kind::exclusive && n > 0) {
            std::memcpy(out, init->data(), width);
            std::memcpy(out + width, inclusive.data(), (n - 1) * width);
        } else {
            std::memcpy(out, inclusive.data(), n * width);
        }
    }
    void synchronize() override {}

    std::shared_ptr<void> allocate(std::size_t bytes) override {
        constexpr std::align_val_t line{64};
        return {::operator new(bytes, line), [](void* memory) { ::operator delete(memory, line); }};
    }
    void copy_to_device(void* device, const void* host, std::size_t bytes) override {
        std::memcpy(device, host, bytes);
    }
    void copy_to_host(void* host, const void* device, std::size_t bytes) override { std::memcpy(host, device, bytes); }
    std::unique_ptr<copier> make_copier() override {
        return fault_ == fault::none ? std::make_unique<memory_copier>() : nullptr;
    }
    void copy(void* destination, const void* source, std::size_t bytes) override {
        std::memcpy(destination, source, bytes);
    }
    double elapsed(const std::function<void()>& work) override {
        const auto start = std::chrono::steady_clock::now();
        work();
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }

private:
    std::string name_;
    fault fault_;
};

bool add(const char* name, fault what) {
    return register_backend(name, [=](const backend_options&) { return std::make_unique<test_backend>(name, what); });
}

const bool registered = add("right", fault::none) && add("turns", fault::takes_turns) &&
                        add("wrong", fault::last_bit) && add("failing", fault::throws) && add("absent", fault::absent);

} // namespace

} // namespace polyscan::tool
