// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include <polyscan/error.hpp>

namespace polyscan::cuda {

/// Throws backend_error with the call's name and the runtime's message. A failure that does not stick to the device is
/// cleared, so that the next call does not see it again.
inline void check(cudaError_t status, const char* call) {
    if (status == cudaSuccess) return;
    static_cast<void>(cudaGetLastError());
    throw backend_error("cuda", call, std::string(cudaGetErrorName(status)) + ": " + cudaGetErrorString(status));
}

/// The same for a launch. A kernel that failed earlier is often noticed here first, and named as such.
inline void check_launch(cudaError_t status) {
    switch (status) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorHardwareStackError: check(status, "earlier work on the device"); break;
    default: check(status, "cudaLaunchKernel");
    }
}

} // namespace polyscan::cuda
