// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Before a loop whose iterations touch different elements, each read before it is written: the compiler may use
/// vectors although it cannot see that. Unlike `omp simd`, it allows operators that throw.
#if defined(__clang__)
#define POLYSCAN_INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define POLYSCAN_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#else
#define POLYSCAN_INDEPENDENT_ITERATIONS
#endif

/// Before a loop whose body gets much simpler when the loop variable is known.
#if defined(__clang__)
#define POLYSCAN_UNROLL_4 _Pragma("clang loop unroll_count(4)")
#elif defined(__GNUC__)
#define POLYSCAN_UNROLL_4 _Pragma("GCC unroll 4")
#else
#define POLYSCAN_UNROLL_4
#endif

/// Before a loop over the lanes of a vector. Without it compilers unroll the loop first and then do not see a vector.
#if defined(__clang__)
#define POLYSCAN_LANES _Pragma("clang loop unroll(disable) vectorize(assume_safety)")
#elif defined(__GNUC__)
#define POLYSCAN_LANES _Pragma("GCC unroll 1") _Pragma("GCC ivdep")
#else
#define POLYSCAN_LANES
#endif
