// SPDX-License-Identifier: Apache-2.0
/// Tile passes over what vectors can hold (host/tile_kernels.hpp). Those of the default block algorithm go from the
/// input straight to the output; the other block algorithms make local prefixes in a buffer, which go to the output
/// from there.
#pragma once

#include <optional>
#include <type_traits>

#include <polyscan/host/past_caches.hpp>
#include <polyscan/host/tile_kernels.hpp>
#include <polyscan/openmp/grid/tile_pass.hpp>

namespace polyscan::openmp {

/// Input and output are the same memory: what is written has been read into the caches anyway.
template <class Request>
bool is_in_place(const Request& r) {
    if constexpr (std::is_pointer_v<typename Request::input_type> && Request::writes_memory)
        return static_cast<const void*>(r.input) == static_cast<const void*>(r.output);
    else
        return false;
}

/// The request's input and output together exceed the caches.
template <class Request>
bool exceeds_caches(const Request& r) {
    const auto size = static_cast<std::size_t>(r.size);
    std::size_t bytes = 0;
    if constexpr (Request::writes_memory) bytes += size * sizeof(*r.output);
    if constexpr (std::is_pointer_v<typename Request::input_type>)
        if (!is_in_place(r)) bytes += size * sizeof(*r.input);
    return bytes > host::last_level_bytes();
}

#if POLYSCAN_HOST_VECTORS

/// What they have in common: local prefixes from a buffer to their places.
template <class Block, class Request>
class vector_pass : public buffered_pass<Block, Request> {
    using base = buffered_pass<Block, Request>;
    using cut = tiling<Block, Request>;

public:
    using typename base::value_type;

    explicit vector_pass(const Request& r)
        : base(r), input_(r), fetches_ahead_(exceeds_caches(r)), outputs_(r, fetches_ahead_ && !is_in_place(r)) {}

    value_type store(index_type t, const std::optional<value_type>& carry) { return store(t, carry, carry); }
    value_type store(index_type t, const std::optional<value_type>& carry, const std::optional<value_type>& before) {
        const index_type count = this->values().size();
        const auto& request = this->request();
        if (count < cut::tile) return base::store(t, carry, before);
        outputs_.begin(t * cut::tile, before);
        const value_type* const local = this->values().data();
        host::put_rows(request.op, local, carry, t * cut::tile, static_cast<int>(count / host::row_length<value_type>),
                       outputs_);
        const value_type last = combine(request.op, carry, local[count - 1]);
        if (request.total != nullptr && (t + 1) * cut::tile == request.size) *request.total = last;
        return last;
    }

protected:
    const host::source<Request>& input() const { return input_; }
    host::outputs<Request>& outputs() { return outputs_; }
    bool fetches_ahead() const { return fetches_ahead_; }

private:
    const host::source<Request> input_;
    const bool fetches_ahead_;
    host::outputs<Request> outputs_;
};

/// Kogge-Stone, Brent-Kung and coarse.
template <class Block, class Request>
    requires(host::vectorisable<typename Request::accumulator_type> &&
             std::is_arithmetic_v<typename Request::accumulator_type>)
class tile_pass<Block, Request> : public vector_pass<Block, Request> {
    using base = vector_pass<Block, Request>;
    using cut = tiling<Block, Request>;
    using base::request;

public:
    using base::base;
    using typename base::value_type;

    const value_type& scan(index_type t) {
        if ((t + 1) * cut::tile > request().size) return base::scan(t); // a partial tile
        load(t);
        host::scan_block<Block>(request().op, this->values().data());
        return this->values().data()[cut::tile - 1];
    }
    value_type reduce(index_type t) {
        if constexpr (std::is_same_v<Block, block::coarse>)
            return scan(t);
        else
            return host::fold_block<Block, value_type>(request().op, this->input(), t * cut::tile);
    }
    value_type scan_and_store(index_type t, const std::optional<value_type>& carry) {
        scan(t);
        return this->store(t, carry);
    }
    template <class Receiver>
    value_type scan_and_store(index_type t, const std::optional<value_type>& carry, tile_ahead ahead,
                              Receiver aggregate) {
        aggregate(reduce(ahead.tile));
        return scan_and_store(t, carry);
    }

private:
    static constexpr index_type rows = cut::tile / host::row_length<value_type>;
    static_assert(cut::tile % host::row_length<value_type> == 0);

    void load(index_type t) {
        this->values().resize(cut::tile);
        host::load_rows(this->input(), t * cut::tile, static_cast<int>(rows), this->values().data());
    }
};

/// The default.
template <class Request>
    requires(host::vectorisable<typename Request::accumulator_type>)
class tile_pass<block::warp_shuffle, Request> : public vector_pass<block::warp_shuffle, Request> {
    using base = vector_pass<block::warp_shuffle, Request>;
    using cut = tiling<block::warp_shuffle, Request>;
    using base::request;

public:
    using base::base;
    using typename base::value_type;

    /// A request of one tile, without a pass: every grid algorithm comes to the same then.
    static void scan_at_once(const Request& r) {
        host::scan_state<value_type> state;
        state.begin_tile(r.op, r.init);
        host::outputs<Request> out(r, false);
        out.begin(0, r.init);
        const value_type last = host::scan_tile(r.op, host::source(r), 0, r.size, out, state);
        if (r.total != nullptr) *r.total = last;
    }

    const value_type& scan(index_type t) {
        const index_type first = t * cut::tile, count = std::min(cut::tile, request().size - first);
        this->values().resize(count);
        value_type* const to = this->values().data();
        host::scan_state<value_type> state;
        state.begin_tile(request().op, std::nullopt);
        this->outputs().begin_local(to);
        host::scan_tile(request().op, this->input(), first, count, this->outputs(), state);
        return to[count - 1];
    }

    value_type reduce(index_type t) {
        host::fold_state<value_type> fold;
        host::fold_tile(request().op, this->input(), t * cut::tile, fold);
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
        this->outputs().begin(first, before);
        const value_type last = host::scan_tile(request().op, this->input(), first, count, this->outputs(), state);
        if (request().total != nullptr && first + count == request().size) *request().total = last;
        return last;
    }

    template <class Receiver>
    value_type scan_and_store(index_type t, const std::optional<value_type>& carry, tile_ahead ahead,
                              Receiver aggregate) {
        host::scan_state<value_type> state;
        state.begin_tile(request().op, carry);
        this->outputs().begin(t * cut::tile, carry);
        host::fold_state<value_type> fold;
        host::scan_and_fold_tile(request().op, this->input(), t * cut::tile, this->outputs(), state,
                                 ahead.tile * cut::tile, fold, half_a_tile_after(ahead));
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
            if (!this->fetches_ahead()) return plan;
            plan.first_half = address(ahead.tile * cut::tile + cut::tile / 2);
            if (ahead.following != tile_ahead::no_tile) plan.second_half = address(ahead.following * cut::tile);
        }
        return plan;
    }
};

#endif

} // namespace polyscan::openmp
