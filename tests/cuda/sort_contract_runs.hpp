// SPDX-License-Identifier: Apache-2.0
/// What cuda.sort_contract needs of the CUDA compiler.
#pragma once

#include <cstddef>
#include <cstdint>

#include <polyscan/cuda.hpp>

namespace polyscan::test {

std::size_t sort_workspace_bytes_uint32(index_type n);
std::size_t sort_workspace_bytes_float_uint64(index_type n);

/// The even ones among `in`, and their number; the others behind them; and the caller's workspace that both take.
void copy_even(cuda::backend& backend, const std::int32_t* in, index_type n, std::int32_t* out, index_type* count);
void partition_even(cuda::backend& backend, const std::int32_t* in, index_type n, std::int32_t* out, index_type* count);
std::size_t select_workspace_bytes_int32(index_type n);

/// CUB's radix sorts, the judge. Values may be null.
void cub_sort(const std::uint32_t* keys, std::uint32_t* keys_out, const std::uint32_t* values,
              std::uint32_t* values_out, index_type n, bool descending);

/// A sort of more than 2^32 bytes-sized keys, checked on the device. Returns the number of wrong places.
unsigned long long wrong_in_large_sort(cuda::backend& backend, index_type n);

} // namespace polyscan::test
