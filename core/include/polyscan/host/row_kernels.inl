// SPDX-License-Identifier: Apache-2.0
// Included by tile_kernels.hpp once for each instruction set, with POLYSCAN_HOST_ISA (a namespace),
// POLYSCAN_HOST_TARGET (what makes the compiler use that set), POLYSCAN_HOST_BYTES (the width of its vectors) and
// POLYSCAN_HOST_FMA and POLYSCAN_HOST_AVX512 (1 if it has fused multiply-add, or AVX-512) defined. Every function here
// carries the target, because a vector wider than the function's own instruction set is taken apart before inlining;
// for the same reason there are no lambdas.
//
// The default tree on rows of vectors, for numbers and for structs of words:
//  - lanes are combined by vector instructions where the operator is known, else by a plain loop over `combine`, which
//    compilers turn into vector instructions;
//  - strides below a vector: both operands are brought into place by a permutation. An operator sees nothing but nodes:
//    those of two vectors are brought into one, or a lane that has nothing to do repeats the work of a neighbour.
//    Built-in operators take whatever stands there, and their result is dropped;
//  - strides of a vector and more: the last lane of the lower half, broadcast, before every vector of the upper half.

#define POLYSCAN_HOST_INLINE POLYSCAN_HOST_TARGET [[gnu::always_inline]] inline

// clang-format off: in the order in which they need each other
#include <polyscan/host/rows/vectors.inl>
#include <polyscan/host/rows/inputs.inl>
#include <polyscan/host/rows/operators.inl>
#include <polyscan/host/rows/permutations.inl>
#include <polyscan/host/rows/rows.inl>
#include <polyscan/host/rows/outputs.inl>
#include <polyscan/host/rows/tiles.inl>
#include <polyscan/host/rows/blocks.inl>
// clang-format on

#undef POLYSCAN_HOST_INLINE
