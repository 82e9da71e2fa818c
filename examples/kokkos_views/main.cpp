// SPDX-License-Identifier: Apache-2.0
// Views in, views out, on one execution-space instance; written the same for every device.
#include <cstdio>

#include <polyscan/kokkos.hpp>

int main(int argc, char* argv[]) {
    Kokkos::ScopeGuard kokkos(argc, argv);
    const Kokkos::DefaultExecutionSpace space;
    polyscan::kokkos::backend scans(space);

    // Where the rows of a sparse matrix begin: the exclusive sum of their lengths.
    const int rows = 1000;
    Kokkos::View<int*> lengths("lengths", rows), begins("begins", rows);
    Kokkos::View<int> entries("entries");
    Kokkos::parallel_for(Kokkos::RangePolicy(space, 0, rows), KOKKOS_LAMBDA(int row) { lengths(row) = row % 7; });
    const Kokkos::View<const int*> read_only = lengths;
    polyscan::exclusive_scan(scans, read_only, begins, 0, polyscan::plus{}, polyscan::policies::prefix_server,
                             polyscan::total_to{entries.data()});

    // A running maximum, in place, of a part of a view.
    const auto part = Kokkos::subview(lengths, Kokkos::pair(10, 20));
    polyscan::inclusive_scan(scans, part, part, polyscan::maximum{}, polyscan::policies::look_back);

    // Nothing has been waited for yet; copies to the host do.
    int total = 0;
    Kokkos::deep_copy(total, entries);
    const auto b = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), begins);
    const auto l = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), lengths);
    std::printf("%d entries, row 999 begins at %d; maxima %d %d %d\n", total, b(999), l(10), l(12), l(19));
}
