// SPDX-License-Identifier: Apache-2.0
// Includes POLYSCAN_HOST_KERNELS once for each instruction set, each in a namespace of its own (POLYSCAN_HOST_ISA),
// with vectors of POLYSCAN_HOST_BYTES bytes, with POLYSCAN_HOST_FMA saying whether there is a fused multiply-add, and
// POLYSCAN_HOST_AVX512 whether there are AVX-512's instructions, for vectors of either width.
// Undefines POLYSCAN_HOST_KERNELS, and POLYSCAN_HOST_HALF_WIDTH, which asks for AVX-512 with vectors of half the width
// as well. No include guard: each file of kernels is another inclusion.

// As the compiler's flags say ...
#define POLYSCAN_HOST_ISA as_compiled
#define POLYSCAN_HOST_TARGET
#if !POLYSCAN_HOST_VECTORS
#define POLYSCAN_HOST_BYTES 16
#elif defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512BW__) && defined(__AVX512DQ__)
#define POLYSCAN_HOST_BYTES 64
#elif defined(__AVX2__)
#define POLYSCAN_HOST_BYTES 32
#else
#define POLYSCAN_HOST_BYTES 16
#endif
#if defined(__FMA__) && POLYSCAN_HOST_BYTES >= 32
#define POLYSCAN_HOST_FMA 1
#else
#define POLYSCAN_HOST_FMA 0
#endif
#if POLYSCAN_HOST_BYTES == 64
#define POLYSCAN_HOST_AVX512 1
#else
#define POLYSCAN_HOST_AVX512 0
#endif
#include POLYSCAN_HOST_KERNELS
#undef POLYSCAN_HOST_AVX512
#undef POLYSCAN_HOST_FMA
#undef POLYSCAN_HOST_BYTES
#undef POLYSCAN_HOST_TARGET
#undef POLYSCAN_HOST_ISA

// ... and, where those are for any x86-64, once more for what the processor may turn out to have.
#if defined(POLYSCAN_HOST_DISPATCH)
#define POLYSCAN_HOST_FMA 1

#define POLYSCAN_HOST_AVX512 0
#define POLYSCAN_HOST_ISA avx2
#define POLYSCAN_HOST_TARGET [[gnu::target("avx2,fma")]]
#define POLYSCAN_HOST_BYTES 32
#include POLYSCAN_HOST_KERNELS
#undef POLYSCAN_HOST_BYTES
#undef POLYSCAN_HOST_TARGET
#undef POLYSCAN_HOST_ISA
#undef POLYSCAN_HOST_AVX512

#define POLYSCAN_HOST_AVX512 1
#define POLYSCAN_HOST_TARGET [[gnu::target("avx512f,avx512vl,avx512bw,avx512dq,fma")]]
#if defined(POLYSCAN_HOST_HALF_WIDTH)
#define POLYSCAN_HOST_ISA avx512_half
#define POLYSCAN_HOST_BYTES 32
#include POLYSCAN_HOST_KERNELS
#undef POLYSCAN_HOST_BYTES
#undef POLYSCAN_HOST_ISA
#endif
#define POLYSCAN_HOST_ISA avx512
#define POLYSCAN_HOST_BYTES 64
#include POLYSCAN_HOST_KERNELS
#undef POLYSCAN_HOST_BYTES
#undef POLYSCAN_HOST_ISA
#undef POLYSCAN_HOST_TARGET
#undef POLYSCAN_HOST_AVX512

#undef POLYSCAN_HOST_FMA
#endif

#undef POLYSCAN_HOST_KERNELS
#undef POLYSCAN_HOST_HALF_WIDTH
