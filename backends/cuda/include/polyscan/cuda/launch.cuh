// SPDX-License-Identifier: Apache-2.0
/// Launches for one call: grid sizes, dynamic shared memory, workspace, errors.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>

#include <polyscan/cuda/backend.hpp>
#include <polyscan/cuda/tickets.cuh>
#include <polyscan/tile.hpp>

namespace polyscan::cuda {

class launcher {
public:
    explicit launcher(backend& on) : backend_(on) {}

    /// As many blocks as asked for; the kernel must do with fewer.
    template <class... Parameters, class... Arguments>
    void launch(void (*kernel)(Parameters...), index_type blocks, int threads, std::size_t shared_memory,
                const Arguments&... arguments) {
        properties(reinterpret_cast<const void*>(kernel), threads, shared_memory);
        start(kernel, blocks, threads, shared_memory, Parameters(arguments)...);
    }

    /// One block for each piece of work, but no more than are resident at once: each takes piece after piece.
    template <class... Parameters, class... Arguments>
    void launch_resident(void (*kernel)(Parameters...), index_type pieces, int threads, std::size_t shared_memory,
                         const Arguments&... arguments) {
        const int resident = properties(reinterpret_cast<const void*>(kernel), threads, shared_memory);
        start(kernel, std::min<index_type>(pieces, resident), threads, shared_memory, Parameters(arguments)...);
    }

    /// The region for cells of A, with room for `count` of them.
    template <class A>
    ticket_counter counter(index_type count) {
        // Tickets are 32-bit numbers; each block draws one that is too high.
        if (count > std::numeric_limits<std::int32_t>::max()) reject("in", "has more tiles than there are tickets");
        const workspace::piece piece =
            backend_.memory().get(region_for(sizeof(A)), region_bytes<A>(count), backend_.stream());
        return {reinterpret_cast<region_header*>(piece.data), piece.bytes};
    }
    template <class A>
    static constexpr std::size_t region_bytes(index_type count) {
        return sizeof(region_header) + static_cast<std::size_t>(count) * cell_bytes(sizeof(A));
    }

    /// Plain memory.
    unsigned char* scratch(std::size_t bytes) {
        return backend_.memory().get(region::scratch, bytes, backend_.stream()).data;
    }

private:
    /// Blocks of the kernel that the device holds at once. The first use of a kernel prepares it.
    int properties(const void* kernel, int threads, std::size_t shared_memory) {
        int& resident = backend_.resident_blocks(kernel);
        if (resident == 0) {
            if (shared_memory > default_shared_memory)
                check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                           static_cast<int>(shared_memory)),
                      "cudaFuncSetAttribute");
            int each = 0;
            check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, threads, shared_memory),
                  "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
            resident = std::max(1, each) * backend_.multiprocessors();
        }
        return resident;
    }

    template <class... Parameters>
    void start(void (*kernel)(Parameters...), index_type blocks, int threads, std::size_t shared_memory,
               Parameters... arguments) {
        const test_hooks& hooks = backend_.hooks();
        if (hooks.most_blocks > 0) blocks = std::min<index_type>(blocks, hooks.most_blocks);
        blocks = std::min<index_type>(blocks, std::numeric_limits<std::int32_t>::max());
        if (hooks.refuse_launch) blocks = 0;
        void* pointers[] = {&arguments...};
        check_launch(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(static_cast<unsigned>(blocks)),
                                      dim3(static_cast<unsigned>(threads)), pointers, shared_memory,
                                      backend_.stream()));
    }

    static constexpr std::size_t default_shared_memory = 48 * 1024; // more has to be asked for

    backend& backend_;
};

} // namespace polyscan::cuda
