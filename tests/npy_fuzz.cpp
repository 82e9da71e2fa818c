// SPDX-License-Identifier: Apache-2.0
/// libFuzzer target for the reader of array files. No corpus is needed: most inputs are taken, behind a well-formed
/// start, for a header's text in which control characters stand for whole words of the format. Random bytes alone would
/// hardly ever get past the first key.
/// scripts/check-fuzz.sh builds and runs it.
#include "array_file.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

using namespace polyscan::tool;

void require(bool condition) {
    if (!condition) {
        std::abort();
    }
}

void require_one_line(const bad_input& error) {
    const std::string_view text = error.what();
    for (const char c : text) {
        require(static_cast<unsigned char>(c) >= 0x20 && c != '\x7f');
    }
    require(text.size() < 1000); // a message, not a copy of the file
}

std::optional<npy_header> parsed(std::string_view file) {
    try {
        const npy_header header = parse_npy_header(std::as_bytes(std::span{file}), "fuzz");
        require(header.data_offset <= file.size());
        require(header.count <= INT64_MAX / polyscan::size_of(header.type));
        // What was understood can be written and understood again.
        const std::string written = make_npy_header(header.type, header.count);
        const npy_header again = parse_npy_header(std::as_bytes(std::span{written}), "fuzz");
        require(again.type == header.type && again.count == header.count);
        return header;
    } catch (const bad_input& error) {
        require_one_line(error);
        return std::nullopt;
    }
}

/// Opens and reads descriptor `number` to its end; true when all of it was accepted.
bool readable(int number, std::optional<polyscan::dtype> raw, std::string_view elements) {
    try {
        auto reader = array_reader::open("/proc/self/fd/" + std::to_string(number), raw);
        std::string seen;
        std::byte buffer[257];
        while (const std::size_t got = reader.read(buffer)) {
            require(got <= sizeof buffer && got % polyscan::size_of(reader.dtype()) == 0);
            seen.append(reinterpret_cast<const char*>(buffer), got);
        }
        require(seen == elements);
        require(!reader.count() || *reader.count() * polyscan::size_of(reader.dtype()) == seen.size());
        return true;
    } catch (const bad_input& error) {
        require_one_line(error);
        return false;
    }
}

bool readable_as_file(std::string_view file, std::optional<polyscan::dtype> raw, std::string_view elements) {
    static const int memory = ::memfd_create("fuzz", MFD_CLOEXEC);
    require(memory >= 0);
    require(::ftruncate(memory, 0) == 0);
    require(::pwrite(memory, file.data(), file.size(), 0) == static_cast<ssize_t>(file.size()));
    return readable(memory, raw, elements);
}

bool readable_as_pipe(std::string_view file, std::optional<polyscan::dtype> raw, std::string_view elements) {
    int ends[2];
    require(::pipe2(ends, O_CLOEXEC) == 0);
    // All of it fits the pipe: see the limit below.
    require(::write(ends[1], file.data(), file.size()) == static_cast<ssize_t>(file.size()));
    ::close(ends[1]);
    const bool result = readable(ends[0], raw, elements);
    ::close(ends[0]);
    return result;
}

/// Control characters become words, all else stays as it is.
std::string header_text(std::string_view input) {
    using namespace std::string_view_literals;
    static constexpr std::array words{"{'descr': '<i2', 'fortran_order': False, 'shape': ("sv,
                                      "{'descr': '|u1', 'fortran_order': True, 'shape': ("sv,
                                      "{'fortran_order': False, 'shape': (2,), 'descr': "sv,
                                      "{"sv,
                                      "}"sv,
                                      "'descr': "sv,
                                      "'fortran_order': "sv,
                                      "'shape': "sv,
                                      ", "sv,
                                      "True"sv,
                                      "False"sv,
                                      "("sv,
                                      ",), }"sv,
                                      "'<c16'"sv,
                                      "'<f4'"sv,
                                      "'|i1'"sv,
                                      "'<i8'"sv,
                                      "'>i4'"sv,
                                      "'|O'"sv,
                                      "'<f2'"sv,
                                      "0"sv,
                                      "1"sv,
                                      "2"sv,
                                      "18446744073709551615"sv,
                                      "9223372036853727167"sv,
                                      "[("sv,
                                      "L"sv,
                                      "\n"sv,
                                      "-"sv,
                                      "\""sv,
                                      "\\x"sv};
    std::string result;
    for (const char c : input) {
        const auto index = static_cast<std::size_t>(static_cast<unsigned char>(c)) - 1;
        if (index < words.size()) {
            result += words[index];
        } else {
            result += c;
        }
    }
    return result;
}

void try_file(std::string_view file) {
    constexpr std::size_t pipe_capacity = 65536;
    if (file.size() > pipe_capacity) {
        return;
    }
    const auto header = parsed(file);
    const std::string_view elements = header ? file.substr(header->data_offset) : std::string_view{};
    const bool whole = header && header->count * polyscan::size_of(header->type) == elements.size();
    // Most refused headers stop here: system calls are slow, and the reader uses the same parser.
    if (!header && file.size() % 8 != 0) {
        return;
    }
    // The three ways agree: the header in memory, a file with a size, a pipe without one.
    require(readable_as_file(file, std::nullopt, elements) == whole);
    require(readable_as_pipe(file, std::nullopt, elements) == whole);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view input{reinterpret_cast<const char*>(data), size};
    if (input.empty()) {
        return 0;
    }
    // The first byte says what the others are.
    const unsigned mode = static_cast<unsigned char>(input.front()) % 8;
    const std::string_view rest = input.substr(1);
    if (mode == 0) {
        try_file(rest);
    } else if (mode == 1) {
        const std::string_view elements = rest.substr(0, 4096);
        require(readable_as_pipe(elements, polyscan::dtype::int32, elements) == (elements.size() % 4 == 0));
    } else {
        // Up to a NUL the header, then the elements.
        const std::size_t length = std::min(rest.find('\0'), rest.size());
        std::string text = header_text(rest.substr(0, length));
        // Whole, or as one value of a header that is right otherwise.
        switch (static_cast<unsigned char>(input.front()) / 8 % 3) {
        case 1: text = "{'fortran_order': False, 'shape': (2,), 'descr': " + text + "}"; break;
        case 2: text = "{'descr': '<i2', 'fortran_order': False, 'shape': " + text + "}"; break;
        default: break;
        }
        const int version = static_cast<int>(mode) / 2; // 1 to 3, twice each
        std::string file = "\x93NUMPY";
        file += static_cast<char>(version);
        file += '\0';
        for (int i = 0; i < (version == 1 ? 2 : 4); ++i) {
            file += static_cast<char>((text.size() >> (8 * i)) & 0xff);
        }
        file += text;
        file += rest.substr(std::min(length + 1, rest.size()));
        try_file(file);
    }
    return 0;
}
