// SPDX-License-Identifier: Apache-2.0
/// What the kernels of segmented scans and of reductions by key have in common: values and heads apart. Heads are bits;
/// they say which combinations of the tree take place.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <polyscan/by_key.hpp>
#include <polyscan/cuda/arch.cuh>
#include <polyscan/cuda/grid/carry_server.cuh>
#include <polyscan/cuda/grid/tile_pass.cuh>
#include <polyscan/cuda/launch.cuh>
#include <polyscan/cuda/request.cuh>
#include <polyscan/cuda/tickets.cuh>
#include <polyscan/cuda/tuning.hpp>
#include <polyscan/cuda/value.cuh>
#include <polyscan/segmented.hpp>

namespace polyscan::cuda {

/// Elements that can be copied as bytes, in words of one access.
template <class Iterator>
inline constexpr bool is_copied = [] {
    if constexpr (std::is_pointer_v<Iterator>) {
        using T = std::remove_cv_t<std::remove_pointer_t<Iterator>>;
        return std::is_trivially_copyable_v<T> && std::has_single_bit(sizeof(T)) && sizeof(T) <= sizeof(uint4);
    } else {
        return false;
    }
}();

/// A warp's part of an input, as it lies in memory: `Runs` runs of `Run` elements, read well before they are needed.
template <class T, int Run, int Runs>
class warp_part {
    static constexpr int bytes = Run * Runs * static_cast<int>(sizeof(T));
    static constexpr int run_bytes = Run * static_cast<int>(sizeof(T));
    static constexpr int unit = std::min(run_bytes, static_cast<int>(sizeof(uint4)));
    using word = detail::word_of_size<unit>;
    static_assert(bytes % sizeof(uint4) == 0 && Runs % warp_size == 0);
    alignas(uint4) unsigned char data_[bytes];

public:
    /// By a whole warp; they are there after `wait_for_copies` and a barrier of the warp. Elements from `count`
    /// on stay away.
    __device__ void load(const T* from, int count) {
        const int lane = static_cast<int>(threadIdx.x) % warp_size;
        if (count >= Run * Runs && reinterpret_cast<std::uintptr_t>(from) % sizeof(uint4) == 0) {
            constexpr int pieces = bytes / static_cast<int>(sizeof(uint4));
#pragma unroll
            for (int at = 0; at < pieces; at += warp_size)
                if (pieces % warp_size == 0 || at + lane < pieces)
                    arch::start_copy_of(reinterpret_cast<uint4*>(data_) + at + lane,
                                        reinterpret_cast<const uint4*>(from) + at + lane);
        } else {
#pragma unroll 4
            for (int i = lane; i < Run * Runs; i += warp_size)
                if (i < count) reinterpret_cast<T*>(data_)[i] = from[i];
        }
    }
    __device__ void run(int r, slot<T> (&element)[Run]) const {
        word whole[run_bytes / unit];
#pragma unroll
        for (int i = 0; i < run_bytes / unit; ++i) whole[i] = reinterpret_cast<const word*>(data_ + r * run_bytes)[i];
        std::memcpy(static_cast<void*>(element), whole, run_bytes);
    }
    /// Bit e: element e of the run is not 0.
    __device__ unsigned not_zero(int r) const {
        slot<T> element[Run];
        run(r, element);
        unsigned bits = 0;
        if constexpr (sizeof(T) == 1 && Run % 4 == 0) {
            std::uint32_t four[Run / 4];
            std::memcpy(four, static_cast<const void*>(element), run_bytes);
            // Bytes that are 0 or 1; the product brings them side by side, to the upper byte.
            constexpr std::uint32_t gather = 1u << 24 | 2u << 16 | 4u << 8 | 8u;
#pragma unroll
            for (int i = 0; i < Run / 4; ++i) bits |= (__vsetne4(four[i], 0) * gather >> 24) << 4 * i;
        } else {
#pragma unroll
            for (int e = 0; e < Run; ++e) bits |= static_cast<bool>(element[e].value) ? 1u << e : 0u;
        }
        return bits;
    }
};

namespace detail {
/// Numbers that the kernels take.
template <class A>
inline constexpr bool is_segmented_value = std::is_arithmetic_v<A> && sizeof(A) <= sizeof(std::uint64_t);

struct nothing {};
template <class Input, int Run, int Runs>
struct copied_part {
    using type = nothing;
};
template <class T, int Run, int Runs>
    requires is_copied<const T*>
struct copied_part<const T*, Run, Runs> {
    using type = warp_part<T, Run, Runs>;
};
} // namespace detail
/// A warp's part of an input, where it can be copied.
template <class Input, int Run, int Runs>
using copied_part = typename detail::copied_part<Input, Run, Runs>::type;

/// What tells the heads of a warp's part.
template <class Heads, int Run, int Runs>
struct warp_heads {
    static constexpr bool is_known = false;
};
template <class Flag, int Run, int Runs>
    requires(std::is_arithmetic_v<Flag> && is_copied<const Flag*>)
struct warp_heads<polyscan::detail::flag_heads<const Flag*>, Run, Runs> {
    using heads_type = polyscan::detail::flag_heads<const Flag*>;
    static constexpr bool is_known = true;
    warp_part<Flag, Run, Runs> flags;

    __device__ void load(const heads_type& heads, index_type first, int count) {
        flags.load(heads.flags + first, count);
    }
    /// Bit e: whether element e of run r is a head. Elements from `count` on are, because nothing combines with them.
    __device__ unsigned bits(const heads_type&, int r, int count) const {
        const unsigned absent = count < Run ? ~0u << max(count, 0) & ((1u << Run) - 1) : 0u;
        return flags.not_zero(r) | absent;
    }
};
template <class Key, class Equal, int Run, int Runs>
    requires(is_copied<const Key*>)
struct warp_heads<polyscan::detail::key_heads<const Key*, Equal>, Run, Runs> {
    using heads_type = polyscan::detail::key_heads<const Key*, Equal>;
    static constexpr bool is_known = true;
    warp_part<Key, Run, Runs> keys;
    shared_array<Key, 1> before; ///< the key before these

    __device__ void load(const heads_type& heads, index_type first, int count) {
        keys.load(heads.keys + first, count);
        // Element 0 has none before it, and is a head whatever is compared here.
        if (threadIdx.x % warp_size == 0 && count > 0)
            arch::start_copy_of(&before[0], heads.keys + (first > 0 ? first - 1 : 0));
    }
    __device__ unsigned bits(const heads_type& heads, int r, int count) const {
        slot<Key> key[Run];
        return bits(heads, r, count, key);
    }
    /// By the whole warp, for a run each, neighbours by neighbouring lanes. Gives the keys, too.
    __device__ unsigned bits(const heads_type& heads, int r, int count, slot<Key> (&key)[Run]) const {
        slot<Key> earlier;
        keys.run(r, key);
        earlier.value = shuffle_up(key[Run - 1].value, 1);
        if (threadIdx.x % warp_size == 0) {
            if (r == 0) {
                earlier.value = before[0];
            } else {
                slot<Key> neighbour[Run];
                keys.run(r - 1, neighbour);
                earlier.value = neighbour[Run - 1].value;
            }
        }
        unsigned bits = 0;
#pragma unroll
        for (int e = 0; e < Run; ++e) {
            bits |= e < count && static_cast<bool>(heads.equal(earlier.value, key[e].value)) ? 0u : 1u << e;
            earlier.value = key[e].value;
        }
        return bits;
    }
};

/// Offsets are searched once for the part, and become bits.
template <class Offsets, int Run, int Runs>
struct warp_heads<polyscan::detail::offset_heads<Offsets>, Run, Runs> {
    using heads_type = polyscan::detail::offset_heads<Offsets>;
    static constexpr bool is_known = true;
    static constexpr int words = Run * Runs / 32;
    static_assert(words * 32 == Run * Runs && 32 % Run == 0);
    std::uint32_t word[words];

    __device__ void load(const heads_type& heads, index_type first, int count) {
        const int lane = static_cast<int>(threadIdx.x) % warp_size;
        for (int i = lane; i < words; i += warp_size) word[i] = 0;
        __syncwarp(); // write after write: the bits
        const auto offset = [&](index_type k) { return static_cast<index_type>(heads.offsets[k]); };
        // The first offset that is not below `first` is among [low, high]; 33 pieces a step.
        index_type low = 0, high = heads.count;
        while (low < high) {
            const index_type piece = (high - low) / (warp_size + 1) + 1;
            const index_type at = low + (lane + 1) * piece - 1;
            const unsigned below = __ballot_sync(whole_warp, at < high && offset(at) < first);
            const int pieces = __popc(below);
            high = min(high, low + (pieces + 1) * piece - 1);
            low += pieces * piece;
        }
        for (index_type k = low + lane;; k += warp_size) {
            const index_type place = k < heads.count ? offset(k) - first : count;
            if (place < count) atomicOr(&word[place / 32], 1u << static_cast<unsigned>(place % 32));
            if (__any_sync(whole_warp, place >= count)) break;
        }
    }
    __device__ unsigned bits(const heads_type&, int r, int count) const {
        const unsigned absent = count < Run ? ~0u << max(count, 0) & ((1u << Run) - 1) : 0u;
        return (word[r * Run / 32] >> r * Run % 32 & ((1u << Run) - 1)) | absent;
    }
};

/// N values in shared memory, of which several are read at once.
template <class A, int N>
struct alignas(uint4) folded_array : shared_array<A, N> {};

/// By one thread: N values become what comes before each of them, folded from the left and afresh from each head, whose
/// bits are in `heads`; `before` comes before the first one. Gives the fold of all.
template <class Operator, class A, int N>
__device__ A fold_from_heads(const Operator& op, folded_array<A, N>& values, std::uint64_t heads, const A& before) {
    constexpr int batch = static_cast<int>(sizeof(uint4) / sizeof(A));
    static_assert(batch >= 1 && batch * sizeof(A) == sizeof(uint4) && N % batch == 0);
    auto* const memory = reinterpret_cast<uint4*>(values.bytes);
    A sum = before;
    const auto fold = [&](auto is_head) {
        uint4 word = memory[0];
#pragma unroll tuning::folded_at_once
        for (int first = 0; first < N; first += batch) {
            slot<A> v[batch];
            std::memcpy(static_cast<void*>(v), &word, sizeof word);
            if (first + batch < N) word = memory[first / batch + 1]; // does not wait for the sums
#pragma unroll
            for (int i = 0; i < batch; ++i) {
                const A next = is_head(i) ? v[i].value : polyscan::combine(op, sum, v[i].value);
                v[i].value = sum;
                sum = next;
            }
            uint4 folded;
            std::memcpy(&folded, static_cast<const void*>(v), sizeof folded);
            memory[first / batch] = folded;
            heads >>= batch;
        }
    };
    if (heads == 0)
        fold([](int) { return false; });
    else
        fold([&](int i) { return (static_cast<unsigned>(heads) >> i & 1) != 0; });
    return sum;
}
/// By a warp: the totals of a tile's rows, of which the heads have bits, become what comes before the rows in the tile.
/// Gives the fold of all to every lane.
template <bool Exact, class Operator, class A>
__device__ A fold_rows(const Operator& op, folded_array<A, 2 * warp_size>& totals, std::uint64_t heads) {
    const int lane = static_cast<int>(threadIdx.x) % warp_size;
    slot<A> all;
    if constexpr (Exact) {
        const A first = totals[2 * lane], second = totals[2 * lane + 1];
        const bool first_has = (heads >> 2 * lane & 1) != 0, second_has = (heads >> (2 * lane + 1) & 1) != 0;
        const unsigned pairs = __ballot_sync(whole_warp, first_has || second_has);
        const A both = scan_from_heads(op, second_has ? second : polyscan::combine(op, first, second), pairs);
        const A before = shuffle_up(both, 1);
        totals[2 * lane] = before; // row 0 has nothing before it
        totals[2 * lane + 1] = first_has || lane == 0 ? first : polyscan::combine(op, before, first);
        all.value = shuffle_from(both, warp_size - 1);
    } else {
        // Nothing comes before row 0: as if it had a head. Its own total is a made-up one, which is not used.
        if (lane == 0) {
            const A first = totals[0];
            all.value = fold_from_heads(op, totals, heads | 1, first);
        }
        all.value = shuffle_from(all.value, 0);
    }
    return all.value;
}
/// The heads of a tile's rows, a bit each, of `RowsOfWarp` bits from each warp.
template <int RowsOfWarp>
__device__ std::uint64_t row_bits(const std::uint32_t* of_warps) {
    const int lane = static_cast<int>(threadIdx.x) % warp_size;
    const auto has = [&](int r) { return (of_warps[r / RowsOfWarp] >> r % RowsOfWarp & 1) != 0; };
    const unsigned low = __ballot_sync(whole_warp, has(lane)), high = __ballot_sync(whole_warp, has(lane + warp_size));
    return std::uint64_t{high} << warp_size | low;
}

/// Bytes of an element that is copied, or of what tells its head.
template <class Input>
inline constexpr std::size_t element_bytes = 0;
template <class T>
    requires is_copied<const T*>
inline constexpr std::size_t element_bytes<const T*> = sizeof(T);
template <class Heads>
inline constexpr std::size_t warp_heads_bytes = 0;
template <class Flag>
inline constexpr std::size_t warp_heads_bytes<polyscan::detail::flag_heads<const Flag*>> = element_bytes<const Flag*>;
template <class Key, class Equal>
inline constexpr std::size_t warp_heads_bytes<polyscan::detail::key_heads<const Key*, Equal>> =
    element_bytes<const Key*>;

/// Of lanes that hold two rows: a bit for each row that has one of them.
__device__ inline unsigned both_rows(unsigned lanes) {
    constexpr unsigned first_row = (1u << warp_size / 2) - 1;
    return ((lanes & first_row) != 0 ? 1u : 0u) | ((lanes & ~first_row) != 0 ? 2u : 0u);
}

/// The runs of a warp, two rows side by side and N such steps at once: Sklansky's tree over the elements of each row,
/// in which nothing combines across a head. `bits`: the heads of the lane's runs. `open`: how many of a run's elements
/// are open to the left in their row, because no head is at or before them.
template <int N, int Run, class Operator, class A>
__device__ void scan_rows(const Operator& op, slot<A> (&v)[N][Run], const unsigned (&bits)[N],
                          const unsigned (&lanes_with_heads)[N], int (&open)[N]) {
    constexpr int row_lanes = warp_size / 2;
    const int lane = static_cast<int>(threadIdx.x) % warp_size;
    // Inside the lane: element e takes in what comes before its group of s, if the group has no head up to e.
#pragma unroll
    for (int s = 1; s < Run; s *= 2)
#pragma unroll
        for (int i = 0; i < N; ++i)
#pragma unroll
            for (int e = 0; e < Run; ++e) {
                const unsigned group_up_to_e = ((2u << e) - 1) & ~((1u << (e & ~(s - 1))) - 1);
                if ((e & s) != 0 && (bits[i] & group_up_to_e) == 0)
                    v[i][e].value = polyscan::combine(op, v[i][(e & ~(2 * s - 1)) + s - 1].value, v[i][e].value);
            }
    // Across lanes the same: elements before the lane's first head take in the last element of the lower half, if no
    // lane between has a head.
    int before_head[N], last_head[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
        before_head[i] = __ffs(static_cast<int>(bits[i] | 1u << Run)) - 1;
        last_head[i] = 31 - __clz(static_cast<int>(lanes_with_heads[i] & ((1u << lane) - 1)));
    }
#pragma unroll
    for (int d = 1; d < row_lanes; d *= 2) {
        slot<A> below[N];
#pragma unroll
        for (int i = 0; i < N; ++i) below[i].value = shuffle_from(v[i][Run - 1].value, d - 1, 2 * d);
#pragma unroll
        for (int i = 0; i < N; ++i) {
            const int takes = (lane & d) != 0 && last_head[i] < (lane & ~(d - 1)) ? before_head[i] : 0;
#pragma unroll
            for (int e = 0; e < Run; ++e)
                if (e < takes) v[i][e].value = polyscan::combine(op, below[i].value, v[i][e].value);
        }
    }
#pragma unroll
    for (int i = 0; i < N; ++i) open[i] = last_head[i] < (lane & ~(row_lanes - 1)) ? before_head[i] : 0;
}

/// Whether other blocks draw the tickets of all tiles. By one thread, which waits for the last of them, or for a while
/// without one.
__device__ inline bool all_tickets_drawn(const ticket_counter& counter, std::uint32_t tiles) {
    int looks = 0; // since the last draw
    for (std::uint32_t before = 0; before <= tiles;) {
        __nanosleep(tuning::looks_for_draws_every_ns);
        const std::uint32_t now = counter.drawn();
        looks = now == before ? looks + 1 : 0;
        if (looks == tuning::looks_without_draw) return false;
        before = now;
    }
    return true;
}

/// A block's way through tiles, by the warps that scan and one that folds: each tile is loaded while the one before is
/// scanned, and finished `Stages` - 1 tiles after it was scanned, when its carry has had time to come. Steps are
/// functions of the tile and of its stage; stages are used in turn:
///     load(tile)            starts                                        scanning warps
///     scan(tile, stage)     what was loaded                               scanning warps
///     fold(tile, stage)     what the scan has left in the stage           the last warp of the group
///     finish(tile, stage)   after the fold                                scanning warps
/// A stage has room for the `next` ticket.
template <class Group, class Stage, int Stages, class Load, class Scan, class Fold, class Finish>
__device__ void take_tiles(std::uint32_t first, std::uint32_t tiles, const ticket_counter& counter,
                           Stage (&stages)[Stages], Load load, Scan scan, Fold fold, Finish finish) {
    constexpr int lag = Stages - 1;
    constexpr std::uint32_t none = ~0u;
    const bool folds = Group::warp() == Group::warps - 1;
    std::uint32_t waiting[lag]; // tiles that are to be finished, the oldest first
#pragma unroll
    for (std::uint32_t& tile : waiting) tile = none;
    std::uint32_t tile = first;
    if (tile < tiles && !folds) load(tile);
    for (int at = 0;;) {
        const bool scans = tile < tiles;
        Stage& stage = stages[at];
        std::uint32_t next = tile;
        if (scans && !folds) {
            ticket drawn{};
            if (Group::is_leader()) drawn = counter.draw(); // on its way during the scan
            arch::wait_for_copies();
            __syncwarp(); // read after write: lanes read what others have copied
            scan(tile, stage);
            if (Group::is_leader()) stage.next = drawn.number - 1;
        }
        // Read after write: what the scan has left for the fold, and the ticket; and what the fold of the tile before
        // has left for its finish. Write after read: stages are used in turn, and another one lies between.
        Group::sync();
        if (scans) {
            next = stage.next;
            if (folds)
                fold(tile, stage);
            else if (next < tiles)
                load(next);
        }
        at = at == lag ? 0 : at + 1; // where the oldest tile is
        if (waiting[0] != none && !folds) finish(waiting[0], stages[at]);
        bool is_done = !scans;
#pragma unroll
        for (int i = 0; i < lag; ++i) {
            waiting[i] = i + 1 < lag ? waiting[i + 1 < lag ? i + 1 : i] : scans ? tile : none;
            is_done = is_done && waiting[i] == none;
        }
        if (is_done) return;
        tile = next;
    }
}

/// A run of the input as values, of which `count` exist; from what the warp has copied of it, if it copies.
template <class Work, class Part, class A, int Run>
__device__ void values_of_run(const Work& work, const Part& copied, int r, index_type first, int count,
                              slot<A> (&value)[Run]) {
    using Input = typename Work::input_type;
    if constexpr (is_copied<Input>) {
        slot<std::remove_cv_t<std::remove_pointer_t<Input>>> raw[Run];
        copied.run(r, raw);
#pragma unroll
        for (int e = 0; e < Run; ++e) {
            value[e].value = A{};
            if (e < count) value[e].value = work.converted(raw[e].value);
        }
    } else {
#pragma unroll
        for (int e = 0; e < Run; ++e) {
            value[e].value = A{};
            if (e < count) value[e].value = work.converted(work.input()[first + e]);
        }
    }
}

/// Blocks that walk over so many tiles, if the device holds them: one more, to serve.
constexpr index_type blocks_to_walk(index_type tiles) { return tiles > 1 ? tiles + 1 : 1; }

/// Blocks that shall fit a multiprocessor, and whether one does everywhere. `Shape::shared` is a block's shared memory.
template <class Shape>
inline constexpr int walking_blocks =
    std::min(tuning::most_segmented_blocks, arch::blocks_of(sizeof(typename Shape::shared)));
template <class Shape>
inline constexpr bool fits_a_block = sizeof(typename Shape::shared) <= tuning::shared_memory_per_block;

/// The block's first ticket, and whether the block serves.
struct walk_start {
    ticket first;
    bool serves;
};

/// A kernel's block: `Walk` can scan tiles and serve.
///
/// Ticket 0 is the server's: tile t has ticket t + 1. Where other blocks take tiles, the block with ticket 0 takes
/// none, and several of its warps serve in turn. Should no ticket be drawn for a while although tiles are left, it
/// takes tiles too, and one further warp of it serves, as in a grid of one block. So one running block is enough.
template <class Walk, class Work>
__device__ void walk_tiles(const Work& work, const ticket_counter& counter) {
    using group = typename Walk::group; // the threads that scan, and a warp that folds; behind them the one that serves
    static_assert(tuning::server_warps < group::warps, "one more looks for draws");
    auto& shared = block_memory<typename Walk::shared_type>();
    if (group::is_leader()) {
        shared.start.first = counter.draw();
        shared.start.serves = shared.start.first.number == 0;
        shared.served.begin();
        if (shared.start.serves && gridDim.x == 1) shared.start.first = counter.draw();
    }
    __syncthreads(); // read after write: everybody, the server's warps included, reads the ticket
    Walk here(work, counter, shared);
    const bool serves = shared.start.serves;
    bool serves_only = serves && gridDim.x > 1;
#pragma unroll 1
    for (;;) {
        const int of = serves_only ? tuning::server_warps : 1, me = group::warp() - (serves_only ? 0 : group::warps);
        if (serves && me >= 0 && me < of) {
            here.serve(me, of);
        } else if (!serves_only && me < 0) {
            here.scan_tiles();
        } else if (serves_only && me == of && group::lane() == 0) {
            if (!all_tickets_drawn(counter, here.tiles())) shared.served.leave_off();
        }
        if (!serves_only) break;
        __syncthreads(); // read after write: whether the serving warps have left off, and where
        if (!shared.served.is_left_off()) break;
        if (group::is_leader()) shared.start.first = counter.draw();
        __syncthreads(); // read after write: everybody reads the ticket
        serves_only = false;
    }
    // Retiring clears the cells when epochs wrap: then it waits for everybody who uses them.
    if (ticket_counter::wraps(shared.start.first.epoch)) __syncthreads();
    if (group::is_leader()) counter.retire(shared.start.first.epoch);
}

template <class Walk, class Work>
__global__ void __launch_bounds__(Walk::shape::threads, walking_blocks<typename Walk::shape>)
    walk(const __grid_constant__ Work work, const ticket_counter counter) {
    walk_tiles<Walk>(work, counter);
}

/// Whether blocks walk over the tiles of a request, `Parts` being what it comes apart into.
template <class Parts, template <class> class Walk>
inline constexpr bool can_walk = [] {
    if constexpr (Parts::is_known)
        return fits_a_block<typename Walk<typename Parts::work>::shape>;
    else
        return false;
}();

template <class Parts, template <class> class Walk, class Request>
void launch_walk(const Request& request, launcher& on) {
    using work = typename Parts::work;
    using shape = typename Walk<work>::shape;
    const index_type tiles = shape::tiles(request.size);
    on.launch_resident(walk<Walk<work>, work>, blocks_to_walk(tiles), shape::threads,
                       shared_bytes<typename shape::shared>, Parts::make(request),
                       on.counter<typename shape::carry_type>(2 * tiles));
}

} // namespace polyscan::cuda
