// SPDX-License-Identifier: Apache-2.0
/// What the verbs beside scan ask of this backend: a function for every index, and memory.
#pragma once

#include <polyscan/cuda/backend.hpp>
#include <polyscan/cuda/launch.cuh>
#include <polyscan/tile.hpp>

namespace polyscan::cuda {

namespace detail {

template <class Function>
__global__ void __launch_bounds__(tuning::loop_threads)
    call_for_each(const __grid_constant__ Function f, index_type n) {
    const index_type stride = index_type{gridDim.x} * blockDim.x;
    for (index_type i = index_type{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride) f(i);
}

} // namespace detail

template <class Function>
void backend::for_each(index_type n, const Function& f) {
    static_assert(std::is_trivially_copyable_v<Function>, "device code takes trivially copyable functions");
    check(cudaGetLastError(), "earlier work on the device");
    if (n > 0)
        launcher(*this).launch_resident(detail::call_for_each<Function>, ceil_div(n, tuning::loop_threads),
                                        tuning::loop_threads, 0, f, n);
}

} // namespace polyscan::cuda
