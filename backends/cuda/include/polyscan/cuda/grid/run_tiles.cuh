// SPDX-License-Identifier: Apache-2.0
/// Reductions by key of numbers, and run-length encoding, under the default policy: the tree of the pairs {heads so
/// far, value}, and so their bits, with values and heads apart. One launch, and a block's way with a tile is that of
/// segmented_tiles.cuh.
///
/// What is written goes by heads: the key at a head, to the place that the number of heads before it says, and one
/// place before that the fold of the run that ends there. So a tile has as many entries as heads, warp by warp without
/// gaps. The scan lays them out in shared memory; the fold of an entry that is the first of its row misses what comes
/// before the row, which the finish supplies. Where the input ends, there is one more entry, without a key, whose place
/// is the number of runs; so there is a tile for it, be it empty otherwise.
///
/// For run lengths the fold of a run is where it begins, which needs no tree.
///
/// The server hands a carry to every tile: how many heads there are before it, and the fold from the last of them on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include <polyscan/by_key.hpp>
#include <polyscan/cuda/grid/segmented_rows.cuh>
#include <polyscan/cuda/grid/tile_pass.cuh>
#include <polyscan/cuda/published.cuh>
#include <polyscan/cuda/tickets.cuh>
#include <polyscan/cuda/tuning.hpp>

namespace polyscan::cuda {

/// A reduction by key as its kernel sees it.
template <class A, class Key, class Equal, class Input, class Transform, class Operator, class KeysOut, class Output>
struct runs_work {
    using value_type = A;
    using key_type = Key;
    using heads_type = polyscan::detail::key_heads<const Key*, Equal>;
    using input_type = Input;
    using operator_type = Operator;
    /// Only the number of elements matters.
    static constexpr bool is_lengths = std::is_same_v<Transform, polyscan::detail::one> &&
                                       std::is_same_v<Operator, plus> && std::is_same_v<A, index_type>;

    heads_type heads;
    Input in;
    Transform transform;
    Operator op;
    KeysOut keys_out;
    Output out;
    index_type* runs; ///< or null
    index_type capacity;
    const index_type* count; ///< or null

    __device__ index_type size() const { return live_count(capacity, count); }
    __device__ const Input& input() const { return in; }
    template <class T>
    __device__ A converted(const T& raw) const {
        return static_cast<A>(transform(raw));
    }
};

namespace detail {

/// What a request is, if it is a reduction by key of numbers.
template <class Request>
struct runs_request {
    static constexpr bool is_known = false;
};
template <class A, class Key, class Equal, class Input, class Transform, class Operator, class KeysOut, class Output>
struct runs_request<
    scan_request<run_value<A>, index_iterator,
                 function_output<polyscan::detail::store_runs<
                     const Key*, polyscan::detail::key_heads<const Key*, Equal>, KeysOut, Output>>,
                 run_operator<Operator>,
                 polyscan::detail::run_element<A, polyscan::detail::key_heads<const Key*, Equal>, Input, Transform>>> {
    static constexpr bool is_known =
        is_segmented_value<A> && is_copied<const Key*> && sizeof(Key) <= sizeof(std::uint64_t);
    using value_type = A;
    using work = runs_work<A, Key, Equal, Input, Transform, Operator, KeysOut, Output>;
    static work make(const auto& request) {
        const auto& sink = request.output.function;
        return {request.transform.heads,
                request.transform.in,
                request.transform.transform,
                request.op.op,
                sink.keys_out,
                sink.out,
                sink.count,
                request.size,
                request.count};
    }
};

} // namespace detail

/// Of two folds of which the later begins no run.
struct keep_earlier {
    template <class T>
    POLYSCAN_FUNCTION T operator()(const T& earlier, const T&) const {
        return earlier;
    }
};

/// The cells of a reduction by key, as its server sees them. `Total` is the fold from a tile's last head on, or the
/// place of that head in the tile, of `Elements`, where lengths are wanted.
template <class A, class Total, int Elements, bool Lengths>
struct runs_cells {
    struct aggregate {
        Total value;
        std::uint32_t heads;
    };
    static constexpr int each = tuning::served_runs_each(sizeof(aggregate));
    static constexpr bool counts = true;
    using image = typename cells<aggregate>::image;
    cells<aggregate> totals;
    cells<run_value<A>> carries;

    __device__ runs_cells(void* memory, std::uint32_t epoch, index_type tiles)
        : totals(memory, epoch),
          carries(static_cast<unsigned char*>(memory) + tiles * static_cast<index_type>(cell_bytes(sizeof(aggregate))),
                  epoch) {}

    __device__ image fetch(index_type tile) const { return totals.fetch(tile); }
    __device__ bool decode(index_type tile, const image& seen, slot<A>& value, int& heads) const {
        slot<aggregate> total;
        const tile_state state = totals.decode(seen, total);
        heads = static_cast<int>(total.value.heads);
        if constexpr (Lengths)
            value.value = tile * Elements + total.value.value;
        else
            value.value = total.value.value;
        return state != tile_state::empty;
    }
    __device__ void publish(index_type tile, const A& value, index_type heads, bool) const {
        carries.publish(tile + 1, tile_state::carry, {heads, value});
    }
};

template <class Work>
struct runs_shape {
    using A = typename Work::value_type;
    using Key = typename Work::key_type;
    using carry_type = run_value<A>;
    static constexpr tile_shape tree = shape_for<block::warp_shuffle, run_value<A>>;
    static constexpr int rows = static_cast<int>(tree.threads);
    /// Where regrouping changes no bit, rows are as long as small tiles allow.
    static constexpr int row = exactly_associative<typename Work::operator_type, A> ? tuning::run_row(Work::is_lengths)
                                                                                    : static_cast<int>(tree.run);
    static constexpr int elements = rows * row;
    /// One more where the last is full: for the entry at the end.
    POLYSCAN_FUNCTION static constexpr index_type tiles(index_type n) { return n / elements + 1; }
    static constexpr int lanes = warp_size / 2; // of a row
    static constexpr int run = row / lanes;     // elements of a row in one lane
    static constexpr int step = warp_size * run;
    static constexpr int scan_warps = tuning::segmented_warps(true);
    static constexpr int rows_of_warp = rows / scan_warps;
    static constexpr int of_warp = rows_of_warp * row;           // elements
    static constexpr int steps = rows_of_warp / 2;               // how often a warp holds two rows side by side
    static constexpr int threads = (scan_warps + 2) * warp_size; // one that folds, and the server's
    static_assert(run >= 2 && rows == 2 * warp_size && steps * 2 * scan_warps == rows && rows_of_warp <= warp_size);
    using group = thread_group<(scan_warps + 1) * warp_size, threads>;
    static constexpr bool exact = exactly_associative<typename Work::operator_type, A>;

    static constexpr bool copies_values = is_copied<typename Work::input_type>;
    using values = copied_part<typename Work::input_type, run, steps * warp_size>;
    using heads = warp_heads<typename Work::heads_type, run, steps * warp_size>;

    using total_type = std::conditional_t<Work::is_lengths, std::uint32_t, A>;
    using cells_type = runs_cells<A, total_type, elements, Work::is_lengths>;
    using server_operator = std::conditional_t<Work::is_lengths, keep_earlier, typename Work::operator_type>;
    using server = carry_server<Work::is_lengths || exact, cells_type, server_operator, A>;

    /// The fold before an entry, or the entry's place in the tile.
    using fold_type = std::conditional_t<Work::is_lengths, std::uint16_t, A>;
    static_assert(!Work::is_lengths || elements <= 1 << 16);
    /// What is known of a tile that is under way. What belongs to a warp is read by that warp, but in the fold.
    struct stage {
        shared_array<Key, of_warp> keys[scan_warps];        ///< of the entries
        shared_array<fold_type, of_warp> folds[scan_warps]; ///< before the entries
        folded_array<A, rows> totals;                       ///< of the rows; then what comes before them in the tile
        std::uint16_t first_entry[rows];                    ///< of the row, in the warp's part
        std::uint32_t row_heads[scan_warps];                ///< whether the rows of a warp have heads, a bit each
        std::uint32_t row_entries[scan_warps];              ///< and whether they have entries
        std::uint32_t row_starts[scan_warps];               ///< and whether they start with one
        int entries[scan_warps];                            ///< of the warps
        int entries_before[scan_warps];                     ///< of the warps before
        int last_place[scan_warps]; ///< the place of the last entry in the warps before; -1 if there is none
        int first_head_row;         ///< of the tile; `rows` if there is none
        std::uint32_t next;         ///< number of the ticket drawn meanwhile
    };
    struct shared {
        values loaded[scan_warps]; ///< the tile after those
        heads loaded_heads[scan_warps];
        union {
            stage stages[tuning::run_lag(sizeof(Key) + sizeof(fold_type)) + 1];
            typename server::values_of_many served_values; ///< where the block takes no tiles
        };
        typename server::room served;
        walk_start start;
    };
};

template <class Work>
class runs_reduction {
public:
    using shape = runs_shape<Work>;

private:
    using A = typename shape::A;
    using Key = typename shape::Key;
    using stage_type = typename shape::stage;
    using carry_type = typename shape::carry_type;
    static constexpr int run = shape::run, steps = shape::steps, step = shape::step, rows_of_warp = shape::rows_of_warp;

public:
    using group = typename shape::group;
    using shared_type = typename shape::shared;

    __device__ runs_reduction(const Work& work, const ticket_counter& counter, typename shape::shared& shared)
        : work_(work), counter_(counter), shared_(shared),
          tiles_(static_cast<std::uint32_t>(shape::tiles(work.size()))),
          in_last_(static_cast<int>(work.size() % shape::elements)),
          cells_(counter.cells_memory(), shared.start.first.epoch, tiles_) {}

    __device__ std::uint32_t tiles() const { return tiles_; }

    /// By the threads that scan.
    __device__ void scan_tiles() {
        take_tiles<group>(
            shared_.start.first.number - 1, tiles_, counter_, shared_.stages, [&](std::uint32_t tile) { load(tile); },
            [&](std::uint32_t tile, stage_type& stage) { scan(tile, stage); },
            [&](std::uint32_t tile, stage_type& stage) { fold(tile, stage); },
            [&](std::uint32_t tile, stage_type& stage) { finish(tile, stage); });
    }

    /// By warp `me` of `of`: the carries.
    __device__ void serve(int me, int of) const {
        const typename shape::server_operator op = server_op();
        server(cells_, op, shared_.served, shared_.served_values, me, of).serve(tiles_);
    }

private:
    using server = typename shape::server;

    __device__ typename shape::server_operator server_op() const {
        if constexpr (Work::is_lengths)
            return {};
        else
            return work_.op;
    }
    __device__ static int lane() { return group::lane(); }
    __device__ static int first_row() { return group::warp() * rows_of_warp; }
    /// Where the warp's part of a tile starts.
    __device__ static int part() { return group::warp() * shape::of_warp; }
    /// Elements of the tile from there on.
    __device__ int left(std::uint32_t tile) const { return (is_full(tile) ? shape::elements : in_last_) - part(); }
    __device__ bool is_full(std::uint32_t tile) const { return tile + 1 < tiles_; }
    __device__ static index_type first_of(std::uint32_t tile) { return index_type{tile} * shape::elements + part(); }
    template <class T>
    __device__ T combined(const T& earlier, const T& later) const {
        return polyscan::combine(work_.op, earlier, later);
    }

    // --- load --------------------------------------------------------------------------------------------------------

    __device__ void load(std::uint32_t tile) {
        if constexpr (shape::copies_values) shared_.loaded[group::warp()].load(work_.in + first_of(tile), left(tile));
        shared_.loaded_heads[group::warp()].load(work_.heads, first_of(tile), left(tile));
    }

    // --- scan --------------------------------------------------------------------------------------------------------

    __device__ void scan(std::uint32_t tile, stage_type& stage) {
        const int left = this->left(tile), w = group::warp();
        const bool full = is_full(tile);
        std::uint32_t row_heads = 0, row_entries = 0, row_starts = 0;
        int entries = 0; // of the warp so far
        constexpr int at_once = std::min(steps, tuning::segmented_steps_at_once);
#pragma unroll
        for (int first = 0; first < steps; first += at_once) {
            slot<Key> key[at_once][run];
            unsigned chosen[at_once]; // an entry each
            unsigned bits[at_once];
#pragma unroll
            for (int i = 0; i < at_once; ++i) {
                const int k = first + i, at = k * step + lane() * run; // in the warp's part
                bits[i] = shared_.loaded_heads[w].bits(work_.heads, k * warp_size + lane(), left - at, key[i]);
                if (tile == 0 && part() + at == 0) bits[i] |= 1;
                chosen[i] = bits[i];
                if (!full) {
                    // Of what does not exist, the first is an entry.
#pragma unroll
                    for (int e = 0; e < run; ++e)
                        if (at + e > left) chosen[i] &= ~(1u << e);
                }
            }
            int mine[at_once]; // entries of the warp before this lane's
            unsigned lanes_that_start[at_once];
#pragma unroll
            for (int i = 0; i < at_once; ++i) {
                unsigned lanes_with_entries = 0;
                mine[i] = entries;
#pragma unroll
                for (int e = 0; e < run; ++e) {
                    const unsigned lanes = __ballot_sync(whole_warp, (chosen[i] >> e & 1) != 0);
                    mine[i] += __popc(lanes & ((1u << lane()) - 1));
                    entries += __popc(lanes);
                    lanes_with_entries |= lanes;
                    if (e == 0) lanes_that_start[i] = lanes;
                }
                row_entries |= both_rows(lanes_with_entries) << 2 * (first + i);
            }
            if constexpr (Work::is_lengths) {
#pragma unroll
                for (int i = 0; i < at_once; ++i) {
#pragma unroll
                    for (int e = 0; e < run; ++e) {
                        if ((chosen[i] >> e & 1) == 0) continue;
                        stage.keys[w][mine[i]] = key[i][e].value;
                        stage.folds[w][mine[i]] =
                            static_cast<std::uint16_t>(part() + (first + i) * step + lane() * run + e);
                        ++mine[i];
                    }
                }
            } else {
                slot<A> v[at_once][run];
                unsigned lanes_with_heads[at_once];
                int open[at_once]; // not needed: an entry knows whether it is the first of its row
#pragma unroll
                for (int i = 0; i < at_once; ++i) {
                    const int k = first + i, at = k * step + lane() * run;
                    values_of_run(work_, shared_.loaded[w], k * warp_size + lane(), first_of(tile) + at, left - at,
                                  v[i]);
                }
#pragma unroll
                for (int i = 0; i < at_once; ++i) lanes_with_heads[i] = __ballot_sync(whole_warp, bits[i] != 0);
                scan_rows(work_.op, v, bits, lanes_with_heads, open);
#pragma unroll
                for (int i = 0; i < at_once; ++i) {
                    const int k = first + i;
                    row_heads |= both_rows(lanes_with_heads[i]) << 2 * k;
                    row_starts |= both_rows(lanes_that_start[i] & (1u | 1u << shape::lanes)) << 2 * k;
                    const int row = first_row() + 2 * k + lane() / shape::lanes;
                    if (lane() % shape::lanes == 0) stage.first_entry[row] = static_cast<std::uint16_t>(mine[i]);
                    if (lane() % shape::lanes == shape::lanes - 1) stage.totals[row] = v[i][run - 1].value;
                    // The first of a row takes what comes before the row; the finish puts that in its place.
                    slot<A> before;
                    before.value = shuffle_up(v[i][run - 1].value, 1);
#pragma unroll
                    for (int e = 0; e < run; ++e) {
                        if ((chosen[i] >> e & 1) != 0) {
                            stage.keys[w][mine[i]] = key[i][e].value;
                            stage.folds[w][mine[i]] = before.value;
                            ++mine[i];
                        }
                        before.value = v[i][e].value;
                    }
                }
            }
        }
        if (lane() == 0) {
            stage.row_heads[w] = row_heads;
            stage.row_entries[w] = row_entries;
            stage.row_starts[w] = row_starts;
            stage.entries[w] = entries;
        }
    }

    // --- fold --------------------------------------------------------------------------------------------------------

    /// By one warp: places of entries, offsets from totals, and the aggregate.
    __device__ void fold(std::uint32_t tile, stage_type& stage) const {
        constexpr int warps = shape::scan_warps;
        const int w = lane() < warps ? lane() : warps - 1;
        const int entries = lane() < warps ? stage.entries[w] : 0;
        int up_to = entries;
#pragma unroll
        for (int d = 1; d < warps; d *= 2) {
            const int earlier = shuffle_up(up_to, d);
            if (lane() >= d) up_to += earlier;
        }
        if (lane() < warps) stage.entries_before[lane()] = up_to - entries;
        const int all = shuffle_from(up_to, warps - 1);
        slot<typename shape::total_type> value;
        if constexpr (Work::is_lengths) {
            const unsigned with_entries = __ballot_sync(whole_warp, entries > 0);
            int place = entries > 0 ? static_cast<int>(stage.folds[w][entries - 1]) : -1;
            const auto last_of = [&](unsigned warps_with) {
                const int from = 31 - __clz(static_cast<int>(with_entries & warps_with));
                const int there = shuffle_from(place, from < 0 ? 0 : from);
                return from < 0 ? -1 : there;
            };
            const int before = last_of((1u << lane()) - 1);
            if (lane() < warps) stage.last_place[lane()] = before;
            value.value = last_of(whole_warp);
        } else {
            const std::uint64_t heads = row_bits<rows_of_warp>(stage.row_heads);
            value.value = fold_rows<shape::exact>(work_.op, stage.totals, heads);
            if (lane() == 0)
                stage.first_head_row = heads != 0 ? __ffsll(static_cast<long long>(heads)) - 1 : shape::rows;
        }
        if (lane() == 0 && tile + 1 < tiles_)
            cells_.totals.publish(tile, tile_state::aggregate, {value.value, static_cast<std::uint32_t>(all)});
    }

    // --- finish ------------------------------------------------------------------------------------------------------

    /// By a whole warp. What is waited for depends on tickets that were drawn before this tile's.
    __device__ carry_type carry_of(std::uint32_t tile) const {
        slot<carry_type> value;
        cells_.carries.wait(tile, value);
        __syncwarp(); // lanes that saw it at different times go on together
        return value.value;
    }

    __device__ void finish(std::uint32_t tile, stage_type& stage) const {
        const int w = group::warp(), entries = stage.entries[w];
        if (entries == 0) return;
        carry_type carry{0, A{}};
        if (tile > 0) carry = carry_of(tile);
        const index_type base = carry.heads + stage.entries_before[w];
        if constexpr (!Work::is_lengths) {
            if (lane() < rows_of_warp && (stage.row_entries[w] >> lane() & 1) != 0) {
                const int row = first_row() + lane();
                A& fold = stage.folds[w][stage.first_entry[row]];
                const bool takes_carry = tile > 0 && row <= stage.first_head_row;
                if ((stage.row_starts[w] >> lane() & 1) == 0) {
                    A sum = fold;
                    if (row > 0) sum = combined(A(stage.totals[row]), sum);
                    if (takes_carry) sum = combined(carry.value, sum);
                    fold = sum;
                } else if (row == 0) {
                    fold = carry.value; // of tile 0 nothing: there is no run before the first
                } else {
                    const A offset = stage.totals[row];
                    fold = takes_carry ? combined(carry.value, offset) : offset;
                }
            }
            __syncwarp(); // read after write: lanes store what others have mended
        }
        // The last entry of all has no key.
        const bool has_end = tile + 1 == tiles_ && in_last_ >= part() && in_last_ < part() + shape::of_warp;
        for (int j = lane(); j < entries; j += warp_size) {
            const index_type at = base + j;
            const bool is_end = has_end && j + 1 == entries;
            if (!is_end) polyscan::detail::put(work_.keys_out, at, stage.keys[w][j]);
            if (is_end && work_.runs != nullptr) *work_.runs = at;
            if (at == 0) continue;
            if constexpr (Work::is_lengths) {
                const index_type here = index_type{tile} * shape::elements + stage.folds[w][j];
                const int before = j > 0 ? static_cast<int>(stage.folds[w][j - 1]) : stage.last_place[w];
                polyscan::detail::put(work_.out, at - 1,
                                      here - (before < 0 ? carry.value : index_type{tile} * shape::elements + before));
            } else {
                polyscan::detail::put(work_.out, at - 1, A(stage.folds[w][j]));
            }
        }
    }

    const Work& work_;
    const ticket_counter& counter_;
    typename shape::shared& shared_;
    std::uint32_t tiles_;
    int in_last_; ///< elements of the last tile; perhaps none
    typename shape::cells_type cells_;
};

/// Reductions by key of numbers, with any operator, and run-length encoding.
template <class Request>
inline constexpr bool has_run_tiles = can_walk<detail::runs_request<Request>, runs_reduction>;

template <class Request>
    requires has_run_tiles<Request>
void run(policy<grid::prefix_server, block::warp_shuffle>, const Request& request, launcher& on) {
    if (request.total != nullptr) reject("total", "a reduction by key has none");
    launch_walk<detail::runs_request<Request>, runs_reduction>(request, on);
}

} // namespace polyscan::cuda
