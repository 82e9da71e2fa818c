// SPDX-License-Identifier: Apache-2.0
/// Room for values of any copyable type, default-constructible or not: they come alive when they are filled in.
#pragma once

#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include <polyscan/openmp/tuning.hpp>

namespace polyscan::openmp {

template <class T>
class value_buffer {
public:
    /// Takes memory when it is first filled: a pass that needs no buffer pays for none.
    explicit value_buffer(index_type capacity) : capacity_(capacity) {}
    value_buffer(value_buffer&& other) noexcept
        : values_(std::exchange(other.values_, nullptr)), capacity_(other.capacity_),
          size_(std::exchange(other.size_, 0)) {}
    value_buffer& operator=(value_buffer&&) = delete;
    ~value_buffer() {
        clear();
        ::operator delete(values_, alignment);
    }

    /// Replaces the contents by make(0), ..., make(count - 1).
    template <class Make>
    void fill(index_type count, Make make) {
        reserve();
        if constexpr (std::is_trivially_copyable_v<T>) {
            for (index_type i = 0; i < count; ++i) std::construct_at(values_ + i, make(i));
            size_ = count;
        } else {
            clear();
            for (; size_ < count; ++size_) std::construct_at(values_ + size_, make(size_)); // may throw at any element
        }
    }

    /// Makes room for values that are written through data().
    void resize(index_type count)
        requires std::is_trivially_copyable_v<T>
    {
        reserve();
        size_ = count;
    }

    T* data() noexcept { return values_; }
    index_type size() const noexcept { return size_; }

private:
    static constexpr std::align_val_t alignment{std::max(tuning::alignment, alignof(T))};

    void reserve() {
        if (values_ == nullptr)
            values_ = static_cast<T*>(::operator new(static_cast<std::size_t>(capacity_) * sizeof(T), alignment));
    }
    void clear() noexcept {
        std::destroy_n(values_, size_);
        size_ = 0;
    }

    T* values_ = nullptr;
    index_type capacity_;
    index_type size_ = 0;
};

} // namespace polyscan::openmp
