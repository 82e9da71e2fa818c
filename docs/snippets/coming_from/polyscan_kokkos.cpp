// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include <polyscan/kokkos.hpp>

int main(int argc, char* argv[]) {
    Kokkos::ScopeGuard kokkos(argc, argv);
    const int values[]{3, 0, 4, 2};
    Kokkos::View<int*> lengths("lengths", 4);
    Kokkos::View<long long*> begins("begins", 4);
    Kokkos::deep_copy(lengths, Kokkos::View<const int*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(values, 4));
    // [program]
    polyscan::kokkos::backend scans(Kokkos::DefaultExecutionSpace{});
    const Kokkos::View<long long> entries("entries");
    polyscan::exclusive_scan(scans, lengths, begins, 0LL, polyscan::plus{}, polyscan::default_policy{},
                             polyscan::total_to{entries.data()});
    // [program]
    long long total = 0;
    Kokkos::deep_copy(total, entries);
    const auto shown = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), begins);
    for (int i = 0; i < 4; ++i) std::printf("%lld ", shown(i));
    std::printf("of %lld\n", total);
}
