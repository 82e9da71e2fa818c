// SPDX-License-Identifier: Apache-2.0
/// Work allocation: rows of very different lengths, as in a sparse matrix or a graph. Which row does entry k belong to,
/// and how do p workers get equal shares although one row has most of the entries?
#include <algorithm>
#include <numeric>

#include "../example.hpp"

namespace {

using example::index_type;

// [start]
// Where a worker starts: it looks that up once, and needs no search.
struct position {
    int row;
    index_type entry_of_row;
};
struct find_start {
    const int* row_of;
    const index_type* begins;
    index_type share;
    position* starts;
    POLYSCAN_FUNCTION void operator()(index_type worker) const {
        const index_type k = worker * share;
        starts[worker] = {row_of[k], k - begins[row_of[k]]};
    }
};
// [start]

// [expand]
// begins[r]: where row r begins. row_of[k]: the row of entry k. Both in the backend's memory.
void expand_rows(example::backend& where, example::array<int>& lengths, example::array<index_type>& begins,
                 example::array<int>& row_of, index_type entries) {
    // A row that is not empty leaves its number where it begins ...
    const int* const length = lengths.data();
    index_type* const begin = begins.data();
    int* const mark = row_of.data(); // holds zeros
    polyscan::exclusive_scan(where, lengths.view(),
                             polyscan::to_function([=] POLYSCAN_FUNCTION(index_type row, index_type before) {
                                 begin[row] = before;
                                 if (length[row] > 0) mark[before] = static_cast<int>(row);
                             }),
                             index_type{0});
    // ... and the largest number so far is the row that one is in.
    polyscan::inclusive_scan(where, row_of.first(entries), row_of.data(), polyscan::maximum{});
}
// [expand]

} // namespace

int main(int argc, char* argv[]) {
    return example::run(argc, argv, [](example::backend& where) {
        std::vector<int> lengths(50000);
        example::random next(3);
        for (int& length : lengths) length = next.below(10) < 4 ? 0 : next.below(20); // many rows are empty
        lengths[777] = 400000;                                                        // and one is a hub
        const index_type entries = std::accumulate(lengths.begin(), lengths.end(), index_type{0});

        example::array<int> device_lengths(where, lengths);
        example::array<index_type> begins(where, static_cast<index_type>(lengths.size()));
        example::array<int> row_of(where, std::vector<int>(static_cast<std::size_t>(entries)));
        expand_rows(where, device_lengths, begins, row_of, entries);

        // [balance]
        // Worker w takes entries [w * share, (w + 1) * share).
        const index_type workers = 16, share = polyscan::ceil_div(entries, workers);
        example::array<position> starts(where, workers);
        where.for_each(workers, find_start{row_of.data(), begins.data(), share, starts.data()});
        // [balance]

        const std::vector<int> found = row_of.to_host();
        const std::vector<position> shares = starts.to_host();
        index_type k = 0;
        for (std::size_t r = 0; r < lengths.size(); ++r)
            for (int e = 0; e < lengths[r]; ++e, ++k) {
                example::require(found[static_cast<std::size_t>(k)] == static_cast<int>(r), "the row of an entry");
                if (k % share == 0) {
                    const position& mine = shares[static_cast<std::size_t>(k / share)];
                    example::require(mine.row == static_cast<int>(r) && mine.entry_of_row == e,
                                     "where a worker starts");
                }
            }
        std::printf("%lld entries of %zu rows, %lld for each of %lld workers\n", static_cast<long long>(entries),
                    lengths.size(), static_cast<long long>(share), static_cast<long long>(workers));
    });
}
