// SPDX-License-Identifier: Apache-2.0
/// The device memory that calls share: descriptors of tiles, and scratch. It only grows. What was handed out earlier
/// stays valid until the workspace is destroyed, so that a captured graph can be replayed after a larger call.
///
/// Regions: one for each form of cell (published.cuh), so that no value is ever read as a status, one for plain values,
/// and one for what the verbs beside scan keep while they scan. A region starts as zeros (epoch 0, nothing published)
/// and after that keeps itself in order.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <polyscan/cuda/error.hpp>
#include <polyscan/cuda/tuning.hpp>

namespace polyscan::cuda {

/// Accumulators in device code have at most this many bytes.
inline constexpr std::size_t largest_accumulator = 64;

/// What is at the start of a region with cells.
struct alignas(128) region_header {
    static constexpr int epoch_shift = 32;
    unsigned long long counter; ///< epoch << 32 | number of the next ticket
    unsigned int retired;       ///< blocks that have drawn their last ticket
};

/// Bytes of a cell for accumulators of `bytes` bytes: as much again as the value for its status.
constexpr std::size_t cell_bytes(std::size_t bytes) {
    if (bytes <= 4) return 8;
    return (bytes + 7) / 8 * 16;
}

enum class region { words, wide_words, scratch, verbs };
inline constexpr std::size_t region_count = 4;

constexpr region region_for(std::size_t bytes) { return bytes <= 4 ? region::words : region::wide_words; }

class workspace {
public:
    struct piece {
        unsigned char* data = nullptr;
        std::size_t bytes = 0;
    };

    /// For tests: no region may grow beyond this, as if the device were full.
    std::size_t allocation_limit = SIZE_MAX;

    /// Memory of the region, at least `bytes`, aligned to 128. What is new of it is zeroed on `stream`.
    piece get(region which, std::size_t bytes, cudaStream_t stream) {
        piece& have = pieces_[static_cast<std::size_t>(which)];
        if (have.bytes < bytes) have = from_caller_ ? carve(bytes) : grow(have.bytes, bytes, stream);
        return have;
    }

    /// From now on, pieces come from the caller's memory. It must be all zeros.
    void use(void* memory, std::size_t bytes) {
        pieces_ = {};
        const auto address = reinterpret_cast<std::uintptr_t>(memory);
        const std::size_t skip = std::min<std::size_t>(bytes, (alignment - address % alignment) % alignment);
        rest_ = {static_cast<unsigned char*>(memory) + skip, bytes - skip};
        from_caller_ = memory != nullptr;
    }

    /// Bytes of caller's memory that a piece of `bytes` takes, at whatever address the memory starts.
    static constexpr std::size_t bytes_for(std::size_t bytes) { return rounded(bytes) + alignment; }

    const piece& current(region which) const { return pieces_[static_cast<std::size_t>(which)]; }

private:
    static constexpr std::size_t alignment = alignof(region_header);
    static constexpr std::size_t rounded(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

    struct release {
        void operator()(unsigned char* memory) const { static_cast<void>(cudaFree(memory)); }
    };

    piece carve(std::size_t bytes) {
        bytes = rounded(bytes);
        if (bytes > rest_.bytes)
            reject("workspace", "has " + std::to_string(rest_.bytes) + " bytes left, but the call needs " +
                                    std::to_string(bytes) + "; workspace_bytes() says how many");
        const piece result{rest_.data, bytes};
        rest_ = {rest_.data + bytes, rest_.bytes - bytes};
        return result;
    }

    piece grow(std::size_t had, std::size_t bytes, cudaStream_t stream) {
        cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
        check(cudaStreamIsCapturing(stream, &capture), "cudaStreamIsCapturing");
        if (capture != cudaStreamCaptureStatusNone)
            throw backend_error("cuda", "scan",
                                "the workspace has to grow, which a stream capture does not allow; make "
                                "the call once, or reserve(), before the capture");
        // At least twice as much: the sum of all pieces stays below twice the last.
        bytes = rounded(std::max({bytes, 2 * had, tuning::least_workspace}));
        if (bytes > allocation_limit)
            throw backend_error("cuda", "cudaMalloc", cudaGetErrorString(cudaErrorMemoryAllocation));
        void* memory = nullptr;
        check(cudaMalloc(&memory, bytes), "cudaMalloc");
        owned_.emplace_back(static_cast<unsigned char*>(memory));
        check(cudaMemsetAsync(memory, 0, bytes, stream), "cudaMemsetAsync");
        return {static_cast<unsigned char*>(memory), bytes};
    }

    std::array<piece, region_count> pieces_{};
    std::vector<std::unique_ptr<unsigned char, release>> owned_;
    piece rest_{};
    bool from_caller_ = false;
};

} // namespace polyscan::cuda
