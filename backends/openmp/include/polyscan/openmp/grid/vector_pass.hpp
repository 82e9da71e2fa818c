// SPDX-License-Identifier: Apache-2.0
/// The tile pass of the default block algorithm over what vectors can hold: tiles go from the input straight to the
/// output, on the processor's vectors (host/tile_kernels.hpp).
#pragma once

#include <optional>
#include <type_traits>

#include <polyscan/host/past_caches.hpp>
#include <polyscan/host/tile_kernels.hpp>
#include <polyscan/openmp/grid/tile_pass.hpp>

namespace polyscan::openmp {

/// The request's input and output together exceed the caches. Where they are the same memory, what is written has been
/// read into the caches anyway.
template <class Request>
bool exceeds_caches(const Request& r) {
    const auto size = static_cast<std::size_t>(r.size);
    std::size_t bytes = 0;
    if constexpr (Request::writes_memory) bytes += size * sizeof(*r.output);
    if constexpr (std::is_pointer_v<typename Request::input_type>) {
        bytes += size * sizeof(*r.input);
        if constexpr (Request::writes_memory)
            if (static_cast<const void*>(r.input) == static_cast<const void*>(r.output)) return false;
    }
    return bytes > tuning::surely_cached_bytes && bytes > host::last_level_bytes();
}

template <class Request>
    requires(host::vectorisable<typename Request::accumulator_type>)
class tile_pass<block::warp_shuffle, Request> : public buffered_pass<block::warp_shuffle, Request> {
    using base = buffered_pass<block::warp_shuffle, Request>;
    using cut = tiling<block::warp_shuffle, Request>;
    using base::request;

public:
    using base::store;
    using typename base::value_type;

    explicit tile_pass(const Request& r)
        : base(r), input_(r), fetches_ahead_(exceeds_caches(r)), outputs_(r, fetches_ahead_) {}

    const value_type& scan(index_type t) {
        const index_type first = t * cut::tile, count = std::min(cut::tile, request().size - first);
        this->values().resize(count);
        value_type* const to = this->values().data();
        host::scan_state<value_type> state;
        state.begin_tile(request().op, std::nullopt);
        outputs_.begin_local(to);
        host::scan_tile(request().op, input_, first, count, outputs_, state);
        return to[count - 1];
    }

    value_type reduce(index_type t) {
        host::fold_state<value_type> fold;
        host::fold_tile(request().op, input_, t * cut::tile, fold);
        return fold.value;
    }

    value_type scan_and_store(index_type t, const std::optional<value_type>& carry) {
        return scan_and_store(t, carry, carry);
    }
    /// The same where the last output of the tile before is not the carry.
    value_type scan_and_store(index_type t, const std::optional<value_type>& carry,
                              const std::optional<value_type>& before) {
        const index_type first = t * cut::tile, count = std::min(cut::tile, request().size - first);
        host::scan_state<value_type> state;
        state.begin_tile(request().op, carry);
        outputs_.begin(first, before);
        const value_type last = host::scan_tile(request().op, input_, first, count, outputs_, state);
        if (request().total != nullptr && first + count == request().size) *request().total = last;
        return last;
    }

    template <class Receiver>
    value_type scan_and_store(index_type t, const std::optional<value_type>& carry, tile_ahead ahead,
                              Receiver aggregate) {
        host::scan_state<value_type> state;
        state.begin_tile(request().op, carry);
        outputs_.begin(t * cut::tile, carry);
        host::fold_state<value_type> fold;
        host::scan_and_fold_tile(request().op, input_, t * cut::tile, outputs_, state, ahead.tile * cut::tile, fold,
                                 half_a_tile_after(ahead));
        aggregate(fold.value);
        return state.last(request().op);
    }

private:
    // What this thread will fold when it has folded half a tile more of the tile ahead.
    host::prefetch_plan half_a_tile_after(tile_ahead ahead) const {
        host::prefetch_plan plan;
        if constexpr (std::is_pointer_v<typename Request::input_type>) {
            const auto address = [&](index_type i) {
                return reinterpret_cast<const char*>(request().input + std::min(i, request().size - 1));
            };
            if (!fetches_ahead_) return plan;
            plan.first_half = address(ahead.tile * cut::tile + cut::tile / 2);
            if (ahead.following != tile_ahead::no_tile) plan.second_half = address(ahead.following * cut::tile);
        }
        return plan;
    }

    const host::source<Request> input_;
    const bool fetches_ahead_;
    host::outputs<Request> outputs_;
};

} // namespace polyscan::openmp
