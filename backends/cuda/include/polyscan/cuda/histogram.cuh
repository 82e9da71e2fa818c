// SPDX-License-Identifier: Apache-2.0
/// Histograms on a GPU: each block counts into bins in shared memory and adds them to the output at the end. Where the
/// bins are too many, all blocks count into the output. Elements of one byte have few values: those are counted, and
/// binned at the end.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <polyscan/cuda/backend.hpp>
#include <polyscan/cuda/launch.cuh>
#include <polyscan/cuda/tuning.hpp>
#include <polyscan/cuda/value.cuh>
#include <polyscan/histogram.hpp>

namespace polyscan::cuda {

namespace detail {

/// *to += number, for integers of 4 and 8 bytes of either sign.
template <class Count>
__device__ void add_to(Count* to, unsigned number) {
    using word = std::conditional_t<sizeof(Count) == sizeof(unsigned), unsigned, unsigned long long>;
    atomicAdd(reinterpret_cast<word*>(to), word{number});
}

/// Elements in memory that can be read as words of 16 bytes.
template <class Request, class Element = std::remove_cvref_t<decltype(std::declval<Request>().input[0])>>
inline constexpr bool has_words = std::is_pointer_v<typename Request::input_type> && std::is_arithmetic_v<Element>;

/// put(bin) for the elements of [begin, end), by all threads of the launch. An Index holds all bins.
template <class Index, class Request, class Put>
__device__ void for_each_bin(const Request& request, index_type begin, index_type end, Put put) {
    using element = std::remove_cvref_t<decltype(request.input[begin])>;
    const auto count = [&](const element& x) {
        const Index bin = request.bin_of.template as<Index>(x);
        if (bin != polyscan::detail::no_bin) put(bin);
    };
    const index_type step = index_type{gridDim.x} * tuning::loop_threads;
    const index_type rank = index_type{blockIdx.x} * tuning::loop_threads + threadIdx.x;
    if constexpr (has_words<Request>) {
        // Runs of 16 bytes, from an aligned address at or before the first element on; the first and the last run may
        // have elements that are none of ours.
        constexpr int run = sizeof(uint4) / sizeof(element);
        const element* const from = request.input + begin;
        const index_type size = end - begin;
        const auto before =
            static_cast<index_type>(reinterpret_cast<std::uintptr_t>(from) % sizeof(uint4) / sizeof(element));
        for (index_type k = rank; k * run < size + before; k += step) {
            const index_type first = k * run - before;
            if (first >= 0 && first + run <= size) {
                const uint4 whole = *reinterpret_cast<const uint4*>(from + first);
                element x[run];
                std::memcpy(x, &whole, sizeof whole);
                Index bin[run]; // all of them before the first is counted: they do not wait for each other
#pragma unroll
                for (int i = 0; i < run; ++i) bin[i] = request.bin_of.template as<Index>(x[i]);
#pragma unroll
                for (int i = 0; i < run; ++i)
                    if (bin[i] != polyscan::detail::no_bin) put(bin[i]);
            } else {
                for (int i = 0; i < run; ++i)
                    if (first + i >= 0 && first + i < size) count(from[first + i]);
            }
        }
    } else {
        for (index_type i = begin + rank; i < end; i += step) count(request.input[i]);
    }
}

/// `replicas` counts of each bin, a power of two, for the lanes in turn: the more equal elements there are, the more
/// lanes would otherwise wait for each other.
template <class Request>
__global__ void __launch_bounds__(tuning::loop_threads)
    count_in_blocks(const __grid_constant__ Request request, int replicas) {
    __shared__ unsigned bins[tuning::shared_counts];
    const int rank = static_cast<int>(threadIdx.x), all = static_cast<int>(request.bins) * replicas;
    const index_type n = live_count(request.size, request.count);
    // In portions that 32 bits can count.
    for (index_type begin = 0; begin < n; begin += tuning::counted_at_once) {
        const index_type end = begin + tuning::counted_at_once < n ? begin + tuning::counted_at_once : n;
        for (int i = rank; i < all; i += tuning::loop_threads) bins[i] = 0;
        __syncthreads(); // all bins are zero before anyone increments one
        unsigned* const own = bins + rank % replicas;
        for_each_bin<int>(request, begin, end, [&](int bin) { atomicAdd(own + bin * replicas, 1u); });
        __syncthreads(); // all increments are done before they are summed
        for (int bin = rank; bin < static_cast<int>(request.bins); bin += tuning::loop_threads) {
            unsigned sum = 0;
            // Each lane starts elsewhere: neighbours' bins lie in different banks.
            for (int r = 0; r < replicas; ++r) sum += bins[bin * replicas + (r + rank) % replicas];
            if (sum != 0) add_to(request.counts + bin, sum);
        }
        __syncthreads(); // the sums are taken before the next portion clears the bins
    }
}

/// Elements of one byte: how many there are of each value, a count for each lane, and then the bin of each value.
template <class Request>
__global__ void __launch_bounds__(tuning::loop_threads) count_bytes(const __grid_constant__ Request request) {
    using element = std::remove_cvref_t<decltype(request.input[0])>;
    constexpr int values = 256, all = values * warp_size, batch = tuning::words_at_once;
    __shared__ unsigned counts[all];
    const int rank = static_cast<int>(threadIdx.x);
    unsigned* const own = counts + rank % warp_size;
    const index_type n = live_count(request.size, request.count);
    const index_type step = index_type{gridDim.x} * tuning::loop_threads;
    const index_type first = index_type{blockIdx.x} * tuning::loop_threads + rank;
    // In portions that 32 bits can count.
    for (index_type begin = 0; begin < n; begin += tuning::counted_at_once) {
        const index_type end = begin + tuning::counted_at_once < n ? begin + tuning::counted_at_once : n;
        for (int i = rank; i < all; i += tuning::loop_threads) counts[i] = 0;
        __syncthreads(); // all counts are zero before anyone increments one
        // Whole words of 16 bytes, and the bytes before and behind them.
        const auto* const bytes = reinterpret_cast<const unsigned char*>(request.input) + begin;
        constexpr auto width = static_cast<index_type>(sizeof(uint4));
        const index_type size = end - begin;
        const auto to_word = static_cast<index_type>(-reinterpret_cast<std::uintptr_t>(bytes) % sizeof(uint4));
        const index_type before = to_word < size ? to_word : size;
        const index_type words = (size - before) / width;
        const auto* const word = reinterpret_cast<const uint4*>(bytes + before);
        for (index_type w = first; w < words; w += batch * step) {
            uint4 several[batch]; // all reads are under way before the first byte is counted
#pragma unroll
            for (int k = 0; k < batch; ++k)
                if (w + k * step < words) several[k] = word[w + k * step];
#pragma unroll
            for (int k = 0; k < batch; ++k) {
                if (w + k * step >= words) break;
                // The counts of neighbouring values are 2^7 bytes apart: eight bits of the word are an offset.
                constexpr unsigned stride = warp_size * sizeof(unsigned), mask = (values - 1) * stride;
                constexpr int shift = std::countr_zero(stride);
                const auto count = [&](unsigned offset) {
                    atomicAdd(reinterpret_cast<unsigned*>(reinterpret_cast<unsigned char*>(own) + (offset & mask)), 1u);
                };
                const unsigned part[] = {several[k].x, several[k].y, several[k].z, several[k].w};
#pragma unroll
                for (const unsigned four : part) {
                    count(four << shift);
                    count(four >> (8 - shift));
                    count(four >> (16 - shift));
                    count(four >> (24 - shift));
                }
            }
        }
        if (first < before) atomicAdd(own + bytes[first] * warp_size, 1u);
        for (index_type i = before + words * width + first; i < size; i += step)
            atomicAdd(own + bytes[i] * warp_size, 1u);
        __syncthreads(); // all increments are done before they are summed
        for (int value = rank; value < values; value += tuning::loop_threads) {
            unsigned sum = 0;
            // Each lane starts elsewhere: neighbours' counts lie in different banks.
            for (int r = 0; r < warp_size; ++r) sum += counts[value * warp_size + (r + rank) % warp_size];
            const auto byte = static_cast<unsigned char>(value);
            element x;
            std::memcpy(&x, &byte, sizeof x);
            const index_type bin = sum != 0 ? request.bin_of(x) : polyscan::detail::no_bin;
            if (bin != polyscan::detail::no_bin) add_to(request.counts + bin, sum);
        }
        __syncthreads(); // the sums are taken before the next portion clears the counts
    }
}

template <class Request>
__global__ void __launch_bounds__(tuning::loop_threads) count_in_output(const __grid_constant__ Request request) {
    for_each_bin<index_type>(request, 0, live_count(request.size, request.count),
                             [&](index_type bin) { add_to(request.counts + bin, 1u); });
}

} // namespace detail

template <class Input, class Bins, class Count>
void backend::histogram(const polyscan::detail::histogram_request<Input, Bins, Count>& request) {
    using request_type = polyscan::detail::histogram_request<Input, Bins, Count>;
    static_assert(sizeof(Count) == 4 || sizeof(Count) == 8, "device code counts in integers of 4 or 8 bytes");
    check(cudaGetLastError(), "earlier work on the device");
    check(cudaMemsetAsync(request.counts, 0, static_cast<std::size_t>(request.bins) * sizeof(Count), stream_),
          "cudaMemsetAsync");
    if (request.size == 0) return;
    const index_type blocks = ceil_div(request.size, tuning::least_counted);
    launcher on(*this);
    if constexpr (detail::has_words<request_type> && sizeof(request.input[0]) == 1) {
        on.launch_resident(detail::count_bytes<request_type>, blocks, tuning::loop_threads, 0, request);
    } else if (request.bins <= tuning::shared_counts) {
        const auto fit = static_cast<unsigned>(tuning::shared_counts / request.bins);
        const int replicas = static_cast<int>(std::min<unsigned>(std::bit_floor(fit), warp_size));
        on.launch_resident(detail::count_in_blocks<request_type>, blocks, tuning::loop_threads, 0, request, replicas);
    } else {
        on.launch_resident(detail::count_in_output<request_type>, blocks, tuning::loop_threads, 0, request);
    }
}

} // namespace polyscan::cuda
