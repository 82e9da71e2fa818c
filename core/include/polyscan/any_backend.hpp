// SPDX-License-Identifier: Apache-2.0
/// The run-time face: backends, policies, operators and element types by name. The program, the comparison and the
/// benchmarks use it; library users normally do not. It calls the same code as the verbs.
///
/// Each backend registers itself (registry.hpp) with the set of combinations that it was compiled for; what is missing
/// is an answer (`unsupported`), not an error.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <polyscan/dtype.hpp>
#include <polyscan/error.hpp>
#include <polyscan/request.hpp>

namespace polyscan {

/// A scan by names. Input, accumulator and output have the same element type.
struct scan_call {
    dtype type = dtype::int32;
    std::string op = "plus";        ///< operator_names()
    std::string policy = "default"; ///< full name or alias
    scan_kind kind = scan_kind::inclusive;
    const void* input = nullptr; ///< memory of the backend
    void* output = nullptr;      ///< memory of the backend; may equal input
    index_type size = 0;
    const void* init = nullptr; ///< host memory, one element; null: none
    void* total = nullptr;      ///< memory of the backend, one element; null: not wanted
};

/// What the run-time face calls each operator: plus, multiplies, minimum, maximum, bit_and, bit_or, bit_xor.
const std::vector<std::string_view>& operator_names();

/// The operator is defined for the type: bitwise for integers only, minimum and maximum for all but complex numbers.
bool operator_accepts(std::string_view op, dtype type);

/// Copies between host and device at the same time as scans and other copies, from a thread of its own.
class copier {
public:
    virtual ~copier() = default;
    /// Both return when the copy is done.
    virtual void copy_to_device(void* device, const void* host, std::size_t bytes) = 0;
    virtual void copy_to_host(void* host, const void* device, std::size_t bytes) = 0;
};

/// One backend behind names. Not for use by several threads at once; create one each.
class any_backend {
public:
    virtual ~any_backend() = default;

    virtual std::string_view name() const = 0;
    virtual polyscan::availability available() const = 0;
    /// One line: device or processor, threads, instruction set.
    virtual std::string description() const = 0;
    /// Worker threads for a CPU, 0 where the notion does not apply.
    virtual int threads() const = 0;

    /// Nothing if the call can run, else the reason. Looks at type, operator and policy only.
    virtual std::optional<std::string> unsupported(const scan_call& call) const = 0;
    /// Runs the call; may return before it is done. Throws std::invalid_argument for unknown names and for what
    /// `unsupported` names.
    virtual void scan(const scan_call& call) = 0;
    virtual void synchronize() = 0;

    /// Memory that scans of this backend can reach, aligned to at least 64 bytes.
    virtual std::shared_ptr<void> allocate(std::size_t bytes) = 0;
    virtual void copy_to_device(void* device, const void* host, std::size_t bytes) = 0;
    virtual void copy_to_host(void* host, const void* device, std::size_t bytes) = 0;

    /// Scans can be given ordinary host memory as it is.
    virtual bool reaches_host_memory() const { return false; }
    /// Host memory that `copier` copies fastest, aligned to at least 64 bytes.
    virtual std::shared_ptr<void> allocate_host(std::size_t bytes) {
        constexpr std::align_val_t alignment{64};
        return {::operator new(bytes, alignment), [](void* memory) { ::operator delete(memory, alignment); }};
    }
    /// Null where copies and scans have to take turns.
    virtual std::unique_ptr<copier> make_copier() { return nullptr; }

    /// The fastest copy between two buffers of this backend: the roof that scans are compared with.
    virtual void copy(void* destination, const void* source, std::size_t bytes) = 0;
    /// Seconds that the work enqueued by `work` took, measured by this backend's clock (device events on a GPU).
    virtual double elapsed(const std::function<void()>& work) = 0;
};

} // namespace polyscan
