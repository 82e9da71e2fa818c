// SPDX-License-Identifier: Apache-2.0
/// Files that disappear unless they are renamed, also when a signal ends the program.
#pragma once

#include "file.hpp"

#include <filesystem>
#include <string>
#include <string_view>

namespace polyscan::tool {

struct temporary_slot;

/// A new file beside `target` that disappears unless it is renamed.
class temporary_file {
public:
    /// Throws `bad_input` under the name `label`: the user knows the target, not this file.
    temporary_file(const std::filesystem::path& target, mode_t mode, std::string_view label);
    temporary_file(const temporary_file&) = delete;
    temporary_file& operator=(const temporary_file&) = delete;
    ~temporary_file();

    file_descriptor& file() { return file_; }

    /// Returns 0 or the error number; after 0 the file is the target's and no longer temporary.
    int rename_to(const std::filesystem::path& target);

private:
    std::string path_;
    temporary_slot* slot_ = nullptr;
    file_descriptor file_;
};

/// From now on signals that end the program (SIGINT, SIGTERM, SIGQUIT, SIGPIPE and their like) remove the
/// temporary files first. A signal that is ignored stays ignored.
/// SIGXFSZ is ignored, so that a file-size limit is a reported error like a full disk.
void remove_temporaries_on_signal();

} // namespace polyscan::tool
