// SPDX-License-Identifier: Apache-2.0
/// The prefix server for elements in plain memory, as a pipeline: tiles are copied to shared memory well ahead, and
/// each step of a tile's way is a role of its own, played by warps that do nothing else:
///
///     load      draws a tile and starts its copy to shared memory        1 warp
///     reduce    row totals of a tile                                     several
///     publish   row offsets, and the tile's aggregate to the server      1, or 2 in turn
///     server    folds all aggregates, hands out carries                  several, in the block that drew tile 0
///     fetch     waits for the carries of this block's tiles              1
///     scan      rows, offsets, carry; stores                             several
///
/// docs/algorithms/prefix_server.md draws the timeline. A tile's aggregate never waits for a carry, so the server is
/// always ahead of the scans as long as enough tiles are in shared memory. Roles meet at barriers in shared memory, of
/// which each stage (place of a tile) has five; the phase of each ends once for every tile in the stage:
///
///     loaded     the tile is in shared memory                    load -> all
///     reduced    the totals of its rows are there                reduce -> publish
///     placed     the offsets of its rows are there               publish -> scan
///     carried    its carry is there                              fetch -> scan
///     freed      nobody reads the stage any more                 scan -> load
///
/// Progress needs one running block: tickets are drawn by running blocks in ascending order, aggregates wait for
/// nothing but loads, and the server publishes carries as far as aggregates reach.
#pragma once

#include <algorithm>
#include <bit>

#include <polyscan/cuda/arch.cuh>
#include <polyscan/cuda/block/balanced_fold.cuh>
#include <polyscan/cuda/grid/few_tiles.cuh>
#include <polyscan/cuda/grid/prefix_server.cuh>
#include <polyscan/cuda/launch.cuh>
#include <polyscan/cuda/packed_run.cuh>
#include <polyscan/cuda/published.cuh>
#include <polyscan/cuda/request.cuh>
#include <polyscan/cuda/tickets.cuh>
#include <polyscan/cuda/tuning.hpp>

namespace polyscan::cuda {

namespace detail {
/// op(a, a) == a.
template <class Operator, class A>
inline constexpr bool is_idempotent =
    std::is_integral_v<A> && (std::is_same_v<Operator, minimum> || std::is_same_v<Operator, maximum> ||
                              std::is_same_v<Operator, bit_and> || std::is_same_v<Operator, bit_or>);
} // namespace detail

/// A value in shared memory, read and written in the widest accesses that there are.
template <class A>
struct shared_value {
    using word = std::conditional_t<(sizeof(A) > 8), uint4, std::conditional_t<(sizeof(A) > 4), uint2, std::uint32_t>>;
    static constexpr int words = static_cast<int>((sizeof(A) + sizeof(word) - 1) / sizeof(word));
    word part[words];

    __device__ A load() const {
        word copy[words];
#pragma unroll
        for (int i = 0; i < words; ++i) copy[i] = part[i];
        slot<A> value;
        std::memcpy(static_cast<void*>(&value.value), copy, sizeof(A));
        return value.value;
    }
    __device__ void store(const A& value) {
        word copy[words] = {};
        std::memcpy(copy, &value, sizeof(A));
#pragma unroll
        for (int i = 0; i < words; ++i) part[i] = copy[i];
    }
};

/// 32 aggregates on their way from a gatherer to the folding warp, and what is before them on the way back. (Of an
/// exact operator: sums in the group.) Barriers, of which each ends a phase in each turn of the gatherer:
///
///     filled     the values are there                            gather -> fold
///     reached    the sum before the group is there               fold -> gather
///     folded     nobody but the gatherer reads the values        fold -> gather
template <class A>
struct gathered_group {
    shared_value<A> value[warp_size];
    shared_value<A> before;
    arch::phase_barrier filled, reached, folded;
    int done;            ///< carries that are published already
    bool before_present; ///< false: nothing is before the group
};

/// The geometry of a tile and of the block that scans it.
template <class KernelRequest>
struct pipeline_shape {
    using A = typename KernelRequest::accumulator_type;
    using In = typename KernelRequest::input_element;
    /// Functions are handed accumulators.
    using Out = std::conditional_t<KernelRequest::writes_memory, typename KernelRequest::output_element, A>;
    static constexpr int in_bytes = static_cast<int>(sizeof(In));
    static constexpr int out_bytes = KernelRequest::writes_memory ? static_cast<int>(sizeof(Out)) : 0;

    static constexpr tile_shape tree = shape_for<block::warp_shuffle, A>;
    static constexpr bool exact = exactly_associative<typename KernelRequest::operator_type, A>;
    static constexpr int least_lanes = 8;
    /// Lanes of a row. Of large values that fill no accesses of 16 bytes, a lane takes as many neighbours as do: then
    /// lanes read from different banks, and neighbours share a shuffle. Outputs leave through the stage.
    static constexpr int lanes = [] {
        const int row = static_cast<int>(tree.run), most = std::min(row, warp_size);
        const bool is_large = sizeof(A) > sizeof(uint2) && alignof(In) >= sizeof(std::uint32_t);
        if (exact || !is_large || in_bytes != sizeof(A) || out_bytes != sizeof(A)) return most;
        const auto fill_accesses = [&](int few) { return row / few * sizeof(A) % sizeof(uint4) == 0; };
        int few = most;
        while (few > least_lanes && !fill_accesses(few)) few /= 2;
        return fill_accesses(few) ? few : most;
    }();
    /// Where regrouping changes no bit, runs of small elements are as long as one access of 16 bytes allows.
    static constexpr int tree_run = static_cast<int>(tree.run) / lanes;
    static constexpr int access_run =
        static_cast<int>(std::bit_floor(static_cast<unsigned>(std::max(1, 16 / std::max(in_bytes, out_bytes)))));
    /// Exact values of 16 bytes, of which a run of one access is one: lanes take several neighbours, whose folds take
    /// fewer operations and shuffles, and outputs leave through the stage.
    static constexpr bool groups_wide = exact && lanes == warp_size && tree_run == 1 && sizeof(A) == sizeof(uint4) &&
                                        in_bytes == sizeof(A) && out_bytes == sizeof(A);
    static constexpr int run = groups_wide                   ? tuning::wide_run
                               : exact && lanes == warp_size ? std::max(tree_run, access_run)
                                                             : tree_run;
    static constexpr int rows = groups_wide ? tuning::wide_rows : static_cast<int>(tree.threads);
    /// What values are held in. Small integers take a register each; of those, arithmetic modulo 2^32 and comparisons
    /// need no instructions to keep them small.
    using wide = std::conditional_t<std::is_signed_v<A>, std::int32_t, std::uint32_t>;
    static constexpr bool widens = std::is_integral_v<A> && !std::is_same_v<A, bool> && sizeof(A) < sizeof(wide) &&
                                   detail::takes_anything<typename KernelRequest::operator_type, A>;
    using value = std::conditional_t<widens, wide, A>;
    /// A lane with one element has nothing to regroup.
    static constexpr bool regroups = exact && run > 1;
    /// Where regrouping changes no bit, tiles may start anywhere. Those of small outputs, which would have to be
    /// shifted by parts of words, start where outputs fill whole lines. The elements before that are a short tile of
    /// their own, the first one.
    static constexpr bool aligns_outputs = regroups && KernelRequest::writes_memory &&
                                           packed_run<Out, run>::has_words && sizeof(Out) < sizeof(std::uint32_t);
    static constexpr unsigned line = 128;
    /// Copies to shared memory start at multiples of this. From a place inside of a line on they are slower; but three
    /// stages of 32 KiB with a line beside would not fit the smallest architectures everywhere.
    static constexpr unsigned piece = aligns_outputs ? line : sizeof(uint4);
    static constexpr int row = lanes * run;
    static constexpr int elements = rows * row;
    static constexpr int rows_at_once = warp_size / lanes; // side by side in a warp
    static constexpr int step = warp_size * run;           // elements that a warp holds side by side
    static constexpr int steps = elements / step;          // of a tile

    /// Of n elements, whatever the addresses.
    static constexpr index_type most_tiles(index_type n) { return ceil_div(n, elements) + (aligns_outputs ? 1 : 0); }

    static constexpr int tile_bytes = elements * in_bytes;
    static constexpr int traffic = elements * (in_bytes + out_bytes);

    /// Structs of bytes are held in a register a byte.
    static constexpr int value_registers =
        std::max(1, static_cast<int>(sizeof(A) / std::min<std::size_t>(alignof(A), 4)));
    /// Packed structs take more while they are unpacked.
    static constexpr int weight =
        regroups && !std::is_arithmetic_v<A> ? std::max(value_registers, tuning::heavy) : value_registers;
    /// Elements of one byte are transformed once: the reduction leaves what the operator sees in their places.
    static constexpr bool takes_input_as_it_is =
        std::is_same_v<In, A> && std::is_same_v<decltype(KernelRequest::transform), no_transform>;
    static constexpr bool rewrites =
        widens && in_bytes == 1 && packed_run<A, run>::holds_bytes && !takes_input_as_it_is;
    static constexpr int scan_warps = groups_wide ? rows : tuning::pipeline_scan_warps(sizeof(A), run);
    static constexpr int reduce_warps = tuning::pipeline_reduce_warps(weight);
    /// Neighbouring runs that a lane reduces; fewer where some of those warps would have no row.
    static constexpr int share = lanes == least_lanes && reduce_warps == 4 ? 4 : 8;
    static_assert(lanes % share == 0);
    static constexpr int publish_warps = tuning::pipeline_publish_warps(weight, traffic, exact);
    static constexpr int gather_warps = tuning::pipeline_gather_warps(weight, traffic, exact);
    static constexpr int server_warps = 1 + gather_warps;
    static constexpr int load_warp = scan_warps, fetch_warp = load_warp + 1, first_publish_warp = fetch_warp + 1;
    static constexpr int first_server_warp = first_publish_warp + publish_warps;
    static constexpr int first_reduce_warp = first_server_warp + server_warps;
    static constexpr int threads = (first_reduce_warp + reduce_warps) * warp_size;
    /// Other operators and conversions may need more registers than two blocks leave.
    static constexpr bool is_plain = detail::takes_anything<typename KernelRequest::operator_type, A> &&
                                     takes_input_as_it_is && KernelRequest::writes_memory && std::is_same_v<Out, A>;
    static constexpr int blocks = ///< a multiprocessor's
        tuning::pipeline_blocks(threads, is_plain, regroups ? 0 : value_registers);
    static constexpr int steps_each = steps / scan_warps;
    static_assert(steps_each * scan_warps == steps);

    /// A tile in shared memory, with the pieces that it starts and ends in.
    struct alignas(128) stage {
        unsigned char data[tile_bytes + piece];
        alignas(16) shared_array<A, rows> offsets; ///< first the totals of the rows, then their offsets, in place
        arch::phase_barrier reduced, placed, freed;
    };
    /// What is known of a tile while it is here. Where the scans let go of a stage before the tile's carry is there,
    /// one more tile than there are stages is.
    static constexpr int extra_visits = tuning::frees_stage_early ? 1 : 0;
    struct visit {
        shared_array<A, 1> carry;
        arch::phase_barrier loaded, carried;
        std::uint32_t tile; ///< the tiles' number or more: the end
    };
    static constexpr int most_stages = tuning::pipeline_stages(traffic);
    struct shared {
        gathered_group<A> gathered[gather_warps];
        visit visits[most_stages + extra_visits];
        arch::phase_barrier begun; ///< `first` is there
        ticket first;              ///< of this block
    };
    static constexpr std::size_t stages_start = (sizeof(shared) + 127) / 128 * 128;
    static constexpr std::size_t bytes(int stages) {
        return stages_start + static_cast<std::size_t>(stages) * sizeof(stage);
    }
    static constexpr int loads_in_flight = tuning::pipeline_loads_in_flight(tile_bytes);
    static_assert(most_stages < warp_size, "fetch serves a visit a lane");

    /// Three stages at least, in the shared memory that the smallest architectures have.
    static constexpr bool fits = bytes(2) <= tuning::shared_memory_per_block;
};

/// Walks over stages, or visits, in the order in which tiles come; or takes one in `by` of them.
class ring {
public:
    __device__ explicit ring(int places, int first = 0) : places_(places), at_(first) {}
    __device__ int at() const { return at_; }
    /// Of the phase that the tile at this place ends.
    __device__ unsigned parity() const { return parity_; }
    __device__ void advance(int by = 1) {
        at_ += by;
        if (at_ >= places_) {
            at_ -= places_;
            parity_ ^= 1;
        }
    }

private:
    int places_;
    int at_;
    unsigned parity_ = 0;
};

/// The roles of a block. One object a thread.
template <class KernelRequest>
class prefix_pipeline {
    using shape = pipeline_shape<KernelRequest>;
    using A = typename shape::A;
    using In = typename shape::In;
    using Out = typename shape::Out;
    using V = typename shape::value;
    using shared_type = typename shape::shared;
    using stage_type = typename shape::stage;
    using visit_type = typename shape::visit;
    static constexpr int run = shape::run, row = shape::row, rows = shape::rows, step = shape::step;
    static constexpr int extra = shape::extra_visits;
    using in_run = packed_run<In, run>;
    /// As the operator sees elements: transformed, where the reduction does that.
    using held_run = packed_run<std::conditional_t<shape::rewrites, A, In>, run>;
    using gathered_group = cuda::gathered_group<A>;

public:
    __device__ prefix_pipeline(const KernelRequest& request, const ticket_counter& counter, unsigned char* memory,
                               int stages)
        : request_(request), counter_(counter), shared_(*reinterpret_cast<shared_type*>(memory)),
          stage_(reinterpret_cast<stage_type*>(memory + shape::stages_start)), stages_(stages), size_(request.size()),
          lead_(elements_before_whole_lines()), tiles_((lead_ > 0 ? 1 : 0) + ceil_div(size_ - lead_, shape::elements)),
          skew_(skew_at(lead_)) {}

    __device__ void play() {
        if (threadIdx.x == 0) begin_barriers();
        if (warp() == shape::load_warp) expect_tile();
        arch::wait_for_earlier_launch();
        ticket first{};
        if (threadIdx.x == shape::load_warp * warp_size) first = counter_.draw(); // on its way across the barrier
        __syncthreads(); // read after write: everybody uses the barriers
        if (warp() < shape::scan_warps) {
            scan();
        } else if (warp() == shape::load_warp) {
            load(of_lane_0(first));
        } else if (warp() == shape::fetch_warp) {
            fetch();
        } else if (warp() < shape::first_server_warp) {
            publish();
        } else if (warp() < shape::first_reduce_warp) {
            serve();
        } else {
            reduce();
        }
        // Retiring clears the cells when epochs wrap: then it waits for everybody who uses them.
        shared_.begun.wait(0);
        if (ticket_counter::wraps(shared_.first.epoch)) {
            __syncthreads(); // write after read: all roles of this block have used the cells
            if (threadIdx.x == 0) counter_.retire(shared_.first.epoch);
        }
    }

private:
    __device__ static int lane() { return static_cast<int>(threadIdx.x) % warp_size; }
    __device__ static int warp() { return static_cast<int>(threadIdx.x) / warp_size; }
    __device__ bool is_tile(std::uint32_t number) const { return number < tiles_; }
    __device__ int elements_before_whole_lines() const {
        if constexpr (shape::aligns_outputs) {
            constexpr unsigned line = shape::line, each = sizeof(Out);
            const auto past = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(request_.output) % line);
            if (past % packed_run<Out, run>::bytes == 0) return 0; // runs are whole already
            if (past % each == 0) return static_cast<int>(min(index_type{(line - past) / each}, size_));
        }
        return 0;
    }
    /// The first tile is the short one before the first whole line.
    __device__ bool is_lead(std::uint32_t tile) const { return shape::aligns_outputs && tile == 0 && lead_ > 0; }
    __device__ index_type first_of(std::uint32_t tile) const {
        const index_type first = index_type{tile} * shape::elements;
        return shape::aligns_outputs && tile > 0 && lead_ > 0 ? first - shape::elements + lead_ : first;
    }
    __device__ int count_of(std::uint32_t tile) const {
        if (is_lead(tile)) return lead_;
        return static_cast<int>(min(index_type{shape::elements}, size_ - first_of(tile)));
    }
    /// Bytes from the start of a piece to the first element of a tile.
    __device__ unsigned skew_of(std::uint32_t tile) const { return is_lead(tile) ? skew_at(0) : skew_; }
    __device__ unsigned skew_at(int element) const {
        return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(request_.input + element) % shape::piece);
    }
    /// Waits for the tile of a visit.
    __device__ std::uint32_t loaded_tile(const ring& visits) const {
        shared_.visits[visits.at()].loaded.wait(visits.parity());
        return shared_.visits[visits.at()].tile;
    }
    __device__ server_cells<A> cells() const { return {counter_, shared_.first.epoch, tiles_}; }
    __device__ A converted(const slot<In>& raw) const { return static_cast<A>(request_.transform(raw.value)); }
    template <class T>
    __device__ T combined(const T& earlier, const T& later) const {
        return polyscan::combine(request_.op, earlier, later);
    }
    using op_type = typename KernelRequest::operator_type;
    /// Elements are bytes that the operator sees as they are: in the input, or when they have been transformed.
    static constexpr bool takes_bytes =
        shape::rewrites || (shape::widens && in_run::holds_bytes && shape::takes_input_as_it_is);
    using byte_run = packed_run<A, run>;
    static constexpr bool folds_bytes = takes_bytes && byte_run::template knows<op_type>;
    /// The run's elements as the operator sees them.
    __device__ void unpack(const held_run& packed, slot<V> (&value)[run]) const {
        if constexpr (takes_bytes) {
            packed.unpack_bytes(value);
        } else {
            slot<In> raw[run];
            packed.unpack(raw);
#pragma unroll
            for (int e = 0; e < run; ++e) value[e].value = converted(raw[e]);
        }
    }
    __device__ V fold(const held_run& packed) const {
        if constexpr (folds_bytes) {
            return byte_run::template end_fold<op_type, V>(
                packed.template add_to_fold<op_type>(byte_run::template begin_fold<op_type>()));
        } else {
            slot<V> value[run];
            unpack(packed, value);
            return fold_run(request_.op, value);
        }
    }
    /// Bytes as the operator sees them.
    __device__ held_run transformed(const in_run& packed) const {
        slot<In> raw[run];
        packed.unpack(raw);
        slot<A> value[run];
#pragma unroll
        for (int e = 0; e < run; ++e) value[e].value = converted(raw[e]);
        held_run held;
        held.pack(value);
        return held;
    }
    /// Whether the reduction leaves transformed elements in a tile's whole rows. Runs that share words with their
    /// neighbours stay as they are.
    __device__ bool rewrites() const { return shape::rewrites && skew_ % in_run::bytes == 0; }

    __device__ void begin_barriers() {
        for (int s = 0; s < stages_; ++s) {
            stage_[s].reduced.begin(shape::reduce_warps * arch::warp_arrivals);
            stage_[s].placed.begin(arch::warp_arrivals);
            stage_[s].freed.begin(shape::scan_warps * arch::warp_arrivals);
        }
        for (int v = 0; v < stages_ + extra; ++v) {
            shared_.visits[v].loaded.begin(arch::copy_arrivals);
            shared_.visits[v].carried.begin(1);
        }
        for (gathered_group& one : shared_.gathered) {
            one.filled.begin(arch::warp_arrivals);
            one.reached.begin(1);
            one.folded.begin(arch::warp_arrivals);
        }
        shared_.begun.begin(1);
        arch::publish_barriers();
    }

    /// The tile that the block gets if blocks draw in the order of their numbers; in any case one that some block gets.
    __device__ void expect_tile() const {
        const std::uint32_t tile = blockIdx.x;
        if (is_tile(tile)) expect_elements(request_, first_of(tile), first_of(tile) + count_of(tile));
    }

    // --- load --------------------------------------------------------------------------------------------------------

    __device__ void load(ticket mine) {
        ring stages(stages_), visits(stages_ + extra), in_flight(stages_ + extra);
        const bool serves = mine.number == 0 && gridDim.x > 1;
        if (lane() == 0) {
            shared_.first = mine;
            shared_.begun.arrive();
            if (tiles_ == 0 && mine.number == 0) store_empty_total(request_);
        }
        for (int turn = 0;; ++turn) {
            // Write after read: the tile before. A stage that had none counts as freed. The visit is over, too: its
            // tile is the one in the stage, or the one before it, whose carry the scans have that free the stage.
            stage_[stages.at()].freed.wait(stages.parity() ^ 1);
            if (turn >= shape::loads_in_flight && shape::loads_in_flight < stages_) {
                shared_.visits[in_flight.at()].loaded.wait(in_flight.parity());
                in_flight.advance();
            }
            // As late as this: tiles that move through memory as one front are copied fastest, and nobody waits for a
            // tile that its block does not load yet. Where tiles are small, tickets are drawn one ahead.
            if (turn > 0 && serves) leave_to_others();
            if (turn > 0 && (serves || !tuning::draws_ahead(shape::traffic))) mine = draw();
            if (!is_tile(mine.number)) break;
            start(mine.number, stage_[stages.at()], shared_.visits[visits.at()]);
            if (tuning::draws_ahead(shape::traffic) && !serves) mine = draw();
            stages.advance();
            visits.advance();
        }
        if (lane() == 0 && !ticket_counter::wraps(mine.epoch)) counter_.retire(mine.epoch);
        // Every visit gets an end, because each lane of fetch waits at its own. A barrier must not run two phases ahead
        // of whoever waits at it: so the scans of the visit's last tile have begun, and its fetch is over. (With an
        // extra visit, the first end comes after a tile older than those in the stages.)
        for (int v = 0; v < stages_ + extra; ++v) {
            if (v >= extra) {
                stage_[stages.at()].freed.wait(stages.parity() ^ 1);
                stages.advance();
            }
            visit_type& last = shared_.visits[visits.at()];
            last.carried.wait(visits.parity() ^ 1);
            if (lane() == 0) last.tile = mine.number;
            __syncwarp(); // read after write: the arrival of any lane publishes the number
            arch::arrive_like_copy(last.loaded);
            visits.advance();
        }
    }
    /// The server's chain of sums bounds the grid, so its block leaves tiles to others as long as they take some.
    __device__ void leave_to_others() const {
        for (std::uint32_t before = counter_.drawn();;) {
            __nanosleep(tuning::server_looks_every_ns);
            const std::uint32_t now = counter_.drawn();
            if (!is_tile(now) || now == before) return;
            before = now;
        }
    }
    __device__ ticket draw() const {
        ticket drawn{};
        if (lane() == 0) drawn = counter_.draw();
        return of_lane_0(drawn);
    }
    __device__ static ticket of_lane_0(ticket drawn) {
        drawn.number = __shfl_sync(whole_warp, drawn.number, 0);
        drawn.epoch = __shfl_sync(whole_warp, drawn.epoch, 0);
        return drawn;
    }
    /// Whole pieces of 16 bytes, with neighbours' elements in the outer ones, are copied at once. Pieces that reach
    /// beyond the input are copied by bytes.
    __device__ void start(std::uint32_t tile, stage_type& stage, visit_type& visit) {
        const unsigned skew = skew_of(tile);
        const index_type before = first_of(tile) * shape::in_bytes;
        const auto* const from = reinterpret_cast<const unsigned char*>(request_.input) + before - skew;
        const unsigned end = skew + static_cast<unsigned>(count_of(tile) * shape::in_bytes);
        const index_type left = skew + size_ * shape::in_bytes - before;
        constexpr unsigned word = sizeof(uint4);
        const auto rounded_up = [](unsigned bytes) { return (bytes + word - 1) / word * word; };
        const unsigned whole_from = before < skew ? rounded_up(skew - static_cast<unsigned>(before)) : 0;
        const unsigned whole_to = max(rounded_up(end) <= left ? rounded_up(end) : end / word * word, whole_from);
        if (lane() == 0) visit.tile = tile;
        if (whole_from > 0 || whole_to < end) {
            const unsigned i = static_cast<unsigned>(lane());
            if (skew + i < min(whole_from, end)) stage.data[skew + i] = from[skew + i];
            if (i < word && whole_to + i < end) stage.data[whole_to + i] = from[whole_to + i];
            arch::before_next_copy();
        }
        arch::start_copy(stage.data + whole_from, from + whole_from, whole_to - whole_from, visit.loaded,
                         size_ * shape::in_bytes <= tuning::evicted_first);
    }

    // --- reduce ------------------------------------------------------------------------------------------------------

    /// A lane folds neighbouring runs, so that most of a row's tree needs no shuffles.
    __device__ void reduce() {
        constexpr int share = shape::share, lanes_of_row = shape::lanes / share;
        constexpr int rows_of_warp = warp_size / lanes_of_row;
        const int me = warp() - shape::first_reduce_warp;
        // Which of its runs a lane reads first. Lanes that are served together then read from different banks.
        constexpr unsigned same_turn = std::max(1, 16 / in_run::access_bytes) * (8 / share);
        const unsigned turned = static_cast<unsigned>(lane()) / same_turn % share;
        for (ring stages(stages_), visits(stages_ + extra);; stages.advance(), visits.advance()) {
            stage_type& stage = stage_[stages.at()];
            const std::uint32_t tile = loaded_tile(visits);
            if (!is_tile(tile)) return;
            const int whole_rows = count_of(tile) / row; // nobody needs the total of a row that is not full
#pragma unroll 1
            for (int first = me * rows_of_warp; first < rows; first += shape::reduce_warps * rows_of_warp) {
                const int r = first + lane() / lanes_of_row;
                const int start = r * row + lane() % lanes_of_row * (share * run);
                slot<V> total;
                if (r < whole_rows) {
                    if constexpr (shape::rewrites)
                        total.value = transform_share<share>(stage, start, turned);
                    else if constexpr (folds_bytes)
                        total.value = fold_share_of_bytes<share>(stage, start, turned);
                    else
                        total.value = fold_share<share>(stage, start, turned);
                }
#pragma unroll
                for (int distance = 1; distance < lanes_of_row; distance *= 2) {
                    const V other = shuffle_down(total.value, distance);
                    if (r < whole_rows) total.value = combined(total.value, other);
                }
                if (lane() % lanes_of_row == 0 && r < whole_rows) stage.offsets[r] = static_cast<A>(total.value);
            }
            if constexpr (shape::rewrites) arch::before_next_copy(); // this warp wrote to the stage
            stage.reduced.arrive_warp();
        }
    }
    /// Where the run that starts with element `start` is in the stage.
    __device__ unsigned place_of(int start) const {
        return skew_ + static_cast<unsigned>(start) * static_cast<unsigned>(shape::in_bytes);
    }
    /// The balanced tree over `count` runs from place `from` on; a lane visits them in an order of its own, and swaps
    /// two halves where it comes to the later one first.
    template <int count>
    __device__ V fold_share(const stage_type& stage, int start, unsigned turned, unsigned from = 0) const {
        if constexpr (count == 1) {
            held_run packed;
            packed.load(stage.data, place_of(start + static_cast<int>(from ^ turned) * run));
            return fold(packed);
        } else {
            const V one = fold_share<count / 2>(stage, start, turned, from);
            const V two = fold_share<count / 2>(stage, start, turned, from + count / 2);
            const bool swapped = (turned & (count / 2)) != 0;
            if constexpr (detail::takes_anything<typename KernelRequest::operator_type, A>)
                return combined(one, two);
            else
                return combined(select(swapped, two, one), select(swapped, one, two));
        }
    }
    /// The same, run after run, which are transformed first, and left like that.
    template <int count>
    __device__ V transform_share(stage_type& stage, int start, unsigned turned) const {
        constexpr unsigned at_once = tuning::transformed_at_once; // reads do not wait for the stores before them
        slot<V> sum;
#pragma unroll 1
        for (unsigned i = 0; i < count; i += at_once) {
            in_run packed[at_once];
            unsigned place[at_once];
#pragma unroll
            for (unsigned k = 0; k < at_once; ++k) {
                place[k] = place_of(start + static_cast<int>((i + k) ^ turned) * run);
                packed[k].load(stage.data, place[k]);
            }
#pragma unroll
            for (unsigned k = 0; k < at_once; ++k) {
                const held_run held = transformed(packed[k]);
                if (rewrites()) held.store_back(stage.data, place[k]);
                const V folded = fold(held);
                sum.value = i + k == 0 ? folded : combined(sum.value, folded);
            }
        }
        return sum.value;
    }
    /// The same of packed bytes, whose order does not matter. Where runs lie across words, whole words are folded, of
    /// which the first and the one behind the last are shared with neighbours.
    template <int count>
    __device__ V fold_share_of_bytes(const stage_type& stage, int start, unsigned turned) const {
        std::uint32_t folded = byte_run::template begin_fold<op_type>();
        const auto add = [&](const byte_run& packed) { folded = packed.template add_to_fold<op_type>(folded); };
        constexpr unsigned bytes = byte_run::bytes;
        const unsigned shared = skew_ % bytes, begin = skew_ - shared + static_cast<unsigned>(start);
        if (shared != 0) {
            constexpr A none = byte_run::template neutral<op_type>();
            byte_run first, behind;
            first.template load<true>(stage.data, begin);
            behind.template load<true>(stage.data, begin + count * bytes);
            first.keep(shared, bytes, none);
            behind.keep(0, shared, none);
            add(first);
            add(behind);
        }
#pragma unroll
        for (unsigned i = 0; i < count; ++i) {
            byte_run packed;
            packed.template load<true>(stage.data, begin + (i ^ turned) * bytes);
            const std::uint32_t without = folded;
            add(packed);
            if (shared != 0 && i == turned) folded = without; // that is the first one
        }
        return byte_run::template end_fold<op_type, V>(folded);
    }

    // --- publish -----------------------------------------------------------------------------------------------------

    __device__ void publish() {
        constexpr int all = shape::publish_warps; // they take tiles in turn
        const int me = warp() - shape::first_publish_warp;
        for (ring stages(stages_, me), visits(stages_ + extra, me);; stages.advance(all), visits.advance(all)) {
            stage_type& stage = stage_[stages.at()];
            const std::uint32_t tile = loaded_tile(visits);
            if (!is_tile(tile)) return;
            const int count = count_of(tile);
            stage.reduced.wait(stages.parity());
            if (count == shape::elements) {
                slot<A> aggregate;
                if constexpr (shape::exact)
                    aggregate.value = scan_totals(stage.offsets);
                else if (lane() == 0)
                    aggregate.value = fold_totals(stage.offsets);
                if (lane() == 0 && tile + 1 < tiles_) cells().publish_aggregate(tile, aggregate.value);
            } else if (is_lead(tile)) {
                const A aggregate = fold_lead(stage.data + skew_of(tile), count);
                if (lane() == 0 && tile + 1 < tiles_) cells().publish_aggregate(tile, aggregate);
            } else if (lane() == 0) {
                fold_totals_of_part(stage.offsets, count / row);
            }
            stage.placed.arrive_warp();
        }
    }
    /// By one lane: totals become offsets, from left to right. Row 0 has none. Reads are a batch ahead of sums.
    __device__ A fold_totals(shared_array<A, rows>& totals) const {
        constexpr int batch = tuning::fold_batch(sizeof(A));
        slot<A> now[batch], next[batch];
#pragma unroll
        for (int i = 0; i < batch; ++i) now[i].value = totals[i];
        A sum = now[0].value;
#pragma unroll
        for (int r = 0; r < rows; r += batch) {
            if (r + batch < rows) {
#pragma unroll
                for (int i = 0; i < batch; ++i) next[i].value = totals[r + batch + i];
            }
#pragma unroll
            for (int i = 0; i < batch; ++i) {
                if (r + i > 0) {
                    totals[r + i] = sum;
                    sum = combined(sum, now[i].value);
                }
            }
#pragma unroll
            for (int i = 0; i < batch; ++i) now[i].value = next[i].value;
        }
        return sum;
    }
    /// The aggregate of the short first tile, which is less than a row: each lane folds some neighbours.
    __device__ A fold_lead(const unsigned char* data, int count) const {
        static_assert(!shape::aligns_outputs || shape::line <= row * sizeof(Out));
        const auto* const element = reinterpret_cast<const In*>(data);
        const int each = (count + warp_size - 1) / warp_size, lanes = (count + each - 1) / each;
        const int first = lane() * each;
        slot<A> sum;
        if (first < count) sum.value = converted(slot<In>(element[first]));
        for (int e = first + 1; e < min(first + each, count); ++e)
            sum.value = combined(sum.value, converted(slot<In>(element[e])));
        return shuffle_from(scan_lanes(sum.value, lanes), lanes - 1);
    }
    __device__ void fold_totals_of_part(shared_array<A, rows>& totals, int whole_rows) const {
        slot<A> sum;
        for (int r = 0; r <= whole_rows && r < rows; ++r) {
            slot<A> total;
            if (r < whole_rows) total.value = totals[r];
            if (r > 0) totals[r] = sum.value;
            if (r < whole_rows) sum.value = r == 0 ? total.value : combined(sum.value, total.value);
        }
    }
    /// The same by a warp, where grouping does not matter; the sum is lane 0's.
    __device__ A scan_totals(shared_array<A, rows>& totals) const {
        if constexpr (rows <= warp_size) {
            slot<A> mine;
            if (lane() < rows) mine.value = totals[lane()];
            const A all = scan_lanes(mine.value, rows);
            const A before = shuffle_up(all, 1);
            if (lane() > 0 && lane() < rows) totals[lane()] = before;
            return shuffle_from(all, rows - 1);
        } else {
            return scan_pairs_of_totals(totals);
        }
    }
    __device__ A scan_pairs_of_totals(shared_array<A, rows>& totals) const {
        static_assert(rows == 2 * warp_size);
        const A first = totals[2 * lane()];
        const A both = scan_lanes(combined(first, totals[2 * lane() + 1]));
        const A before = shuffle_up(both, 1);
        if (lane() > 0) totals[2 * lane()] = before;
        totals[2 * lane() + 1] = lane() > 0 ? combined(before, first) : first;
        return shuffle_from(both, warp_size - 1);
    }
    /// Inclusive, over the first lanes of the warp.
    __device__ A scan_lanes(A value, int lanes = warp_size) const {
#pragma unroll
        for (int distance = 1; distance < warp_size; distance *= 2) {
            const A before = shuffle_up(value, distance);
            if (lane() >= distance && lane() < lanes) value = combined(before, value);
        }
        return value;
    }

    // --- server ------------------------------------------------------------------------------------------------------

    /// Groups of 32 tiles. Gatherers take turns: each waits for the aggregates of a group, lays them out, waits for the
    /// sum before the group, and publishes the group's carries. One warp folds group after group and does nothing else,
    /// because its chain of sums bounds the whole grid.
    __device__ void serve() {
        shared_.begun.wait(0);
        if (shared_.first.number != 0) return;
        const auto needed = static_cast<std::uint32_t>(max(tiles_, index_type{1}) - 1); // not that of the last tile
        if (warp() == shape::first_server_warp)
            fold_groups(needed);
        else
            gather(needed, warp() - shape::first_server_warp - 1);
    }

    __device__ void gather(std::uint32_t needed, int me) {
        const server_cells<A> cells = this->cells();
        gathered_group& mine = shared_.gathered[me];
        unsigned parity = 0; // of this warp's turn
        constexpr unsigned group = warp_size, stride = shape::gather_warps * group;
        // Lanes without a tile read the last one: no branch stands between the read and its use.
        const auto fetch = [&](std::uint32_t from) {
            return cells.fetch_aggregate(min(from + static_cast<unsigned>(lane()), needed - 1));
        };
        std::uint32_t first = static_cast<unsigned>(me) * group;
        if (first >= needed) return;
        for (auto read = fetch(first); first < needed; first += stride) {
            cells.prefetch(index_type{first} + tuning::prefetched_groups * warp_size);
            const int size = static_cast<int>(min(group, needed - first));
            slot<A> value;
            bool known = lane() >= size || cells.decode(read, value);
            while (!__all_sync(whole_warp, known))
                if (!known) known = cells.decode(fetch(first), value);
            if constexpr (shape::exact) value.value = scan_lanes(value.value, size); // off the chain
            if (lane() < size) mine.value[lane()].store(value.value);
            mine.filled.arrive_warp();
            // Where the server is behind, the next turn's aggregates are there already: they come in the meantime.
            read = fetch(first + stride);
            mine.reached.wait(parity); // read after write: what is before the group
            maybe<A> before;
            if (mine.before_present) before.set(mine.before.load());
            slot<A> carry;
            if constexpr (shape::exact) {
                if (lane() < size) carry.value = cuda::combine(request_.op, before, mine.value[lane()].load());
            } else {
                carry.value = fold_group<true>(mine, before, size);
            }
            if (lane() >= mine.done && lane() < size) cells.publish_carry(index_type{first} + lane() + 1, carry.value);
            mine.folded.wait(parity); // write after read: the next turn's values replace these
            __syncwarp();             // write after read: the same for this warp's lanes
            parity ^= 1;
        }
    }

    __device__ void fold_groups(std::uint32_t needed) {
        maybe<A> sum = request_.init; // of everything before the group; the same in all lanes
        int turn = 0;
        unsigned parity = 0;
        constexpr unsigned group = warp_size;

        for (std::uint32_t first = 0; first < needed; first += group) {
            gathered_group& next = shared_.gathered[turn];
            const int size = static_cast<int>(min(group, needed - first));
            const int done = serve_part(first, size, next.filled, parity, sum);
            if (lane() == 0) {
                next.done = done;
                next.before_present = sum.present;
                if (sum.present) next.before.store(sum.place.value);
                next.reached.arrive();
            }
            if constexpr (shape::exact)
                sum.set(cuda::combine(request_.op, sum, next.value[size - 1].load()));
            else if (size == warp_size) // only the last group is smaller, whose sum nobody needs
                sum.set(fold_group<false>(next, sum, warp_size));
            next.folded.arrive_warp();
            if (++turn == shape::gather_warps) {
                turn = 0;
                parity ^= 1;
            }
        }
    }
    /// Waits for a group. It is served as a whole, unless an aggregate stays away: it may be that of a tile which waits
    /// for a carry of this group to set its stage free. Then the carries of the tiles before it are published. Returns
    /// their number.
    __device__ int serve_part(std::uint32_t first, int size, const arch::phase_barrier& filled, unsigned parity,
                              const maybe<A>& sum) const {
        const server_cells<A> cells = this->cells();
        slot<A> value;
        bool known = lane() >= size;
        int done = 0;
        for (int looks = 1;; ++looks) {
            // Every lane has seen it: read after write, every lane reads the group's values.
            if (__all_sync(whole_warp, filled.has_ended(parity))) break;
            if (looks % tuning::looks_before_part != 0) continue;
            if (!known) known = cells.decode(cells.fetch_aggregate(index_type{first} + lane()), value);
            const unsigned missing = ~__ballot_sync(whole_warp, known);
            const int reached = missing == 0 ? size : min(size, __ffs(static_cast<int>(missing)) - 1);
            if (reached == done) continue;
            publish_part(cells, first, sum, done, reached, value.value);
            done = reached;
        }
        return done;
    }
    /// Puts values 0, ..., reached - 1 of lanes behind the sum, and publishes carries from number `done` on.
    __device__ void publish_part(const server_cells<A>& cells, std::uint32_t first, maybe<A> sum, int done, int reached,
                                 const A& value) const {
#pragma unroll 1
        for (int k = 0; k < reached; ++k) {
            sum.set(cuda::combine(request_.op, sum, shuffle_from(value, k)));
            if (k >= done && k == lane()) cells.publish_carry(index_type{first} + k + 1, sum.place.value);
        }
    }
    /// What is before a group and the group's values, folded from the left. By the folding warp all of them, the same
    /// in all lanes; by a gatherer (`UpToLane`) in lane l those up to value l. Reads are ahead of the chain of sums,
    /// and may reach places that nobody has written: values of the group's own size are folded only.
    template <bool UpToLane>
    __device__ A fold_group(const gathered_group& group, const maybe<A>& before, int size) const {
        const int last = UpToLane ? min(lane(), size - 1) : warp_size - 1;
        constexpr bool keeps = UpToLane && tuning::server_keeps_sums(sizeof(A), alignof(A));
        A sum = cuda::combine(request_.op, before, group.value[0].load());
        [[maybe_unused]] A mine = sum; // where all lanes add all values
        constexpr int batch = tuning::server_fold_batch(sizeof(A), UpToLane, shape::blocks);
        slot<A> next[batch];
        const auto read = [&](int i, int k) {
            if (k < warp_size) next[i].value = group.value[k].load();
        };
#pragma unroll
        for (int i = 0; i < batch; ++i) read(i, 1 + i);
#pragma unroll tuning::server_batches_unrolled(sizeof(A), UpToLane)
        for (int first = 1; first < warp_size; first += batch) {
#pragma unroll
            for (int i = 0; i < batch; ++i) {
                if (first + i <= (keeps ? size - 1 : last)) sum = combined(sum, next[i].value);
                if constexpr (keeps) mine = select(first + i == lane(), sum, mine);
                read(i, first + batch + i);
            }
        }
        if constexpr (keeps) return mine;
        return sum;
    }

    // --- fetch -------------------------------------------------------------------------------------------------------

    /// Lane v waits for the carries of the tiles of visit v. No lane stops the others.
    __device__ void fetch() {
        unsigned parity = 0;
        std::uint32_t tile = 0;
        bool waits = false, ended = lane() >= stages_ + extra;
        while (!__all_sync(whole_warp, ended)) {
            visit_type& visit = shared_.visits[ended ? 0 : lane()];
            if (!waits && !ended && visit.loaded.has_ended(parity)) {
                tile = visit.tile;
                waits = is_tile(tile);
                ended = !waits;
            }
            if (waits) {
                slot<A> carry;
                bool here = tile == 0; // which has none but the init
                if (!here && cells().carry_is_there(tile, carry)) {
                    visit.carry[0] = carry.value;
                    here = true;
                }
                if (here) {
                    visit.carried.arrive();
                    waits = false;
                    parity ^= 1;
                }
            }
        }
    }

    // --- scan --------------------------------------------------------------------------------------------------------

    /// Some steps of a tile.
    struct part {
        stage_type& stage;
        visit_type& visit;
        unsigned parity; // of the visit
        std::uint32_t tile;
        int count; // elements of the tile
        int step;  // the first one
        bool last; // of the warp's in this tile
    };

    __device__ void scan() {
        for (ring stages(stages_), all_visits(stages_ + extra);; stages.advance(), all_visits.advance()) {
            const ring& visits = extra == 0 ? stages : all_visits; // one ring takes fewer registers
            const std::uint32_t tile = loaded_tile(visits);
            if (!is_tile(tile)) return;
            stage_type& stage = stage_[stages.at()];
            // Before the rows are scanned: the aggregate shall not queue behind this warp's work.
            stage.placed.wait(stages.parity());
            const int count = count_of(tile);
            part now{stage, shared_.visits[visits.at()], visits.parity(), tile, count, 0, false};
            // A tile may end before its end; the warps before that one do as everywhere.
            if ((warp() + 1) * shape::steps_each * step <= count) {
                constexpr int at_once =
                    std::min(shape::steps_each, tuning::steps_at_once(steps_registers, value_registers, shape::traffic,
                                                                      unpacks_structs, run, shape::blocks));
                if constexpr (shape::rewrites) {
                    if (rewrites())
                        scan_whole_steps<at_once, true>(now);
                    else
                        scan_whole_steps<at_once, false>(now);
                } else {
                    scan_whole_steps<at_once, true>(now);
                }
            } else {
#pragma unroll 1
                for (int k = 0; k < shape::steps_each; ++k) {
                    now.step = warp() * shape::steps_each + k;
                    now.last = k + 1 == shape::steps_each; // in any case: it lets go of the stage
                    if (now.last || now.step * step < count) scan_steps<false, 1>(now);
                }
            }
        }
    }
    template <int N, bool Transformed>
    __device__ void scan_whole_steps(part now) {
#pragma unroll 1
        for (int k = 0; k < shape::steps_each; k += N) {
            now.step = warp() * shape::steps_each + k;
            now.last = k + N == shape::steps_each;
            scan_steps<true, N, Transformed>(now);
        }
    }
    static constexpr int value_registers = shape::value_registers;
    static constexpr bool unpacks_structs =
        !std::is_arithmetic_v<A> && (shape::regroups || (run > 1 && packed_run<A, run>::has_words));
    static constexpr int steps_registers =
        shape::regroups ? in_run::registers + value_registers : run * value_registers;

    /// What is before the tile's elements; and the end of the stage's use, where outputs do not leave through it.
    __device__ maybe<A> wait_for_carry(const part& p) const {
        if constexpr (tuning::frees_stage_early && !stores_through_stage) free(p);
        p.visit.carried.wait(p.parity);
        const maybe<A> carry = p.tile == 0 ? request_.init : maybe<A>(A(p.visit.carry[0]));
        if constexpr (!tuning::frees_stage_early && !stores_through_stage) free(p);
        return carry;
    }
    /// Outputs of odd sizes leave through the stage. Others need it no longer than their inputs and its offsets.
    static constexpr bool stores_through_stage =
        KernelRequest::writes_memory && !packed_run<Out, run>::has_words && shape::in_bytes == shape::out_bytes;
    /// By the last of the warp's steps.
    __device__ void free(const part& p) const {
        if (p.last) p.stage.freed.arrive_warp(); // write after read: the next tile overwrites this one
    }

    /// N steps of a tile, 32 runs each. `Transformed`: the reduction has been at the runs of whole steps.
    template <bool Full, int N, bool Transformed = true>
    __device__ void scan_steps(const part& p) {
        const unsigned skew = Full ? skew_ : skew_of(p.tile); // whole steps are not the lead's
        const auto place = [&](int i) {
            return skew +
                   static_cast<unsigned>((p.step + i) * step + lane() * run) * static_cast<unsigned>(shape::in_bytes);
        };
        if constexpr (shape::rewrites && !Full) {
            // A step is a row, of which the reduction has seen the whole ones.
            if (!rewrites() || (p.step + 1) * step > p.count)
                transform_in_place(p.stage.data + place(0), min(run, p.count - p.step * step - lane() * run));
        }
        held_run packed[N];
#pragma unroll
        for (int i = 0; i < N; ++i) packed[i].load(p.stage.data, place(i));
        if constexpr (!Transformed) {
#pragma unroll
            for (int i = 0; i < N; ++i) packed[i] = transformed(packed[i].template as<In>());
        }
        // Element e of the lane's run in step i exists.
        const auto exists = [&](int i, int e) { return Full || (p.step + i) * step + lane() * run + e < p.count; };
        if constexpr (shape::regroups)
            scan_regrouped<Full, N>(p, packed, exists);
        else
            scan_tree<Full, N>(p, packed, exists);
    }

    /// Where regrouping changes no bit: runs are folded, their totals scanned across lanes, and what comes before a run
    /// is put before its elements one by one. Runs stay packed until then.
    template <bool Full, int N, class Exists>
    __device__ void scan_regrouped(const part& p, held_run (&packed)[N], Exists exists) {
        constexpr bool idempotent =
            shape::lanes == warp_size && detail::is_idempotent<typename KernelRequest::operator_type, V>;
        const int place = lane() % shape::lanes; // in the row
        slot<V> before[N];                       // of the lane's run in its row
#pragma unroll
        for (int i = 0; i < N; ++i) {
            if constexpr (Full) {
                before[i].value = fold(packed[i]);
            } else {
                slot<V> value[run];
                unpack(packed[i], value);
                if (exists(i, 0)) before[i].value = value[0].value;
#pragma unroll
                for (int e = 1; e < run; ++e)
                    if (exists(i, e)) before[i].value = combined(before[i].value, value[e].value);
            }
            packed[i].forget();
        }
#pragma unroll
        for (int d = 1; d < shape::lanes; d *= 2) {
#pragma unroll
            for (int i = 0; i < N; ++i) {
                const V earlier = shuffle_up(before[i].value, d);
                // Lanes without an earlier one get their own: that changes nothing where op(a, a) is a.
                if ((Full && idempotent) || (place >= d && exists(i, 0)))
                    before[i].value = combined(earlier, before[i].value);
            }
        }
#pragma unroll
        for (int i = 0; i < N; ++i) {
            before[i].value = shuffle_up(before[i].value, 1);
            const int r = row_of(p.step + i);
            if (r > 0 && exists(i, 0)) {
                const V offset = p.stage.offsets[r];
                before[i].value = place > 0 ? combined(offset, before[i].value) : offset;
            }
        }
        const maybe<A> carry = wait_for_carry(p);
        maybe<V> before_tile;
        if (carry.present) before_tile.set(carry.place.value);
        packed_run<Out, run> out[N];
#pragma unroll
        for (int i = 0; i < N; ++i) {
            maybe<V> sum = before_tile;
            if ((row_of(p.step + i) > 0 || place > 0) && exists(i, 0))
                sum.set(cuda::combine(request_.op, before_tile, before[i].value));
            const slot<V> before_run = sum.place;
            if constexpr (spreads_bytes && Full) {
                const V before = sum.present ? sum.place.value : V{byte_run::template neutral<op_type>()};
                sum.set(packed[i].template spread<op_type>(before));
                out[i] = packed[i].template as<Out>();
            } else {
                slot<V> value[run];
                unpack(packed[i], value);
#pragma unroll
                for (int e = 0; e < run; ++e) {
                    if (!exists(i, e)) continue;
                    sum.set(cuda::combine(request_.op, sum, value[e].value));
                    value[e].value = sum.place.value;
                }
                if constexpr (shape::widens && packed_run<Out, run>::holds_bytes) {
                    out[i].pack_bytes(value);
                } else {
                    slot<Out> element[run];
#pragma unroll
                    for (int e = 0; e < run; ++e)
                        if (exists(i, e)) element[e].value = static_cast<Out>(static_cast<A>(value[e].value));
                    out[i].pack(element);
                }
            }
            if (request_.exclusive) out[i].push_front(static_cast<Out>(static_cast<A>(before_run.value)));
            if (i + 1 == N || !Full) store_total(p, i, static_cast<A>(sum.place.value));
        }
        store<Full, N>(p, out, exists);
    }
    /// Packed bytes become their prefixes without being unpacked.
    static constexpr bool spreads_bytes = folds_bytes && packed_run<Out, run>::holds_bytes;
    __device__ static int row_of(int k) { return k * shape::rows_at_once + lane() / shape::lanes; }

    /// `sum` is the last inclusive output of the lane's run in step i, if it has one.
    __device__ void store_total(const part& p, int i, const A& sum) const {
        if (request_.total == nullptr || p.tile + 1 != tiles_) return;
        const int first = (p.step + i) * step + lane() * run;
        if (first < p.count && p.count <= first + run) *request_.total = sum;
    }

    /// Elements of one byte, by the lane that scans them.
    __device__ void transform_in_place(unsigned char* data, int count) const {
#pragma unroll 1
        for (int e = 0; e < count; ++e)
            reinterpret_cast<A*>(data)[e] = converted(slot<In>(reinterpret_cast<const In*>(data)[e]));
        arch::before_next_copy();
        __syncwarp(); // read after write: lanes read words that they share
    }

    /// The rows' trees: Sklansky inside the lane, then across lanes by shuffles.
    template <bool Full, int N, class Exists>
    __device__ void scan_tree(const part& p, const in_run (&packed)[N], Exists exists) {
        slot<A> v[N][run];
#pragma unroll
        for (int i = 0; i < N; ++i) {
            slot<In> raw[run];
            packed[i].unpack(raw);
#pragma unroll
            for (int e = 0; e < run; ++e)
                if (exists(i, e)) v[i][e].value = converted(raw[e]);
        }
#pragma unroll
        for (int s = 1; s < run; s *= 2)
#pragma unroll
            for (int i = 0; i < N; ++i)
#pragma unroll
                for (int e = 0; e < run; ++e)
                    if ((e & s) != 0 && exists(i, e))
                        v[i][e].value = combined(v[i][(e & ~(2 * s - 1)) + s - 1].value, v[i][e].value);
        const auto put_before = [&](const A& earlier, int i) {
#pragma unroll
            for (int e = 0; e < run; ++e)
                if (exists(i, e)) v[i][e].value = combined(earlier, v[i][e].value);
        };
        constexpr int shuffles = std::min(N, std::max(1, tuning::shuffled_registers / value_registers));
#pragma unroll
        for (int d = 1; d < shape::lanes; d *= 2) {
#pragma unroll
            for (int first = 0; first < N; first += shuffles) {
                slot<A> below[shuffles];
#pragma unroll
                for (int i = 0; i < shuffles; ++i)
                    if (first + i < N) below[i].value = shuffle_from(v[first + i][run - 1].value, d - 1, 2 * d);
                if ((lane() & d) != 0) {
#pragma unroll
                    for (int i = 0; i < shuffles; ++i)
                        if (first + i < N) put_before(below[i].value, first + i);
                }
            }
        }
#pragma unroll
        for (int i = 0; i < N; ++i) {
            const int r = row_of(p.step + i);
            if (r > 0 && exists(i, 0)) put_before(A(p.stage.offsets[r]), i);
        }
        maybe<A> offset; // lane 0: of the first row
        if (request_.exclusive && lane() == 0 && row_of(p.step) > 0 && exists(0, 0))
            offset.set(p.stage.offsets[row_of(p.step)]);
        const maybe<A> carry = wait_for_carry(p);
        slot<A> before; // lane 0: the output before this step
        if (request_.exclusive && lane() == 0 && exists(0, 0))
            before.value = offset.present ? cuda::combine(request_.op, carry, offset.place.value) : carry.place.value;
        packed_run<Out, run> out[N];
#pragma unroll
        for (int i = 0; i < N; ++i) {
            if (carry.present) put_before(carry.place.value, i);
            slot<A> sum; // the last one that exists
#pragma unroll
            for (int e = 0; e < run; ++e)
                if (exists(i, e)) sum.value = v[i][e].value;
            if (i + 1 == N || !Full) store_total(p, i, sum.value);
            slot<Out> element[run];
#pragma unroll
            for (int e = 0; e < run; ++e)
                if (exists(i, e)) element[e].value = static_cast<Out>(v[i][e].value);
            out[i].pack(element);
            if (request_.exclusive) {
                // Every output moves one place on; lane 0 takes the last lane's of the step before.
                const A left = shuffle_from(v[i][run - 1].value, (lane() + warp_size - 1) % warp_size);
                out[i].push_front(static_cast<Out>(select(lane() == 0, before.value, left)));
                before.value = left;
            }
        }
        store<Full, N>(p, out, exists);
    }

    /// The steps' outputs, to memory or to a function.
    template <bool Full, int N, class Exists>
    __device__ void store(const part& p, const packed_run<Out, run> (&out)[N], Exists exists) {
        using out_run = packed_run<Out, run>;
        const index_type first = first_of(p.tile) + p.step * step;
        if constexpr (KernelRequest::writes_memory && Full && out_run::has_words) {
            Out* const to = request_.output + first + lane() * run;
            const auto past = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(to) % out_run::bytes);
            if (out_run::granule % out_run::bytes == 0 || past == 0) {
#pragma unroll
                for (int i = 0; i < N; ++i) out[i].store_whole(to + i * step);
            } else {
                store_shifted<N>(to, out_run::bytes - past, out);
            }
        } else {
            if constexpr (stores_through_stage) {
                if (Full &&
                    reinterpret_cast<std::uintptr_t>(request_.output) % sizeof(uint4) == skew_ % sizeof(uint4)) {
                    store_through_stage<uint4, N>(p, out);
                    return;
                }
                // Stages are aligned like inputs are.
                if constexpr (run > 1 && out_run::joins_accesses && alignof(In) % alignof(Out) == 0) {
                    if (Full) {
                        store_through_stage<detail::word_of_size<std::min(out_run::granule, 8)>, N>(p, out);
                        return;
                    }
                }
                free(p);
            }
#pragma unroll
            for (int i = 0; i < N; ++i) {
                slot<Out> element[run];
                out[i].unpack(element);
#pragma unroll
                for (int e = 0; e < run; ++e) {
                    if (!exists(i, e)) continue;
                    const index_type at = first + i * step + lane() * run + e;
                    if constexpr (KernelRequest::writes_memory)
                        request_.output[at] = element[e].value;
                    else
                        request_.store(at, element[e].value);
                }
            }
        }
    }
    /// `to` is `shift` bytes before a multiple of the run's size: whole words join the end of a run and the start of
    /// the next one; the ends of the warp's part are stored in pieces.
    template <int N>
    __device__ void store_shifted(Out* to, unsigned shift, const packed_run<Out, run> (&out)[N]) const {
        using out_run = packed_run<Out, run>;
        if (lane() == 0) out[0].store_part(to, 0, shift);
#pragma unroll
        for (int i = 0; i < N; ++i) {
            // Lane 0 speaks for the first run of the next step, which follows the last lane's.
            const bool speaks = i + 1 < N && lane() == 0;
            const out_run next =
                out_run::either(speaks, out[i + 1 < N ? i + 1 : i], out[i]).from_lane((lane() + 1) % warp_size);
            const out_run whole = out[i].joined(next, shift);
            if (i + 1 < N || lane() + 1 < warp_size)
                whole.store_whole(reinterpret_cast<Out*>(reinterpret_cast<unsigned char*>(to + i * step) + shift));
        }
        if (lane() + 1 == warp_size) out[N - 1].store_part(to + (N - 1) * step, shift, out_run::bytes);
    }
    /// Elements of other sizes: back to their places in the stage, and from there in whole words. Of 16 bytes, or where
    /// inputs and outputs lie differently in those, of what elements are aligned to.
    template <class Word, int N>
    __device__ void store_through_stage(const part& p, const packed_run<Out, run> (&out)[N]) {
        constexpr unsigned bytes = N * step * shape::out_bytes;
        const unsigned start = skew_ + static_cast<unsigned>(p.step * step * shape::out_bytes);
        const unsigned char* const from = p.stage.data + start;
#pragma unroll
        for (int i = 0; i < N; ++i) {
            out[i].store_back(p.stage.data,
                              start + static_cast<unsigned>((i * step + lane() * run) * shape::out_bytes));
        }
        arch::before_next_copy();
        __syncwarp(); // read after write: lanes store what other lanes put there
        auto* const to = reinterpret_cast<unsigned char*>(request_.output + first_of(p.tile) + p.step * step);
        constexpr unsigned word = sizeof(Word);
        const unsigned head = (word - skew_) % word, i = static_cast<unsigned>(lane());
        if (i < head) to[i] = from[i];
        const unsigned whole_to = bytes - (head == 0 ? 0 : word - head);
#pragma unroll 4
        for (unsigned at = head + i * word; at < whole_to; at += warp_size * word)
            __stcs(reinterpret_cast<Word*>(to + at), *reinterpret_cast<const Word*>(from + at));
        if (i < bytes - whole_to) to[whole_to + i] = from[whole_to + i];
        free(p);
    }

    const KernelRequest& request_;
    const ticket_counter& counter_;
    shared_type& shared_;
    stage_type* stage_;
    int stages_;
    index_type size_;
    int lead_; ///< elements of the short first tile, or 0
    index_type tiles_;
    unsigned skew_; ///< of all tiles but the lead
};

template <class KernelRequest>
__global__ void __launch_bounds__(pipeline_shape<KernelRequest>::threads, pipeline_shape<KernelRequest>::blocks)
    scan_prefix_pipeline(const __grid_constant__ KernelRequest request, const ticket_counter counter,
                         const int stages) {
    extern __shared__ uint4 polyscan_block_memory[];
    if (request.count != nullptr) arch::wait_for_earlier_launch(); // which may have written it
    prefix_pipeline<KernelRequest>(request, counter, reinterpret_cast<unsigned char*>(polyscan_block_memory), stages)
        .play();
}

/// The pipeline takes elements in memory that can be copied as bytes; and accumulators that leave room for two tiles.
template <class Request>
inline constexpr bool has_pipeline = [] {
    using kernel = kernel_request<Request>;
    if constexpr (std::is_pointer_v<typename Request::input_type>)
        return std::is_trivially_copyable_v<typename kernel::input_element> &&
               sizeof(typename Request::accumulator_type) <= tuning::largest_pipelined && pipeline_shape<kernel>::fits;
    else
        return false;
}();

/// Cells that scans of up to n elements may need: an aggregate's and a carry's for each tile.
template <class Request>
constexpr index_type pipeline_cells(index_type n) {
    return std::max(2 * pipeline_shape<kernel_request<Request>>::most_tiles(n), few_tiles_cells<Request>(n));
}

template <class Request>
    requires has_pipeline<Request>
void run(policy<grid::prefix_server, block::warp_shuffle>, const Request& request, launcher& on) {
    using shape = pipeline_shape<kernel_request<Request>>;
    on.overlaps();
    if (run_few_tiles(request, on)) return;
    const auto kernel = scan_prefix_pipeline<kernel_request<Request>>;
    const index_type tiles = shape::most_tiles(request.size);
    const std::size_t room = on.shared_memory_limit(reinterpret_cast<const void*>(kernel)) - shape::stages_start;
    const int stages = std::min(shape::most_stages, static_cast<int>(room / sizeof(typename shape::stage)));
    on.launch_resident(kernel, tiles, shape::threads, shape::bytes(stages), kernel_request<Request>(request),
                       on.counter<typename Request::accumulator_type>(2 * tiles), stages);
}

} // namespace polyscan::cuda
