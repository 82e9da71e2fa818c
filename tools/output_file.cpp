// SPDX-License-Identifier: Apache-2.0
#include "output_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace polyscan::tool {

namespace {

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

output_file::output_file(const std::string& path, const std::vector<file_identity>& inputs) {
    if (path == "-") {
        open_standard_output(inputs);
    } else {
        open_path(path, inputs);
    }
}

void output_file::refuse_inputs(const struct stat& status, const std::vector<file_identity>& inputs) const {
    if (!S_ISREG(status.st_mode)) {
        return; // reading and writing one terminal or device is ordinary
    }
    if (std::find(inputs.begin(), inputs.end(), identity_of(status)) != inputs.end()) {
        fail("the output is the input file: choose another name");
    }
}

void output_file::open_standard_output(const std::vector<file_identity>& inputs) {
    label_ = "standard output";
    struct stat status{};
    if (::fstat(STDOUT_FILENO, &status) != 0) {
        fail(fmt::format("cannot be written: {}", error_text(errno)));
    }
    refuse_inputs(status, inputs);
    direct_ = file_descriptor::borrowing(STDOUT_FILENO);
}

void output_file::open_path(const std::string& path, const std::vector<file_identity>& inputs) {
    if (path.empty() || path.find('\0') != std::string::npos) {
        throw bad_input(path.empty() ? "''" : path, "not a file name");
    }
    label_ = path;
    struct stat status{};
    const bool exists = ::stat(path.c_str(), &status) == 0;
    if (!exists && errno != ENOENT) {
        fail(fmt::format("cannot be written: {}", error_text(errno)));
    }
    if (!exists) {
        target_ = follow_links(path);
        if (target_.filename().empty()) {
            fail("cannot be created: a file name ends in '/'");
        }
        temporary_.emplace(target_, mode_t{0666}, label_); // the umask applies
        return;
    }
    if (S_ISDIR(status.st_mode)) {
        fail("is a directory, not a file");
    }
    if (S_ISBLK(status.st_mode)) {
        fail("is a block device: writing would destroy what it holds");
    }
    refuse_inputs(status, inputs);
    if (!S_ISREG(status.st_mode)) {
        const int number = open_retrying(path.c_str(), O_WRONLY);
        if (number < 0) {
            fail(fmt::format("cannot be written: {}", error_text(errno)));
        }
        direct_ = file_descriptor::owning(number);
        return;
    }
    replace(path, status);
}

void output_file::replace(const std::string& path, const struct stat& status) {
    // A rename asks the folder alone, but a read-only file is a wish to keep it.
    if (::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0) {
        fail(fmt::format("cannot be written: {}", error_text(errno)));
    }
    target_ = follow_links(path);
    // The links of /proc/*/fd may lead to a file without a name, or by a name now another's.
    struct stat resolved{};
    if (::stat(target_.c_str(), &resolved) != 0 || identity_of(resolved) != identity_of(status)) {
        fail("cannot be replaced: its link does not lead to it by name");
    }
    const mode_t mode = status.st_mode & mode_t{0777};
    temporary_.emplace(target_, mode, label_); // never wider than the mode that it ends with
    if (::fchmod(temporary_->file().get(), mode) != 0) {
        fail(fmt::format("cannot be written: {}", error_text(errno)));
    }
}

/// Only "no room" is an answer; file systems without reservations say so in several ways, and the writes will tell.
void output_file::reserve(std::uint64_t bytes) {
    if (!temporary_ || bytes == 0) {
        return;
    }
    int result = 0;
    do {
        result = ::fallocate(file().get(), FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes));
    } while (result != 0 && errno == EINTR);
    if (result != 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)) {
        fail(fmt::format("{} bytes cannot be written: {}", bytes, error_text(errno)));
    }
}

void output_file::write(std::span<const std::byte> bytes) {
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

void output_file::write_over_start(std::span<const std::byte> bytes) {
    for (off_t at = 0; !bytes.empty();) {
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

void output_file::sync() {
    int result = 0;
    do {
        result = ::fsync(file().get());
    } while (result != 0 && errno == EINTR);
    // Pipes and terminals have nothing to force; they answer with one of these.
    const bool nothing_to_force = errno == EINVAL || errno == EROFS || errno == ENOTSUP;
    if (result != 0 && !(nothing_to_force && !temporary_)) {
        fail(fmt::format("cannot be written: {}", error_text(errno)));
    }
}

/// Makes the new name itself last. The data are safe by now under one name or the other, so a
/// file system that cannot do this is no error.
void output_file::sync_folder() const {
    const auto folder = target_.has_parent_path() ? target_.parent_path() : std::filesystem::path{"."};
    const int number = open_retrying(folder.c_str(), O_RDONLY | O_DIRECTORY);
    if (number >= 0) {
        const auto owner = file_descriptor::owning(number);
        (void)::fsync(owner.get());
    }
}

void output_file::finish() {
    sync();
    if (const int error_number = file().close(); error_number != 0) {
        fail(fmt::format("cannot be written: {}", error_text(error_number)));
    }
    if (temporary_) {
        if (const int error_number = temporary_->rename_to(target_); error_number != 0) {
            fail(fmt::format("cannot be replaced: {}", error_text(error_number)));
        }
        sync_folder();
    }
}

} // namespace polyscan::tool
