// SPDX-License-Identifier: Apache-2.0
/// Array files: NumPy `.npy` and raw little-endian elements, streamed.
///
/// Nothing read from a file is believed before it has been checked: a header (npy_header.hpp) first, and the size it
/// announces is compared with the file's before the first element is delivered. No buffer here ever has a size that a
/// file chose, save the bounded header itself.
#pragma once

#include "file.hpp"
#include "npy_header.hpp"

#include <polyscan/dtype.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace polyscan::tool {

// Elements go from file to memory and back untouched.
static_assert(std::endian::native == std::endian::little, "array files are little-endian and are not byte-swapped");

/// How the elements are wrapped: `npy` has a header, `raw` is the elements alone.
enum class array_format { npy, raw };

/// Reads one rank-1 array front to back, in pieces of the caller's size. One thread at a time.
class array_reader {
public:
    /// Opens `path` ("-" is standard input) as `.npy`, or as raw elements of `raw_type`.
    /// On return the header is parsed and, for a regular file, the whole size is right: neither
    /// truncated nor followed by further bytes. A pipe's size is checked while it is read.
    /// A regular file that starts as a `.npy` file is refused as raw: its header is no data.
    [[nodiscard]] static array_reader open(std::string path, std::optional<polyscan::dtype> raw_type = std::nullopt);

    [[nodiscard]] polyscan::dtype dtype() const { return type_; }

    /// Elements in the whole array; absent for raw data from a pipe, whose end tells.
    [[nodiscard]] std::optional<std::uint64_t> count() const { return count_; }

    [[nodiscard]] array_format format() const { return format_; }

    /// The regular file behind this reader, to be named to a writer as one not to write over.
    [[nodiscard]] std::optional<file_identity> identity() const { return identity_; }

    /// The name used in messages.
    [[nodiscard]] const std::string& label() const { return label_; }

    /// Fills `out` with whole elements and returns the bytes read: less than fits only at the end
    /// of the array, and 0 after it. The call that delivers the last element also checks that
    /// nothing follows it. Throws `bad_input` when data are missing, left over or unreadable, and
    /// `std::invalid_argument` when `out` has no room for an element.
    std::size_t read(std::span<std::byte> out);

private:
    array_reader() = default;
    void open_npy();
    void open_raw(polyscan::dtype type);
    void expect_end();
    std::size_t read_fully(std::span<std::byte> out);
    std::optional<std::uint64_t> bytes_ahead() const;

    std::string label_;
    file_descriptor file_;
    polyscan::dtype type_{};
    array_format format_ = array_format::npy;
    std::optional<std::uint64_t> count_;
    std::uint64_t delivered_ = 0; // bytes of elements
    bool ended_ = false;
    std::optional<file_identity> identity_;
};

/// What `array_writer` may be told beyond name and type.
struct writer_options {
    /// Elements to come. Without it a `.npy` header is completed by `finish()`, which takes a
    /// target that can be rewritten: not standard output, not a pipe.
    std::optional<std::uint64_t> count = std::nullopt;
    array_format format = array_format::npy;
    /// Files being read: the target must be none of them.
    std::vector<file_identity> inputs{};
};

/// Writes one rank-1 array front to back, to an `output_file`. One thread at a time. Unbuffered: pass large pieces.
class array_writer {
public:
    /// Throws `bad_input`. With a count, room on the disk is reserved at once where the file
    /// system can do that, so that a full disk is found before the work and not after it.
    array_writer(std::string path, polyscan::dtype type, writer_options options = {});
    array_writer(array_writer&&) noexcept;
    array_writer& operator=(array_writer&&) noexcept;
    ~array_writer();

    /// Appends elements. Throws `bad_input` (a full disk, say), `std::logic_error` past the count.
    void write(std::span<const std::byte> elements);

    /// Completes the header, forces the data to the disk, checks every error on the way, renames.
    /// Throws `bad_input`, and `std::logic_error` where the elements written are not `count`.
    void finish();

    /// The name used in messages.
    [[nodiscard]] const std::string& label() const;

private:
    struct state;
    std::unique_ptr<state> state_;
};

} // namespace polyscan::tool
