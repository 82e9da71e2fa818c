// SPDX-License-Identifier: Apache-2.0
/// Where every line of a text file begins: an index for jumping to line n, and the longest line.
#include <algorithm>
#include <fstream>
#include <iterator>

#include "../example.hpp"

namespace {

using example::index_type;

// [index]
struct ends_line {
    POLYSCAN_FUNCTION index_type operator()(char c) const { return c == '\n' ? 1 : 0; }
};

// A line begins behind every end of a line: the k-th of them is the k-th start. Line 0 begins at 0.
void find_line_starts(example::backend& where, example::array<char>& text, index_type* starts, index_type* ends) {
    const char* const character = text.data();
    polyscan::inclusive_scan<index_type>(
        where, text.view(), polyscan::to_function([=] POLYSCAN_FUNCTION(index_type i, index_type line) {
            if (i == 0) starts[0] = 0;
            if (character[i] == '\n') starts[line] = i + 1;
        }),
        polyscan::plus{}, polyscan::default_policy{}, polyscan::with_transform{ends_line{}}, polyscan::total_to{ends});
}
// [index]

// [longest]
// A run of characters without an end of line in it, as three numbers: what leads up to the first end, what trails the
// last, and the longest line that lies wholly inside. An operator of one's own, and one pass.
struct lengths {
    int leading, trailing, longest;
    bool has_end;
};
struct measure {
    POLYSCAN_FUNCTION lengths operator()(char c) const {
        return c == '\n' ? lengths{0, 0, 0, true} : lengths{1, 1, 0, false};
    }
};
struct join {
    POLYSCAN_FUNCTION lengths operator()(const lengths& earlier, const lengths& later) const {
        const int middle = earlier.trailing + later.leading;
        const int inner = earlier.longest > later.longest ? earlier.longest : later.longest;
        return {earlier.has_end ? earlier.leading : middle, later.has_end ? later.trailing : middle,
                earlier.has_end && later.has_end && middle > inner ? middle : inner, earlier.has_end || later.has_end};
    }
};
// [longest]

} // namespace

int main(int argc, char* argv[]) {
    const std::string path = argc > 1 ? argv[1] : "LICENSE";
    return example::run(argc, argv, [&](example::backend& where) {
        std::ifstream file(path, std::ios::binary);
        example::require(file.is_open(), path.c_str());
        const std::vector<char> characters{std::istreambuf_iterator<char>(file), {}};
        example::require(!characters.empty(), "the file is empty");

        example::array<char> text(where, characters);
        example::array<index_type> starts(where, static_cast<index_type>(characters.size()) + 1), ends(where, 1);
        find_line_starts(where, text, starts.data(), ends.data());
        example::array<lengths> whole(where, 1);
        polyscan::transform_reduce<lengths>(where, text.view(), whole.data(), join{}, measure{});

        std::vector<index_type> expected{0};
        std::size_t longest = 0;
        for (std::size_t i = 0; i < characters.size(); ++i)
            if (characters[i] == '\n') expected.push_back(static_cast<index_type>(i) + 1);
        for (std::size_t k = 0; k < expected.size(); ++k) {
            const auto end =
                k + 1 < expected.size() ? static_cast<std::size_t>(expected[k + 1]) - 1 : characters.size();
            longest = std::max(longest, end - static_cast<std::size_t>(expected[k]));
        }
        example::require(ends.value() + 1 == static_cast<index_type>(expected.size()), "the number of lines");
        example::require(starts.to_host(ends.value() + 1) == expected, "where lines begin");
        const lengths found = whole.value();
        const int widest = std::max({found.leading, found.trailing, found.longest});
        example::require(widest == static_cast<int>(longest), "the longest line");
        std::printf("%s: %lld lines, the longest of %d characters\n", path.c_str(),
                    static_cast<long long>(ends.value()), widest);
    });
}
