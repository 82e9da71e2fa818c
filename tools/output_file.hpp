// SPDX-License-Identifier: Apache-2.0
/// Outputs appear whole or not at all: they are written beside the target and renamed over it.
#pragma once

#include "file.hpp"
#include "temporary_file.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace polyscan::tool {

/// A file to be written front to back. Unbuffered: pass large pieces.
///
/// - A new or regular target: the data go to `.polyscan-<random>.tmp` in the target's folder, which
///   `finish()` renames over the target. Until then the target is as it was; without `finish()` the
///   destructor removes the temporary file. A new file gets the umask's mode, a replaced one keeps
///   its mode (not its owner).
/// - A symbolic link is followed: the file that it leads to is replaced (or made), the link stays.
/// - A pipe or character device (`/dev/null`) is written directly; so is "-", standard output.
/// - Folders, block devices, files without write permission and `inputs` are refused.
class output_file {
public:
    /// Throws `bad_input`, as every function does. `inputs`: files being read.
    output_file(const std::string& path, const std::vector<file_identity>& inputs);

    /// The name used in messages.
    [[nodiscard]] const std::string& label() const { return label_; }
    /// Whether `write_over_start` can be called.
    [[nodiscard]] bool is_rewritable() const { return temporary_.has_value(); }

    /// Asks for the room now, where the file system can give it: better than a full disk after long work.
    void reserve(std::uint64_t bytes);
    /// Appends.
    void write(std::span<const std::byte> bytes);
    /// Replaces the first bytes.
    void write_over_start(std::span<const std::byte> bytes);
    /// Forces the data to the disk, checks every error on the way, renames.
    void finish();

private:
    [[noreturn]] void fail(std::string_view rule) const { throw bad_input(label_, rule); }
    [[nodiscard]] file_descriptor& file() { return temporary_ ? temporary_->file() : direct_; }
    void open_standard_output(const std::vector<file_identity>& inputs);
    void open_path(const std::string& path, const std::vector<file_identity>& inputs);
    void refuse_inputs(const struct stat& status, const std::vector<file_identity>& inputs) const;
    void replace(const std::string& path, const struct stat& status);
    void sync();
    void sync_folder() const;

    std::string label_;
    std::filesystem::path target_; // after links; used with `temporary_`
    std::optional<temporary_file> temporary_;
    file_descriptor direct_; // without `temporary_`
};

} // namespace polyscan::tool
