// SPDX-License-Identifier: Apache-2.0
/// The pass over a tile, written once for all grid algorithms: load, block scan, (the grid algorithm finds the carry),
/// combine, store. Grid algorithm and block algorithm meet here: an aggregate goes out, a carry comes in.
#pragma once

#include <algorithm>
#include <optional>

#include <polyscan/host/loops.hpp>
#include <polyscan/host/tile_kernels.hpp>
#include <polyscan/openmp/block/brent_kung.hpp>
#include <polyscan/openmp/block/coarse.hpp>
#include <polyscan/openmp/block/kogge_stone.hpp>
#include <polyscan/openmp/block/warp_shuffle.hpp>
#include <polyscan/openmp/tuning.hpp>
#include <polyscan/openmp/value_buffer.hpp>
#include <polyscan/request.hpp>

namespace polyscan::openmp {

/// op(carry, value), where there may be no carry.
template <class Operator, class T>
T combine(const Operator& op, const std::optional<T>& carry, const T& value) {
    return carry ? polyscan::combine(op, *carry, value) : value;
}

/// How a request is cut: tiles, and sections of consecutive tiles that one thread takes at a time.
template <class Block, class Request>
struct tiling {
    using value_type = typename Request::accumulator_type;
    static constexpr tile_shape shape = shape_for<Block, value_type>;
    static constexpr index_type tile = shape.elements();
    static constexpr index_type section_tiles = tuning::section_tiles(shape, sizeof(value_type));

    explicit tiling(const Request& request)
        : tiles(ceil_div(request.size, tile)), sections(ceil_div(tiles, section_tiles)) {}

    /// Tiles of a section: [first_tile(s), first_tile(s + 1)).
    index_type first_tile(index_type section) const { return std::min(section * section_tiles, tiles); }

    index_type tiles;
    index_type sections;
};

/// A tile whose reduction rides on another tile's scan, and what the same thread will reduce after it (or no_tile).
struct tile_ahead {
    static constexpr index_type no_tile = -1;
    index_type tile;
    index_type following;
    index_type next_section; ///< the first tile of the section that is scanned after the present one
};

/// The pass over tiles held in a private workspace, one tile of accumulators per thread.
template <class Block, class Request>
class buffered_pass {
    using cut = tiling<Block, Request>;

public:
    using value_type = typename Request::accumulator_type;

    explicit buffered_pass(const Request& request) : request_(request), values_(std::min(cut::tile, request.size)) {}

    /// Loads tile `t` and replaces it by its local prefixes. Returns the last one, the tile's aggregate.
    const value_type& scan(index_type t) {
        load(t);
        block_scan(Block{}, values().data(), values().size(), request_.op);
        return values().data()[values().size() - 1];
    }

    /// The aggregate of the full tile `t`, with the bits that `scan` would return.
    value_type reduce(index_type t) {
        load(t);
        return block_reduce(Block{}, values().data(), values().size(), request_.op);
    }

    /// Puts the carry before the local prefixes of tile `t`, which `scan` has left here, and stores them: exclusive
    /// outputs one place later, behind the last inclusive output of the tile before. Returns this tile's.
    value_type store(index_type t, const std::optional<value_type>& carry, const std::optional<value_type>& before) {
        const index_type first = t * cut::tile;
        const index_type count = values().size();
        const index_type shift = request_.kind == scan_kind::exclusive ? 1 : 0;
        const value_type* const local = values().data();
        if (shift == 1) request_.store(first, before.value());
        if (carry) {
            const value_type earlier = *carry;
            POLYSCAN_INDEPENDENT_ITERATIONS
            for (index_type i = 0; i < count - shift; ++i)
                request_.store(first + i + shift, polyscan::combine(request_.op, earlier, local[i]));
        } else {
            POLYSCAN_INDEPENDENT_ITERATIONS
            for (index_type i = 0; i < count; ++i) request_.store(first + i, local[i]);
        }
        value_type last = combine(request_.op, carry, local[count - 1]);
        if (request_.total != nullptr && first + count == request_.size) *request_.total = last;
        return last;
    }
    /// The same where aggregates are folded from the left: there the last output of a tile is the next tile's carry.
    value_type store(index_type t, const std::optional<value_type>& carry) { return store(t, carry, carry); }

    /// Both in one go, for grid algorithms that have the carry before the scan.
    value_type scan_and_store(index_type t, const std::optional<value_type>& carry) {
        scan(t);
        return store(t, carry);
    }

    /// The same while another tile is reduced; `aggregate(value)` receives the result. Tile `t` is a full one.
    template <class Receiver>
    value_type scan_and_store(index_type t, const std::optional<value_type>& carry, tile_ahead ahead,
                              Receiver aggregate) {
        aggregate(reduce(ahead.tile));
        return scan_and_store(t, carry);
    }

protected:
    value_buffer<value_type>& values() { return values_; }
    const Request& request() const { return request_; }

private:
    void load(index_type t) {
        const index_type first = t * cut::tile;
        values().fill(std::min(cut::tile, request_.size - first),
                      [&](index_type i) { return request_.load(first + i); });
    }

    const Request& request_;
    value_buffer<value_type> values_;
};

/// The pass of a grid algorithm. Specialised where a block algorithm has something better (vector_pass.hpp,
/// row_pass.hpp).
template <class Block, class Request>
class tile_pass : public buffered_pass<Block, Request> {
public:
    using buffered_pass<Block, Request>::buffered_pass;
};

} // namespace polyscan::openmp

#include <polyscan/openmp/grid/row_pass.hpp>
#include <polyscan/openmp/grid/vector_pass.hpp>

namespace polyscan::openmp {

/// Few elements, at least one, in order: for operators that are exactly associative.
template <class Request>
void scan_in_a_loop(Request request) {
    using value_type = typename Request::accumulator_type;
    const bool exclusive = request.kind == scan_kind::exclusive;
    index_type i = 0;
    value_type value{};
    if (request.init) {
        value = *request.init;
    } else {
        value = request.load(i);
        request.store(i++, value);
    }
    for (; i < request.size; ++i) {
        const value_type before = value;
        value = polyscan::combine(request.op, before, request.load(i));
        request.store(i, exclusive ? before : value);
    }
    if (request.total != nullptr) *request.total = value;
}

/// A request of few elements, where the cost of a call counts: less than a tile, in which all grid algorithms are the
/// same. Returns whether it is done. (Requests are passed on as copies, so that this one may stay in registers.)
template <class Block, class Request>
bool scan_few(const Request& request) {
    using value_type = typename Request::accumulator_type;
    using operator_type = typename Request::operator_type;
#if POLYSCAN_HOST_VECTORS
    if constexpr (std::is_arithmetic_v<value_type> && host::vectorisable<value_type>) {
        if (request.size > host::few_elements<value_type> || request.size == 0 || request.count != nullptr)
            return false;
        if constexpr (host::takes_anything<operator_type> && host::source<Request>::is_plain &&
                      std::is_same_v<typename Request::output_type, value_type*> &&
                      std::is_same_v<Block, block::warp_shuffle>) {
            if (request.kind == scan_kind::inclusive &&
                host::scan_few(request.op, request.input, static_cast<int>(request.size), request.output,
                               request.init ? &*request.init : nullptr)) {
                if (request.total != nullptr) *request.total = request.output[request.size - 1];
                return true;
            }
        }
        if constexpr (exactly_associative<operator_type, value_type>) {
            constexpr index_type very_few = 32;
            if (request.size > very_few) return false;
            scan_in_a_loop(request);
            return true;
        }
    }
#endif
    return false;
}

/// All tiles in order, in the calling thread.
template <class Block, class Request>
void scan_in_order(const Request& request) {
    using pass_type = tile_pass<Block, Request>;
    if constexpr (requires { pass_type::scan_at_once(request); })
        if (request.size <= tiling<Block, Request>::tile) return pass_type::scan_at_once(request);
    const tiling<Block, Request> cut(request);
    tile_pass<Block, Request> pass(request);
    std::optional<typename Request::accumulator_type> carry = request.init;
    for (index_type t = 0; t < cut.tiles; ++t) carry.emplace(pass.scan_and_store(t, carry));
}

} // namespace polyscan::openmp
