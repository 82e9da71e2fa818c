// SPDX-License-Identifier: Apache-2.0
/// Memory for one call that stays for the next: pages that were touched once are not taken from the system again, which
/// would cost as much as sorting what is in them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <polyscan/openmp/tuning.hpp>

namespace polyscan::openmp {

/// Holds one block, as large as the largest that was needed. Several threads may ask at once: one of them gets the
/// block, the others get memory of their own, and the largest comes back. A copy of a pool is a pool of its own.
class scratch_pool {
    struct block {
        unsigned char* data = nullptr;
        std::size_t bytes = 0;

        block() = default;
        explicit block(std::size_t size)
            : data(static_cast<unsigned char*>(::operator new(size, alignment_of(size)))), bytes(size) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
            // A hint: fewer page faults, and a scatter to many places needs fewer translations of addresses.
            if (size >= tuning::huge_page) static_cast<void>(madvise(data, size, MADV_HUGEPAGE));
#endif
        }
        block(block&& other) noexcept
            : data(std::exchange(other.data, nullptr)), bytes(std::exchange(other.bytes, 0)) {}
        block& operator=(block&& other) noexcept {
            std::swap(data, other.data);
            std::swap(bytes, other.bytes);
            return *this;
        }
        ~block() {
            if (data != nullptr) ::operator delete(data, alignment_of(bytes));
        }
        static std::align_val_t alignment_of(std::size_t size) {
            return std::align_val_t{size >= tuning::huge_page ? tuning::huge_page : tuning::separate};
        }
    };

public:
    /// Room for `size` elements of T, with no contents, until it is destroyed. It does not outlive the pool.
    template <class T>
    class lease {
    public:
        lease(scratch_pool& pool, block memory, index_type size)
            : pool_(&pool), memory_(std::move(memory)), size_(size) {}
        lease(lease&& other) noexcept
            : pool_(std::exchange(other.pool_, nullptr)), memory_(std::move(other.memory_)), size_(other.size_) {}
        lease& operator=(lease&&) = delete;
        ~lease() {
            if (pool_ != nullptr) pool_->give_back(std::move(memory_));
        }
        T* data() const { return reinterpret_cast<T*>(memory_.data); }
        index_type size() const { return size_; }

    private:
        scratch_pool* pool_;
        block memory_;
        index_type size_;
    };

    scratch_pool() = default;
    scratch_pool(const scratch_pool&) noexcept {}
    scratch_pool& operator=(const scratch_pool&) noexcept { return *this; }

    template <class T>
    lease<T> take(index_type size) {
        static_assert(alignof(T) <= tuning::separate);
        const std::size_t bytes = static_cast<std::size_t>(size) * sizeof(T);
        block memory;
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            memory = std::move(kept_);
        }
        if (memory.bytes < bytes) {
            memory = block(); // first away with what is too small
            memory = block(bytes);
        }
        return {*this, std::move(memory), size};
    }

private:
    void give_back(block memory) noexcept {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (memory.bytes > kept_.bytes) kept_ = std::move(memory);
    }

    std::mutex mutex_;
    block kept_;
};

} // namespace polyscan::openmp
