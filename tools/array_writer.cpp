// SPDX-License-Identifier: Apache-2.0
#include "array_file.hpp"
#include "temporary_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

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
