// SPDX-License-Identifier: Apache-2.0
/// What differs between architectures, and the few instructions that C++ has no words for: barriers in shared memory
/// that warps arrive at and wait for without stopping the block, and copies from global to shared memory that go on by
/// themselves. From sm_90 on one thread hands a copy to the bulk copy engine; before that, a warp issues it in pieces
/// of 16 bytes. Everything else is the same code.
#pragma once

#include <cstddef>
#include <cstdint>

#include <polyscan/cuda/value.cuh>

namespace polyscan::cuda::arch {

/// Shared memory of a multiprocessor of the architecture that a kernel was compiled for (`major * 10 + minor`), and
/// what the system takes of it for each block.
constexpr std::size_t shared_memory_of_multiprocessor(int compiled_for) {
    if (compiled_for >= 120 || compiled_for == 86 || compiled_for == 89) return 100 * 1024;
    return std::size_t{compiled_for >= 90 ? 228u : 164u} * 1024;
}
inline constexpr std::size_t systems_share = 1024;

/// What one block may use there.
constexpr std::size_t shared_memory_per_block(int compiled_for) {
    return shared_memory_of_multiprocessor(compiled_for) - systems_share;
}

/// Blocks that a multiprocessor of the architecture that is compiled for holds, by the shared memory of each.
constexpr int blocks_of(std::size_t shared_memory) {
#if defined(__CUDA_ARCH__)
    constexpr int compiled_for = __CUDA_ARCH__ / 10;
#else
    constexpr int compiled_for = 86; // the least that there is
#endif
    return static_cast<int>(shared_memory_of_multiprocessor(compiled_for) / (shared_memory + systems_share));
}

__device__ inline std::uint32_t shared_address(const void* p) {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

/// Arrivals that a warp makes at a barrier: one lane's, after all lanes have met. racecheck of compute-sanitizer orders
/// what a thread did before its own arrival, and nothing else; for it, every lane arrives.
#ifdef POLYSCAN_EVERY_LANE_ARRIVES
inline constexpr unsigned warp_arrivals = warp_size;
#else
inline constexpr unsigned warp_arrivals = 1;
#endif

/// A barrier in shared memory: its phase ends when as many arrivals have come as `begin` said, and the next one starts.
/// Whoever waits for the end of a phase sees what was written before the arrivals (release and acquire in the block).
class phase_barrier {
public:
    /// By one thread, before a barrier of the whole block.
    __device__ void begin(unsigned arrivals) {
        asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(&word_)), "r"(arrivals) : "memory");
    }
    __device__ void arrive() {
        asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(shared_address(&word_))
                     : "memory");
    }
    /// And so many bytes have to come, from send_to_block, before the phase ends.
    __device__ void arrive_and_expect(unsigned bytes) {
#if __CUDA_ARCH__ >= 900
        asm volatile(
            "{ .reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [%0], %1; }" ::"r"(shared_address(&word_)),
            "r"(bytes)
            : "memory");
#endif
    }
    /// By a whole warp, `warp_arrivals` times: for what each of its lanes has read or written.
    __device__ void arrive_warp() {
        __syncwarp(); // the arriving lane speaks for all
        if (threadIdx.x % warp_size < warp_arrivals) arrive();
    }
    /// Phases are numbered 0, 1, 2, ...; `parity` is that of the phase whose end is asked for.
    __device__ bool has_ended(unsigned parity) const {
        unsigned ended;
        asm volatile("{ .reg .pred ended; mbarrier.test_wait.parity.shared.b64 ended, [%1], %2; "
                     "selp.u32 %0, 1, 0, ended; }"
                     : "=r"(ended)
                     : "r"(shared_address(&word_)), "r"(parity)
                     : "memory");
        return ended != 0;
    }
    __device__ void wait(unsigned parity) const {
#if __CUDA_ARCH__ >= 900
        // Lets the hardware suspend the warp for a while.
        unsigned ended;
        do {
            asm volatile("{ .reg .pred ended; mbarrier.try_wait.parity.shared::cta.b64 ended, [%1], %2; "
                         "selp.u32 %0, 1, 0, ended; }"
                         : "=r"(ended)
                         : "r"(shared_address(&word_)), "r"(parity)
                         : "memory");
        } while (ended == 0);
#else
        while (!has_ended(parity)) {
        }
#endif
    }

private:
    friend __device__ void start_copy(void* to, const void* from, unsigned bytes, phase_barrier& landed, bool once);
    std::uint64_t word_;
};

/// Arrivals that one `start_copy` makes.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
inline constexpr unsigned copy_arrivals = warp_arrivals;
#else
inline constexpr unsigned copy_arrivals = warp_size;
#endif

/// The same arrivals without a copy, by a whole warp.
__device__ inline void arrive_like_copy(phase_barrier& landed) {
    if (threadIdx.x % warp_size < copy_arrivals) landed.arrive();
}

/// By a whole warp: `bytes` from global to shared memory, both aligned to 16, as is the number. Returns at once;
/// arrives at `landed` when they are there, and what the warp itself wrote before. `once`: nobody reads them again
/// soon, a hint to the L2 cache of sm_90.
__device__ inline void start_copy(void* to, const void* from, unsigned bytes, phase_barrier& landed,
                                  [[maybe_unused]] bool once) {
    const unsigned lane = threadIdx.x % warp_size;
#if __CUDA_ARCH__ >= 900
    __syncwarp(); // read after write: what other lanes wrote is published by lane 0's arrival
    if (lane > 0 && lane < copy_arrivals) landed.arrive();
    if (lane == 0) {
        landed.arrive_and_expect(bytes);
        std::uint64_t first, unchanged;
        asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(first));
        asm("createpolicy.fractional.L2::evict_unchanged.b64 %0, 1.0;" : "=l"(unchanged));
        if (bytes > 0)
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
                         "[%0], [%1], %2, [%3], %4;" ::"r"(shared_address(to)),
                         "l"(from), "r"(bytes), "r"(shared_address(&landed.word_)), "l"(once ? first : unchanged)
                         : "memory");
    }
#else
    constexpr unsigned piece = sizeof(uint4);
    for (unsigned at = lane * piece; at < bytes; at += warp_size * piece)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to) + at),
                     "l"(static_cast<const char*>(from) + at)
                     : "memory");
    __threadfence_block(); // what this lane wrote itself comes before its arrival
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_address(&landed.word_)) : "memory");
#endif
}

/// *to = *from, from global to shared memory, by one thread, which has it after wait_for_copies. On its way meanwhile,
/// where there is an instruction for the size.
template <class T>
__device__ void start_copy_of(T* to, const T* from) {
    if constexpr (sizeof(T) == 4 || sizeof(T) == 8)
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared_address(to)), "l"(from), "n"(sizeof(T))
                     : "memory");
    else if constexpr (sizeof(T) == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
    else
        *to = *from;
}
/// All that this thread has started with start_copy_of.
__device__ inline void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

/// By a thread that wrote to shared memory which a later start_copy overwrites, before it lets go of that memory.
__device__ inline void before_next_copy() {
#if __CUDA_ARCH__ >= 900
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); // the copy engine is not ordered with plain writes
#endif
}

/// Barriers that `begin` has set up are seen by the copy engine too. By the thread that set them up.
__device__ inline void publish_barriers() {
#if __CUDA_ARCH__ >= 900
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

// --- clusters of blocks, from sm_90 on -------------------------------------------------------------------------------

/// Whether code for it knows them. Elsewhere no block is in a cluster with others.
constexpr bool has_clusters(int compiled_for) { return compiled_for >= 90; }
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
inline constexpr bool compiles_clusters = true;
#else
inline constexpr bool compiles_clusters = false;
#endif

/// By every warp of every block of the cluster as a whole, in turn with cluster_wait. Publishes nothing but barriers
/// that have been set up.
__device__ inline void cluster_arrive() {
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
}
__device__ inline void cluster_wait() {
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}
/// *to = word, of 4 or 8 bytes, in the shared memory of another block of the cluster, where `landed` counts its bytes.
template <class Word>
__device__ void send_to_block(const Word* to, Word word, phase_barrier& landed, int block) {
#if __CUDA_ARCH__ >= 900
    if constexpr (sizeof(Word) == sizeof(std::uint64_t))
        asm volatile("{ .reg .u32 there, barrier; mapa.shared::cluster.u32 there, %0, %3; "
                     "mapa.shared::cluster.u32 barrier, %2, %3; "
                     "st.async.shared::cluster.mbarrier::complete_tx::bytes.u64 [there], %1, [barrier]; }" ::"r"(
                         shared_address(to)),
                     "l"(word), "r"(shared_address(&landed)), "r"(block)
                     : "memory");
    else
        asm volatile("{ .reg .u32 there, barrier; mapa.shared::cluster.u32 there, %0, %3; "
                     "mapa.shared::cluster.u32 barrier, %2, %3; "
                     "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [there], %1, [barrier]; }" ::"r"(
                         shared_address(to)),
                     "r"(word), "r"(shared_address(&landed)), "r"(block)
                     : "memory");
#endif
}

/// From sm_90 on, a launch that says so (launcher::overlaps) may begin while the one before it in its stream still
/// runs. What comes after this call sees everything that the earlier launch did. By every thread, before it touches
/// memory. What `known`, which is not the least int, depends on is worked out before; compilers would like to do it
/// after the wait, where it takes time.
__device__ inline void wait_for_earlier_launch(int known = 0) {
#if __CUDA_ARCH__ >= 900
    asm volatile("{ .reg .pred always; setp.ne.s32 always, %0, 0x80000000; @always griddepcontrol.wait; }" ::"r"(known)
                 : "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); // the next one may come as soon as all are here
#endif
}
constexpr bool has_overlap(int compiled_for) { return compiled_for >= 90; }

/// Fetches `bytes` from `from` on into the L2 cache, both multiples of 16. By one warp; a hint.
__device__ inline void prefetch_to_l2(const void* from, unsigned bytes) {
#if __CUDA_ARCH__ >= 900
    if (threadIdx.x % warp_size == 0 && bytes > 0)
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
#else
    constexpr unsigned line = 128;
    for (unsigned at = threadIdx.x % warp_size * line; at < bytes; at += warp_size * line)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(static_cast<const char*>(from) + at));
#endif
}

/// Fetches the line of `address` into the L2 cache, to stay there.
__device__ inline void prefetch_to_l2(const void* address) {
    asm volatile("prefetch.global.L2::evict_last [%0];" ::"l"(address));
}

} // namespace polyscan::cuda::arch
