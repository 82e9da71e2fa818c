// SPDX-License-Identifier: Apache-2.0
#include <cub/device/device_scan.cuh>

#include "contract_runs.hpp"

namespace polyscan::test {

template <class T>
void cub_inclusive_sum(const T* in, T* out, index_type n) {
    std::size_t bytes = 0;
    cuda::check(cub::DeviceScan::InclusiveSum(nullptr, bytes, in, out, n), "cub::DeviceScan::InclusiveSum");
    cuda::buffer<unsigned char> memory(static_cast<index_type>(bytes));
    cuda::check(cub::DeviceScan::InclusiveSum(memory.data(), bytes, in, out, n), "cub::DeviceScan::InclusiveSum");
    cuda::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}
template void cub_inclusive_sum(const std::int32_t*, std::int32_t*, index_type);

} // namespace polyscan::test
