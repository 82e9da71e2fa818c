// SPDX-License-Identifier: Apache-2.0
/// The CUDA backend: `polyscan::cuda::backend` for every compiler, its scans for the CUDA compiler.
#pragma once

#include <polyscan/cuda/backend.hpp>
#include <polyscan/primitives.hpp>
#include <polyscan/scan.hpp>

#ifdef __CUDACC__
#include <polyscan/cuda/for_each.cuh>
#include <polyscan/cuda/histogram.cuh>
#include <polyscan/cuda/radix_sort.cuh>
#include <polyscan/cuda/reduce.cuh>
#include <polyscan/cuda/scan.cuh>
#include <polyscan/cuda/select.cuh>
#endif
