// SPDX-License-Identifier: Apache-2.0
#include "array_file.hpp"
#include "output_file.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace polyscan::tool {

struct array_writer::state {
    polyscan::dtype type{};
    writer_options options;
    std::optional<std::uint64_t> expected; // bytes of elements
    output_file file;
    std::uint64_t written = 0;
    bool finished = false;
};

namespace {

std::optional<std::uint64_t> expected_bytes(const std::string& path, dtype type, const writer_options& options) {
    if (!options.count) {
        return std::nullopt;
    }
    const auto bytes = bytes_of(*options.count, type);
    if (!bytes) {
        throw bad_input(
            path, fmt::format("{} elements of {} overflow: no file has that many bytes", *options.count, name(type)));
    }
    return bytes;
}

} // namespace

array_writer::array_writer(std::string path, polyscan::dtype type, writer_options options) {
    const auto expected = expected_bytes(path, type, options);
    state_.reset(new state{type, options, expected, output_file(path, options.inputs)});
    state& s = *state_;
    const bool has_header = s.options.format == array_format::npy;
    if (has_header && !s.options.count && !s.file.is_rewritable()) {
        throw bad_input(label(), "a .npy header states the length first, which is not known here: "
                                 "write raw data, or to a file");
    }
    if (s.expected) {
        s.file.reserve((has_header ? written_npy_header_bytes : 0) + *s.expected);
    }
    if (has_header) {
        const std::string header = make_npy_header(type, s.options.count.value_or(0));
        s.file.write(std::as_bytes(std::span{header}));
    }
}

array_writer::array_writer(array_writer&&) noexcept = default;
array_writer& array_writer::operator=(array_writer&&) noexcept = default;
array_writer::~array_writer() = default;

const std::string& array_writer::label() const { return state_->file.label(); }

void array_writer::write(std::span<const std::byte> elements) {
    state& s = *state_;
    if (s.finished) {
        throw std::logic_error("array_writer::write: the file is finished");
    }
    if (s.expected && elements.size() > *s.expected - s.written) {
        throw std::logic_error("array_writer::write: more elements than the count promised");
    }
    s.file.write(elements);
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
        const std::string header = make_npy_header(s.type, s.written / size_of(s.type));
        s.file.write_over_start(std::as_bytes(std::span{header}));
    }
    s.file.finish();
    s.finished = true;
}

} // namespace polyscan::tool
