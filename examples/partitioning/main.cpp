// SPDX-License-Identifier: Apache-2.0
/// Histogram-based partitioning: points into the cells of a grid, each cell's points together, in their order. How
/// large a cell is, the histogram says; where it begins, the exclusive sum of that.
#include "../example.hpp"

namespace {

using example::index_type;

constexpr int cells_a_side = 64;
constexpr int cells = cells_a_side * cells_a_side;

struct point {
    float x, y;
};

// [cell]
struct cell_of {
    POLYSCAN_FUNCTION int operator()(const point& p) const {
        return static_cast<int>(p.y * cells_a_side) * cells_a_side + static_cast<int>(p.x * cells_a_side);
    }
};
struct write_cell {
    const point* points;
    int* cells;
    POLYSCAN_FUNCTION void operator()(index_type i) const { cells[i] = cell_of{}(points[i]); }
};
// [cell]

} // namespace

int main(int argc, char* argv[]) {
    return example::run(argc, argv, [](example::backend& where) {
        std::vector<point> points(300000);
        example::random next(13);
        for (point& p : points) {
            // Denser towards one corner.
            p.x = static_cast<float>(next.unit() * next.unit());
            p.y = static_cast<float>(next.unit() * next.unit());
        }
        const auto n = static_cast<index_type>(points.size());
        example::array<point> in(where, points), out(where, n);
        example::array<int> cell(where, n), sorted_cells(where, n), counts(where, cells), begins(where, cells);

        // [partition]
        where.for_each(n, write_cell{in.data(), cell.data()});

        polyscan::histogram(where, cell.view(), polyscan::counted(counts.data(), cells), polyscan::even_bins{0, cells});
        polyscan::exclusive_scan(where, counts.view(), begins.data());
        // 12 bits tell 4096 cells apart: two passes instead of four.
        polyscan::radix_sort_by_key(where, cell.view(), in.view(), sorted_cells.data(), out.data(),
                                    polyscan::sort_order::ascending, polyscan::bit_range{0, 12});
        // [partition]

        // A sequential counting sort.
        std::vector<int> begin(cells + 1, 0);
        for (const point& q : points) ++begin[static_cast<std::size_t>(cell_of{}(q)) + 1];
        for (std::size_t k = 0; k < cells; ++k) begin[k + 1] += begin[k];
        const std::vector<int> found_begins = begins.to_host();
        for (std::size_t k = 0; k < cells; ++k) example::require(found_begins[k] == begin[k], "where a cell begins");
        const std::vector<point> found = out.to_host();
        for (const point& q : points) {
            const point& r = found[static_cast<std::size_t>(begin[static_cast<std::size_t>(cell_of{}(q))]++)];
            example::require(q.x == r.x && q.y == r.y, "the points of a cell, in their order");
        }
        int fullest = 0;
        for (const int count : counts.to_host()) fullest = std::max(fullest, count);
        std::printf("%lld points in %d cells, %d in the fullest\n", static_cast<long long>(n), cells, fullest);
    });
}
