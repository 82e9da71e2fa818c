// SPDX-License-Identifier: Apache-2.0
/// What compilers are told about loops. nvcc takes none of it, and clang needs little: it would warn about what it is
/// told and cannot do.
#pragma once

#if defined(__GNUC__) && !defined(__clang__) && !defined(__NVCC__)

/// Before a loop whose iterations touch different elements, each read before it is written: the compiler may use
/// vectors although it cannot see that. Unlike `omp simd`, it allows operators that throw.
#define POLYSCAN_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
/// Before a loop whose body gets much simpler when the loop variable is known.
#define POLYSCAN_UNROLL_4 _Pragma("GCC unroll 4")
/// Before a short loop of a fixed length: no loop is left.
#define POLYSCAN_UNROLL _Pragma("GCC unroll 64")
/// Before a loop over the lanes of a vector. Without it compilers unroll the loop first and then do not see a vector.
#define POLYSCAN_LANES _Pragma("GCC unroll 1") _Pragma("GCC ivdep")

#elif defined(__clang__) && !defined(__NVCC__)

#define POLYSCAN_INDEPENDENT_ITERATIONS
#define POLYSCAN_UNROLL_4 _Pragma("clang loop unroll_count(4)")
#define POLYSCAN_UNROLL _Pragma("clang loop unroll(full)")
#define POLYSCAN_LANES _Pragma("clang loop unroll(disable)")

#else

#define POLYSCAN_INDEPENDENT_ITERATIONS
#define POLYSCAN_UNROLL_4
#define POLYSCAN_UNROLL
#define POLYSCAN_LANES

#endif
