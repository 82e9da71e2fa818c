// SPDX-License-Identifier: Apache-2.0
#include "array_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace polyscan::tool {

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

} // namespace polyscan::tool
