// SPDX-License-Identifier: Apache-2.0
/// A scan request as kernels see it, and the ways in which elements travel between memory and registers.
#pragma once

#include <cstdint>
#include <cstring>
#include <iterator>
#include <type_traits>

#include <polyscan/cuda/value.cuh>
#include <polyscan/request.hpp>

namespace polyscan::cuda {

namespace detail {

/// An integer type of `bytes` bytes to move memory with; void if there is none.
template <int bytes>
using word_of_size = std::conditional_t<
    bytes == sizeof(uint4), uint4,
    std::conditional_t<bytes == sizeof(uint2), uint2,
                       std::conditional_t<bytes == sizeof(std::uint32_t), std::uint32_t,
                                          std::conditional_t<bytes == sizeof(std::uint16_t), std::uint16_t, void>>>>;

} // namespace detail

/// scan_request in the form that a kernel takes by value.
template <class Request>
struct kernel_request {
    using accumulator_type = typename Request::accumulator_type;
    using operator_type = typename Request::operator_type;
    using input_type = typename Request::input_type;
    using output_type = typename Request::output_type;
    using output_element = std::remove_pointer_t<output_type>;
    static constexpr bool writes_memory = Request::writes_memory;
    using input_element = typename std::iterator_traits<input_type>::value_type;

    input_type input;
    output_type output;
    index_type capacity;     ///< elements, unless `count` says fewer
    const index_type* count; ///< or null
    operator_type op;
    typename Request::transform_type transform;
    maybe<accumulator_type> init;
    bool exclusive;
    accumulator_type* total;
    maybe<accumulator_type> empty_total;

    explicit kernel_request(const Request& r)
        : input(r.input), output(r.output), capacity(r.size), count(r.count), op(r.op), transform(r.transform),
          exclusive(r.kind == scan_kind::exclusive), total(r.total) {
        if (r.init) init.set(*r.init);
        if (r.empty_total) empty_total.set(*r.empty_total);
    }

    __device__ index_type size() const { return live_count(capacity, count); }

    __device__ accumulator_type load(index_type i) const { return static_cast<accumulator_type>(transform(input[i])); }
    __device__ void store(index_type i, const accumulator_type& value) const {
        if constexpr (writes_memory)
            output[i] = static_cast<output_element>(value);
        else
            output.function(i, value);
    }

    /// Whether Run elements from a multiple of Run on can be read, or written, in one access.
    template <int Run>
    __device__ bool loads_words() const {
        if constexpr (has_in_word<Run>)
            return reinterpret_cast<std::uintptr_t>(input) % sizeof(in_word<Run>) == 0;
        else
            return false;
    }
    template <int Run>
    __device__ bool stores_words() const {
        if constexpr (has_out_word<Run>)
            return reinterpret_cast<std::uintptr_t>(output) % sizeof(out_word<Run>) == 0;
        else
            return false;
    }
    /// Elements i, i + 1, ..., i + Run - 1, all of which exist, in one access. `i` is a multiple of Run.
    template <int Run>
    __device__ void load_words(index_type i, slot<accumulator_type> (&values)[Run]) const {
        if constexpr (has_in_word<Run>) {
            const auto whole = *reinterpret_cast<const in_word<Run>*>(input + i);
            slot<input_element> part[Run];
            std::memcpy(static_cast<void*>(part), &whole, sizeof whole);
#pragma unroll
            for (int e = 0; e < Run; ++e) values[e].value = static_cast<accumulator_type>(transform(part[e].value));
        }
    }
    /// The counterpart of load_words. The output is not read again soon: evict it first.
    template <int Run>
    __device__ void store_words(index_type i, const slot<accumulator_type> (&values)[Run]) const {
        if constexpr (has_out_word<Run>) {
            slot<output_element> part[Run];
#pragma unroll
            for (int e = 0; e < Run; ++e) part[e].value = static_cast<output_element>(values[e].value);
            out_word<Run> whole;
            std::memcpy(&whole, static_cast<const void*>(part), sizeof whole);
            __stcs(reinterpret_cast<out_word<Run>*>(output + i), whole);
        }
    }

    /// The same elements, in one access where type and address allow.
    template <int Run>
    __device__ void load_run(index_type i, slot<accumulator_type> (&values)[Run]) const {
        if (loads_words<Run>()) {
            load_words(i, values);
        } else {
#pragma unroll
            for (int e = 0; e < Run; ++e) values[e].value = load(i + e);
        }
    }
    /// The counterpart of load_run.
    template <int Run>
    __device__ void store_run(index_type i, const slot<accumulator_type> (&values)[Run]) const {
        if (stores_words<Run>()) {
            store_words(i, values);
        } else {
#pragma unroll
            for (int e = 0; e < Run; ++e) store(i + e, values[e].value);
        }
    }

private:
    template <int Run>
    using in_word = detail::word_of_size<Run* static_cast<int>(sizeof(input_element))>;
    template <int Run>
    static constexpr bool has_in_word = [] {
        if constexpr (std::is_pointer_v<input_type>)
            return !std::is_void_v<in_word<Run>> && std::is_trivially_copyable_v<input_element>;
        else
            return false;
    }();
    template <int Run>
    using out_word =
        detail::word_of_size<Run* static_cast<int>(sizeof(std::conditional_t<writes_memory, output_element, char>))>;
    template <int Run>
    static constexpr bool has_out_word = [] {
        if constexpr (writes_memory)
            return !std::is_void_v<out_word<Run>> && std::is_trivially_copyable_v<output_element>;
        else
            return false;
    }();
};

/// What a tile needs to know beyond its own elements. `carry` comes before every element of the tile. `previous` is the
/// inclusive output just before the tile, which an exclusive scan stores first; it equals the carry except under
/// three_pass, whose carries are associated differently from its outputs.
template <class A>
struct tile_entry {
    maybe<A> carry;
    maybe<A> previous;
};

/// By one thread of the launch: the total of no elements, which shows only when the count is read.
template <class KernelRequest>
__device__ void store_empty_total(const KernelRequest& request) {
    if (request.total != nullptr && request.empty_total.present) *request.total = request.empty_total.place.value;
}

/// The tile that ends the data knows the total.
template <class KernelRequest, class A>
__device__ void store_total(const KernelRequest& request, index_type end, const maybe<A>& carry, const A& aggregate) {
    if (request.total != nullptr && end == request.size()) *request.total = combine(request.op, carry, aggregate);
}

} // namespace polyscan::cuda
