// SPDX-License-Identifier: Apache-2.0
/// Draws the diagrams of the documentation from core's policy-order oracle.
///
///     draw_diagrams DIR            writes DIR/*.svg
///     draw_diagrams --check DIR    exit 1 where a file differs from what would be written
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>

#include <polyscan/reference.hpp>

#include "network.hpp"
#include "timeline.hpp"

namespace {

using namespace polyscan;
using namespace polyscan::docs;

template <class Recorded>
std::vector<int> indices(const std::vector<Recorded>& values) {
    std::vector<int> result;
    for (const Recorded& value : values) result.push_back(value.index);
    return result;
}

enum class rows { by_operands, by_rounds };

// One tile of `shape`, `count` elements of it present.
template <class Block>
std::string tile(Block, tile_shape shape, int count, const std::string& title, int boundary, rows levels) {
    recording calls;
    auto values = calls.elements(count);
    reference::detail::local_scan(Block{}, values.data(), count, shape, record_calls{&calls});
    if (levels == rows::by_rounds) calls.level_by_rounds();
    return network(calls, indices(values)).draw(title, boundary);
}

// A whole policy over four tiles of four: accumulators of 8 KiB have tiles of four.
template <class Policy>
std::string policy_tree(Policy how, const std::string& title) {
    recording calls;
    const auto values = reference::policy_order(how, calls.elements<8192>(16), record_calls{&calls});
    return network(calls, indices(values)).draw(title, 4);
}

std::map<std::string, std::string> diagrams() {
    return {
        {"kogge_stone", tile(block::kogge_stone{}, {16, 1}, 16, "kogge_stone: a tile of 16", 0, rows::by_rounds)},
        {"brent_kung", tile(block::brent_kung{}, {16, 1}, 16, "brent_kung: a tile of 16", 0, rows::by_rounds)},
        {"brent_kung_partial",
         tile(block::brent_kung{}, {16, 1}, 11, "brent_kung: 11 elements in a tile of 16; absent nodes do not exist", 0,
              rows::by_rounds)},
        {"coarse", tile(block::coarse{}, {4, 4}, 16, "coarse: 4 runs of 4", 4, rows::by_operands)},
        {"warp_shuffle", tile(block::warp_shuffle{}, {4, 4}, 16, "warp_shuffle: 4 rows of 4", 4, rows::by_operands)},
        {"tree_left_fold",
         policy_tree(policies::domino, "left fold of the aggregates: 4 tiles of 4 (single_block, domino, look_back, "
                                       "prefix_server over kogge_stone)")},
        {"tree_three_pass", policy_tree(policies::three_pass, "three_pass over kogge_stone: 4 tiles of 4")},
        {"worked_example", worked_example()},
        {"three_pass_movement", three_pass_movement()},
        {"single_block_timeline", single_block_timeline()},
        {"domino_timeline", domino_timeline()},
        {"look_back_timeline", look_back_timeline()},
        {"prefix_server_timeline", prefix_server_timeline()},
    };
}

std::string content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

} // namespace

int main(int argc, char* argv[]) {
    const bool check = argc == 3 && std::string(argv[1]) == "--check";
    if (!check && argc != 2) {
        std::fprintf(stderr, "usage: %s [--check] DIR\n", argv[0]);
        return 2;
    }
    const std::string folder = argv[argc - 1];
    int different = 0;
    for (const auto& [name, picture] : diagrams()) {
        const std::string path = folder + "/" + name + ".svg";
        if (check) {
            if (content(path) == picture) continue;
            std::fprintf(stderr, "%s is not what the oracle says; draw it anew: draw_diagrams %s\n", path.c_str(),
                         folder.c_str());
            ++different;
        } else {
            std::ofstream(path, std::ios::binary) << picture;
            if (content(path) != picture) {
                std::fprintf(stderr, "%s cannot be written\n", path.c_str());
                return 2;
            }
        }
    }
    return different > 0 ? 1 : 0;
}
