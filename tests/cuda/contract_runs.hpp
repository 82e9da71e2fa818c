// SPDX-License-Identifier: Apache-2.0
/// What cuda.contract needs of the CUDA compiler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <polyscan/cuda.hpp>

#include "cases.hpp"

namespace polyscan::test {

/// workspace_bytes<policy>(n) for scans of T by sums.
template <class T>
std::size_t workspace_bytes(std::string_view policy, index_type n);
void reserve_int32(cuda::backend& backend, std::string_view policy, index_type n);

/// out[i] = 0^2 + ... + (i)^2 + ..., from a counting iterator and a device lambda.
void scan_squares_of_counting(cuda::backend& backend, std::uint64_t* out, index_type n);
/// The same with thrust::device_vector's data; true if the results agree with `counted` pointers.
bool thrust_vector_agrees(cuda::backend& backend);

/// Three doubles, which structs of 32-bit words become.
struct three_doubles {
    double at[3];
};
/// Their sums. Additions of doubles do not regroup.
void scan_words_as_doubles(cuda::backend& backend, const std::uint32_t* in, three_doubles* out, index_type n);
struct add_doubles {
    POLYSCAN_FUNCTION three_doubles operator()(const three_doubles& a, const three_doubles& b) const {
        return {{a.at[0] + b.at[0], a.at[1] + b.at[1], a.at[2] + b.at[2]}};
    }
};

/// Sums of int8 into int8 under a grid algorithm over n elements of a pattern, checked on the device: every element.
/// Returns the number of wrong ones.
unsigned long long wrong_in_large(cuda::backend& backend, std::string_view policy, index_type n);

/// Holds `blocks` blocks of the device busy until *flag is not 0 (host memory that the device sees).
void occupy(int blocks, const volatile int* flag, cudaStream_t stream);
/// A kernel that writes where it must not.
void fail_on_device(cudaStream_t stream);

/// CUB's inclusive sum, the judge.
template <class T>
void cub_inclusive_sum(const T* in, T* out, index_type n);

} // namespace polyscan::test
