// SPDX-License-Identifier: Apache-2.0
/// An operator that records what it is called with. Run through core's policy-order oracle it yields the policy's
/// association tree itself, so a picture made from it cannot say anything else than what the backends are tested
/// against.
#pragma once

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <vector>

namespace polyscan::docs {

/// A value in a recorded scan: an element, or the result of a call. It stands for the fold of elements first ... last.
struct node {
    int first;
    int last;
    int earlier = -1; ///< index of the operands' nodes; -1: an element
    int later = -1;
    int level = 0; ///< elements 0, a call one more than the deeper operand

    bool is_element() const { return earlier < 0; }
};

/// What the oracle scans in place of numbers: the index of a node. Tile shapes follow from the size of the accumulator,
/// so `Bytes` chooses how small the tiles of a picture are.
template <int Bytes>
struct recorded {
    int index;
    char more[Bytes - sizeof(int)];
};
template <>
struct recorded<4> {
    int index;
};

class recording {
public:
    /// The elements 0 ... count - 1.
    template <int Bytes = 4>
    std::vector<recorded<Bytes>> elements(int count) {
        std::vector<recorded<Bytes>> values(static_cast<std::size_t>(count));
        for (int i = 0; i < count; ++i) {
            nodes_.push_back({i, i});
            values[static_cast<std::size_t>(i)].index = i;
        }
        return values;
    }

    int call(int earlier, int later) {
        const node &a = at(earlier), &b = at(later);
        if (a.last + 1 != b.first) throw std::logic_error("the oracle combined what is not adjacent and in order");
        nodes_.push_back({a.first, b.last, earlier, later, std::max(a.level, b.level) + 1});
        return static_cast<int>(nodes_.size()) - 1;
    }

    const node& at(int index) const { return nodes_[static_cast<std::size_t>(index)]; }
    node& at(int index) { return nodes_[static_cast<std::size_t>(index)]; }
    int size() const { return static_cast<int>(nodes_.size()); }

    int calls() const {
        return static_cast<int>(
            std::count_if(nodes_.begin(), nodes_.end(), [](const node& n) { return !n.is_element(); }));
    }
    int depth() const {
        int deepest = 0;
        for (const node& n : nodes_) deepest = std::max(deepest, n.level);
        return deepest;
    }

    /// Levels as the algorithm's rounds, not as early as the operands allow: a round ends where the recorded calls turn
    /// back to the left.
    void level_by_rounds() {
        int start = 0, deepest = 0, column = -1;
        for (node& n : nodes_) {
            if (n.is_element()) continue;
            if (n.last <= column) start = deepest;
            column = n.last;
            n.level = std::max(start, std::max(at(n.earlier).level, at(n.later).level)) + 1;
            deepest = std::max(deepest, n.level);
        }
    }

private:
    std::vector<node> nodes_;
};

/// The operator. Not associative in what it builds: that is the point.
struct record_calls {
    recording* into;

    template <int Bytes>
    recorded<Bytes> operator()(const recorded<Bytes>& earlier, const recorded<Bytes>& later) const {
        recorded<Bytes> result{};
        result.index = into->call(earlier.index, later.index);
        return result;
    }
};

} // namespace polyscan::docs
