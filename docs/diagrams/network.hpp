// SPDX-License-Identifier: Apache-2.0
/// Draws a recorded scan as a prefix network: a column per element, a row per level, a box per call with the range that
/// it covers, a line from each operand. Later operands come from straight above where there is room.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "recorded.hpp"
#include "svg.hpp"

namespace polyscan::docs {

class network {
public:
    network(const recording& calls, std::vector<int> outputs)
        : calls_(calls), outputs_(outputs.begin(), outputs.end()) {
        find_lanes();
        int x = left;
        const int columns = columns_of();
        for (int column = 0; column < columns; ++column) {
            x_.push_back(x);
            x += box_width + gap + (laned_columns_.count(column) ? box_width + gap : 0);
        }
    }

    /// `boundary`: a line before every multiple of it (runs, rows, tiles); 0: none.
    std::string draw(const std::string& title, int boundary) {
        svg out;
        out.text({left - box_width / 2, 20}, title, anchor::start, 14, true);
        const int bottom = y(calls_.depth()) + box_height;
        if (boundary > 0)
            for (int column = boundary; column < columns_of(); column += boundary) {
                const int x = x_[static_cast<std::size_t>(column)] - box_width / 2 - gap / 2;
                out.line({x, y(0) - box_height}, {x, bottom}, "#999", arrow::no, "2 4");
            }
        for (int level = 1; level <= calls_.depth(); ++level)
            out.text({left - box_width / 2 - 14, y(level) + 4}, row_label(level), anchor::end, 11);
        out.text({left - box_width / 2 - 14, y(0) + 4}, "input", anchor::end, 11);

        for (int i = 0; i < calls_.size(); ++i)
            if (const node& n = calls_.at(i); !n.is_element())
                for (const int operand : {n.later, n.earlier})
                    out.line({x(operand), y(calls_.at(operand).level) + box_height / 2},
                             {x(i), y(n.level) - box_height / 2}, operand == n.earlier ? "#0b5fa5" : "#222");
        for (int i = 0; i < calls_.size(); ++i) {
            const node& n = calls_.at(i);
            const bool output = outputs_.count(i) > 0;
            out.box({x(i) - box_width / 2, y(n.level) - box_height / 2}, box_width, box_height,
                    n.is_element() ? fill::white
                    : output       ? fill::dark
                                   : fill::light,
                    output ? 2 : 1);
            out.text({x(i), y(n.level) + 4},
                     n.first == n.last ? std::to_string(n.last)
                                       : std::to_string(n.first) + "-" + std::to_string(n.last),
                     anchor::middle, 11);
        }
        const int depth = depth_by_operands();
        const std::string rounds = depth < calls_.depth() ? std::to_string(calls_.depth()) + " rounds, " : "";
        out.text({left - box_width / 2, bottom + 22},
                 std::to_string(columns_of()) + " elements, " + std::to_string(calls_.calls()) +
                     " calls of the operator, " + rounds + "depth " + std::to_string(depth) +
                     ". a-b: the fold of elements a to b. Bold: outputs.",
                 anchor::start, 11);
        out.text({left - box_width / 2, bottom + 38}, "Blue lines bring the earlier operand, black ones the later.",
                 anchor::start, 11);
        return out.document(title);
    }

private:
    static constexpr int left = 104;
    static constexpr int box_width = 42;
    static constexpr int box_height = 20;
    static constexpr int gap = 10;

    int columns_of() const {
        int columns = 0;
        while (columns < calls_.size() && calls_.at(columns).is_element()) ++columns;
        return columns;
    }

    // The rounds of a network may be more than the longest chain of calls.
    int depth_by_operands() const {
        std::vector<int> depth(static_cast<std::size_t>(calls_.size()), 0);
        int deepest = 0;
        for (int i = 0; i < calls_.size(); ++i)
            if (const node& n = calls_.at(i); !n.is_element()) {
                depth[static_cast<std::size_t>(i)] =
                    std::max(depth[static_cast<std::size_t>(n.earlier)], depth[static_cast<std::size_t>(n.later)]) + 1;
                deepest = std::max(deepest, depth[static_cast<std::size_t>(i)]);
            }
        return deepest;
    }

    // A value that is not of its column's own chain (a run's total, a carry) would lie on top of that chain: it gets a
    // lane beside the column.
    void find_lanes() {
        std::map<std::pair<int, int>, int> place; // column, level -> node
        for (int i = 0; i < calls_.size(); ++i) {
            const node& n = calls_.at(i);
            if (n.is_element()) continue;
            const auto [other, free] = place.insert({{n.last, n.level}, i});
            if (!free) lane(outputs_.count(i) ? other->second : i);
        }
        for (int i = 0; i < calls_.size(); ++i) {
            const node& n = calls_.at(i);
            if (n.is_element() || calls_.at(n.later).last != n.last) continue;
            for (int j = 0; j < calls_.size(); ++j) {
                const node& between = calls_.at(j);
                if (between.last == n.last && between.level > calls_.at(n.later).level && between.level < n.level &&
                    (outputs_.count(i) || !outputs_.count(j)))
                    lane(laned_.count(i) ? -1 : j);
            }
        }
    }

    void lane(int index) {
        if (index < 0) return;
        laned_.insert(index);
        laned_columns_.insert(calls_.at(index).last);
    }

    int x(int index) const {
        return x_[static_cast<std::size_t>(calls_.at(index).last)] + (laned_.count(index) ? box_width + gap : 0);
    }
    static int y(int level) { return 60 + level * 46; }

    // "stride s" where all calls of a level reach equally far.
    std::string row_label(int level) const {
        std::set<int> reach;
        for (int i = 0; i < calls_.size(); ++i)
            if (const node& n = calls_.at(i); n.level == level) reach.insert(n.last - calls_.at(n.earlier).last);
        return reach.size() == 1 ? "stride " + std::to_string(*reach.begin()) : "step " + std::to_string(level);
    }

    const recording& calls_;
    std::set<int> outputs_;
    std::set<int> laned_;
    std::set<int> laned_columns_;
    std::vector<int> x_;
};

} // namespace polyscan::docs
