// SPDX-License-Identifier: Apache-2.0
/// Elements whose type is known at run time only: memory, single values from text, conversion, comparison by bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <polyscan/any_backend.hpp>

namespace polyscan::tool {

/// Uninitialised, aligned host memory. Throws std::bad_alloc.
class buffer {
public:
    buffer() = default;
    explicit buffer(std::size_t bytes);
    /// Takes over memory that somebody else allocated.
    buffer(std::shared_ptr<void> memory, std::size_t bytes) : data_(std::move(memory)), size_(bytes) {}
    buffer(buffer&&) = default;
    buffer& operator=(buffer&&) = default;

    std::byte* data() { return static_cast<std::byte*>(data_.get()); }
    const std::byte* data() const { return static_cast<const std::byte*>(data_.get()); }
    std::size_t size() const { return size_; }

private:
    std::shared_ptr<void> data_; // never shared: it remembers how to release
    std::size_t size_ = 0;
};

/// One element as bytes.
using scalar = std::vector<std::byte>;

/// Reads one element: "7", "-1.5e3", "inf", "nan", "1+2j". Throws usage_error if the text is no number or does not fit.
scalar parse_scalar(std::string_view argument, std::string_view text, dtype type);

/// The type in which elements of both types can be added, by the rules of C++ (std::common_type).
dtype common_dtype(dtype a, dtype b);

/// Complex numbers do not convert to real ones; all else does.
bool convertible(dtype from, dtype to);

/// An element that its target type cannot hold.
struct not_convertible {
    std::size_t index;
    std::string_view value_class; ///< "NaN", "an infinity", "a value out of range"
};

/// Converts n elements; `to` must not overlap `from`. Integers wrap around, floating-point values are rounded to the
/// nearest; to an integer they are truncated, and refused where they do not fit: then the element is named.
std::optional<not_convertible> convert(dtype from_type, const void* from, dtype to_type, void* to, std::size_t n);

/// The first position where the bits differ, a NaN being equal to any NaN.
std::optional<std::size_t> first_difference(dtype type, const void* a, const void* b, std::size_t n);

} // namespace polyscan::tool
