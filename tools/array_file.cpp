// SPDX-License-Identifier: Apache-2.0
#include "array_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <limits>
#include <random>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace polyscan::tool {

// Elements go from file to memory and back untouched.
static_assert(std::endian::native == std::endian::little, "array files are little-endian and are not byte-swapped");
// File sizes and offsets are 63-bit; a 32-bit off_t would wrap at 2 GiB.
static_assert(sizeof(off_t) == 8, "compile with -D_FILE_OFFSET_BITS=64");

namespace {

// ---- text ----------------------------------------------------------------------------------

/// Makes untrusted text fit for a one-line message. Bytes above ASCII stay in file names, which may
/// be UTF-8, and are escaped in excerpts of headers, which may be anything.
enum class high_bytes { keep, escape };

std::string printable(std::string_view text, high_bytes rule) {
    std::string result;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        const bool control = byte < 0x20 || byte == 0x7f;
        if (control || (byte >= 0x80 && rule == high_bytes::escape)) {
            result += fmt::format("\\x{:02x}", byte);
        } else {
            result += c;
        }
    }
    return result;
}

std::string excerpt(std::string_view text) {
    constexpr std::size_t longest = 40;
    std::string result = printable(text.substr(0, longest), high_bytes::escape);
    if (text.size() > longest) {
        result += "...";
    }
    return result;
}

std::string error_text(int error_number) { return std::generic_category().message(error_number); }

// ---- sizes ---------------------------------------------------------------------------------

constexpr auto largest_size = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

/// Bytes of `count` elements, absent when that (with a header before it) is no file size.
std::optional<std::uint64_t> bytes_of(std::uint64_t count, dtype type) {
    const std::uint64_t size = size_of(type);
    if (count > (largest_size - max_npy_header_bytes - 64) / size) {
        return std::nullopt;
    }
    return count * size;
}

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

constexpr std::string_view npy_magic = "\x93NUMPY";
constexpr std::size_t version_end = 8; // six bytes of magic, major and minor version

std::size_t byte_at(std::span<const std::byte> bytes, std::size_t index) {
    return std::to_integer<std::size_t>(bytes[index]);
}

std::string_view as_text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

} // namespace

bad_input::bad_input(std::string_view file, std::string_view rule)
    : std::runtime_error(fmt::format("{}: {}", printable(file, high_bytes::keep), printable(rule, high_bytes::keep))) {}

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

// ---- descriptors -----------------------------------------------------------------------------

file_descriptor::file_descriptor(file_descriptor&& other) noexcept
    : number_(std::exchange(other.number_, -1)), owned_(std::exchange(other.owned_, false)) {}

file_descriptor& file_descriptor::operator=(file_descriptor&& other) noexcept {
    if (this != &other) {
        close();
        number_ = std::exchange(other.number_, -1);
        owned_ = std::exchange(other.owned_, false);
    }
    return *this;
}

file_descriptor::~file_descriptor() { close(); }

int file_descriptor::close() noexcept {
    const int number = std::exchange(number_, -1);
    if (!std::exchange(owned_, false)) {
        return 0;
    }
    // EINTR is not repeated: Linux has released the number by then, another thread may hold it.
    return ::close(number) == 0 || errno == EINTR ? 0 : errno;
}

namespace {

int open_retrying(const char* path, int flags, mode_t mode = 0) {
    int number = -1;
    do {
        number = ::open(path, flags | O_CLOEXEC, mode);
    } while (number < 0 && errno == EINTR);
    return number;
}

file_identity identity_of(const struct stat& status) {
    return {static_cast<std::uint64_t>(status.st_dev), static_cast<std::uint64_t>(status.st_ino)};
}

} // namespace

// ---- reader ----------------------------------------------------------------------------------

array_reader array_reader::open(std::string path, std::optional<polyscan::dtype> raw_type) {
    array_reader reader;
    if (path == "-") {
        reader.label_ = "standard input";
        reader.file_ = file_descriptor::borrowing(STDIN_FILENO);
    } else {
        // A NUL ends the name for the system but not for the message: they would disagree.
        if (path.empty() || path.find('\0') != std::string::npos) {
            throw bad_input(path.empty() ? "''" : path, "not a file name");
        }
        reader.label_ = std::move(path);
        const int number = open_retrying(reader.label_.c_str(), O_RDONLY);
        if (number < 0) {
            throw bad_input(reader.label_, fmt::format("cannot be opened: {}", error_text(errno)));
        }
        reader.file_ = file_descriptor::owning(number);
    }

    struct stat status{};
    if (::fstat(reader.file_.get(), &status) != 0) {
        throw bad_input(reader.label_, fmt::format("cannot be opened: {}", error_text(errno)));
    }
    if (S_ISDIR(status.st_mode)) {
        throw bad_input(reader.label_, "is a directory, not a file");
    }
    if (S_ISREG(status.st_mode)) {
        reader.identity_ = identity_of(status);
        // Read-ahead advice only; a file system that ignores it is as right and slower.
        (void)::posix_fadvise(reader.file_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
    }

    if (raw_type) {
        reader.open_raw(*raw_type);
    } else {
        reader.open_npy();
    }
    // An empty array has no last read to look for bytes left over.
    if (reader.count_ == std::uint64_t{0}) {
        reader.expect_end();
    }
    return reader;
}

/// Bytes between the current position (a redirected standard input may start anywhere) and the end;
/// absent where a size means nothing, as for pipes.
std::optional<std::uint64_t> array_reader::bytes_ahead() const {
    struct stat status{};
    if (!identity_ || ::fstat(file_.get(), &status) != 0) {
        return std::nullopt;
    }
    const off_t position = ::lseek(file_.get(), 0, SEEK_CUR);
    if (position < 0) {
        return std::nullopt;
    }
    return position >= status.st_size ? 0 : static_cast<std::uint64_t>(status.st_size - position);
}

void array_reader::open_npy() {
    format_ = array_format::npy;
    std::vector<std::byte> start;
    for (;;) {
        const std::size_t needed = npy_bytes_needed(start, label_);
        const std::size_t have = start.size();
        if (needed <= have) {
            break;
        }
        // Bounded by max_npy_header_bytes, whatever the file says.
        start.resize(needed);
        const std::size_t got = read_fully(std::span{start}.subspan(have));
        if (have + got < needed) {
            start.resize(have + got);
            if (start.empty()) {
                throw bad_input(label_, "is empty: not a .npy file (raw data need a dtype)");
            }
            break; // the parser names what is wrong: the magic, or the missing bytes
        }
    }
    const npy_header header = parse_npy_header(start, label_);
    type_ = header.type;
    count_ = header.count;

    const std::uint64_t expected = header.count * size_of(type_);
    const std::optional<std::uint64_t> ahead = bytes_ahead();
    if (ahead && *ahead < expected) {
        throw bad_input(label_, fmt::format("truncated: shape ({},) of {} takes {} bytes, {} are there", header.count,
                                            name(type_), expected, *ahead));
    }
    if (ahead && *ahead > expected) {
        throw bad_input(
            label_, fmt::format("{} trailing bytes after the array of shape ({},)", *ahead - expected, header.count));
    }
}

void array_reader::open_raw(polyscan::dtype type) {
    format_ = array_format::raw;
    type_ = type;
    const std::optional<std::uint64_t> ahead = bytes_ahead();
    if (!ahead) {
        return;
    }
    std::array<char, npy_magic.size()> first{};
    const off_t position = ::lseek(file_.get(), 0, SEEK_CUR);
    const ssize_t got = ::pread(file_.get(), first.data(), first.size(), position);
    if (got == static_cast<ssize_t>(first.size()) && std::string_view{first.data(), first.size()} == npy_magic) {
        throw bad_input(label_, "is a .npy file, which states its own dtype: not raw data");
    }
    if (*ahead % size_of(type) != 0) {
        throw bad_input(label_, fmt::format("{} bytes of raw data are not a whole number of {} ({} bytes each)", *ahead,
                                            name(type), size_of(type)));
    }
    count_ = *ahead / size_of(type);
}

/// Reads until `out` is full or the file ends; returns the bytes read.
std::size_t array_reader::read_fully(std::span<std::byte> out) {
    std::size_t done = 0;
    while (done < out.size()) {
        const ssize_t got = ::read(file_.get(), out.data() + done, out.size() - done);
        if (got == 0) {
            break;
        }
        if (got < 0) {
            if (errno == EINTR) {
                continue;
            }
            throw bad_input(label_, fmt::format("cannot be read: {}", error_text(errno)));
        }
        done += static_cast<std::size_t>(got);
    }
    return done;
}

/// Looks for one byte more: the only way with a pipe, and for a regular file the check that it did
/// not grow while it was read.
void array_reader::expect_end() {
    std::byte extra{};
    if (read_fully({&extra, 1}) != 0) {
        throw bad_input(label_, count_ ? fmt::format("trailing bytes after the array of {} elements", *count_)
                                       : "trailing bytes");
    }
    ended_ = true;
}

std::size_t array_reader::read(std::span<std::byte> out) {
    const std::size_t element = size_of(type_);
    if (out.size() < element) {
        throw std::invalid_argument("array_reader::read: the buffer must hold at least one element");
    }
    if (ended_) {
        return 0;
    }
    std::size_t wanted = out.size() - out.size() % element;
    if (count_) {
        // No overflow: open() has checked that the array's bytes fit 63 bits.
        const std::uint64_t left = *count_ * element - delivered_;
        wanted = static_cast<std::size_t>(std::min<std::uint64_t>(wanted, left));
    }
    const std::size_t got = read_fully(out.first(wanted));
    delivered_ += got;

    if (count_) {
        if (got < wanted) {
            throw bad_input(label_, fmt::format("truncated: {} elements of {} take {} bytes, {} are there", *count_,
                                                name(type_), *count_ * element, delivered_));
        }
        if (delivered_ == *count_ * element) {
            expect_end();
        }
    } else if (got < wanted) {
        ended_ = true;
        if (got % element != 0) {
            throw bad_input(label_, fmt::format("{} bytes of raw data are not a whole number of {} ({} bytes each)",
                                                delivered_, name(type_), element));
        }
    }
    return got;
}

// ---- temporary files -------------------------------------------------------------------------

namespace {

/// Temporary files that a signal handler can find. A fixed table: a handler may neither allocate
/// nor take a lock. Sixteen is far more than one program run writes at a time.
struct temporary_slot {
    enum : int { free, claimed, listed };
    std::atomic<int> status{free};
    std::array<char, PATH_MAX> path{};
};
static_assert(std::atomic<int>::is_always_lock_free, "the signal handler must not wait for a lock");

std::array<temporary_slot, 16> temporary_slots;

temporary_slot* list_temporary(const std::string& path) {
    for (auto& slot : temporary_slots) {
        int expected = temporary_slot::free;
        // Acquire pairs with the release in unlist_temporary: the last owner is done with `path`.
        if (slot.status.compare_exchange_strong(expected, temporary_slot::claimed, std::memory_order_acquire)) {
            std::memcpy(slot.path.data(), path.c_str(), path.size() + 1);
            // Publishes `path` to the acquire in remove_temporaries.
            slot.status.store(temporary_slot::listed, std::memory_order_release);
            return &slot;
        }
    }
    return nullptr;
}

void unlist_temporary(temporary_slot* slot) {
    // Hands `path` to the acquire of the next owner in list_temporary.
    slot->status.store(temporary_slot::free, std::memory_order_release);
}

/// Async-signal-safe: atomics, unlink, sigaction and raise only.
extern "C" void remove_temporaries(int signal_number) {
    const int saved_errno = errno;
    for (auto& slot : temporary_slots) {
        // Pairs with the release in list_temporary, which published `path`.
        if (slot.status.load(std::memory_order_acquire) == temporary_slot::listed) {
            (void)::unlink(slot.path.data());
        }
    }
    struct sigaction standard{};
    standard.sa_handler = SIG_DFL;
    (void)::sigaction(signal_number, &standard, nullptr);
    // Blocked while this handler runs; it ends the program, by the right cause, on return.
    (void)::raise(signal_number);
    errno = saved_errno;
}

/// A new file beside `target` that disappears unless it is renamed.
class temporary_file {
public:
    /// Throws `bad_input` under the name `label`: the user knows the target, not this file.
    temporary_file(const std::filesystem::path& target, mode_t mode, std::string_view label) {
        std::random_device random;
        constexpr int attempts = 100; // a taken name is a coincidence of 64 random bits
        for (int attempt = 0; attempt < attempts; ++attempt) {
            const std::uint64_t mark = (std::uint64_t{random()} << 32) ^ random();
            path_ = (target.parent_path() / fmt::format(".polyscan-{:016x}.tmp", mark)).string();
            if (path_.size() >= PATH_MAX) {
                throw bad_input(label, fmt::format("cannot be created: {}", error_text(ENAMETOOLONG)));
            }
            // Listed before it exists: a signal between the two finds nothing to remove, while the
            // other order would leave the file behind.
            slot_ = list_temporary(path_);
            if (slot_ == nullptr) {
                throw std::logic_error("array_writer: too many outputs are open at once");
            }
            const int number = open_retrying(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
            if (number >= 0) {
                file_ = file_descriptor::owning(number);
                return;
            }
            const int error_number = errno;
            unlist_temporary(std::exchange(slot_, nullptr));
            if (error_number != EEXIST) {
                throw bad_input(label, fmt::format("cannot be created: {}", error_text(error_number)));
            }
        }
        throw bad_input(label, "cannot be created: no free name for a temporary file beside it");
    }
    temporary_file(const temporary_file&) = delete;
    temporary_file& operator=(const temporary_file&) = delete;

    ~temporary_file() {
        if (slot_ != nullptr) {
            (void)::unlink(path_.c_str());
            unlist_temporary(slot_);
        }
    }

    file_descriptor& file() { return file_; }

    /// Returns 0 or the error number; after 0 the file is the target's and no longer temporary.
    int rename_to(const std::filesystem::path& target) {
        if (::rename(path_.c_str(), target.c_str()) != 0) {
            return errno;
        }
        // A signal before the next line unlinks a name that no longer exists.
        unlist_temporary(std::exchange(slot_, nullptr));
        return 0;
    }

private:
    std::string path_;
    temporary_slot* slot_ = nullptr;
    file_descriptor file_;
};

/// Where a chain of symbolic links ends, whether or not anything is there yet. Parent folders are
/// left to the system, which follows them by itself.
std::filesystem::path follow_links(const std::string& path) {
    std::filesystem::path result = path;
    constexpr int longest_chain = 40; // the kernel's own limit
    std::error_code error;
    for (int i = 0; i < longest_chain; ++i) {
        const auto next = std::filesystem::read_symlink(result, error);
        if (error) {
            break; // no link, or nothing there
        }
        result = next.is_absolute() ? next : result.parent_path() / next;
    }
    return result;
}

} // namespace

void remove_temporaries_on_signal() {
    for (const int signal_number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
        struct sigaction current{};
        // What was started with a signal ignored (nohup, a background job) must go on ignoring it.
        if (::sigaction(signal_number, nullptr, &current) != 0 || current.sa_handler == SIG_IGN) {
            continue;
        }
        struct sigaction action{};
        action.sa_handler = remove_temporaries;
        // All four are held back meanwhile: a second Ctrl-C must not cut the removal short.
        ::sigemptyset(&action.sa_mask);
        for (const int held : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
            ::sigaddset(&action.sa_mask, held);
        }
        (void)::sigaction(signal_number, &action, nullptr);
    }
    struct sigaction ignore{};
    ignore.sa_handler = SIG_IGN;
    (void)::sigaction(SIGXFSZ, &ignore, nullptr);
}

// ---- writer ----------------------------------------------------------------------------------

struct array_writer::state {
    std::string label;
    polyscan::dtype type{};
    writer_options options;
    std::optional<std::uint64_t> expected; // bytes of elements
    std::filesystem::path target;          // after links; used with `temporary`
    std::optional<temporary_file> temporary;
    file_descriptor direct; // without `temporary`
    std::uint64_t written = 0;
    bool finished = false;

    [[noreturn]] void fail(std::string_view rule) const { throw bad_input(label, rule); }

    [[nodiscard]] file_descriptor& file() { return temporary ? temporary->file() : direct; }

    void refuse_inputs(const struct stat& status) const {
        if (!S_ISREG(status.st_mode)) {
            return; // reading and writing one terminal or device is ordinary
        }
        const auto& inputs = options.inputs;
        if (std::find(inputs.begin(), inputs.end(), identity_of(status)) != inputs.end()) {
            fail("the output is the input file: choose another name");
        }
    }

    void open_standard_output() {
        label = "standard output";
        struct stat status{};
        if (::fstat(STDOUT_FILENO, &status) != 0) {
            fail(fmt::format("cannot be written: {}", error_text(errno)));
        }
        refuse_inputs(status);
        direct = file_descriptor::borrowing(STDOUT_FILENO);
    }

    void open_path(const std::string& path) {
        if (path.empty() || path.find('\0') != std::string::npos) {
            throw bad_input(path.empty() ? "''" : path, "not a file name");
        }
        label = path;
        struct stat status{};
        const bool exists = ::stat(path.c_str(), &status) == 0;
        if (!exists && errno != ENOENT) {
            fail(fmt::format("cannot be written: {}", error_text(errno)));
        }
        if (!exists) {
            target = follow_links(path);
            if (target.filename().empty()) {
                fail("cannot be created: a file name ends in '/'");
            }
            temporary.emplace(target, mode_t{0666}, label); // the umask applies
            return;
        }
        if (S_ISDIR(status.st_mode)) {
            fail("is a directory, not a file");
        }
        if (S_ISBLK(status.st_mode)) {
            fail("is a block device: writing would destroy what it holds");
        }
        refuse_inputs(status);
        if (!S_ISREG(status.st_mode)) {
            const int number = open_retrying(path.c_str(), O_WRONLY);
            if (number < 0) {
                fail(fmt::format("cannot be written: {}", error_text(errno)));
            }
            direct = file_descriptor::owning(number);
            return;
        }
        replace(path, status);
    }

    void replace(const std::string& path, const struct stat& status) {
        // A rename asks the folder alone, but a read-only file is a wish to keep it.
        if (::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0) {
            fail(fmt::format("cannot be written: {}", error_text(errno)));
        }
        target = follow_links(path);
        // The links of /proc/*/fd may lead to a file without a name, or by a name now another's.
        struct stat resolved{};
        if (::stat(target.c_str(), &resolved) != 0 || identity_of(resolved) != identity_of(status)) {
            fail("cannot be replaced: its link does not lead to it by name");
        }
        const mode_t mode = status.st_mode & mode_t{0777};
        temporary.emplace(target, mode, label); // never wider than the mode that it ends with
        if (::fchmod(temporary->file().get(), mode) != 0) {
            fail(fmt::format("cannot be written: {}", error_text(errno)));
        }
    }

    /// Asks for the room now. Only "no room" is an answer; file systems without reservations say
    /// so in several ways, and the writes will tell.
    void reserve_room() {
        if (!temporary || !expected) {
            return;
        }
        const std::uint64_t header = options.format == array_format::npy ? written_npy_header_bytes : 0;
        const std::uint64_t total = header + *expected;
        if (total == 0) {
            return;
        }
        int result = 0;
        do {
            result = ::fallocate(file().get(), FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(total));
        } while (result != 0 && errno == EINTR);
        if (result != 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)) {
            fail(fmt::format("{} bytes cannot be written: {}", total, error_text(errno)));
        }
    }

    void put(std::span<const std::byte> bytes) {
        while (!bytes.empty()) {
            const ssize_t done = ::write(file().get(), bytes.data(), bytes.size());
            if (done < 0) {
                if (errno == EINTR) {
                    continue;
                }
                fail(fmt::format("cannot be written: {}", error_text(errno)));
            }
            bytes = bytes.subspan(static_cast<std::size_t>(done));
        }
    }

    void complete_header() {
        const std::string header = make_npy_header(type, written / size_of(type));
        auto bytes = std::as_bytes(std::span{header});
        off_t at = 0;
        while (!bytes.empty()) {
            const ssize_t done = ::pwrite(file().get(), bytes.data(), bytes.size(), at);
            if (done < 0) {
                if (errno == EINTR) {
                    continue;
                }
                fail(fmt::format("cannot be written: {}", error_text(errno)));
            }
            bytes = bytes.subspan(static_cast<std::size_t>(done));
            at += done;
        }
    }

    void sync() {
        int result = 0;
        do {
            result = ::fsync(file().get());
        } while (result != 0 && errno == EINTR);
        // Pipes and terminals have nothing to force; they answer with one of these.
        const bool nothing_to_force = errno == EINVAL || errno == EROFS || errno == ENOTSUP;
        if (result != 0 && !(nothing_to_force && !temporary)) {
            fail(fmt::format("cannot be written: {}", error_text(errno)));
        }
    }

    /// Makes the new name itself last. The data are safe by now under one name or the other, so a
    /// file system that cannot do this is no error.
    void sync_folder() const {
        const auto folder = target.has_parent_path() ? target.parent_path() : std::filesystem::path{"."};
        const int number = open_retrying(folder.c_str(), O_RDONLY | O_DIRECTORY);
        if (number >= 0) {
            const auto owner = file_descriptor::owning(number);
            (void)::fsync(owner.get());
        }
    }
};

array_writer::array_writer(std::string path, polyscan::dtype type, writer_options options)
    : state_(std::make_unique<state>()) {
    state& s = *state_;
    s.type = type;
    s.options = std::move(options);
    s.label = path;
    if (s.options.count) {
        s.expected = bytes_of(*s.options.count, type);
        if (!s.expected) {
            s.fail(
                fmt::format("{} elements of {} overflow: no file has that many bytes", *s.options.count, name(type)));
        }
    }
    if (path == "-") {
        s.open_standard_output();
    } else {
        s.open_path(path);
    }
    if (s.options.format == array_format::npy) {
        if (!s.options.count && !s.temporary) {
            s.fail("a .npy header states the length first, which is not known here: "
                   "write raw data, or to a file");
        }
        s.reserve_room();
        const std::string header = make_npy_header(type, s.options.count.value_or(0));
        s.put(std::as_bytes(std::span{header}));
    } else {
        s.reserve_room();
    }
}

array_writer::array_writer(array_writer&&) noexcept = default;
array_writer& array_writer::operator=(array_writer&&) noexcept = default;
array_writer::~array_writer() = default;

const std::string& array_writer::label() const { return state_->label; }

void array_writer::write(std::span<const std::byte> elements) {
    state& s = *state_;
    if (s.finished) {
        throw std::logic_error("array_writer::write: the file is finished");
    }
    if (s.expected && elements.size() > *s.expected - s.written) {
        throw std::logic_error("array_writer::write: more elements than the count promised");
    }
    s.put(elements);
    s.written += elements.size();
}

void array_writer::finish() {
    state& s = *state_;
    if (s.finished) {
        throw std::logic_error("array_writer::finish: the file is finished already");
    }
    if (s.written % size_of(s.type) != 0 || (s.expected && s.written != *s.expected)) {
        throw std::logic_error("array_writer::finish: the elements written are not those promised");
    }
    if (s.options.format == array_format::npy && !s.options.count) {
        s.complete_header();
    }
    s.sync();
    if (const int error_number = s.file().close(); error_number != 0) {
        s.fail(fmt::format("cannot be written: {}", error_text(error_number)));
    }
    if (s.temporary) {
        if (const int error_number = s.temporary->rename_to(s.target); error_number != 0) {
            s.fail(fmt::format("cannot be replaced: {}", error_text(error_number)));
        }
        s.sync_folder();
    }
    s.finished = true;
}

} // namespace polyscan::tool
