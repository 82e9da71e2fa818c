// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Marks a function that host code and device kernels may both call.
/// Empty for plain host compilers; `__host__ __device__` under nvcc, hipcc and clang in CUDA or HIP mode.
#if defined(__CUDACC__) || defined(__HIPCC__)
#define POLYSCAN_FUNCTION __host__ __device__
#else
#define POLYSCAN_FUNCTION
#endif
