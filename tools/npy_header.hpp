// SPDX-License-Identifier: Apache-2.0
/// The header of NumPy's `.npy` files, for arrays of rank 1.
///
/// Nothing read from a file is believed before it has been checked: the header's length is bounded, and its text is
/// parsed as the three-key literal that the format defines and nothing more.
#pragma once

#include "file.hpp"

#include <polyscan/dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace polyscan::tool {

/// The first bytes of every such file.
inline constexpr std::string_view npy_magic = "\x93NUMPY";

/// Headers longer than this are refused. Rank-1 headers take about 118 bytes; the rest of the
/// allowance is for writers that pad generously.
inline constexpr std::size_t max_npy_header_bytes = std::size_t{1} << 20;

/// Every `.npy` header that `array_writer` makes has this many bytes, as NumPy's own have for rank
/// 1. It holds any 64-bit length, so a length learnt at the end can be filled in.
inline constexpr std::size_t written_npy_header_bytes = 128;

/// What a rank-1 `.npy` header says.
struct npy_header {
    polyscan::dtype type{};
    std::uint64_t count = 0;     ///< elements; count * size_of(type) is known to fit 63 bits
    std::size_t data_offset = 0; ///< bytes before the first element
};

/// Bytes to have at hand before the next step of parsing, told from the bytes at hand: 8 (magic and
/// version), then 10 or 12 (the length field too), then everything before the first element.
/// When the answer is not more than `start.size()`, `parse_npy_header` can be called.
/// Throws `bad_input` on a wrong magic, an unknown version or an oversized header.
[[nodiscard]] std::size_t npy_bytes_needed(std::span<const std::byte> start, std::string_view file);

/// Parses a `.npy` header of version 1.0, 2.0 or 3.0 from the start of a file; bytes after the
/// header are ignored. `file` is the name for messages. Accepts rank 1 in either order and the
/// twelve dtypes, little-endian; refuses all else by name with `bad_input`.
[[nodiscard]] npy_header parse_npy_header(std::span<const std::byte> start, std::string_view file);

/// The 128-byte version 1.0 header of a rank-1 array.
[[nodiscard]] std::string make_npy_header(polyscan::dtype type, std::uint64_t count);

/// Bytes of `count` elements, absent when that (with a header before it) is no file size.
std::optional<std::uint64_t> bytes_of(std::uint64_t count, polyscan::dtype type);

} // namespace polyscan::tool
