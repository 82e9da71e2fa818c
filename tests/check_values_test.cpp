// SPDX-License-Identifier: Apache-2.0
/// docs/determinism.md against the code: its tables are read from the page, so that neither can change alone.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <polyscan/reference.hpp>
#include <polyscan/registry.hpp>

namespace polyscan {
namespace {

using row = std::vector<std::string>;

std::string trimmed(const std::string& text) {
    const auto first = text.find_first_not_of(' ');
    return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

/// The rows of the table that follows the line "<!-- table: NAME -->", without heading and rule.
std::vector<row> table(const std::string& name) {
    const auto page = std::filesystem::path(POLYSCAN_SOURCE_DIR) / "docs" / "determinism.md";
    std::ifstream file(page);
    REQUIRE_MESSAGE(file.good(), page.string(), " cannot be read");
    std::string line;
    while (std::getline(file, line) && line != "<!-- table: " + name + " -->") {
    }
    std::vector<row> rows;
    while (std::getline(file, line) && !line.empty() && line.front() == '|') {
        row cells;
        std::istringstream text(line.substr(1));
        for (std::string cell; std::getline(text, cell, '|');) cells.push_back(trimmed(cell));
        rows.push_back(cells);
    }
    REQUIRE_MESSAGE(rows.size() > 2, "no table '", name, "' in ", page.string());
    rows.erase(rows.begin(), rows.begin() + 2);
    return rows;
}

template <class T>
std::vector<T> input(index_type n) {
    std::vector<T> x;
    for (index_type i = 0; i < n; ++i) {
        // [input]
        const std::uint32_t u = static_cast<std::uint32_t>(i) * 2654435761u ^ static_cast<std::uint32_t>(i >> 7);
        x.push_back(std::ldexp(static_cast<float>(static_cast<int>(u >> 8) - (1 << 23)), -static_cast<int>(u & 31)));
        // [input]
    }
    return x;
}

template <class T>
std::string fnv1a(const std::vector<T>& values) {
    std::uint64_t hash = 14695981039346656037u;
    const auto* const bytes = reinterpret_cast<const unsigned char*>(values.data());
    for (std::size_t i = 0; i < values.size() * sizeof(T); ++i) hash = (hash ^ bytes[i]) * 1099511628211u;
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
    return text;
}

/// The documented value for a policy, in column `column` of the table.
std::string documented(const std::string& grid, const std::string& block, std::size_t column) {
    static const std::vector<row> rows = table("check values");
    for (const row& each : rows) {
        std::istringstream grids(each.at(0));
        for (std::string name; std::getline(grids, name, ',');)
            if (trimmed(name) == grid && each.at(1) == block) return each.at(column);
    }
    return "not documented";
}

template <class T>
void check_reference(index_type n, std::size_t column) {
    const std::vector<T> x = input<T>(n);
    for_each_policy([&]<class Grid, class Block>(policy<Grid, Block> how) {
        CAPTURE(how.name());
        CHECK(fnv1a(reference::policy_order(how, x, plus{})) ==
              documented(std::string(Grid::name), std::string(Block::name), column));
    });
}

template <class T>
void check_backend(any_backend& backend, index_type n, std::size_t column) {
    const std::vector<T> x = input<T>(n);
    const std::size_t bytes = x.size() * sizeof(T);
    const auto in = backend.allocate(bytes), out = backend.allocate(bytes);
    backend.copy_to_device(in.get(), x.data(), bytes);
    int skipped = 0;
    for_each_policy([&]<class Grid, class Block>(policy<Grid, Block> how) {
        scan_call call;
        call.type = dtype_of<T>;
        call.policy = how.name();
        call.input = in.get();
        call.output = out.get();
        call.size = n;
        if (const auto reason = backend.unsupported(call)) {
            if (++skipped == 1) MESSAGE("skipped: ", *reason);
            return;
        }
        std::vector<T> y(x.size());
        backend.copy_to_device(out.get(), y.data(), bytes); // no result of the policy before
        backend.scan(call);
        backend.synchronize();
        backend.copy_to_host(y.data(), out.get(), bytes);
        CAPTURE(how.name());
        CHECK(fnv1a(y) == documented(std::string(Grid::name), std::string(Block::name), column));
    });
    if (skipped > 1) MESSAGE("skipped: ", backend.name(), ": ", skipped, " policies in all");
}

TEST_CASE("check values: the policy-order oracle") {
    check_reference<float>(8193, 2);
    check_reference<double>(8193, 3);
    check_reference<float>(262145, 4);
    check_reference<double>(262145, 5);
}

TEST_CASE("check values: every backend, every policy") {
    for (const std::string& name : registered_backends()) {
        CAPTURE(name);
        const auto backend = make_backend(name);
        if (const availability here = backend->available(); !here) {
            MESSAGE("skipped: ", name, ": ", here.reason);
            continue;
        }
        check_backend<float>(*backend, 8193, 2);
        check_backend<double>(*backend, 8193, 3);
        check_backend<float>(*backend, 262145, 4);
        check_backend<double>(*backend, 262145, 5);
    }
}

TEST_CASE("tile shapes") {
    for (const row& each : table("tile shapes")) {
        const index_type bytes = std::stoll(each.at(0));
        CAPTURE(bytes);
        const tile_shape coarse = shape_of(block::coarse{}, bytes), shuffle = shape_of(block::warp_shuffle{}, bytes);
        const auto product = [](index_type a, index_type b) {
            return std::to_string(a) + " x " + std::to_string(b) + " = " + std::to_string(a * b);
        };
        CHECK(each.at(1) == std::to_string(shape_of(block::kogge_stone{}, bytes).elements()));
        CHECK(each.at(1) == std::to_string(shape_of(block::brent_kung{}, bytes).elements()));
        CHECK(each.at(2) == product(coarse.threads, coarse.run));
        CHECK(each.at(3) == product(shuffle.threads, shuffle.run));
    }
}

TEST_CASE("worked example") {
    const std::vector<float> x{1, 0x1p-24f, 0x1p-24f, 0x1p-24f, 0x1p-24f, 0x1p-24f};
    std::map<std::string, std::vector<float>> y{{"left fold", reference::sequential(x, plus{})}};
    for_each_policy([&]<class Grid, class Block>(policy<Grid, Block> how) {
        const std::vector<float> result = reference::policy_order(how, x, plus{});
        // One tile: the grid algorithm plays no part.
        CHECK(y.emplace(std::string(Block::name), result).first->second == result);
    });
    const std::vector<row> rows = table("worked example");
    CHECK(rows.size() == y.size());
    for (const row& each : rows) {
        CAPTURE(each.at(0));
        REQUIRE(y.count(each.at(0)) == 1);
        for (std::size_t i = 0; i < x.size(); ++i) {
            char bits[9];
            std::snprintf(bits, sizeof bits, "%08x", std::bit_cast<std::uint32_t>(y.at(each.at(0))[i]));
            CHECK(each.at(i + 1) == bits);
        }
    }
}

// The table of properties says where they do not hold. That is a statement, too.
TEST_CASE("sums that decrease") {
    const auto decreases = [](const std::vector<float>& y) {
        for (std::size_t i = 1; i < y.size(); ++i)
            if (y[i] < y[i - 1]) return true;
        return false;
    };
    using floats = std::vector<float>;
    const floats four{1, 0x1p-24f, 0x1p-24f, 0};
    const floats eight{1, 0, 0, 0, 0x1.8p-24f, 0, 0x1p-24f, 0};
    floats runs(20, 0.0f);
    runs[0] = 1;
    runs[4] = runs[8] = 0x1p-24f;
    CHECK(decreases(reference::policy_order(policies::kogge_stone, four, plus{})));
    CHECK(decreases(reference::policy_order(policies::brent_kung, eight, plus{})));
    CHECK(decreases(reference::policy_order(policies::coarse, runs, plus{})));
    for (const floats& x : {four, eight, runs})
        CHECK(!decreases(reference::policy_order(policies::warp_shuffle, x, plus{})));

    // Tile by tile: aggregates 1, 0, 0, 0, 2^-24, 2^-24, 0, 0 in the tree of three_pass.
    constexpr auto tile = static_cast<std::size_t>(shape_for<block::warp_shuffle, float>.elements());
    floats tiles(8 * tile, 0.0f);
    tiles[0] = 1;
    tiles[4 * tile] = 0x1p-24f;
    tiles[5 * tile] = 0x1p-24f;
    const policy<grid::three_pass, block::warp_shuffle> recursive;
    const floats y = reference::policy_order(recursive, tiles, plus{});
    // Carry of tile 6: 1 + (2^-24 + 2^-24). Last output of tile 5: (1 + 2^-24) + 2^-24.
    CHECK(y[6 * tile - 1] == 1.0f);
    CHECK(y[6 * tile] == 1.0f + 0x1p-23f);
    CHECK(reference::policy_order(policies::prefix_server, tiles, plus{})[6 * tile] == y[6 * tile - 1]);
}

} // namespace
} // namespace polyscan
