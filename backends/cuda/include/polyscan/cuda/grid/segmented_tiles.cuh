// SPDX-License-Identifier: Apache-2.0
/// Segmented scans of numbers under the default policy: the tree of the pairs {value, head}, and so their bits, with
/// values and heads apart. Heads are bits; they say which combinations of the tree take place. One launch; a block's
/// way with a tile, of which it has several under way:
///
///     load      values and what tells the heads, to shared memory, while tiles before it are finished
///     scan      rows, by shuffles; results are put aside in shared memory
///     fold      the totals of the rows, by a warp of its own; the aggregate is published
///     finish    offsets and carry are put before what is open to the left; stores, some tiles later
///
/// An element is open to the left where no segment has begun before it: in its row, then in its tile. An aggregate with
/// a head is the carry of the next tile, which takes it from its neighbour. Other carries come from a server
/// (carry_server.cuh), in the block that drew ticket 0 (walk_tiles). Element 0 is a head, so nothing comes before tile
/// 0.
///
/// Progress needs one running block. A block publishes the aggregate of each tile that it has before it waits for the
/// carry of an earlier one, except that of the tile which it loads ahead. What it waits for depends on earlier tickets
/// alone; and whoever holds the earliest aggregate that is not published waits for less, which is published.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include <polyscan/cuda/grid/segmented_rows.cuh>
#include <polyscan/cuda/grid/tile_pass.cuh>
#include <polyscan/cuda/published.cuh>
#include <polyscan/cuda/request.cuh>
#include <polyscan/cuda/tickets.cuh>
#include <polyscan/cuda/tuning.hpp>
#include <polyscan/segmented.hpp>

namespace polyscan::cuda {

/// A segmented scan as its kernel sees it.
template <class A, class Heads, class Input, class Transform, class Operator, class Start, class Output, scan_kind Kind>
struct segmented_work {
    using value_type = A;
    using heads_type = Heads;
    using input_type = Input;
    using operator_type = Operator;
    using output_type = Output;
    static constexpr bool exclusive = Kind == scan_kind::exclusive;
    static constexpr bool has_start = !std::is_same_v<Start, no_init_t>;

    polyscan::detail::segmented_element<A, Heads, Input, Transform, Operator, Start> element;
    Output out;
    A at_heads; ///< what an exclusive scan stores there
    index_type capacity;
    const index_type* count;

    __device__ index_type size() const { return live_count(capacity, count); }
    __device__ const Input& input() const { return element.in; }
    template <class T>
    __device__ A converted(const T& raw) const {
        return static_cast<A>(element.transform(raw));
    }
};

namespace detail {

/// What a request is, if it is a segmented scan of numbers.
template <class Request>
struct segmented_request {
    static constexpr bool is_known = false;
};
template <class A, class Operator, class Heads, class Input, class Transform, class Start, class Output>
struct segmented_request<scan_request<
    segmented<A>, index_iterator, function_output<polyscan::detail::store_segmented<Heads, Output>>,
    segmented_operator<Operator>, polyscan::detail::segmented_element<A, Heads, Input, Transform, Operator, Start>>> {
    static constexpr bool is_known = is_segmented_value<A>;
    using value_type = A;
    using work = segmented_work<A, Heads, Input, Transform, Operator, Start, Output, scan_kind::inclusive>;
    static work make(const auto& request) {
        return {request.transform, request.output.function.out, A{}, request.size, request.count};
    }
};
template <class A, class Operator, class Heads, class Input, class Transform, class Start, class Output>
struct segmented_request<scan_request<
    segmented<A>, index_iterator, function_output<polyscan::detail::store_segmented_exclusive<A, Heads, Output>>,
    segmented_operator<Operator>, polyscan::detail::segmented_element<A, Heads, Input, Transform, Operator, Start>>> {
    static constexpr bool is_known = is_segmented_value<A>;
    using value_type = A;
    using work = segmented_work<A, Heads, Input, Transform, Operator, Start, Output, scan_kind::exclusive>;
    static work make(const auto& request) {
        return {request.transform, request.output.function.out, request.output.function.start, request.size,
                request.count};
    }
};

} // namespace detail

/// The cells of a segmented scan, as its server sees them: an aggregate with a head is a carry already.
template <class A>
struct segmented_cells {
    static constexpr int each = tuning::served_each(sizeof(A));
    static constexpr bool counts = false;
    using image = typename cells<A>::image;
    cells<A> cell; ///< aggregate of tile t at t, carry of tile t at tiles + t
    index_type tiles;

    __device__ image fetch(index_type tile) const { return cell.fetch(tile); }
    __device__ bool decode(index_type, const image& seen, slot<A>& value, int& heads) const {
        const tile_state state = cell.decode(seen, value);
        heads = state == tile_state::carry ? 1 : 0;
        return state != tile_state::empty;
    }
    __device__ void publish(index_type tile, const A& value, index_type, bool has_head) const {
        if (!has_head) cell.publish(tiles + tile + 1, tile_state::carry, value);
    }
};

/// The geometry of a tile and of the block that scans it. A row is held by half a warp: that is one shuffle less than
/// with a whole one, and accesses of 16 bytes for numbers of 2 to 8.
template <class Work>
struct segmented_shape {
    using A = typename Work::value_type;
    using carry_type = A;
    static constexpr tile_shape tree = shape_for<block::warp_shuffle, segmented<A>>;
    static constexpr int rows = static_cast<int>(tree.threads);
    static constexpr int row = static_cast<int>(tree.run);
    static constexpr int elements = rows * row;
    POLYSCAN_FUNCTION static constexpr index_type tiles(index_type n) { return ceil_div(n, index_type{elements}); }
    static constexpr int lanes = warp_size / 2; // of a row
    static constexpr int run = row / lanes;     // elements of a row in one lane
    static constexpr int step = warp_size * run;
    /// Bytes of shared memory that go by elements: what is loaded, and what is put aside.
    static constexpr std::size_t room(int lag) {
        return elements * (element_bytes<typename Work::input_type> + warp_heads_bytes<typename Work::heads_type> +
                           static_cast<std::size_t>(lag + 1) * sizeof(A));
    }
    static constexpr int lag = room(tuning::segmented_lag) <= tuning::room_of_one ? tuning::segmented_lag : 1;
    static constexpr bool three_fit = room(lag) <= tuning::room_of_three;
    static constexpr int scan_warps = tuning::segmented_warps(three_fit);
    static constexpr int rows_of_warp = rows / scan_warps;
    static constexpr int steps = rows_of_warp / 2;               // how often a warp holds two rows side by side
    static constexpr int threads = (scan_warps + 2) * warp_size; // one that folds, and the server's
    static_assert(run >= 2 && rows == 2 * warp_size && steps * 2 * scan_warps == rows);
    using group = thread_group<(scan_warps + 1) * warp_size, threads>;
    static constexpr int scan_threads = scan_warps * warp_size;
    static constexpr bool exact = exactly_associative<typename Work::operator_type, A>;

    static constexpr bool copies_values = is_copied<typename Work::input_type>;
    using values = copied_part<typename Work::input_type, run, steps * warp_size>;
    using heads = warp_heads<typename Work::heads_type, run, steps * warp_size>;

    /// A lane's run that is put aside.
    using word = detail::word_of_size<run* static_cast<int>(sizeof(A))>;
    static_assert(!std::is_void_v<word>);
    static constexpr int open_bits = 4; // of a number of elements of a run
    static_assert(run < 1 << open_bits && steps * open_bits <= 32 && steps * run <= 32);
    using open_type = std::conditional_t<steps * open_bits <= 16, std::uint16_t, std::uint32_t>;
    using heads_type = std::conditional_t<steps * run <= 16, std::uint16_t, std::uint32_t>;

    /// What is known of a tile that is under way. Each lane reads what it has put aside itself.
    struct stage {
        word runs[steps][scan_threads];
        open_type open[scan_threads];   ///< of each of the runs, how many elements are open to the left in their row
        heads_type heads[scan_threads]; ///< of each of the runs, for exclusive scans
        folded_array<A, rows> totals;   ///< of the rows; then what comes before them in the tile
        std::uint32_t row_heads[scan_warps]; ///< whether the rows of a warp have heads, a bit each
        int first_head_row;                  ///< of the tile; `rows` if there is none
        std::uint32_t next;                  ///< number of the ticket drawn meanwhile
    };
    using server = carry_server<exact, segmented_cells<A>, typename Work::operator_type, A>;
    struct shared {
        values loaded[scan_warps]; ///< the tile after those
        heads loaded_heads[scan_warps];
        union {
            stage stages[lag + 1];
            typename server::values_of_many served_values; ///< where the block takes no tiles
        };
        typename server::room served;
        walk_start start;
    };
};

template <class Work>
class segmented_scan {
public:
    using shape = segmented_shape<Work>;

private:
    using A = typename shape::A;
    using stage_type = typename shape::stage;
    static constexpr int run = shape::run, steps = shape::steps, step = shape::step, row_lanes = shape::lanes;

public:
    using group = typename shape::group;
    using shared_type = typename shape::shared;

    __device__ segmented_scan(const Work& work, const ticket_counter& counter, typename shape::shared& shared)
        : work_(work), counter_(counter), shared_(shared), cells_(counter.cells_memory(), shared.start.first.epoch) {
        const index_type size = work.size();
        tiles_ = static_cast<std::uint32_t>(shape::tiles(size));
        in_last_ = static_cast<int>(size - (index_type{tiles_} - 1) * shape::elements);
    }

    __device__ std::uint32_t tiles() const { return tiles_; }

    /// By the threads that scan.
    __device__ void scan_tiles() {
        take_tiles<group>(
            shared_.start.first.number - 1, tiles_, counter_, shared_.stages, [&](std::uint32_t tile) { load(tile); },
            [&](std::uint32_t tile, stage_type& stage) { scan(tile, stage); },
            [&](std::uint32_t tile, stage_type& stage) { fold(tile, stage); },
            [&](std::uint32_t tile, stage_type& stage) { finish(tile, stage); });
    }

    /// By warp `me` of `of`: the carries of tiles that need another than their neighbour's aggregate.
    __device__ void serve(int me, int of) const {
        const segmented_cells<A> between{cells_, tiles_};
        typename shape::server(between, work_.element.op, shared_.served, shared_.served_values, me, of).serve(tiles_);
    }

private:
    __device__ static int lane() { return group::lane(); }
    __device__ static int first_row() { return group::warp() * shape::rows_of_warp; }
    /// Where the lane's first run starts in the tile.
    __device__ static int start() { return first_row() * shape::row + lane() * run; }
    /// Elements of the tile from there on.
    __device__ int left(std::uint32_t tile) const { return (is_full(tile) ? shape::elements : in_last_) - start(); }
    __device__ bool is_full(std::uint32_t tile) const { return tile + 1 < tiles_ || in_last_ == shape::elements; }
    /// The number of the lane's first element of the tile.
    __device__ static index_type first_of(std::uint32_t tile) { return index_type{tile} * shape::elements + start(); }
    template <class T>
    __device__ T combined(const T& earlier, const T& later) const {
        return polyscan::combine(work_.element.op, earlier, later);
    }

    // --- load --------------------------------------------------------------------------------------------------------

    __device__ void load(std::uint32_t tile) {
        const index_type first = first_of(tile) - lane() * run; // of the warp's part
        const int count = left(tile) + lane() * run;
        if constexpr (shape::copies_values) shared_.loaded[group::warp()].load(work_.element.in + first, count);
        if constexpr (shape::heads::is_known)
            shared_.loaded_heads[group::warp()].load(work_.element.heads, first, count);
    }

    // --- scan --------------------------------------------------------------------------------------------------------

    /// The heads of the k-th run. What does not exist is a head, too: nothing combines with it.
    __device__ unsigned head_bits(std::uint32_t tile, int left, int k) const {
        if constexpr (shape::heads::is_known) {
            const int r = k * warp_size + lane();
            return shared_.loaded_heads[group::warp()].bits(work_.element.heads, r, left - k * step) |
                   (tile == 0 && start() + k == 0 ? 1u : 0u);
        } else {
            const index_type first = first_of(tile) + k * step;
            unsigned bits = 0;
#pragma unroll
            for (int e = 0; e < run; ++e)
                bits |= k * step + e < left && !static_cast<bool>(work_.element.heads(first + e)) ? 0u : 1u << e;
            return bits;
        }
    }
    __device__ void values_of(std::uint32_t tile, unsigned bits, int left, int k, slot<A> (&value)[run]) const {
        values_of_run(work_, shared_.loaded[group::warp()], k * warp_size + lane(), first_of(tile) + k * step,
                      left - k * step, value);
        if constexpr (Work::has_start) {
#pragma unroll
            for (int e = 0; e < run; ++e)
                if ((bits >> e & 1) != 0 && k * step + e < left)
                    value[e].value = combined(work_.element.start, value[e].value);
        }
    }

    __device__ void scan(std::uint32_t tile, stage_type& stage) {
        const int left = this->left(tile);
        std::uint32_t open = 0, heads = 0, row_heads = 0;
        constexpr int at_once = std::min(steps, tuning::segmented_steps_at_once);
#pragma unroll
        for (int first = 0; first < steps; first += at_once) {
            unsigned bits[at_once], lanes_with_heads[at_once];
            int open_here[at_once];
            slot<A> v[at_once][run];
#pragma unroll
            for (int i = 0; i < at_once; ++i) {
                bits[i] = head_bits(tile, left, first + i);
                values_of(tile, bits[i], left, first + i, v[i]);
            }
#pragma unroll
            for (int i = 0; i < at_once; ++i) lanes_with_heads[i] = __ballot_sync(whole_warp, bits[i] != 0);
            scan_rows(work_.element.op, v, bits, lanes_with_heads, open_here);
#pragma unroll
            for (int i = 0; i < at_once; ++i) {
                const int k = first + i;
                open |= static_cast<std::uint32_t>(open_here[i]) << k * shape::open_bits;
                heads |= bits[i] << k * run;
                row_heads |= both_rows(lanes_with_heads[i]) << 2 * k;
                if (lane() % row_lanes == row_lanes - 1)
                    stage.totals[first_row() + 2 * k + lane() / row_lanes] = v[i][run - 1].value;
                typename shape::word whole;
                std::memcpy(&whole, static_cast<const void*>(v[i]), sizeof whole);
                stage.runs[k][group::rank()] = whole;
            }
        }
        stage.open[group::rank()] = static_cast<typename shape::open_type>(open);
        if constexpr (Work::exclusive) stage.heads[group::rank()] = static_cast<typename shape::heads_type>(heads);
        if (lane() == 0) stage.row_heads[group::warp()] = row_heads;
    }

    // --- fold --------------------------------------------------------------------------------------------------------

    /// By one warp: offsets from totals, and the aggregate.
    __device__ void fold(std::uint32_t tile, stage_type& stage) const {
        const std::uint64_t heads = row_bits<shape::rows_of_warp>(stage.row_heads);
        const A all = fold_rows<shape::exact>(work_.element.op, stage.totals, heads);
        if (lane() != 0) return;
        stage.first_head_row = heads != 0 ? __ffsll(static_cast<long long>(heads)) - 1 : shape::rows;
        if (tile + 1 < tiles_) cells_.publish(tile, heads != 0 ? tile_state::carry : tile_state::aggregate, all);
    }

    // --- finish ------------------------------------------------------------------------------------------------------

    /// By a whole warp. What is waited for depends on tickets that were drawn before this tile's.
    __device__ A carry_of(std::uint32_t tile) const {
        slot<A> value;
        for (;;) {
            const auto neighbour = cells_.fetch(tile - 1), served = cells_.fetch(index_type{tiles_} + tile);
            if (cells_.decode(neighbour, value) == tile_state::carry) break;
            if (cells_.decode(served, value) != tile_state::empty) break;
        }
        __syncwarp(); // lanes that saw it at different times go on together
        return value.value;
    }

    __device__ void finish(std::uint32_t tile, stage_type& stage) const {
        const int head_row = stage.first_head_row;
        const bool takes_carry = tile > 0 && first_row() <= head_row; // some rows of this warp do
        A carry{};
        if (takes_carry) carry = carry_of(tile);
        slot<A> before; // lane 0: the inclusive output before the run, for exclusive scans
        if constexpr (Work::exclusive) {
            before.value = carry;
            if (first_row() > 0) {
                before.value = stage.totals[first_row()];
                if (takes_carry) before.value = combined(carry, before.value);
            }
        }
        const std::uint32_t open = stage.open[group::rank()];
        const index_type first = first_of(tile);
        const bool full = is_full(tile);
        const int left = this->left(tile);
#pragma unroll
        for (int k = 0; k < steps; ++k) {
            const typename shape::word whole = stage.runs[k][group::rank()];
            slot<A> v[run];
            std::memcpy(static_cast<void*>(v), &whole, sizeof whole);
            const int row = first_row() + 2 * k + lane() / row_lanes;
            const int open_here = static_cast<int>(open >> k * shape::open_bits & ((1u << shape::open_bits) - 1));
            const auto put_before = [&](const A& earlier) {
#pragma unroll
                for (int e = 0; e < run; ++e)
                    if (e < open_here) v[e].value = combined(earlier, v[e].value);
            };
            if (row > 0) put_before(stage.totals[row]);
            if (takes_carry && row <= head_row) put_before(carry);
            if constexpr (Work::exclusive) {
                const A last = shuffle_from(v[run - 1].value, (lane() + warp_size - 1) % warp_size);
                const unsigned bits = static_cast<unsigned>(stage.heads[group::rank()]) >> k * run;
                slot<A> earlier;
                earlier.value = lane() == 0 ? before.value : last;
                before.value = last; // lane 0: lane 31's
#pragma unroll
                for (int e = 0; e < run; ++e) {
                    const A own = v[e].value;
                    v[e].value = (bits >> e & 1) != 0 ? work_.at_heads : earlier.value;
                    earlier.value = own;
                }
            }
            store(first + k * step, full ? run : left - k * step, v);
        }
    }

    /// Outputs i, i + 1, ... of a run, of which `count` exist.
    __device__ void store(index_type i, int count, const slot<A> (&v)[run]) const {
        using Output = typename Work::output_type;
        const auto& heads = work_.element.heads;
        if constexpr (std::is_pointer_v<Output>) {
            using Out = std::remove_pointer_t<Output>;
            constexpr int bytes = run * static_cast<int>(sizeof(Out)), unit = std::min<int>(bytes, sizeof(uint4));
            using word = detail::word_of_size<unit>;
            if constexpr (std::is_trivially_copyable_v<Out> && !std::is_void_v<word> && bytes % unit == 0) {
                if (count >= run && reinterpret_cast<std::uintptr_t>(work_.out + i) % unit == 0 &&
                    heads.in_segment(i) && heads.in_segment(i + run - 1)) {
                    slot<Out> part[run];
#pragma unroll
                    for (int e = 0; e < run; ++e) part[e].value = static_cast<Out>(v[e].value);
                    word whole[bytes / unit];
                    std::memcpy(whole, static_cast<const void*>(part), bytes);
                    // Not read again soon: evict it first.
#pragma unroll
                    for (int w = 0; w < bytes / unit; ++w) __stcs(reinterpret_cast<word*>(work_.out + i) + w, whole[w]);
                    return;
                }
            }
        }
#pragma unroll
        for (int e = 0; e < run; ++e)
            if (e < count && heads.in_segment(i + e)) polyscan::detail::put(work_.out, i + e, v[e].value);
    }

    const Work& work_;
    const ticket_counter& counter_;
    typename shape::shared& shared_;
    cells<A> cells_; ///< aggregate of tile t at t, carry of tile t at tiles_ + t
    std::uint32_t tiles_;
    int in_last_; ///< elements of the last tile
};

/// Segmented scans and scans by key of numbers, with any operator.
template <class Request>
inline constexpr bool has_segmented_tiles = can_walk<detail::segmented_request<Request>, segmented_scan>;

template <class Request>
    requires has_segmented_tiles<Request>
void run(policy<grid::prefix_server, block::warp_shuffle>, const Request& request, launcher& on) {
    if (request.total != nullptr) reject("total", "a segmented scan has none");
    launch_walk<detail::segmented_request<Request>, segmented_scan>(request, on);
}

} // namespace polyscan::cuda
