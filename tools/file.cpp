// SPDX-License-Identifier: Apache-2.0
#include "file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace polyscan::tool {

// File sizes and offsets are 63-bit; a 32-bit off_t would wrap at 2 GiB.
static_assert(sizeof(off_t) == 8, "compile with -D_FILE_OFFSET_BITS=64");

namespace {

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

} // namespace

bad_input::bad_input(std::string_view file, std::string_view rule)
    : std::runtime_error(fmt::format("{}: {}", printable(file, high_bytes::keep), printable(rule, high_bytes::keep))) {}

std::string excerpt(std::string_view text) {
    constexpr std::size_t longest = 40;
    std::string result = printable(text.substr(0, longest), high_bytes::escape);
    if (text.size() > longest) {
        result += "...";
    }
    return result;
}

std::string error_text(int error_number) { return std::generic_category().message(error_number); }

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

int open_retrying(const char* path, int flags, mode_t mode) {
    int number = -1;
    do {
        number = ::open(path, flags | O_CLOEXEC, mode);
    } while (number < 0 && errno == EINTR);
    return number;
}

file_identity identity_of(const struct stat& status) {
    return {static_cast<std::uint64_t>(status.st_dev), static_cast<std::uint64_t>(status.st_ino)};
}

} // namespace polyscan::tool
