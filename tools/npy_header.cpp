// SPDX-License-Identifier: Apache-2.0
#include "npy_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace polyscan::tool {

std::optional<std::uint64_t> bytes_of(std::uint64_t count, dtype type) {
    constexpr auto largest_size = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    const std::uint64_t size = size_of(type);
    if (count > (largest_size - max_npy_header_bytes - 64) / size) {
        return std::nullopt;
    }
    return count * size;
}

namespace {

// ---- the .npy dtype strings ------------------------------------------------------------------

struct descr_entry {
    std::string_view letters; // without the byte order
    dtype type;
};

constexpr std::array<descr_entry, 12> supported_descr{{{"i1", dtype::int8},
                                                       {"i2", dtype::int16},
                                                       {"i4", dtype::int32},
                                                       {"i8", dtype::int64},
                                                       {"u1", dtype::uint8},
                                                       {"u2", dtype::uint16},
                                                       {"u4", dtype::uint32},
                                                       {"u8", dtype::uint64},
                                                       {"f4", dtype::float32},
                                                       {"f8", dtype::float64},
                                                       {"c8", dtype::complex64},
                                                       {"c16", dtype::complex128}}};

/// What NumPy calls a dtype string that is not supported here; empty when it means nothing.
std::string_view unsupported_name(std::string_view letters) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 5> exact{
        {{"b1", "bool"},
         {"?", "bool"},
         {"f2", "float16"},
         {"f16", "float128 (long double)"},
         {"c32", "complex256 (complex long double)"}}};
    for (const auto& [text, meaning] : exact) {
        if (letters == text) {
            return meaning;
        }
    }
    switch (letters.empty() ? '\0' : letters.front()) {
    case 'O': return "object";
    case 'S':
    case 'a': return "bytes (fixed-length strings)";
    case 'U': return "str (fixed-length strings)";
    case 'T': return "variable-length string";
    case 'V': return "void (structured or extension type)";
    case 'M': return "datetime64";
    case 'm': return "timedelta64";
    default: return {};
    }
}

constexpr std::string_view supported_list =
    "supported: int8 to int64, uint8 to uint64, float32, float64, complex64, complex128";

dtype parse_descr(std::string_view descr, std::string_view file) {
    const bool has_order = !descr.empty() && std::string_view{"<>|="}.find(descr.front()) != std::string_view::npos;
    const char order = has_order ? descr.front() : '\0';
    const std::string_view letters = has_order ? descr.substr(1) : descr;

    // The type before the byte order: of '>f2' the float16 cannot be helped, the order can.
    const auto* entry = std::find_if(supported_descr.begin(), supported_descr.end(),
                                     [&](const auto& e) { return e.letters == letters; });
    if (entry == supported_descr.end()) {
        const std::string_view meaning = unsupported_name(letters);
        throw bad_input(file, meaning.empty() ? fmt::format("unknown dtype '{}' ({})", excerpt(descr), supported_list)
                                              : fmt::format("dtype {} ('{}') is not supported ({})", meaning,
                                                            excerpt(descr), supported_list));
    }
    const dtype type = entry->type;
    switch (order) {
    case '<': return type;
    case '|':
        if (size_of(type) == 1) {
            return type;
        }
        throw bad_input(file, fmt::format("dtype '{}': byte order '|' is for one-byte types only", excerpt(descr)));
    case '>':
        throw bad_input(file, fmt::format("big-endian data (dtype '{}') are not supported, "
                                          "only little-endian",
                                          excerpt(descr)));
    case '=':
        throw bad_input(file, fmt::format("dtype '{}': native byte order '=' is not legal in a "
                                          ".npy file",
                                          excerpt(descr)));
    default: throw bad_input(file, fmt::format("dtype '{}' does not state its byte order", excerpt(descr)));
    }
}

// ---- the .npy header's literal ---------------------------------------------------------------

/// Parses the one Python literal that the format allows: a dict with the keys descr, fortran_order
/// and shape. Not a Python parser: no nesting beyond the shape, no escapes, no arithmetic. There is
/// no recursion, so a header cannot exhaust the stack either.
class header_parser {
public:
    header_parser(std::string_view text, int major_version, std::string_view file)
        : text_(text), major_version_(major_version), file_(file) {}

    struct contents {
        dtype type;
        std::uint64_t count;
    };

    contents parse() {
        std::optional<std::string_view> descr;
        std::optional<bool> fortran_order;
        std::optional<shape> dimensions;

        expect('{', "a dict");
        while (!accept('}')) {
            const std::string_view key = string("a key");
            expect(':', "':' after a key");
            if (key == "descr") {
                once(key, descr.has_value());
                descr = descr_value();
            } else if (key == "fortran_order") {
                once(key, fortran_order.has_value());
                fortran_order = boolean();
            } else if (key == "shape") {
                once(key, dimensions.has_value());
                dimensions = shape_value();
            } else {
                fail(fmt::format("unknown key '{}'", excerpt(key)));
            }
            if (!accept(',')) {
                expect('}', "',' or '}'");
                break;
            }
        }
        skip_space();
        if (position_ != text_.size()) {
            fail(fmt::format("'{}' after the dict", excerpt(text_.substr(position_))));
        }

        present("descr", descr.has_value());
        present("fortran_order", fortran_order.has_value());
        present("shape", dimensions.has_value());
        // The order flag says nothing about rank 1: either value is right.
        const dtype type = parse_descr(*descr, file_);
        if (dimensions->rank != 1) {
            throw bad_input(file_, fmt::format("rank {}{} is not supported, only rank 1 "
                                               "(one-dimensional) arrays",
                                               dimensions->rank, dimensions->rank == 0 ? " (a scalar)" : ""));
        }
        if (!dimensions->first || !bytes_of(*dimensions->first, type)) {
            throw bad_input(file_, fmt::format("shape ({},) of {} overflows: no file has that many bytes",
                                               excerpt(dimensions->first_text), name(type)));
        }
        return {type, *dimensions->first};
    }

private:
    struct shape {
        std::size_t rank = 0;
        std::optional<std::uint64_t> first; // absent: does not fit 64 bits
        std::string_view first_text;
    };

    [[noreturn]] void fail(std::string_view what) const {
        throw bad_input(file_, fmt::format("malformed .npy header: {}", what));
    }

    void once(std::string_view key, bool seen) const {
        if (seen) {
            fail(fmt::format("key '{}' appears twice", key));
        }
    }

    void present(std::string_view key, bool seen) const {
        if (!seen) {
            fail(fmt::format("key '{}' is missing", key));
        }
    }

    [[nodiscard]] bool at_end() const { return position_ == text_.size(); }

    void skip_space() {
        while (!at_end() && std::string_view{" \t\r\n\f"}.find(text_[position_]) != std::string_view::npos) {
            ++position_;
        }
    }

    bool accept(char c) {
        skip_space();
        if (at_end() || text_[position_] != c) {
            return false;
        }
        ++position_;
        return true;
    }

    void expect(char c, std::string_view what) {
        if (!accept(c)) {
            fail(fmt::format("expected {} at {}", what, here()));
        }
    }

    [[nodiscard]] std::string here() const {
        return at_end() ? "its end" : fmt::format("'{}'", excerpt(text_.substr(position_, 12)));
    }

    /// The characters of a quoted string. Escapes are refused, not decoded: no key and no supported
    /// dtype needs one, and two spellings of one name are a way around checks.
    std::string_view string(std::string_view what) {
        skip_space();
        if (at_end() || (text_[position_] != '\'' && text_[position_] != '"')) {
            fail(fmt::format("expected {} in quotes at {}", what, here()));
        }
        const char quote = text_[position_++];
        const std::size_t start = position_;
        while (!at_end() && text_[position_] != quote) {
            if (text_[position_] == '\\' || text_[position_] == '\n') {
                fail("a string holds an escape or a line break");
            }
            ++position_;
        }
        if (at_end()) {
            fail("a string is not closed");
        }
        return text_.substr(start, position_++ - start);
    }

    std::string_view descr_value() {
        skip_space();
        if (!at_end() && (text_[position_] == '[' || text_[position_] == '(')) {
            throw bad_input(file_, fmt::format("structured dtypes are not supported ({})", supported_list));
        }
        return string("a dtype");
    }

    /// A run of the characters that names and numbers consist of.
    std::string_view word() {
        skip_space();
        const std::size_t start = position_;
        const auto in_word = [](char c) {
            return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        };
        while (!at_end() && in_word(text_[position_])) {
            ++position_;
        }
        return text_.substr(start, position_ - start);
    }

    bool boolean() {
        const std::string_view value = word();
        if (value == "True") {
            return true;
        }
        if (value != "False") {
            fail("fortran_order is neither True nor False");
        }
        return false;
    }

    shape shape_value() {
        shape result;
        if (!accept('(')) {
            fail("shape is not a tuple");
        }
        bool comma = false;
        while (!accept(')')) {
            if (result.rank > 0 && !comma) {
                fail(fmt::format("expected ',' or ')' in shape at {}", here()));
            }
            if (accept('-')) {
                fail("shape has a negative length");
            }
            const std::string_view digits = length_text();
            if (result.rank++ == 0) {
                result.first_text = digits;
                result.first = decimal(digits);
            }
            comma = accept(',');
        }
        if (result.rank == 1 && !comma) {
            fail("shape is not a tuple: '(n)' lacks its comma");
        }
        return result;
    }

    std::string_view length_text() {
        std::string_view digits = word();
        // Python 2 wrote long integers with an L; NumPy reads those still, up to version 2.0.
        if (major_version_ <= 2 && digits.size() > 1 && digits.back() == 'L') {
            digits.remove_suffix(1);
        }
        const bool plain =
            !digits.empty() && std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
        if (!plain || (digits.size() > 1 && digits.front() == '0')) {
            fail(fmt::format("shape holds something else than a plain decimal number at {}",
                             digits.empty() ? here() : fmt::format("'{}'", excerpt(digits))));
        }
        return digits;
    }

    static std::optional<std::uint64_t> decimal(std::string_view digits) {
        std::uint64_t value = 0;
        for (const char c : digits) {
            const auto digit = static_cast<std::uint64_t>(c - '0');
            if (value > (std::numeric_limits<std::uint64_t>::max() - digit) / 10) {
                return std::nullopt;
            }
            value = value * 10 + digit;
        }
        return value;
    }

    std::string_view text_;
    int major_version_;
    std::string_view file_;
    std::size_t position_ = 0;
};

constexpr std::size_t version_end = 8; // six bytes of magic, major and minor version

std::size_t byte_at(std::span<const std::byte> bytes, std::size_t index) {
    return std::to_integer<std::size_t>(bytes[index]);
}

std::string_view as_text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

} // namespace

std::size_t npy_bytes_needed(std::span<const std::byte> start, std::string_view file) {
    const std::string_view text = as_text(start);
    const std::size_t magic_seen = std::min(text.size(), npy_magic.size());
    if (text.substr(0, magic_seen) != npy_magic.substr(0, magic_seen)) {
        throw bad_input(file, text.starts_with("PK\x03\x04")
                                  ? "a zip archive (.npz?), not a .npy file: extract the array first"
                                  : "not a .npy file: wrong magic (raw data need a dtype)");
    }
    if (start.size() < version_end) {
        return version_end;
    }
    const std::size_t major = byte_at(start, 6);
    const std::size_t minor = byte_at(start, 7);
    if (major < 1 || major > 3 || minor != 0) {
        throw bad_input(file, fmt::format(".npy version {}.{} is not supported (1.0, 2.0 and 3.0 are)", major, minor));
    }
    const std::size_t length_bytes = major == 1 ? 2 : 4;
    const std::size_t header_start = version_end + length_bytes;
    if (start.size() < header_start) {
        return header_start;
    }
    std::size_t header_length = 0;
    for (std::size_t i = 0; i < length_bytes; ++i) {
        header_length |= byte_at(start, version_end + i) << (8 * i);
    }
    if (header_length > max_npy_header_bytes) {
        throw bad_input(file, fmt::format("the .npy header claims {} bytes, more than the limit of {}", header_length,
                                          max_npy_header_bytes));
    }
    return header_start + header_length;
}

npy_header parse_npy_header(std::span<const std::byte> start, std::string_view file) {
    const std::size_t needed = npy_bytes_needed(start, file);
    if (needed > start.size()) {
        throw bad_input(file, fmt::format("truncated: the .npy header takes {}{} bytes, {} are there",
                                          needed <= version_end + 4 ? "at least " : "", needed, start.size()));
    }
    const std::size_t major = byte_at(start, 6);
    const std::size_t header_start = version_end + (major == 1 ? 2u : 4u);
    const std::string_view text = as_text(start.subspan(header_start, needed - header_start));
    const auto parsed = header_parser(text, static_cast<int>(major), file).parse();
    return {parsed.type, parsed.count, needed};
}

std::string make_npy_header(polyscan::dtype type, std::uint64_t count) {
    const auto* entry =
        std::find_if(supported_descr.begin(), supported_descr.end(), [&](const auto& e) { return e.type == type; });
    constexpr std::size_t text_start = version_end + 2;
    constexpr std::size_t text_length = written_npy_header_bytes - text_start;
    static_assert(text_length < 256, "the high byte of the length field is written as zero");

    std::string header{npy_magic};
    header += {'\x01', '\x00', static_cast<char>(text_length), '\x00'};
    header += fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({},), }}",
                          size_of(type) == 1 ? '|' : '<', entry->letters, count);
    header.resize(written_npy_header_bytes - 1, ' ');
    header += '\n';
    return header;
}

} // namespace polyscan::tool
