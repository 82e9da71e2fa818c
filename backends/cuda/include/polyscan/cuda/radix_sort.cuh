// SPDX-License-Identifier: Apache-2.0
/// The stable radix sort on a GPU: one launch counts the digits of all passes, and then each pass is one launch that
/// reads every element once and writes it once.
///
/// In a pass a block takes a tile, counts how many elements it has of each digit and publishes that, brings its
/// elements into the order of their digits in shared memory, so that neighbours go to neighbouring places, and then
/// learns by looking back how many there are in earlier tiles: a look-back of its own for each of the 256 digits (A.
/// Adinets, D. Merrill: "Onesweep: a faster least significant digit radix sort for GPUs", 2022). By then the earlier
/// tiles have published theirs.
///
/// A pass whose digit is the same in all keys is left out. The host does not know which: the kernels read it from the
/// plan, and a pass that is not needed ends at once.
///
/// Memory, all of it zero at the beginning of a call but for the copy: {header, cells, copy of keys, copy of values}.
/// A cell is a 64-bit word: what it holds (the pass' step, aggregate or carry) and the number. So the cells of an
/// earlier pass count as empty.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <polyscan/cuda/backend.hpp>
#include <polyscan/cuda/grid/tile_pass.cuh>
#include <polyscan/cuda/launch.cuh>
#include <polyscan/cuda/published.cuh>
#include <polyscan/cuda/tuning.hpp>
#include <polyscan/cuda/value.cuh>
#include <polyscan/radix_sort.hpp>

namespace polyscan::cuda {

namespace detail {

using polyscan::detail::digit_of;
using polyscan::detail::digit_values;
using polyscan::detail::no_value;
using polyscan::detail::sort_elements;
using polyscan::detail::sort_request;

using count_type = unsigned long long; // atomicAdd knows this one, not std::uint64_t

inline constexpr int most_sort_passes = 8;

struct sort_header {
    /// Elements of each digit in each pass; after the plan, the place of the first.
    count_type digits[most_sort_passes][digit_values];
    /// Number of the next tile of each pass.
    unsigned tickets[most_sort_passes];
    /// Passes that are needed, and which of them a pass is; -1: not needed.
    int steps;
    int step[most_sort_passes];
};

/// What the kernels of a sort share.
template <class Key, class Value>
struct sort_call {
    sort_elements<const Key, const Value> input;
    sort_elements<Key, Value> output, copy;
    index_type size;
    const index_type* count;
    sort_header* header;
    std::uint64_t* cells;
    bool in_place;

    __device__ index_type live_size() const { return live_count(size, count); }
    /// Two copies take turns, and the last step writes the output.
    __device__ const sort_elements<Key, Value>& target(int step) const {
        return (header->steps - step) % 2 == 1 ? output : copy;
    }
    /// An input that is the output cannot be the first source of an odd number of steps.
    __device__ bool starts_from_copy() const { return in_place && header->steps % 2 == 1; }
    __device__ sort_elements<const Key, const Value> source(int step) const {
        if (step > 0) return target(step - 1).read_only();
        return starts_from_copy() ? copy.read_only() : input;
    }
};

template <class Key, class Value>
struct sort_shape {
    static constexpr std::size_t largest = std::max(sizeof(Key), sort_request<Key, Value>::value_bytes);
    static constexpr int threads = tuning::sort_threads;
    static constexpr int warps = threads / warp_size;
    static constexpr int items = tuning::sort_items(largest, sort_request<Key, Value>::has_values);
    static constexpr int tile = threads * items;
    static_assert(threads % warp_size == 0 && threads >= digit_values, "a thread for each digit");
    static_assert(tile <= 1 << 16, "places in the tile have 16 bits");
    struct alignas(16) shared {
        unsigned char staged[static_cast<std::size_t>(tile) * largest]; // elements in the order of their digits
        unsigned counts[warps][digit_values]; // of each warp; then where its next element of the digit goes
        index_type places[digit_values];      // where an element goes, less its place in the tile
        unsigned sums[digit_values / warp_size];
        unsigned drawn;
    };
};

/// Two places in the tile in one register.
template <int Items>
class packed_places {
public:
    __device__ void set(int i, unsigned place) { bits_[i / 2] = i % 2 == 0 ? place : bits_[i / 2] | place << 16; }
    __device__ unsigned operator[](int i) const { return i % 2 == 0 ? bits_[i / 2] & 0xffffu : bits_[i / 2] >> 16; }

private:
    unsigned bits_[(Items + 1) / 2];
};

/// Exclusive sums over the first `digit_values` threads of the block, all of whose threads call it. Between two calls
/// with the same `sums` there is a barrier.
template <class T>
__device__ T exclusive_over_digits(const T& value, T (&sums)[digit_values / warp_size]) {
    const int lane = static_cast<int>(threadIdx.x) % warp_size, warp = static_cast<int>(threadIdx.x) / warp_size;
    constexpr int warps = digit_values / warp_size;
    T inclusive = value;
#pragma unroll
    for (int distance = 1; distance < warp_size; distance *= 2) {
        const T other = __shfl_up_sync(whole_warp, inclusive, static_cast<unsigned>(distance));
        if (lane >= distance) inclusive += other;
    }
    if (warp < warps && lane == warp_size - 1) sums[warp] = inclusive;
    __syncthreads(); // each warp's sum, written by its last lane, is read by the warps behind it
    T before = 0;
#pragma unroll
    for (int w = 0; w < warps; ++w)
        if (w < warp) before += sums[w];
    return before + inclusive - value;
}

/// Counts the digits of all passes. Several counts of each digit, for the lanes in turn: the more equal digits there
/// are, the more lanes would otherwise wait for each other.
template <class Key>
struct digit_counter {
    static constexpr int passes = polyscan::detail::key_order<Key>::most_passes;
    static constexpr int replicas = tuning::shared_counts / (passes * digit_values);
    static_assert(replicas >= 1 && (replicas & (replicas - 1)) == 0);

    digit_of<Key> digit[passes];
    int needed;
};

template <class Key>
__global__ void __launch_bounds__(tuning::loop_threads)
    count_all_digits(const Key* keys, index_type size, const index_type* count,
                     const __grid_constant__ digit_counter<Key> counter, sort_header* header) {
    constexpr int passes = digit_counter<Key>::passes, replicas = digit_counter<Key>::replicas;
    constexpr int all = passes * digit_values * replicas;
    __shared__ unsigned counts[all];
    const int rank = static_cast<int>(threadIdx.x);
    const index_type n = live_count(size, count);
    // In portions whose digits 32 bits can count.
    for (index_type begin = 0; begin < n; begin += tuning::counted_at_once) {
        const index_type end = begin + tuning::counted_at_once < n ? begin + tuning::counted_at_once : n;
        for (int i = rank; i < all; i += tuning::loop_threads) counts[i] = 0;
        __syncthreads(); // all counts are zero before anyone increments one
        constexpr int batch = tuning::loads_at_once(sizeof(Key));
        const index_type step = index_type{gridDim.x} * tuning::loop_threads;
        for (index_type first = begin + index_type{blockIdx.x} * tuning::loop_threads + rank; first < end;
             first += batch * step) {
            Key key[batch];
#pragma unroll
            for (int k = 0; k < batch; ++k)
                if (first + k * step < end) key[k] = keys[first + k * step];
#pragma unroll
            for (int k = 0; k < batch; ++k) {
                if (first + k * step >= end) break;
#pragma unroll
                for (int p = 0; p < passes; ++p)
                    if (p < counter.needed)
                        atomicAdd(&counts[(p * digit_values + static_cast<int>(counter.digit[p](key[k]))) * replicas +
                                          rank % replicas],
                                  1u);
            }
        }
        __syncthreads(); // all increments are done before they are summed
        for (int i = rank; i < counter.needed * digit_values; i += tuning::loop_threads) {
            unsigned sum = 0;
            // Each lane starts elsewhere: neighbours' counts lie in different banks.
            for (int r = 0; r < replicas; ++r) sum += counts[i * replicas + (r + rank) % replicas];
            if (sum != 0) atomicAdd(&header->digits[i / digit_values][i % digit_values], count_type{sum});
        }
        __syncthreads(); // the sums are taken before the next portion clears the counts
    }
}

/// By one block of digit_values threads: which passes are needed, and where each digit begins.
template <class Unused>
__global__ void __launch_bounds__(digit_values)
    plan_sort(sort_header* header, int passes, index_type size, const index_type* count) {
    __shared__ count_type sums[digit_values / warp_size];
    const int digit = static_cast<int>(threadIdx.x);
    const auto n = static_cast<count_type>(live_count(size, count));
    int steps = 0;
    for (int pass = 0; pass < passes; ++pass) {
        const count_type mine = header->digits[pass][digit];
        // Also a barrier: what the pass before has read of `sums` is over before it is written again.
        const bool constant = __syncthreads_or(mine == n) != 0;
        header->digits[pass][digit] = exclusive_over_digits(mine, sums);
        if (digit == 0) header->step[pass] = constant ? -1 : steps;
        steps += constant ? 0 : 1;
    }
    if (digit == 0) header->steps = steps;
}

/// What no pass does: from the input to the output where no pass is needed, to the copy where the first pass reads
/// that.
template <class Key, class Value>
__global__ void __launch_bounds__(tuning::loop_threads)
    copy_unsorted(const __grid_constant__ sort_call<Key, Value> call) {
    const bool to_output = call.header->steps == 0;
    if (!to_output && !call.starts_from_copy()) return;
    const sort_elements<Key, Value>& to = to_output ? call.output : call.copy;
    const index_type n = call.live_size(), stride = index_type{gridDim.x} * tuning::loop_threads;
    for (index_type i = index_type{blockIdx.x} * tuning::loop_threads + threadIdx.x; i < n; i += stride)
        to.move(i, call.input.keys[i], call.input, i); // where that is in place, an element replaces itself
}

/// The lanes that have the caller's value of a bit. (One predicate for the vote and for its complement: from C++ the
/// compiler makes two, and seven instructions instead of four.)
__device__ inline unsigned lanes_that_agree(unsigned digit, unsigned bit) {
    unsigned lanes;
    asm volatile("{ .reg .pred is_set; .reg .b32 value;\n"
                 "  and.b32 value, %1, %2;\n"
                 "  setp.ne.b32 is_set, value, 0;\n"
                 "  vote.sync.ballot.b32 %0, is_set, 0xffffffff;\n"
                 "  @!is_set not.b32 %0, %0; }"
                 : "=r"(lanes)
                 : "r"(digit), "r"(bit));
    return lanes;
}
/// The lanes whose digit is the caller's. All lanes of the warp take part.
__device__ inline unsigned lanes_with(unsigned digit) {
    unsigned lanes = whole_warp;
#pragma unroll
    for (int bit = 0; bit < polyscan::detail::digit_bits; ++bit) lanes &= lanes_that_agree(digit, 1u << bit);
    return lanes;
}

/// The cells of one pass: what each tile has of each digit.
class digit_cells {
public:
    __device__ digit_cells(std::uint64_t* cells, int step)
        : cells_(cells), aggregate_(2 * static_cast<std::uint64_t>(step) + 1) {}

    __device__ void publish_aggregate(index_type tile, int digit, std::uint64_t number) const {
        publish(tile, digit, aggregate_, number);
    }
    __device__ void publish_carry(index_type tile, int digit, std::uint64_t number) const {
        publish(tile, digit, aggregate_ + 1, number);
    }
    /// Elements with this digit in all earlier tiles. Every tile before this one was drawn by a block that is running,
    /// which publishes its aggregate without waiting for anyone. Tile 0 publishes a carry.
    __device__ std::uint64_t look_back(index_type tile, int digit) const {
        constexpr int window = tuning::sort_look_back;
        std::uint64_t sum = 0;
        for (index_type last = tile - 1;; last -= window) {
            std::uint64_t seen[window]; // all reads are under way before the first is waited for
#pragma unroll
            for (int k = 0; k < window; ++k) seen[k] = last >= k ? load(last - k, digit) : 0;
#pragma unroll
            for (int k = 0; k < window; ++k) {
                while (seen[k] >> shift < aggregate_) seen[k] = load(last - k, digit);
                sum += seen[k] & number_mask;
                if (seen[k] >> shift != aggregate_) return sum; // at the latest with tile 0
            }
        }
    }

private:
    static constexpr int shift = 56;
    static constexpr std::uint64_t number_mask = (std::uint64_t{1} << shift) - 1;
    static_assert(2 * most_sort_passes + 2 < 1 << (64 - shift));

    __device__ std::uint64_t* cell(index_type tile, int digit) const { return cells_ + tile * digit_values + digit; }
    // Relaxed: a word publishes nothing but itself. Partner: load.
    __device__ void publish(index_type tile, int digit, std::uint64_t kind, std::uint64_t number) const {
        ordered::store_relaxed(cell(tile, digit), kind << shift | number);
    }
    // Partner: publish.
    __device__ std::uint64_t load(index_type tile, int digit) const { return ordered::load_relaxed(cell(tile, digit)); }

    std::uint64_t* cells_;
    std::uint64_t aggregate_;
};

/// Tells the compiler what it cannot know of a pointer that is chosen at run time. (nvcc 13.0 generates broken code
/// from this for pointers to some structs.)
template <class T>
__device__ void assume_global(const T* pointer) {
    if constexpr (std::is_arithmetic_v<T>) __builtin_assume(__isGlobal(pointer));
}

/// One pass. Every warp has a part of the tile, `items` times 32 consecutive elements.
template <class Key, class Value>
__global__ void __launch_bounds__(tuning::sort_threads, tuning::sort_blocks)
    sort_by_digit(const __grid_constant__ sort_call<Key, Value> call, int pass, digit_of<Key> digit_of_key) {
    using shape = sort_shape<Key, Value>;
    constexpr int items = shape::items, warps = shape::warps;
    constexpr bool has_values = sort_request<Key, Value>::has_values;
    auto& shared = block_memory<typename shape::shared>();
    constexpr unsigned last_digit = digit_values - 1;

    sort_header* const header = call.header;
    const int step = header->step[pass];
    if (step < 0) return;
    const index_type n = call.live_size(), tiles = ceil_div(n, shape::tile);
    const sort_elements<const Key, const Value> from = call.source(step);
    const sort_elements<Key, Value> to = call.target(step);
    assume_global(from.keys);
    assume_global(to.keys);
    if constexpr (has_values) {
        assume_global(from.values);
        assume_global(to.values);
    }
    const digit_cells cells(call.cells, step);
    const int rank = static_cast<int>(threadIdx.x), lane = rank % warp_size;
    unsigned* const own_counts = shared.counts[rank / warp_size];
    const int part = rank / warp_size * (items * warp_size) + lane; // the thread's first element, of every 32nd

    const auto length_of = [&](index_type tile) {
        const index_type rest = n - tile * shape::tile;
        return static_cast<int>(rest < shape::tile ? rest : shape::tile);
    };
    Key key[items]; // what is missing of the last tile is any key
    const auto load = [&](index_type tile) {
        const Key* const source = from.keys + tile * shape::tile + part;
        const int left = length_of(tile) - part;
#pragma unroll
        for (int i = 0; i < items; ++i) key[i] = i * warp_size < left ? source[i * warp_size] : Key{};
    };

    if (rank == 0) shared.drawn = atomicAdd(&header->tickets[pass], 1u);
    __syncthreads(); // the ticket is there before it is read
    index_type tile = shared.drawn;
    while (tile < tiles) {
        // The thread's element i is there if i * 32 < left; it writes one more if i * threads < left_out. (Comparisons
        // of what depends on the tile: sums that do not would be kept in registers from tile to tile.)
        const int left = length_of(tile) - part, left_out = length_of(tile) - rank;
        load(tile);

        // How many elements the warp has of each digit. What is missing of the last tile has the last digit: it ranks
        // behind all elements, and is not written.
        const auto digit = [&](const digit_of<Key>& of, int i) {
            return i * warp_size < left ? of(key[i]) : last_digit;
        };
#pragma unroll
        for (int d = 0; d < digit_values; d += warp_size) own_counts[d + lane] = 0;
        __syncwarp(); // the counts are zero before any lane increments one
#pragma unroll
        for (int i = 0; i < items; ++i) atomicAdd(&own_counts[digit(digit_of_key, i)], 1u);
        __syncthreads(); // every warp's counts are complete before they are summed

        // A thread for each digit: the tile's aggregate, and where the digit's elements begin in the tile and in the
        // part of each warp.
        unsigned total = 0;
        if (rank < digit_values) {
#pragma unroll
            for (int w = 0; w < warps; ++w) total += shared.counts[w][rank];
            if (tile == 0)
                cells.publish_carry(0, rank, total);
            else
                cells.publish_aggregate(tile, rank, total);
        }
        const unsigned begin = exclusive_over_digits(total, shared.sums);
        if (rank < digit_values) {
            unsigned next = begin;
#pragma unroll
            for (int w = 0; w < warps; ++w) {
                const unsigned own = shared.counts[w][rank];
                shared.counts[w][rank] = next;
                next += own;
            }
        }
        __syncthreads(); // where each warp's elements begin is known before they are placed

        // Into the order of the digits.
        digit_of<Key> again = digit_of_key;
        asm volatile("" : "+r"(again.shift)); // digits are found again: there are no registers to keep them
        packed_places<has_values ? items : 1> place;
        auto* const staged_keys = reinterpret_cast<Key*>(shared.staged);
#pragma unroll
        for (int i = 0; i < items; ++i) {
            const unsigned d = digit(again, i);
            const unsigned lanes = lanes_with(d);
            const unsigned next = own_counts[d];
            __syncwarp(); // all lanes have read the places before one of each digit's lanes writes
            if (lanes >> lane == 1u) own_counts[d] = next + static_cast<unsigned>(__popc(lanes)); // the last lane
            __syncwarp(); // the places are written before the next elements' are read
            const unsigned mine = next + static_cast<unsigned>(__popc(lanes & ((1u << lane) - 1)));
            staged_keys[mine] = key[i];
            if constexpr (has_values) place.set(i, mine);
        }

        // What earlier tiles have.
        if (rank < digit_values) {
            const count_type first = header->digits[pass][rank]; // its place among all, on its way
            std::uint64_t carry = 0;
            if (tile > 0) {
                carry = cells.look_back(tile, rank);
                cells.publish_carry(tile, rank, carry + total);
            }
            shared.places[rank] = static_cast<index_type>(first + carry) - begin;
        }
        __syncthreads(); // keys and places are there before they are read

        // Not before this tile has what it waits for: later tiles wait for whoever holds a ticket and does not count.
        unsigned next_ticket = 0;
        if (rank == 0) next_ticket = atomicAdd(&header->tickets[pass], 1u); // it arrives while elements leave

        // Out, in the order of the digits.
        const Key* const sorted_keys = staged_keys + rank;
        Key* const target = to.keys + rank;
        unsigned digits_here[(items + 3) / 4] = {}; // a byte each
#pragma unroll
        for (int i = 0; i < items; ++i) {
            const Key sorted = sorted_keys[i * shape::threads];
            const unsigned d = digit_of_key(sorted);
            if (i * shape::threads < left_out) target[shared.places[d] + i * shape::threads] = sorted;
            if constexpr (has_values) digits_here[i / 4] |= d << (i % 4 * polyscan::detail::digit_bits);
        }
        if constexpr (has_values) {
            const Value* const source_values = from.values + tile * shape::tile + part;
            __syncthreads(); // the keys are read before the values take their place
            auto* const staged_values = reinterpret_cast<Value*>(shared.staged);
#pragma unroll
            for (int i = 0; i < items; ++i)
                if (i * warp_size < left) staged_values[place[i]] = source_values[i * warp_size];
            __syncthreads(); // the values are there before they are read
            const Value* const sorted_values = staged_values + rank;
            Value* const target_values = to.values + rank;
#pragma unroll
            for (int i = 0; i < items; ++i) {
                const unsigned d = digits_here[i / 4] >> (i % 4 * polyscan::detail::digit_bits) & last_digit;
                if (i * shape::threads < left_out)
                    target_values[shared.places[d] + i * shape::threads] = sorted_values[i * shape::threads];
            }
        }
        if (rank == 0) shared.drawn = next_ticket;
        // The ticket is there before it is read; and everyone has read the elements, whose place the next tile's take.
        __syncthreads();
        tile = shared.drawn;
    }
}

/// Where things are in the memory of a sort.
template <class Key, class Value>
struct sort_layout {
    index_type cells, keys, values, end;

    constexpr sort_layout(index_type n, bool needs_copy)
        : cells(polyscan::detail::aligned_offset(sizeof(sort_header))),
          keys(cells + polyscan::detail::aligned_offset(ceil_div(n, sort_shape<Key, Value>::tile) * digit_values *
                                                        static_cast<index_type>(sizeof(std::uint64_t)))),
          values(keys + (needs_copy ? polyscan::detail::aligned_offset(n * static_cast<index_type>(sizeof(Key))) : 0)),
          end(values + (needs_copy ? n * static_cast<index_type>(sort_request<Key, Value>::value_bytes) : 0)) {}
};

} // namespace detail

/// Bytes of a caller's workspace that a sort of up to `n` keys (with values) takes, beside what scans take.
template <class Key, class Value = detail::no_value>
constexpr std::size_t radix_sort_workspace_bytes(index_type n) {
    return workspace::bytes_for(static_cast<std::size_t>(detail::sort_layout<Key, Value>(n, true).end));
}

template <class Key, class Value>
void backend::radix_sort(const polyscan::detail::sort_request<Key, Value>& request) {
    using namespace detail;
    if constexpr (sort_request<Key, Value>::has_values) {
        static_assert(std::is_copy_assignable_v<Value>, "device code needs assignable values");
        static_assert(sizeof(Value) <= largest_accumulator, "device code sorts values up to 64 bytes");
        static_assert(alignof(Value) <= 16, "device code sorts values aligned to at most 16 bytes");
    }
    check(cudaGetLastError(), "earlier work on the device");
    const index_type n = request.size;
    const int passes = request.order.passes();
    const sort_layout<Key, Value> layout(n, passes > 1 || request.in_place());
    // Tickets are 32-bit numbers; each block draws one that is too high.
    if (ceil_div(n, sort_shape<Key, Value>::tile) > std::numeric_limits<std::int32_t>::max())
        reject("in", "has more tiles than there are tickets");
    unsigned char* const memory = scratch<unsigned char>(layout.end).data();
    check(cudaMemsetAsync(memory, 0, static_cast<std::size_t>(layout.keys), stream_), "cudaMemsetAsync");
    const sort_call<Key, Value> call{
        {request.keys, request.values},
        {request.keys_out, request.values_out},
        {reinterpret_cast<Key*>(memory + layout.keys), reinterpret_cast<Value*>(memory + layout.values)},
        n,
        request.count,
        reinterpret_cast<sort_header*>(memory),
        reinterpret_cast<std::uint64_t*>(memory + layout.cells),
        request.in_place()};
    launcher on(*this);
    if (passes > 0) {
        digit_counter<Key> counter{};
        counter.needed = passes;
        for (int pass = 0; pass < passes; ++pass) counter.digit[pass] = request.order.digit(pass);
        on.launch_resident(count_all_digits<Key>, ceil_div(n, tuning::least_counted), tuning::loop_threads, 0,
                           request.keys, n, request.count, counter, call.header);
        on.launch(plan_sort<void>, 1, digit_values, 0, call.header, passes, n, request.count);
    }
    on.launch_resident(copy_unsorted<Key, Value>, ceil_div(n, tuning::loop_threads), tuning::loop_threads, 0, call);
    for (int pass = 0; pass < passes; ++pass)
        on.launch_resident(sort_by_digit<Key, Value>, ceil_div(n, sort_shape<Key, Value>::tile), tuning::sort_threads,
                           shared_bytes<typename sort_shape<Key, Value>::shared>, call, pass,
                           request.order.digit(pass));
}

} // namespace polyscan::cuda
