// SPDX-License-Identifier: Apache-2.0
/// Two backends run scans with the kernels of polyscan/host/tile_kernels.hpp. Their registries, and the matrix of the
/// tests, share one instantiation of those that they have in common: the longest part of what is compiled there.
#pragma once

#include <polyscan/operators.hpp>
#include <polyscan/request.hpp>

#if !defined(__NVCC__)
#include <polyscan/host/tile_kernels.hpp>
#endif

#if defined(POLYSCAN_HOST_VECTORS) && POLYSCAN_HOST_VECTORS

namespace polyscan::host {
/// What the run-time face asks for.
template <class T, class Operator>
using element_request = scan_request<T, const T*, T*, Operator>;
template <class T, class Operator>
using element_source = source<element_request<T, Operator>>;
template <class T, class Operator>
using element_outputs = outputs<element_request<T, Operator>>;
} // namespace polyscan::host

/// The kernels of the default policy; `how` is `template`, which makes them, or `extern template`: another translation
/// unit makes them.
#define POLYSCAN_HOST_KERNELS_OF(how, T, Operator)                                                                     \
    how void fold_tile(const Operator&, const element_source<T, Operator>&, index_type, fold_state<T>&);               \
    how void scan_rows(const Operator&, const element_source<T, Operator>&, index_type, int,                           \
                       element_outputs<T, Operator>&, scan_state<T>&);                                                 \
    how void scan_and_fold_tile(const Operator&, const element_source<T, Operator>&, index_type,                       \
                                element_outputs<T, Operator>&, scan_state<T>&, index_type, fold_state<T>&,             \
                                const prefetch_plan&);                                                                 \
    how T scan_short_row(const Operator&, const element_source<T, Operator>&, index_type, int,                         \
                         element_outputs<T, Operator>&, int, const scan_state<T>&);                                    \
    how bool scan_few(const Operator&, const T*, int, T*, const T*);

#else
#define POLYSCAN_HOST_KERNELS_OF(how, T, Operator)
#endif

/// All operators that elements of a type are computed with (visit_operator in polyscan/adapted_backend.hpp).
#define POLYSCAN_HOST_KERNELS_SIGNED(how, T)                                                                           \
    POLYSCAN_HOST_KERNELS_OF(how, T, minimum)                                                                          \
    POLYSCAN_HOST_KERNELS_OF(how, T, maximum)
#define POLYSCAN_HOST_KERNELS_FLOATING(how, T)                                                                         \
    POLYSCAN_HOST_KERNELS_SIGNED(how, T)                                                                               \
    POLYSCAN_HOST_KERNELS_OF(how, T, plus)                                                                             \
    POLYSCAN_HOST_KERNELS_OF(how, T, multiplies)
#define POLYSCAN_HOST_KERNELS_UNSIGNED(how, T)                                                                         \
    POLYSCAN_HOST_KERNELS_FLOATING(how, T)                                                                             \
    POLYSCAN_HOST_KERNELS_OF(how, T, bit_and)                                                                          \
    POLYSCAN_HOST_KERNELS_OF(how, T, bit_or)                                                                           \
    POLYSCAN_HOST_KERNELS_OF(how, T, bit_xor)
