// SPDX-License-Identifier: Apache-2.0
/// The Kokkos backend: `polyscan::kokkos::backend`, and everything needed to scan with it.
///
///     Kokkos::ScopeGuard kokkos(argc, argv);
///     Kokkos::View<const float*> in = ...;
///     Kokkos::View<float*> out("out", in.extent(0));
///     polyscan::kokkos::backend scans;                    // or backend<ExecutionSpace>{space_instance}
///     polyscan::inclusive_scan(scans, in, out);           // asynchronous where the execution space is
///
/// Views are of rank 1 and contiguous, in memory that the execution space can reach. Operators and transforms that run
/// on a device are marked KOKKOS_FUNCTION (or KOKKOS_LAMBDA). Link polyscan::kokkos; link polyscan::bit_exact, too, if
/// your own operator multiplies and adds and you want the same bits as on other backends.
#pragma once

#include <polyscan/kokkos/backend.hpp>
#include <polyscan/primitives.hpp>
#include <polyscan/scan.hpp>
