// SPDX-License-Identifier: Apache-2.0
/// Depths and subtree sizes of a tree from its Euler tour: down an edge, up an edge, as in a parenthesised text, an XML
/// file or a trace of calls.
#include "../example.hpp"

namespace {

using example::index_type;

// [depths]
struct step {
    POLYSCAN_FUNCTION int operator()(char way) const { return way == '(' ? 1 : -1; }
};

// The depth of a node is the number of nodes that were entered and not yet left. A closing parenthesis is still at the
// depth of its node, hence one more than the sum says.
void depths(example::backend& where, example::array<char>& tour, int* depth) {
    const char* const way = tour.data();
    polyscan::inclusive_scan<int>(where, tour.view(),
                                  polyscan::to_function([=] POLYSCAN_FUNCTION(index_type i, int sum) {
                                      depth[i] = way[i] == '(' ? sum : sum + 1;
                                  }),
                                  polyscan::plus{}, polyscan::default_policy{}, polyscan::with_transform{step{}});
}
// [depths]

// [sizes]
struct count_up {
    index_type* order;
    POLYSCAN_FUNCTION void operator()(index_type i) const { order[i] = i; }
};
// Two steps for every node of the subtree, from entering it to leaving it.
struct size_of_pair {
    const index_type* order;
    index_type* size;
    POLYSCAN_FUNCTION void operator()(index_type k) const {
        const index_type enter = order[2 * k], leave = order[2 * k + 1];
        size[enter] = (leave - enter + 1) / 2;
    }
};

// Among the steps of one depth, nodes are entered and left in turn: after a stable sort by depth, the two steps of a
// node are neighbours.
void subtree_sizes(example::backend& where, example::array<int>& depth, index_type* size) {
    const index_type n = depth.size();
    example::array<index_type> order(where, n);
    example::array<int> sorted(where, n);
    where.for_each(n, count_up{order.data()});
    polyscan::radix_sort_by_key(where, depth.view(), order.view(), sorted.data(), order.data());
    where.for_each(n / 2, size_of_pair{order.data(), size});
}
// [sizes]

// A random tree, as the tour of it.
std::vector<char> random_tour(int nodes) {
    std::vector<char> tour{'('};
    example::random next(9);
    for (int entered = 1, open = 1; open > 0;) {
        const bool down = entered < nodes && (open == 1 || next.below(100) < 52);
        tour.push_back(down ? '(' : ')');
        entered += down;
        open += down ? 1 : -1;
    }
    return tour;
}

} // namespace

int main(int argc, char* argv[]) {
    return example::run(argc, argv, [](example::backend& where) {
        const std::vector<char> tour = random_tour(150000);
        const auto steps = static_cast<index_type>(tour.size());
        example::array<char> ways(where, tour);
        example::array<int> depth(where, steps);
        example::array<index_type> size(where, steps);
        depths(where, ways, depth.data());
        subtree_sizes(where, depth, size.data());

        const std::vector<int> found_depth = depth.to_host();
        const std::vector<index_type> found_size = size.to_host();
        std::vector<std::size_t> open;
        std::size_t deepest = 0;
        for (std::size_t i = 0; i < tour.size(); ++i) {
            if (tour[i] == '(') open.push_back(i);
            deepest = std::max(deepest, open.size());
            example::require(found_depth[i] == static_cast<int>(open.size()), "the depth of a node");
            if (tour[i] == '(') continue;
            const std::size_t enter = open.back();
            open.pop_back();
            example::require(found_size[enter] == static_cast<index_type>((i - enter + 1) / 2),
                             "the size of a subtree");
        }
        std::printf("%lld nodes, the deepest at %zu\n", static_cast<long long>(found_size[0]), deepest);
    });
}
