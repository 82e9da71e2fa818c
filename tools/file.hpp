// SPDX-License-Identifier: Apache-2.0
/// What readers and writers of files share: errors with the file's name, descriptors, which file is which.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include <sys/stat.h>
#include <sys/types.h>

namespace polyscan::tool {

/// A file that cannot be read or written as asked. what() is one line, "FILE: RULE"; control
/// characters of either part are escaped so that a hostile name or header cannot add lines.
class bad_input : public std::runtime_error {
public:
    bad_input(std::string_view file, std::string_view rule);
};

/// The beginning of untrusted text, for a one-line message.
std::string excerpt(std::string_view text);

/// What the system says of an error number.
std::string error_text(int error_number);

/// Which file this is, whatever it is called: links and other spellings compare equal.
struct file_identity {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    friend bool operator==(const file_identity&, const file_identity&) = default;
};

/// Of an open or a named file.
file_identity identity_of(const struct stat& status);

/// An open file that closes itself; the standard streams are borrowed and stay open.
class file_descriptor {
public:
    file_descriptor() = default;
    [[nodiscard]] static file_descriptor owning(int number) { return {number, true}; }
    [[nodiscard]] static file_descriptor borrowing(int number) { return {number, false}; }
    file_descriptor(file_descriptor&& other) noexcept;
    file_descriptor& operator=(file_descriptor&& other) noexcept;
    ~file_descriptor();

    [[nodiscard]] int get() const { return number_; }
    /// Closes an owned descriptor; returns 0 or the error number, which may be the first word of
    /// data that did not reach the disk.
    int close() noexcept;

private:
    file_descriptor(int number, bool owned) : number_(number), owned_(owned) {}
    int number_ = -1;
    bool owned_ = false;
};

/// open(2), again where a signal comes in between. Returns the number, or -1 and errno.
int open_retrying(const char* path, int flags, mode_t mode = 0);

} // namespace polyscan::tool
