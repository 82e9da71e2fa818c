// SPDX-License-Identifier: Apache-2.0
/// The array files of the program: what is read, what is refused and in which words, and that an output appears whole
/// or not at all.
#include <doctest/doctest.h>

#include "array_file.hpp"
#include "temporary_file.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

namespace fs = std::filesystem;
using polyscan::dtype;
using namespace polyscan::tool;

constexpr std::array all_dtypes{dtype::int8,    dtype::int16,   dtype::int32,     dtype::int64,
                                dtype::uint8,   dtype::uint16,  dtype::uint32,    dtype::uint64,
                                dtype::float32, dtype::float64, dtype::complex64, dtype::complex128};

/// A folder of its own for each test, gone afterwards.
class scratch {
public:
    scratch() {
        std::string pattern = (fs::temp_directory_path() / "polyscan-test-XXXXXX").string();
        REQUIRE(::mkdtemp(pattern.data()) != nullptr);
        folder_ = pattern;
    }
    scratch(const scratch&) = delete;
    scratch& operator=(const scratch&) = delete;
    ~scratch() {
        std::error_code ignored;
        fs::remove_all(folder_, ignored);
    }
    std::string operator/(std::string_view name) const { return (folder_ / name).string(); }
    /// Names in the folder, sorted: shows temporary files left behind.
    std::vector<std::string> names() const {
        std::vector<std::string> result;
        for (const auto& entry : fs::directory_iterator(folder_)) {
            result.push_back(entry.path().filename().string());
        }
        std::sort(result.begin(), result.end());
        return result;
    }

private:
    fs::path folder_;
};

using names = std::vector<std::string>;

void put_file(const std::string& path, std::string_view content) {
    std::ofstream(path, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
}

std::string get_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span{text}); }

/// A `.npy` file's start with this dict, well formed or not, unpadded.
std::string npy(std::string_view dict, int major = 1, int minor = 0) {
    std::string result = "\x93NUMPY";
    result += static_cast<char>(major);
    result += static_cast<char>(minor);
    for (std::size_t i = 0; i < (major == 1 ? 2u : 4u); ++i) {
        result += static_cast<char>((dict.size() >> (8 * i)) & 0xff);
    }
    return result.append(dict);
}

std::string dict(std::string_view descr, std::string_view shape) {
    return "{'descr': " + std::string(descr) + ", 'fortran_order': False, 'shape': " + std::string(shape) + ", }\n";
}

/// The message of the refusal, empty when there was none.
template <class Action>
std::string refusal(Action&& action) {
    try {
        action();
    } catch (const bad_input& error) {
        return error.what();
    }
    return {};
}

std::string header_refusal(std::string_view file_start) {
    return refusal([&] { (void)parse_npy_header(bytes(file_start), "x.npy"); });
}

/// Reads all in pieces of `piece` bytes.
std::string read_all(array_reader& reader, std::size_t piece = 4096) {
    std::string result;
    std::vector<std::byte> buffer(piece);
    while (const std::size_t got = reader.read(buffer)) {
        result.append(reinterpret_cast<const char*>(buffer.data()), got);
    }
    return result;
}

std::string open_refusal(const std::string& path, std::optional<dtype> raw = std::nullopt) {
    return refusal([&] {
        auto reader = array_reader::open(path, raw);
        (void)read_all(reader);
    });
}

/// Bytes that are all different for as long as that is possible, of whole elements.
std::string pattern(std::size_t size) {
    std::string result(size, '\0');
    for (std::size_t i = 0; i < size; ++i) {
        result[i] = static_cast<char>((i * 7 + i / 256) & 0xff);
    }
    return result;
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// Checks the text, that it names the file first, and that it is one line.
#define CHECK_REFUSED(message, file, part)                                                                             \
    do {                                                                                                               \
        const std::string text_ = (message);                                                                           \
        CAPTURE(text_);                                                                                                \
        CHECK(text_.starts_with(std::string(file) + ": "));                                                            \
        CHECK(contains(text_, part));                                                                                  \
        CHECK_FALSE(contains(text_, "\n"));                                                                            \
    } while (false)

/// A named pipe that another thread fills: a source without a size.
class fed_pipe {
public:
    fed_pipe(std::string path, std::string content) : path_(std::move(path)) {
        REQUIRE(::mkfifo(path_.c_str(), 0600) == 0);
        feeder_ = std::jthread([path = path_, content = std::move(content)] { put_file(path, content); });
    }
    const std::string& path() const { return path_; }

private:
    std::string path_;
    std::jthread feeder_;
};

/// Standard input or output replaced for a while.
class redirected {
public:
    redirected(int number, const std::string& path, int flags) : number_(number), saved_(::dup(number)) {
        const int file = ::open(path.c_str(), flags, 0600);
        REQUIRE(file >= 0);
        REQUIRE(::dup2(file, number) == number);
        ::close(file);
    }
    redirected(const redirected&) = delete;
    redirected& operator=(const redirected&) = delete;
    ~redirected() {
        ::dup2(saved_, number_);
        ::close(saved_);
    }

private:
    int number_;
    int saved_;
};

} // namespace

TEST_CASE("a header is parsed: every dtype, versions 1 to 3, both orders") {
    const std::array descr{"|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f4", "<f8", "<c8", "<c16"};
    for (std::size_t i = 0; i < all_dtypes.size(); ++i) {
        for (const int version : {1, 2, 3}) {
            for (const std::string order : {"False", "True"}) {
                CAPTURE(descr[i]);
                const std::string file =
                    npy("{'descr': '" + std::string(descr[i]) + "', 'fortran_order': " + order + ", 'shape': (7,), }\n",
                        version);
                const npy_header header = parse_npy_header(bytes(file), "x.npy");
                CHECK(header.type == all_dtypes[i]);
                CHECK(header.count == 7);
                CHECK(header.data_offset == file.size());
            }
        }
    }
    CHECK(parse_npy_header(bytes(npy(dict("'<i1'", "(7,)"))), "x.npy").type == dtype::int8);
    CHECK(parse_npy_header(bytes(npy(dict("'<u1'", "(7,)"))), "x.npy").type == dtype::uint8);
}

TEST_CASE("a header is parsed: spellings that Python allows") {
    const auto count = [](std::string_view text, int version = 1) {
        return parse_npy_header(bytes(npy(text, version)), "x.npy").count;
    };
    CHECK(count(R"({"descr":"<f8","fortran_order":False,"shape":(12,)})") == 12);
    CHECK(count("{'shape': (12,), 'fortran_order': True, 'descr': '<f8'}") == 12);
    CHECK(count(" \t{ 'shape' :\n( 12 , ) ,\r\n'descr' : \"<f8\" , 'fortran_order' : False , } \n\n") == 12);
    CHECK(count("{'descr': '<f8', 'fortran_order': False, 'shape': (12L,), }\n") == 12);
    CHECK(count("{'descr': '<f8', 'fortran_order': False, 'shape': (0,), }\n") == 0);
    // The largest array of bytes that any file could hold, with room for its header.
    CHECK(count("{'descr': '|u1', 'fortran_order': False, 'shape': (9223372036853727167,), }\n") ==
          9223372036853727167u);
    CHECK_REFUSED(header_refusal(npy(dict("'<f8'", "(12L,)"), 3)), "x.npy", "plain decimal number");
}

TEST_CASE("dtypes are refused by name") {
    const auto refused = [](std::string_view descr) { return header_refusal(npy(dict(descr, "(3,)"))); };
    CHECK_REFUSED(refused("'|b1'"), "x.npy", "dtype bool ('|b1') is not supported");
    CHECK_REFUSED(refused("'<f2'"), "x.npy", "dtype float16 ('<f2') is not supported");
    CHECK_REFUSED(refused("'<f16'"), "x.npy", "float128");
    CHECK_REFUSED(refused("'<c32'"), "x.npy", "complex256");
    CHECK_REFUSED(refused("'|O'"), "x.npy", "dtype object");
    CHECK_REFUSED(refused("'|S5'"), "x.npy", "dtype bytes");
    CHECK_REFUSED(refused("'<U5'"), "x.npy", "dtype str");
    CHECK_REFUSED(refused("'|V8'"), "x.npy", "dtype void");
    CHECK_REFUSED(refused("'<M8[ns]'"), "x.npy", "dtype datetime64");
    CHECK_REFUSED(refused("'<m8[s]'"), "x.npy", "dtype timedelta64");
    CHECK_REFUSED(refused("[('a', '<i4'), ('b', '<f8')]"), "x.npy", "structured dtypes are not supported");
    CHECK_REFUSED(refused("('<i4', (2,))"), "x.npy", "structured dtypes are not supported");
    CHECK_REFUSED(refused("'>i4'"), "x.npy", "big-endian");
    CHECK_REFUSED(refused("'>f8'"), "x.npy", "big-endian");
    CHECK_REFUSED(refused("'=i4'"), "x.npy", "native byte order '=' is not legal");
    CHECK_REFUSED(refused("'|i4'"), "x.npy", "'|' is for one-byte types only");
    CHECK_REFUSED(refused("'i4'"), "x.npy", "does not state its byte order");
    CHECK_REFUSED(refused("'<i3'"), "x.npy", "unknown dtype '<i3'");
    CHECK_REFUSED(refused("'<i04'"), "x.npy", "unknown dtype");
    CHECK_REFUSED(refused("'<i4 '"), "x.npy", "unknown dtype");
    CHECK_REFUSED(refused("''"), "x.npy", "unknown dtype ''");
    CHECK_REFUSED(refused("'<'"), "x.npy", "unknown dtype '<'");
    CHECK_REFUSED(refused("None"), "x.npy", "expected a dtype in quotes");
    CHECK_REFUSED(refused("'\x1b[31m'"), "x.npy", "\\x1b[31m");
}

TEST_CASE("shapes are refused by name") {
    const auto refused = [](std::string_view shape) { return header_refusal(npy(dict("'<f8'", shape))); };
    CHECK_REFUSED(refused("()"), "x.npy", "rank 0 (a scalar) is not supported");
    CHECK_REFUSED(refused("(2, 3)"), "x.npy", "rank 2 is not supported, only rank 1");
    CHECK_REFUSED(refused("(2, 3, 4,)"), "x.npy", "rank 3 is not supported");
    CHECK_REFUSED(refused("(0, 0)"), "x.npy", "rank 2 is not supported");
    CHECK_REFUSED(refused("(9223372036854775807, 9223372036854775807)"), "x.npy", "rank 2 is not supported");
    CHECK_REFUSED(refused("(4611686018427387904,)"), "x.npy", "overflows");  // 2^62 elements
    CHECK_REFUSED(refused("(2305843009213693952,)"), "x.npy", "overflows");  // times 8 is 2^64, that is 0
    CHECK_REFUSED(refused("(18446744073709551615,)"), "x.npy", "overflows"); // 2^64 - 1
    CHECK_REFUSED(refused("(18446744073709551616,)"), "x.npy", "overflows"); // 2^64
    CHECK_REFUSED(refused("(" + std::string(5000, '9') + ",)"), "x.npy", "overflows");
    CHECK_REFUSED(header_refusal(npy(dict("'|u1'", "(9223372036853727168,)"))), "x.npy", "overflows");
    CHECK_REFUSED(refused("(-1,)"), "x.npy", "negative");
    CHECK_REFUSED(refused("(3)"), "x.npy", "lacks its comma");
    CHECK_REFUSED(refused("3"), "x.npy", "shape is not a tuple");
    CHECK_REFUSED(refused("[3]"), "x.npy", "shape is not a tuple");
    CHECK_REFUSED(refused("None"), "x.npy", "shape is not a tuple");
    for (const std::string_view length :
         {"0x10", "1_000", "1e3", "3.0", "True", "+3", "03", "'3'", ",", "L", "3 4", "(3,)"}) {
        CAPTURE(length);
        const std::string message = refused("(" + std::string(length) + ",)");
        CHECK(contains(message, "malformed .npy header"));
        CHECK(contains(message, "shape"));
    }
}

TEST_CASE("malformed headers are refused") {
    const auto refused = [](std::string_view text) { return header_refusal(npy(text)); };
    const std::string good = "'descr': '<f8', 'fortran_order': False, 'shape': (3,)";
    REQUIRE(refused("{" + good + "}").empty());

    CHECK_REFUSED(refused(""), "x.npy", "expected a dict");
    CHECK_REFUSED(refused("[1, 2]"), "x.npy", "expected a dict");
    CHECK_REFUSED(refused("{}"), "x.npy", "key 'descr' is missing");
    CHECK_REFUSED(refused("{'descr': '<f8', 'shape': (3,)}"), "x.npy", "key 'fortran_order' is missing");
    CHECK_REFUSED(refused("{'descr': '<f8', 'fortran_order': False}"), "x.npy", "key 'shape' is missing");
    CHECK_REFUSED(refused("{" + good + ", 'descr': '<f4'}"), "x.npy", "key 'descr' appears twice");
    CHECK_REFUSED(refused("{" + good + ", 'shape': (3,)}"), "x.npy", "key 'shape' appears twice");
    CHECK_REFUSED(refused("{" + good + ", \"fortran_order\": True}"), "x.npy", "key 'fortran_order' appears twice");
    CHECK_REFUSED(refused("{" + good + ", 'extra': 1}"), "x.npy", "unknown key 'extra'");
    CHECK_REFUSED(refused("{" + good + ",,}"), "x.npy", "expected a key");
    CHECK_REFUSED(refused("{" + good), "x.npy", "expected ',' or '}' at its end");
    CHECK_REFUSED(refused("{" + good + "} + {}"), "x.npy", "after the dict");
    CHECK_REFUSED(refused("{" + good + "}" + std::string(1, '\0')), "x.npy", "'\\x00' after the dict");
    CHECK_REFUSED(refused("{" + good + "}}"), "x.npy", "after the dict");
    CHECK_REFUSED(refused("{'descr' '<f8'}"), "x.npy", "expected ':'");
    CHECK_REFUSED(refused("{'descr: 3}"), "x.npy", "not closed");
    CHECK_REFUSED(refused("{'descr': '<f8\"}"), "x.npy", "not closed");
    CHECK_REFUSED(refused("{'d\\x65scr': '<f8'}"), "x.npy", "escape");
    CHECK_REFUSED(refused("{u'descr': '<f8'}"), "x.npy", "expected a key");
    CHECK_REFUSED(refused("{'descr': '<f8', 'fortran_order': 0, 'shape': (3,)}"), "x.npy", "neither True nor False");
    CHECK_REFUSED(refused("{'descr': '<f8', 'fortran_order': Falsey, 'shape': (3,)}"), "x.npy",
                  "neither True nor False");
    CHECK_REFUSED(refused("__import__('os').system('true')"), "x.npy", "expected a dict");
    // Depth cannot exhaust anything.
    CHECK_REFUSED(refused("{'shape': " + std::string(60000, '(')), "x.npy", "malformed .npy header");
}

TEST_CASE("every prefix of a header is refused") {
    for (const int version : {1, 2, 3}) {
        const std::string whole = npy(dict("'<f8'", "(3,)"), version);
        for (std::size_t size = 0; size < whole.size(); ++size) {
            CHECK(contains(header_refusal(whole.substr(0, size)), "truncated"));
        }
    }
}

TEST_CASE("magic, version and header length") {
    CHECK_REFUSED(header_refusal("hello, world"), "x.npy", "wrong magic");
    CHECK_REFUSED(header_refusal("h"), "x.npy", "wrong magic");
    CHECK_REFUSED(header_refusal("PK\x03\x04rest of it"), "x.npy", "zip archive");
    CHECK_REFUSED(header_refusal(npy("{}", 4)), "x.npy", "version 4.0 is not supported");
    CHECK_REFUSED(header_refusal(npy("{}", 0)), "x.npy", "version 0.0 is not supported");
    CHECK_REFUSED(header_refusal(npy("{}", 1, 1)), "x.npy", "version 1.1 is not supported");
    CHECK_REFUSED(header_refusal(std::string("\x93NUMPY\x02\x00\x01\x00\x10\x00", 12)), "x.npy",
                  "more than the limit of 1048576");
    CHECK_REFUSED(header_refusal(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12)), "x.npy",
                  "claims 4294967295 bytes");
    // At the limit: padding counts, and is fine.
    std::string padded = dict("'<f8'", "(0,)");
    padded.resize(max_npy_header_bytes, ' ');
    CHECK(header_refusal(npy(padded, 2)).empty());
}

TEST_CASE("messages are one line, whatever the name or header holds") {
    CHECK(std::string(bad_input("a\nb", "rule\r\x7f").what()) == "a\\x0ab: rule\\x0d\\x7f");
    CHECK(std::string(bad_input("zażółć.npy", "rule").what()) == "zażółć.npy: rule");
    CHECK_REFUSED(header_refusal(npy("{'a\x80\xff': 1}")), "x.npy", "unknown key 'a\\x80\\xff'");
}

TEST_CASE("a written header is NumPy's: 128 bytes, aligned, terminated") {
    for (const dtype type : all_dtypes) {
        for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{576460752303357947}}) {
            const std::string header = make_npy_header(type, count);
            CHECK(header.size() == written_npy_header_bytes);
            CHECK(header.back() == '\n');
            const npy_header parsed = parse_npy_header(bytes(header), "x.npy");
            CHECK(parsed.type == type);
            CHECK(parsed.count == count);
            CHECK(parsed.data_offset == header.size());
        }
        CHECK(make_npy_header(type, UINT64_MAX).size() == written_npy_header_bytes);
    }
}

TEST_CASE("every dtype makes the round trip, npy and raw, count known or not") {
    const scratch folder;
    for (const dtype type : all_dtypes) {
        for (const array_format format : {array_format::npy, array_format::raw}) {
            for (const std::size_t count : {0u, 1u, 1000u}) {
                for (const bool known : {true, false}) {
                    const std::string content = pattern(count * polyscan::size_of(type));
                    const std::string path = folder / "a";
                    array_writer writer(path, type,
                                        {known ? std::optional<std::uint64_t>(count) : std::nullopt, format, {}});
                    writer.write(bytes(std::string_view(content).substr(0, content.size() / 3)));
                    writer.write(bytes(std::string_view(content).substr(content.size() / 3)));
                    writer.finish();

                    auto reader =
                        array_reader::open(path, format == array_format::raw ? std::optional(type) : std::nullopt);
                    CHECK(reader.dtype() == type);
                    CHECK(reader.count() == count);
                    CHECK(reader.format() == format);
                    CHECK(read_all(reader, 48 + 7) == content);
                    CHECK(folder.names() == names{"a"});
                }
            }
        }
    }
}

TEST_CASE("a reader delivers whole elements, then 0") {
    const scratch folder;
    const std::string content = pattern(10 * 8);
    put_file(folder / "a.npy", make_npy_header(dtype::float64, 10) + content);
    auto reader = array_reader::open(folder / "a.npy");
    std::array<std::byte, 31> buffer{};
    CHECK(reader.read(buffer) == 24);
    CHECK(reader.read(buffer) == 24);
    CHECK(reader.read(buffer) == 24);
    CHECK(reader.read(buffer) == 8);
    CHECK(reader.read(buffer) == 0);
    CHECK(reader.read(buffer) == 0);
    CHECK_THROWS_AS(reader.read(std::span(buffer).first(7)), std::invalid_argument);
}

TEST_CASE("sizes that do not match the file are refused before any data are read") {
    const scratch folder;
    const std::string path = folder / "a.npy";
    const auto opened = [&] { return refusal([&] { (void)array_reader::open(path); }); };
    put_file(path, make_npy_header(dtype::float64, 3) + pattern(23));
    CHECK_REFUSED(opened(), path, "truncated: shape (3,) of float64 takes 24 bytes, 23 are there");
    put_file(path, make_npy_header(dtype::float64, 3));
    CHECK_REFUSED(opened(), path, "truncated: shape (3,) of float64 takes 24 bytes, 0 are there");
    put_file(path, make_npy_header(dtype::float64, 3) + pattern(25));
    CHECK_REFUSED(opened(), path, "1 trailing bytes");
    put_file(path, make_npy_header(dtype::float64, 0) + "x");
    CHECK_REFUSED(opened(), path, "1 trailing bytes");
    put_file(path, make_npy_header(dtype::uint8, std::uint64_t{1} << 62));
    CHECK_REFUSED(opened(), path, "truncated: shape (4611686018427387904,)");
    put_file(path, make_npy_header(dtype::float64, std::uint64_t{1} << 62));
    CHECK_REFUSED(opened(), path, "overflows");
    put_file(path, npy(dict("'<f8'", "(3,)")).substr(0, 40));
    CHECK_REFUSED(opened(), path, "truncated: the .npy header");
    put_file(path, "");
    CHECK_REFUSED(opened(), path, "is empty");
    put_file(path, "1.0 2.0 3.0\n");
    CHECK_REFUSED(opened(), path, "wrong magic");
}

TEST_CASE("a file that changes while it is read is noticed") {
    const scratch folder;
    const std::string path = folder / "a.npy";
    std::array<std::byte, 64> buffer{};
    SUBCASE("shorter") {
        put_file(path, make_npy_header(dtype::float64, 16) + pattern(128));
        auto reader = array_reader::open(path);
        CHECK(reader.read(buffer) == 64);
        fs::resize_file(path, written_npy_header_bytes + 100);
        CHECK_REFUSED(refusal([&] { (void)reader.read(buffer); }), path,
                      "truncated: 16 elements of float64 take 128 bytes, 100");
    }
    SUBCASE("longer") {
        put_file(path, make_npy_header(dtype::float64, 8) + pattern(64));
        auto reader = array_reader::open(path);
        fs::resize_file(path, written_npy_header_bytes + 65);
        CHECK_REFUSED(refusal([&] { (void)reader.read(buffer); }), path,
                      "trailing bytes after the array of 8 elements");
    }
}

TEST_CASE("raw files") {
    const scratch folder;
    const std::string path = folder / "a.bin";
    put_file(path, pattern(24));
    CHECK(array_reader::open(path, dtype::float64).count() == 3);
    CHECK_REFUSED(open_refusal(path, dtype::complex128), path,
                  "24 bytes of raw data are not a whole number of complex128");
    put_file(path, "");
    CHECK(array_reader::open(path, dtype::float64).count() == 0);
    put_file(path, make_npy_header(dtype::float64, 0));
    CHECK_REFUSED(open_refusal(path, dtype::float64), path, "is a .npy file");
}

TEST_CASE("pipes: the end tells") {
    const scratch folder;
    const std::string content = pattern(100000 * 8);
    SUBCASE("npy") {
        const fed_pipe pipe(folder / "p", make_npy_header(dtype::int64, 100000) + content);
        auto reader = array_reader::open(pipe.path());
        CHECK(reader.count() == 100000);
        CHECK_FALSE(reader.identity().has_value());
        CHECK(read_all(reader, 12345) == content);
    }
    SUBCASE("raw") {
        const fed_pipe pipe(folder / "p", content);
        auto reader = array_reader::open(pipe.path(), dtype::int64);
        CHECK_FALSE(reader.count().has_value());
        CHECK(read_all(reader, 12345) == content);
    }
    SUBCASE("raw, empty") {
        const fed_pipe pipe(folder / "p", "");
        auto reader = array_reader::open(pipe.path(), dtype::int64);
        CHECK(read_all(reader).empty());
    }
    SUBCASE("raw, part of an element at the end") {
        const fed_pipe pipe(folder / "p", pattern(21));
        CHECK_REFUSED(open_refusal(pipe.path(), dtype::int64), pipe.path(),
                      "21 bytes of raw data are not a whole number of int64");
    }
    SUBCASE("npy, truncated; the claim is far beyond memory") {
        const fed_pipe pipe(folder / "p", make_npy_header(dtype::int64, std::uint64_t{1} << 58) + pattern(20));
        CHECK_REFUSED(open_refusal(pipe.path()), pipe.path(), "truncated");
    }
    SUBCASE("npy, trailing") {
        const fed_pipe pipe(folder / "p", make_npy_header(dtype::int64, 2) + pattern(17));
        CHECK_REFUSED(open_refusal(pipe.path()), pipe.path(), "trailing bytes");
    }
    SUBCASE("npy, empty array, trailing") {
        const fed_pipe pipe(folder / "p", make_npy_header(dtype::int64, 0) + "x");
        CHECK_REFUSED(open_refusal(pipe.path()), pipe.path(), "trailing bytes");
    }
    SUBCASE("npy, header cut") {
        const fed_pipe pipe(folder / "p", make_npy_header(dtype::int64, 2).substr(0, 60));
        CHECK_REFUSED(open_refusal(pipe.path()), pipe.path(),
                      "truncated: the .npy header takes 128 bytes, 60 are there");
    }
}

TEST_CASE("names that cannot be read") {
    const scratch folder;
    CHECK_REFUSED(open_refusal(folder / "none.npy"), folder / "none.npy", "cannot be opened: No such file");
    CHECK_REFUSED(open_refusal(folder / ""), folder / "", "is a directory");
    CHECK_REFUSED(open_refusal(""), "''", "not a file name");
    CHECK_REFUSED(open_refusal("/dev/null"), "/dev/null", "is empty");
    CHECK_REFUSED(open_refusal(std::string("a\0b", 3)), "a\\x00b", "not a file name");
}

TEST_CASE("standard input and output") {
    const scratch folder;
    const std::string content = pattern(80);
    put_file(folder / "in", "junk" + make_npy_header(dtype::float64, 10) + content);
    {
        // A redirected stream may start anywhere in its file.
        const redirected input(STDIN_FILENO, folder / "in", O_RDONLY);
        REQUIRE(::lseek(STDIN_FILENO, 4, SEEK_SET) == 4);
        auto reader = array_reader::open("-");
        CHECK(reader.label() == "standard input");
        CHECK(reader.count() == 10);
        CHECK(read_all(reader) == content);
    }
    {
        const redirected output(STDOUT_FILENO, folder / "out", O_WRONLY | O_CREAT);
        array_writer writer("-", dtype::float64, {.count = 10});
        writer.write(bytes(content));
        writer.finish();
    }
    CHECK(get_file(folder / "out") == make_npy_header(dtype::float64, 10) + content);

    CHECK_REFUSED(refusal([] { array_writer("-", dtype::float64); }), "standard output", "states the length first");
    std::string message;
    {
        const auto reader = array_reader::open(folder / "out");
        const redirected output(STDOUT_FILENO, folder / "out", O_WRONLY | O_APPEND);
        message = refusal([&] { array_writer("-", dtype::float64, {.count = 1, .inputs = {*reader.identity()}}); });
    }
    CHECK_REFUSED(message, "standard output", "the output is the input file");
}

TEST_CASE("an output appears at finish() and not before") {
    const scratch folder;
    const std::string path = folder / "out.npy";
    const std::string content = pattern(16);
    SUBCASE("new") {
        array_writer writer(path, dtype::int64, {.count = 2});
        writer.write(bytes(content));
        CHECK_FALSE(fs::exists(path));
        CHECK(folder.names().size() == 1);
        writer.finish();
        CHECK(folder.names() == names{"out.npy"});
        CHECK(get_file(path) == make_npy_header(dtype::int64, 2) + content);
        CHECK_THROWS_AS(writer.write(bytes(content)), std::logic_error);
        CHECK_THROWS_AS(writer.finish(), std::logic_error);
    }
    SUBCASE("existing: untouched until then, and after a writer that gave up") {
        put_file(path, "old");
        {
            array_writer writer(path, dtype::int64, {.count = 2});
            writer.write(bytes(content));
            CHECK(get_file(path) == "old");
            CHECK(folder.names().size() == 2);
        }
        CHECK(folder.names() == names{"out.npy"});
        CHECK(get_file(path) == "old");
    }
    SUBCASE("the rename fails") {
        {
            array_writer writer(path, dtype::int64, {.count = 2});
            writer.write(bytes(content));
            fs::create_directory(path);
            CHECK_REFUSED(refusal([&] { writer.finish(); }), path, "cannot be replaced: Is a directory");
        }
        CHECK(folder.names() == names{"out.npy"});
    }
    SUBCASE("moved from and to") {
        array_writer first(path, dtype::int64);
        array_writer second(std::move(first));
        second.write(bytes(content));
        second.finish();
        CHECK(get_file(path) == make_npy_header(dtype::int64, 2) + content);
    }
    SUBCASE("the count is a promise") {
        array_writer writer(path, dtype::int64, {.count = 2});
        writer.write(bytes(content).first(8));
        CHECK_THROWS_AS(writer.finish(), std::logic_error);
        CHECK_THROWS_AS(writer.write(bytes(content)), std::logic_error);
        CHECK_FALSE(fs::exists(path));
    }
}

TEST_CASE("the mode of an output") {
    const scratch folder;
    const auto mode = [&](const std::string& path) { return static_cast<unsigned>(fs::status(path).permissions()); };
    const mode_t before = ::umask(027);
    array_writer(folder / "new", dtype::int8).finish();
    CHECK(mode(folder / "new") == 0640);
    put_file(folder / "private", "old");
    fs::permissions(folder / "private", fs::perms{0600});
    array_writer(folder / "private", dtype::int8).finish();
    CHECK(mode(folder / "private") == 0600);
    put_file(folder / "open", "old");
    fs::permissions(folder / "open", fs::perms{0666});
    array_writer(folder / "open", dtype::int8).finish();
    CHECK(mode(folder / "open") == 0666);
    ::umask(before);
}

TEST_CASE("links: the file is replaced, the link stays") {
    const scratch folder;
    fs::create_directory(folder / "far");
    put_file(folder / "far/file", "old");
    fs::create_symlink("far/file", folder / "link");
    fs::create_symlink("link", folder / "link2");
    array_writer(folder / "link2", dtype::int8).finish();
    CHECK(get_file(folder / "far/file") == make_npy_header(dtype::int8, 0));
    CHECK(fs::is_symlink(folder / "link"));
    CHECK(fs::is_symlink(folder / "link2"));

    fs::create_symlink("far/new", folder / "dangling");
    array_writer(folder / "dangling", dtype::int8).finish();
    CHECK(fs::is_symlink(folder / "dangling"));
    CHECK(fs::is_regular_file(fs::symlink_status(folder / "far/new")));

    fs::create_symlink("loop", folder / "loop");
    CHECK_REFUSED(refusal([&] { array_writer(folder / "loop", dtype::int8); }), folder / "loop", "cannot be written: ");
}

TEST_CASE("the input is no output, by any of its names") {
    const scratch folder;
    const std::string path = folder / "a.npy";
    const std::string content = make_npy_header(dtype::int64, 1) + pattern(8);
    put_file(path, content);
    fs::create_symlink("a.npy", folder / "soft");
    fs::create_hard_link(path, folder / "hard");
    const auto reader = array_reader::open(path);
    REQUIRE(reader.identity().has_value());
    for (const std::string& other : {path, folder / "soft", folder / "hard", folder / "./a.npy"}) {
        CHECK_REFUSED(refusal([&] { array_writer(other, dtype::int64, {.inputs = {*reader.identity()}}); }), other,
                      "the output is the input file");
    }
    CHECK(get_file(path) == content);
    CHECK(folder.names() == names{"a.npy", "hard", "soft"});
}

TEST_CASE("targets that cannot be written") {
    const scratch folder;
    const auto refused = [](const std::string& path, writer_options options = {}) {
        return refusal([&] { array_writer(path, dtype::float64, options); });
    };
    CHECK_REFUSED(refused(folder / "no/such/folder"), folder / "no/such/folder", "cannot be created: No such file");
    CHECK_REFUSED(refused(folder / ""), folder / "", "is a directory");
    CHECK_REFUSED(refused(folder / "new/"), folder / "new/", "ends in '/'");
    CHECK_REFUSED(refused(""), "''", "not a file name");
    CHECK_REFUSED(refused(folder / std::string(300, 'n')), folder / std::string(300, 'n'), "File name too long");
    put_file(folder / "file", "old");
    CHECK_REFUSED(refused(folder / "file/x"), folder / "file/x", "cannot be written: Not a directory");
    CHECK_REFUSED(refused(folder / "x", {.count = std::uint64_t{1} << 62}), folder / "x", "overflow");
    CHECK_REFUSED(refused("/dev/null"), "/dev/null", "states the length first");
    if (::geteuid() != 0) { // the superuser may write anything
        fs::permissions(folder / "file", fs::perms{0400});
        CHECK_REFUSED(refused(folder / "file"), folder / "file", "cannot be written: Permission denied");
    }
    CHECK(folder.names() == names{"file"});
    CHECK(get_file(folder / "file") == "old");
}

TEST_CASE("devices and pipes are written directly") {
    const scratch folder;
    array_writer null("/dev/null", dtype::float64, {.count = 1});
    null.write(bytes(pattern(8)));
    null.finish();
    CHECK(fs::is_character_file("/dev/null"));

    const std::string path = folder / "p";
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    std::string seen;
    {
        const std::jthread drain([&] { seen = get_file(path); });
        array_writer writer(path, dtype::int64, {.format = array_format::raw});
        writer.write(bytes(pattern(16)));
        writer.finish();
    }
    CHECK(seen == pattern(16));
    CHECK(fs::is_fifo(path));
}

TEST_CASE("a full disk is an error that names the file") {
    CHECK_REFUSED(refusal([] { array_writer("/dev/full", dtype::float64, {.count = 1}); }), "/dev/full",
                  "No space left on device");
    CHECK_REFUSED(refusal([] {
                      array_writer writer("/dev/full", dtype::float64, {.format = array_format::raw});
                      writer.write(bytes(pattern(8)));
                  }),
                  "/dev/full", "No space left on device");

    // A limit on file sizes fails a write to a regular file just as a full disk does.
    const scratch folder;
    const std::string path = folder / "out";
    put_file(path, "old");
    std::array<std::string, 2> message;
    const auto old_handler = ::signal(SIGXFSZ, SIG_IGN);
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
    const rlimit small{4096, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    message[0] = refusal([&] {
        array_writer writer(path, dtype::float64, {.count = 1000});
        writer.write(bytes(pattern(8000)));
    });
    message[1] = refusal([&] {
        array_writer writer(path, dtype::float64);
        writer.write(bytes(pattern(8000)));
    });
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
    ::signal(SIGXFSZ, old_handler);
    CHECK_REFUSED(message[0], path, "File too large");
    CHECK_REFUSED(message[1], path, "File too large");
    CHECK(folder.names() == names{"out"});
    CHECK(get_file(path) == "old");
}

TEST_CASE("an interrupt removes temporary files, and the exit tells of it") {
    const scratch folder;
    put_file(folder / "out.npy", "old");
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT, SIGABRT, SIGXCPU, SIGUSR1}) {
        const pid_t child = ::fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            const rlimit no_core{};
            ::setrlimit(RLIMIT_CORE, &no_core);
            ::signal(number, SIG_DFL);
            remove_temporaries_on_signal();
            array_writer first(folder / "out.npy", dtype::int64);
            array_writer second(folder / "other.npy", dtype::int64, {.count = 1});
            first.write(bytes(pattern(8)));
            if (folder.names().size() != 3) {
                ::_exit(1);
            }
            ::raise(number);
            ::_exit(2);
        }
        int status = 0;
        REQUIRE(::waitpid(child, &status, 0) == child);
        REQUIRE(WIFSIGNALED(status));
        CHECK(WTERMSIG(status) == number);
        CHECK(folder.names() == names{"out.npy"});
        CHECK(get_file(folder / "out.npy") == "old");
    }
}

TEST_CASE("an ignored signal stays ignored") {
    const scratch folder;
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        ::signal(SIGINT, SIG_IGN);
        remove_temporaries_on_signal();
        array_writer writer(folder / "out.npy", dtype::int64);
        ::raise(SIGINT);
        writer.finish();
        ::_exit(fs::exists(folder / "out.npy") ? 0 : 1);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
}
