// SPDX-License-Identifier: Apache-2.0
/// The tile pass of the default block algorithm over numbers: tiles go from the input straight to the output, on the
/// processor's vectors (host/tile_kernels.hpp), strip by strip. Three ways out:
///  - the output's own memory, where it holds accumulators and outputs are inclusive;
///  - the same past the caches, where input and output exceed them and the address allows it;
///  - a staging strip in the first-level cache, from where outputs are converted, shifted by one place or aligned.
#pragma once

#include <array>
#include <cstring>
#include <optional>
#include <type_traits>

#include <polyscan/host/past_caches.hpp>
#include <polyscan/host/tile_kernels.hpp>
#include <polyscan/openmp/grid/tile_pass.hpp>

namespace polyscan::openmp {

template <class Request>
    requires(host::vectorisable<typename Request::accumulator_type> && Request::writes_memory)
class tile_pass<block::warp_shuffle, Request> : public buffered_pass<block::warp_shuffle, Request> {
    using base = buffered_pass<block::warp_shuffle, Request>;
    using cut = tiling<block::warp_shuffle, Request>;
    using base::request;

public:
    using base::store;
    using typename base::value_type;

    explicit tile_pass(const Request& r) : base(r), input_(r) {
        std::size_t bytes = static_cast<std::size_t>(r.size) * sizeof(out_element);
        if constexpr (std::is_pointer_v<typename Request::input_type>) {
            bytes += static_cast<std::size_t>(r.size) * sizeof(*r.input);
            if (static_cast<const void*>(r.input) == static_cast<const void*>(r.output)) bytes = 0; // read anyway
        }
        past_caches_ = bytes > tuning::surely_cached_bytes && bytes > host::last_level_bytes();
        const bool aligned = reinterpret_cast<std::uintptr_t>(r.output) % host::alignment == 0;
        staged_ = !same_elements || r.kind == scan_kind::exclusive || (past_caches_ && !aligned);
    }
    ~tile_pass() {
        if (past_caches_) host::order_past_caches();
    }
    tile_pass(const tile_pass&) = delete;
    tile_pass& operator=(const tile_pass&) = delete;

    /// The whole request, if it is short and needs nothing but the kernels; else false.
    static bool scan_at_once(const Request& r) {
        if constexpr (same_elements) {
            if (r.size > strip || r.kind == scan_kind::exclusive) return false;
            host::scan_state<value_type> state;
            state.begin_tile(r.op, r.init);
            const value_type last = scan_into(r, host::source(r), 0, r.size, r.output, state);
            if (r.total != nullptr) *r.total = last;
            return true;
        } else {
            return false;
        }
    }

    const value_type& scan(index_type t) {
        const index_type first = t * cut::tile, count = std::min(cut::tile, request().size - first);
        this->values().resize(count);
        value_type* const to = this->values().data();
        host::scan_state<value_type> state;
        state.begin_tile(request().op, std::nullopt);
        scan_into(request(), input_, first, count, to, state);
        return to[count - 1];
    }

    value_type reduce(index_type t) {
        host::fold_state<value_type> fold;
        for (index_type i = 0; i < cut::tile; i += strip)
            host::fold_strip(request().op, input_, t * cut::tile + i, fold);
        return fold.value;
    }

    value_type scan_and_store(index_type t, const std::optional<value_type>& carry) {
        const index_type first = t * cut::tile, count = std::min(cut::tile, request().size - first);
        host::scan_state<value_type> state = begin(carry);
        std::optional<value_type> before = carry;
        for (index_type i = 0; i < count; i += strip) {
            const index_type length = std::min(strip, count - i);
            value_type* const to = target(first + i, before);
            before = scan_into(request(), input_, first + i, length, to, state);
            deliver(first + i, length);
        }
        if (request().total != nullptr && first + count == request().size) *request().total = *before;
        return *before;
    }

    template <class Receiver>
    value_type scan_and_store(index_type t, const std::optional<value_type>& carry, tile_ahead ahead,
                              Receiver aggregate) {
        if (!carry) {
            aggregate(reduce(ahead.tile));
            return scan_and_store(t, carry);
        }
        const index_type first = t * cut::tile, first_ahead = ahead.tile * cut::tile;
        host::scan_state<value_type> state = begin(carry);
        host::fold_state<value_type> fold;
        std::optional<value_type> before = carry;
        for (index_type i = 0; i < cut::tile; i += strip) {
            value_type* const to = target(first + i, before);
            host::scan_and_fold_strip(request().op, input_, first + i, to, state, first_ahead + i, fold,
                                      half_a_tile_after(ahead, i));
            before = state.last(request().op);
            deliver(first + i, strip);
        }
        aggregate(fold.value);
        return *before;
    }

private:
    using out_element = std::remove_reference_t<decltype(*std::declval<Request>().output)>;
    static constexpr bool same_elements = std::is_same_v<out_element, value_type>;
    static constexpr index_type strip = host::strip_length<value_type>;
    static_assert(cut::tile % strip == 0);

    host::scan_state<value_type> begin(const std::optional<value_type>& carry) const {
        host::scan_state<value_type> state;
        state.begin_tile(request().op, carry);
        state.past_caches = past_caches_ && !staged_;
        return state;
    }

    // Scans at most a tile, from its beginning or where `state` has arrived. Returns the last output.
    static value_type scan_into(const Request& r, const host::source<Request>& in, index_type first, index_type count,
                                value_type* to, host::scan_state<value_type>& state) {
        constexpr index_type row = host::row_length<value_type>;
        const auto rows = static_cast<int>(count / row);
        const index_type done = rows * row;
        if (rows > 0) host::scan_rows(r.op, in, first, rows, to, state);
        if (done == count) return state.last(r.op);
        state.past_caches = false;
        host::scan_short_row(r.op, in, first + done, static_cast<int>(count - done), to + done, state);
        return to[count - 1];
    }

    // Where the prefixes of the strip from element `first` on are to be written.
    value_type* target(index_type first, const std::optional<value_type>& before) {
        if constexpr (same_elements)
            if (!staged_) return request().output + first;
        if (request().kind == scan_kind::inclusive) return staging_.data();
        staging_[0] = before.value();
        return staging_.data() + 1;
    }

    // Brings staged outputs to their place.
    void deliver(index_type first, index_type count) {
        if (!staged_) return;
        if constexpr (same_elements) {
            send(first, staging_.data(), count);
        } else if (past_caches_) {
            POLYSCAN_INDEPENDENT_ITERATIONS
            for (index_type i = 0; i < count; ++i)
                converted_[static_cast<std::size_t>(i)] =
                    static_cast<out_element>(staging_[static_cast<std::size_t>(i)]);
            send(first, converted_.data(), count);
        } else {
            POLYSCAN_INDEPENDENT_ITERATIONS
            for (index_type i = 0; i < count; ++i) request().store(first + i, staging_[static_cast<std::size_t>(i)]);
        }
    }
    void send(index_type first, const out_element* from, index_type count) const {
        const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(out_element);
        if (past_caches_)
            host::copy_past_caches(request().output + first, from, bytes);
        else
            std::memcpy(request().output + first, from, bytes);
    }

    // What this thread will fold when it has folded half a tile more than element i of the tile ahead.
    const char* half_a_tile_after(tile_ahead ahead, index_type i) const {
        if constexpr (std::is_pointer_v<typename Request::input_type>) {
            if (!past_caches_) return nullptr;
            index_type place = ahead.tile * cut::tile + i + cut::tile / 2;
            if (i >= cut::tile / 2) {
                if (ahead.following == tile_ahead::no_tile) return nullptr;
                place = ahead.following * cut::tile + i - cut::tile / 2;
            }
            return reinterpret_cast<const char*>(request().input + std::min(place, request().size - 1));
        } else {
            return nullptr;
        }
    }

    host::source<Request> input_;
    bool past_caches_; // outputs, and the input is fetched in advance
    bool staged_;
    alignas(host::alignment) std::array<value_type, static_cast<std::size_t>(strip) + 1> staging_;
    alignas(host::alignment) std::array<out_element, same_elements ? 1 : static_cast<std::size_t>(strip)> converted_;
};

} // namespace polyscan::openmp
