// SPDX-License-Identifier: Apache-2.0
/// The OpenMP backend: `polyscan::openmp::backend`, and everything needed to scan with it.
///
///     polyscan::openmp::backend cpu;                  // all processors
///     polyscan::inclusive_scan(cpu, in, out);
///
/// Compile with -fopenmp (or link polyscan::openmp). Link polyscan::bit_exact, too, if your own operator multiplies and
/// adds and you want the same bits as on other backends.
#pragma once

#if !defined(_OPENMP)
#error "polyscan/openmp.hpp needs OpenMP: compile with -fopenmp, or link polyscan::openmp"
#endif

#include <polyscan/openmp/backend.hpp>
#include <polyscan/primitives.hpp>
#include <polyscan/scan.hpp>
