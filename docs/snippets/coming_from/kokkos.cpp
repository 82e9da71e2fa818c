// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include <Kokkos_Core.hpp>

int main(int argc, char* argv[]) {
    Kokkos::ScopeGuard kokkos(argc, argv);
    const int values[]{3, 0, 4, 2};
    Kokkos::View<int*> lengths("lengths", 4);
    Kokkos::View<long long*> begins("begins", 4);
    Kokkos::deep_copy(lengths, Kokkos::View<const int*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(values, 4));
    // [program]
    long long entries = 0;
    Kokkos::parallel_scan(
        4,
        KOKKOS_LAMBDA(int i, long long& sum, bool last) {
            if (last) begins(i) = sum; // exclusive, because this comes before the addition
            sum += lengths(i);
        },
        entries);
    // [program]
    const auto shown = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), begins);
    for (int i = 0; i < 4; ++i) std::printf("%lld ", shown(i));
    std::printf("of %lld\n", entries);
}
