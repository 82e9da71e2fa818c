// SPDX-License-Identifier: Apache-2.0
/// Launches for one call: grid sizes, dynamic shared memory, workspace, errors.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>

#include <polyscan/cuda/arch.cuh>
#include <polyscan/cuda/backend.hpp>
#include <polyscan/cuda/tickets.cuh>
#include <polyscan/tile.hpp>

namespace polyscan::cuda {

class launcher {
public:
    explicit launcher(backend& on) : backend_(on) {}

    /// The kernel begins with arch::wait_for_earlier_launch(): it may be started before the stream's launch before it
    /// has ended.
    launcher& overlaps() {
        overlaps_ = true;
        return *this;
    }

    /// As many blocks as asked for; the kernel must do with fewer.
    template <class... Parameters, class... Arguments>
    void launch(void (*kernel)(Parameters...), index_type blocks, int threads, std::size_t shared_memory,
                const Arguments&... arguments) {
        properties(reinterpret_cast<const void*>(kernel), threads, shared_memory);
        start(kernel, blocks, threads, shared_memory, false, Parameters(arguments)...);
    }

    /// One block for each piece of work, but no more than are resident at once: each takes piece after piece.
    template <class... Parameters, class... Arguments>
    void launch_resident(void (*kernel)(Parameters...), index_type pieces, int threads, std::size_t shared_memory,
                         const Arguments&... arguments) {
        const int resident = properties(reinterpret_cast<const void*>(kernel), threads, shared_memory);
        start(kernel, std::min<index_type>(pieces, resident), threads, shared_memory, false, Parameters(arguments)...);
    }

    /// All blocks in one cluster.
    template <class... Parameters, class... Arguments>
    void launch_cluster(void (*kernel)(Parameters...), index_type blocks, int threads, std::size_t shared_memory,
                        const Arguments&... arguments) {
        properties(reinterpret_cast<const void*>(kernel), threads, shared_memory);
        start(kernel, blocks, threads, shared_memory, true, Parameters(arguments)...);
    }
    /// The code that runs of the kernel knows clusters.
    bool has_clusters(const void* kernel) { return arch::has_clusters(facts(kernel).compiled_for); }
    /// Blocks of the largest cluster of the kernel that the device holds, no more than `most`.
    template <class... Parameters>
    int largest_cluster(void (*kernel)(Parameters...), int threads, std::size_t shared_memory, int most) {
        const auto* const function = reinterpret_cast<const void*>(kernel);
        backend::kernel_facts& known = facts(function);
        if (known.largest_cluster == 0) {
            properties(function, threads, shared_memory);
            check(cudaFuncSetAttribute(function, cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
                  "cudaFuncSetAttribute"); // more than 8
            cudaLaunchConfig_t how{};
            how.gridDim = dim3(static_cast<unsigned>(most));
            how.blockDim = dim3(static_cast<unsigned>(threads));
            how.dynamicSmemBytes = shared_memory;
            // Where the device cannot say, a block goes without others.
            if (cudaOccupancyMaxPotentialClusterSize(&known.largest_cluster, function, &how) != cudaSuccess) {
                cudaGetLastError(); // or the launch would report it
                known.largest_cluster = 1;
            }
            known.largest_cluster = std::clamp(known.largest_cluster, 1, most);
        }
        return known.largest_cluster;
    }
    /// Blocks of the kernel that the device holds at once.
    template <class... Parameters>
    int resident_blocks(void (*kernel)(Parameters...), int threads, std::size_t shared_memory) {
        return properties(reinterpret_cast<const void*>(kernel), threads, shared_memory);
    }
    /// Tests ask for few blocks.
    bool limits_blocks() const { return backend_.hooks().most_blocks > 0; }

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

    /// Dynamic shared memory that a block of the kernel can have, on this device and by the code that it runs.
    std::size_t shared_memory_limit(const void* kernel) { return facts(kernel).shared_memory_limit; }

    /// Plain memory.
    unsigned char* scratch(std::size_t bytes) {
        return backend_.memory().get(region::scratch, bytes, backend_.stream()).data;
    }

private:
    backend::kernel_facts& facts(const void* kernel) {
        backend::kernel_facts& known = backend_.kernel(kernel);
        if (known.compiled_for == 0) {
            int device = 0, most = 0;
            cudaFuncAttributes attributes{};
            check(cudaGetDevice(&device), "cudaGetDevice");
            check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
                  "cudaDeviceGetAttribute");
            check(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes");
            known.compiled_for = attributes.ptxVersion;
            known.shared_memory_limit =
                std::min(static_cast<std::size_t>(most), arch::shared_memory_per_block(attributes.ptxVersion)) -
                attributes.sharedSizeBytes;
        }
        return known;
    }

    /// Blocks of the kernel that the device holds at once. Prepares the kernel for this much dynamic shared memory: a
    /// kernel may be launched with more than at its first launch.
    int properties(const void* kernel, int threads, std::size_t shared_memory) {
        backend::kernel_facts& known = backend_.kernel(kernel);
        if (shared_memory > known.shared_memory_prepared) {
            check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       static_cast<int>(shared_memory)),
                  "cudaFuncSetAttribute");
            known.shared_memory_prepared = shared_memory;
        }
        if (known.resident_blocks == 0) {
            int each = 0;
            check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, threads, shared_memory),
                  "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
            known.resident_blocks = std::max(1, each) * backend_.multiprocessors();
        }
        return known.resident_blocks;
    }

    template <class... Parameters>
    void start(void (*kernel)(Parameters...), index_type blocks, int threads, std::size_t shared_memory, bool cluster,
               Parameters... arguments) {
        const test_hooks& hooks = backend_.hooks();
        if (hooks.most_blocks > 0) blocks = std::min<index_type>(blocks, hooks.most_blocks);
        blocks = std::min<index_type>(blocks, std::numeric_limits<std::int32_t>::max());
        if (hooks.refuse_launch) blocks = 0;
        void* pointers[] = {&arguments...};
        cudaLaunchConfig_t how{};
        how.gridDim = dim3(static_cast<unsigned>(blocks));
        how.blockDim = dim3(static_cast<unsigned>(threads));
        how.dynamicSmemBytes = shared_memory;
        how.stream = backend_.stream();
        cudaLaunchAttribute attributes[2]{};
        how.attrs = attributes;
        if (cluster && blocks > 1) {
            cudaLaunchAttribute& size = attributes[how.numAttrs++];
            size.id = cudaLaunchAttributeClusterDimension;
            size.val.clusterDim = {static_cast<unsigned>(blocks), 1, 1};
        }
        if (overlaps_ && arch::has_overlap(facts(reinterpret_cast<const void*>(kernel)).compiled_for)) {
            cudaLaunchAttribute& early = attributes[how.numAttrs++];
            early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
            early.val.programmaticStreamSerializationAllowed = 1;
        }
        check_launch(cudaLaunchKernelExC(&how, reinterpret_cast<const void*>(kernel), pointers));
    }

    backend& backend_;
    bool overlaps_ = false;
};

} // namespace polyscan::cuda
