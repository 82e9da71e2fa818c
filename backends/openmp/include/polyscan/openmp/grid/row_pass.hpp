// SPDX-License-Identifier: Apache-2.0
/// The tile pass of the default block algorithm over small structs: row by row from the input to the output, each row
/// in a few registers and cache lines. A row's operations of one level are independent of each other, which is what
/// keeps a processor busy with operators that no vector instruction computes.
#pragma once

#include <array>
#include <concepts>
#include <cstring>
#include <optional>
#include <type_traits>

#include <polyscan/host/past_caches.hpp>
#include <polyscan/host/tile_kernels.hpp>
#include <polyscan/openmp/grid/tile_pass.hpp>

namespace polyscan::openmp {

/// Structs that are copied like bytes, of a size that leaves several in a row.
template <class T>
concept small_struct = !host::vectorisable<T> && std::is_trivially_copyable_v<T> && std::default_initializable<T> &&
                       (host::row_length<T> >= 8);

template <class Request>
    requires(small_struct<typename Request::accumulator_type> && Request::writes_memory)
class tile_pass<block::warp_shuffle, Request> : public buffered_pass<block::warp_shuffle, Request> {
    using base = buffered_pass<block::warp_shuffle, Request>;
    using cut = tiling<block::warp_shuffle, Request>;
    using base::request;

public:
    using base::store;
    using typename base::value_type;

    explicit tile_pass(const Request& r) : base(r) {
        std::size_t bytes = static_cast<std::size_t>(r.size) * 2 * sizeof(value_type);
        if constexpr (std::is_pointer_v<typename Request::input_type>)
            if (static_cast<const void*>(r.input) == static_cast<const void*>(r.output)) bytes = 0; // read anyway
        past_caches_ = same_elements && bytes > host::last_level_bytes();
    }
    ~tile_pass() {
        if (past_caches_) host::order_past_caches();
    }
    tile_pass(const tile_pass&) = delete;
    tile_pass& operator=(const tile_pass&) = delete;

    value_type reduce(index_type t) {
        std::optional<value_type> aggregate;
        for (index_type row = 0; row < cut::tile; row += length) append_row(aggregate, t * cut::tile + row);
        return *aggregate;
    }

    value_type scan_and_store(index_type t, const std::optional<value_type>& carry) {
        const index_type first = t * cut::tile, end = std::min(first + cut::tile, request().size);
        std::optional<value_type> offset, before = carry;
        for (index_type at = first; at < end; at += length)
            scan_row(at, std::min(length, end - at), offset, carry, before);
        if (request().total != nullptr && end == request().size) *request().total = *before;
        return *before;
    }

    template <class Receiver>
    value_type scan_and_store(index_type t, const std::optional<value_type>& carry, tile_ahead ahead,
                              Receiver receive) {
        std::optional<value_type> offset, before = carry, aggregate;
        for (index_type row = 0; row < cut::tile; row += length) {
            append_row(aggregate, ahead.tile * cut::tile + row);
            scan_row(t * cut::tile + row, length, offset, carry, before);
        }
        receive(*aggregate);
        return *before;
    }

private:
    using out_element = std::remove_reference_t<decltype(*std::declval<Request>().output)>;
    static constexpr bool same_elements = std::is_same_v<out_element, value_type>;
    static constexpr index_type length = host::row_length<value_type>;

    // The total of the full row at `at`, folded pairwise.
    void append_row(std::optional<value_type>& aggregate, index_type at) {
        const auto& op = request().op;
        std::array<value_type, static_cast<std::size_t>(length) / 2> v;
        value_type* const r = v.data();
        for (index_type i = 0; i < length / 2; ++i)
            r[i] = polyscan::combine(op, request().load(at + 2 * i), request().load(at + 2 * i + 1));
        fold_pairs<length / 4>(r);
        aggregate.emplace(combine(op, aggregate, r[0]));
    }
    template <index_type Count>
    void fold_pairs(value_type* r) const {
        if constexpr (Count >= 1) {
            for (index_type i = 0; i < Count; ++i) r[i] = polyscan::combine(request().op, r[2 * i], r[2 * i + 1]);
            fold_pairs<Count / 2>(r);
        }
    }

    // The rounds of a full row; the strides are known to the compiler.
    template <index_type Stride>
    void rounds(value_type* r) const {
        if constexpr (Stride < length) {
            for (index_type middle = Stride; middle < length; middle += 2 * Stride) {
                const value_type lower = r[middle - 1];
                for (index_type i = middle; i < middle + Stride; ++i)
                    r[i] = polyscan::combine(request().op, lower, r[i]);
            }
            rounds<2 * Stride>(r);
        }
    }

    void scan_row(index_type at, index_type count, std::optional<value_type>& offset,
                  const std::optional<value_type>& carry, std::optional<value_type>& before) {
        // Behind the last output of the row before, for exclusive requests.
        alignas(tuning::alignment) std::array<value_type, static_cast<std::size_t>(length) + 1> v;
        value_type* const r = v.data() + 1;
        for (index_type i = 0; i < count; ++i) r[i] = request().load(at + i);
        if (count == length)
            rounds<1>(r);
        else
            block_scan(block::warp_shuffle{}, r, count, request().op);
        if (offset) put_before(*offset, r, count);
        offset.emplace(r[count - 1]);
        if (carry) put_before(*carry, r, count);
        const value_type last = r[count - 1];
        if (request().kind == scan_kind::exclusive) {
            v[0] = before.value();
            deliver(at, v.data(), count);
        } else {
            deliver(at, r, count);
        }
        before.emplace(last);
    }
    void put_before(const value_type& earlier, value_type* r, index_type count) const {
        const value_type copy = earlier;
        for (index_type i = 0; i < count; ++i) r[i] = polyscan::combine(request().op, copy, r[i]);
    }
    void deliver(index_type at, const value_type* from, index_type count) const {
        if constexpr (same_elements)
            if (past_caches_) {
                host::copy_past_caches(request().output + at, from,
                                       static_cast<std::size_t>(count) * sizeof(value_type));
                return;
            }
        for (index_type i = 0; i < count; ++i) request().store(at + i, from[i]);
    }

    bool past_caches_;
};

} // namespace polyscan::openmp
