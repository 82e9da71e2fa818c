// SPDX-License-Identifier: Apache-2.0
/// The numbers that were chosen rather than derived, each with its reason. None of them changes a bit of any result.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <polyscan/operators.hpp>
#include <polyscan/tile.hpp>

namespace polyscan::cuda::tuning {

/// Shared memory that one block may use on every GPU since sm_80 but sm_86 and sm_89, which have the least: 99 KiB.
inline constexpr std::size_t shared_memory_per_block = 99 * 1024;

/// Kogge-Stone: values that go from lane to lane by shuffles in the rounds with strides below 32. Others, which are
/// large or would have to be unpacked into many registers, go through shared memory in every round.
template <class A>
inline constexpr bool shuffles_rounds =
    std::is_arithmetic_v<A> || (alignof(A) >= sizeof(std::uint32_t) && sizeof(A) <= 16);
/// Threads that scan a tile under Kogge-Stone, Brent-Kung and coarse. With one block, one thread per element (run), as
/// in the textbooks; half of that for accumulators which need more than the 64 registers that 1024 threads leave.
template <class A>
constexpr int lone_threads() {
    return sizeof(A) <= 8 && shuffles_rounds<A> ? 1024 : 512;
}
/// With many blocks, 4 elements a thread: small blocks wait for each other's barriers less, and more of them fit.
/// (1024 threads of 64 registers, one block per multiprocessor: three_pass/kogge_stone took 8900 us for 2^28 floats.)
inline constexpr int tile_threads = 256;
/// Under three_pass and domino no block waits for another inside a tile. Kogge-Stone and Brent-Kung over numbers: a
/// warp scans a tile on its own, 32 elements a lane, without a barrier and without shared memory. three_pass over 2^28
/// floats, a block of 128 threads for a tile / a warp: Kogge-Stone 1330 / 784 us, Brent-Kung 1528 / 884.
template <class Block, class A>
constexpr bool warp_has_tile() {
    return (std::is_same_v<Block, block::kogge_stone> || std::is_same_v<Block, block::brent_kung>) &&
           std::is_arithmetic_v<A>;
}
/// Threads of a block that rescans tiles under three_pass, be it one tile or one for each warp.
template <class Block>
constexpr int rescan_threads = std::is_same_v<Block, block::coarse> ? tile_threads : 128;
/// Blocks of `tile_threads` threads that shall fit a multiprocessor.
template <class Block, class A>
constexpr int tile_blocks_per_multiprocessor() {
    if (!std::is_arithmetic_v<A> || sizeof(A) > 4) return 1;
    return std::is_same_v<Block, block::coarse> ? 2 : 3;
}
/// Blocks of `rescan_threads` threads. Where a warp has a tile: 5 / 6 / 7 leave 96 / 80 / 72 registers a thread and
/// took 785 / 788 / 796 us for 2^28 floats; maximum of floats needs more than 80.
template <class Block, class A>
constexpr int rescan_blocks_per_multiprocessor() {
    if (!warp_has_tile<Block, A>()) return tile_blocks_per_multiprocessor<Block, A>();
    return sizeof(A) <= 4 ? 5 : 3;
}

/// warp_shuffle: 8 warps of 8 rows. A tile then is 32 registers a thread, and several blocks fit a multiprocessor:
/// enough tiles in flight to cover the time that a carry takes.
inline constexpr int row_threads = 256;
/// Rows whose shuffles are under way at once: more hide more of their latency, and take registers.
template <class A>
inline constexpr int rows_at_once = shuffles_rounds<A> ? 4 : 2;
/// single_block has one tile in flight: more warps shorten it.
inline constexpr int lone_row_threads = 512;
/// Blocks of `row_threads` threads and a server's warp that shall fit one multiprocessor. 4 leave 56 registers a
/// thread, 3 leave 72, 2 leave 96. For 2^28 floats, 4 / 3 blocks took 701 / 732 us. Sums of floats need no more; those
/// of integers do (look_back over 2^28 int32, 4 / 3 blocks: 917 / 794 us); conversions on the way in cost some, and the
/// comparisons of minimum and maximum more.
template <class A, class In, class Operator>
constexpr int row_blocks_per_multiprocessor() {
    const bool wrapping = std::is_integral_v<A> && sizeof(A) >= 4;
    const bool sum = std::is_same_v<Operator, plus> || std::is_same_v<Operator, multiplies>;
    if (!std::is_arithmetic_v<A> || !(sum || wrapping)) return 1;
    if (sizeof(A) != 4 || !std::is_same_v<A, In>) return 2;
    return std::is_same_v<Operator, plus> && std::is_floating_point_v<A> ? 4 : 3;
}

/// Values that one thread, or the server, reads ahead while it folds.
constexpr int fold_batch(std::size_t bytes) { return bytes <= 8 ? 8 : bytes <= 16 ? 4 : 2; }

/// reduce: blocks of `row_threads` threads and folding warps that shall fit one multiprocessor, each with a tile of 32
/// KiB on its way. 2 / 3 took 67.6 / 73.8 us for 2^26 floats: more blocks read no faster, and take turns from the
/// folding warp.
inline constexpr int reduce_blocks_per_multiprocessor = 2;
/// Warps that fold aggregates in turn: 1 / 2 / 3 took 91 / 76 / 76 us for 2^25 doubles, 353 / 268 / 259 for 2^27.
inline constexpr int reduce_fold_warps = 2;
/// Values that are read ahead of a sum. Structs' operators take registers of their own.
template <class A>
inline constexpr int reduce_batch = std::is_arithmetic_v<A> ? fold_batch(sizeof(A)) : 2;
/// Aggregates that a lane of a folding warp reads at once: 2 / 4 / 8 took 75.9 / 70.6 / 70.9 us for 2^26 floats; 4 / 8
/// 80 / 75 us for 2^25 doubles.
template <class A>
inline constexpr int reduce_cells_at_once = sizeof(A) <= 4            ? 4
                                            : sizeof(A) > 8           ? 2
                                            : std::is_arithmetic_v<A> ? 8
                                                                      : 4;

/// Segmented scans of numbers and reductions by key. Measured on an H200; times of 2^26 floats, with a segment for each
/// 50 elements / in one segment; a copy of the same bytes takes 147 us with flags, 194 us with keys.
///
/// Blocks on a multiprocessor, at most: three of 10 warps leave 68 registers a thread. And shared memory by elements
/// that leaves room for so many on sm_90.
inline constexpr int most_segmented_blocks = 3;
inline constexpr std::size_t room_of_three = 71 * 1024;
/// Shared memory that leaves room for what else a block needs on any architecture.
inline constexpr std::size_t room_of_one = 92 * 1024;
/// Warps that scan a tile, beside one that folds its rows and the server's. Three blocks of 8, or where only two fit,
/// of 16: by flags 3 of 8 / 2 of 16 took 171 / 179 us, by keys (2 of 8) / 2 of 16 took 245 / 215 us.
constexpr int segmented_warps(bool three_fit) { return three_fit ? 8 : 16; }
/// Tiles that a block has scanned and not yet finished, the time that their carries have to come: 1 / 2 / 3 took 171 /
/// 171 / 213 us, in one segment 285 / 235 / 227 us.
inline constexpr int segmented_lag = 2;
/// Of reductions by key, by the bytes of an entry: what fits 99 KiB. 1 / 2 took 502 / 397 us.
constexpr int run_lag(std::size_t bytes) { return bytes <= 8 ? 2 : 1; }
/// Steps of a warp, two rows each, whose shuffles are under way at once: 2 / 4 made no difference to scans; reductions
/// took 340 / 397 us with 1 / 2.
inline constexpr int segmented_steps_at_once = 1;
/// Reductions by key, where grouping does not matter: elements of a row, of which a tile has 64. Lengths of runs took
/// 366 / 208 us with 32 / 64; sums would have to do with fewer blocks.
constexpr int run_row(bool is_lengths) { return is_lengths ? 64 : 32; }
/// The server of both: tiles of a lane, by the bytes of what a tile publishes. When one warp served, a lane with one
/// tile took 277 us for one segment, with four 235 us; reductions 938 / 662 us with 2 / 4. Four of doubles take more
/// registers than there are: 2 / 4 took 497 / 679 us by key.
constexpr int served_each(std::size_t bytes) { return bytes <= 4 ? 4 : 2; }
constexpr int served_runs_each(std::size_t bytes) { return bytes <= 8 ? 4 : 2; }
/// Warps of a block that takes no tiles itself, which serve in turn: 2 / 4 took 451 / 440 us for 2^26 doubles by key in
/// one segment, where one beside the scans took 755. 6 take the shared memory of a third block.
inline constexpr int server_warps = 4;
/// Reads of a lane's values that are ahead of the sums: as many as cover the time of one.
constexpr int quads_ahead(int bytes) { return bytes <= 16 ? 2 : 1; }
/// Looks (some 700 ns each) for a whole window before a part of it is served: with a segment for each 5000 elements, 1
/// / 4 / 10 took 549 / 550 / 479 us for reductions, 515 / 462 / 459 for doubles by key.
inline constexpr int looks_before_part_of_window = 10;
/// How often the serving block looks whether others draw tickets, and how many looks without a draw make it take tiles
/// itself. A tile takes 5 us; a look more at the end of the launch costs up to the time between two.
inline constexpr unsigned looks_for_draws_every_ns = 1000;
inline constexpr int looks_without_draw = 16;
/// Reads of 16 bytes that a thread that folds the totals of rows has in one loop.
inline constexpr int folded_at_once = 4;

/// Compaction: threads of a block, and elements of a thread, which wait in its registers for what is selected before
/// them in their warp. By elements and blocks that shall fit a multiprocessor, 2^26 int32 of which half are selected
/// took: 16 and 6: 157 us; 20 and 6: 146; 24 and 5: 144; 24 and 4: 168; 32 and 4: 146. More blocks leave too few
/// registers where elements are larger, or others leave too.
inline constexpr int select_threads = 256;
constexpr int select_elements(std::size_t bytes) { return bytes <= 4 ? 24 : bytes <= 8 ? 12 : 6; }
constexpr int select_blocks(std::size_t bytes, bool both) { return bytes > 4 || both ? 4 : 5; }

/// domino: warps of a block where each has a tile of its own: 8 / 12 / 16 took 1963 / 1942 / 1899 us for 2^28 floats;
/// 16 leave too few registers for other types than float, and 12 for 8-byte ones.
constexpr int section_warps(std::size_t bytes) { return bytes <= 4 ? 12 : 8; }
/// domino: tiles of a section, at most: those whose aggregates fill 2 KiB, 512 of 4 bytes. 128 / 256 / 512 took 2506 /
/// 2061 / 1899 us.
constexpr int most_section_tiles(std::size_t bytes) {
    return static_cast<int>(std::clamp<std::size_t>(2048 / bytes, 32, 512));
}
/// domino: a section is the square root of the number of tiles times this ratio: what a hand-over takes, 0.5 us, to
/// what a tile takes. One tile after the other in a block (warp_shuffle, 2^28 floats, sections of 8 / 16 / 32 / 64
/// tiles: 2238 / 1317 / 1044 / 1065 us), or a tile for each warp (2^20 floats, 16 / 32 / 64: 43 / 33 / 35 us).
constexpr double handover_in_tiles(bool warp_has_tile) { return warp_has_tile ? 1 : 1.0 / 32; }

/// look_back: tiles looked at in one step, 4 a lane. A full H200 has 264 blocks and more in flight, but the nearest
/// carry is seldom farther. Large accumulators: 1 a lane, since the values are kept in shared memory.
constexpr int look_back_window(std::size_t bytes) { return bytes <= 16 ? 128 : 32; }

/// Whether blocks put a tile aside, in shared memory, until its carry is there, and scan the next one meanwhile: 2^28
/// floats, 2^28 int32, 2^27 doubles took 696, 787, 798 us without and 586, 653, 585 with. Comparisons of floating-point
/// numbers need more registers than two blocks leave.
template <class Block, class A, class Operator>
inline constexpr bool puts_aside =
    std::is_same_v<Block, block::warp_shuffle> && std::is_arithmetic_v<A> && sizeof(A) >= sizeof(std::uint32_t) &&
    (std::is_integral_v<A> || std::is_same_v<Operator, plus> || std::is_same_v<Operator, multiplies>);
/// Their window: 32 / 64 / 96 / 128 took 750 / 586 / 619 / 641 us for 2^28 floats.
inline constexpr int look_back_window_aside = 64;
/// Blocks of them that shall fit a multiprocessor: 2 / 3 / 4 took 667 / 586 / 703 us for 2^28 floats, 653 / 677 / 900
/// for int32. Only sums of floating-point numbers need few enough registers for 3.
template <class A, class Operator>
constexpr int aside_blocks_per_multiprocessor() {
    return std::is_floating_point_v<A> && std::is_same_v<Operator, plus> ? 3 : 2;
}

/// prefix_server: groups of 32 aggregates that the server reads ahead. A read takes about as long as serving two
/// groups.
constexpr int server_groups_ahead(std::size_t bytes) { return bytes <= 16 ? 4 : 1; }

/// The pipeline of the prefix server. Measured on an H200 unless it says otherwise; times of 2^28 floats.
///
/// Warps that scan: 8, or 16 where a lane's run has many small elements, which need registers, or one large one, whose
/// shuffles take long: affine maps over 64-bit integers took 735 us with 8, 547 us with 16.
constexpr int pipeline_scan_warps(std::size_t bytes, int run) { return run > 8 || bytes == 16 ? 16 : 8; }
/// Exact values of 16 bytes: neighbours that a lane takes, an odd number, so that lanes read from different banks; rows
/// of a tile, 30 KiB; each has a warp. Affine maps over 64-bit integers, by run x rows: 1 x 64 took 582 us, 3 x 21 (7
/// warps) 771, 5 x 12 530, 7 x 9 628.
inline constexpr int wide_run = 5, wide_rows = 12;
/// Runs of bytes that a lane reads before it transforms the first: 2 / 4 made no difference to a multiplication by 2;
/// with a branch and a product they took 943 / 1147 us (1 GiB).
inline constexpr int transformed_at_once = 2;
/// Registers of a value from which on blocks have fewer warps.
inline constexpr int heavy = 5;
/// Warps that reduce: 8 / 4 took 524 / 523 us. Each takes registers from all.
constexpr int pipeline_reduce_warps(int registers) { return registers < heavy ? 4 : 2; }
/// Tiles of large values that move more than others do, of 18 to 20 and 36 to 40 bytes: chains of a block and of the
/// server, which have one step for each tile or row, have more time; 16 warps instead of 18 leave 128 registers a
/// thread. Structs of 40 bytes, 1 GiB, rows of 320 bytes and 18 warps / of 640 and 16: 734 / 538 us. Of 32 bytes (64
/// KiB) 633 us with 18, 794 with 16.
constexpr bool moves_much(int traffic) { return traffic >= 72 * 1024; }
/// Warps that gather groups of aggregates in turn. A turn takes about three ways through the L2 cache: 2 / 3 / 4 took
/// 534 / 524 / 526 us. Small tiles come faster, but a fourth one shares its quarter of the multiprocessor with the
/// folding warp: structs of 24 / 40 bytes, 1 GiB, took 545 / 734 us with 3, 571 / 812 with 5.
constexpr int pipeline_gather_warps(int registers, int traffic, bool exact) {
    // 16 or 18 warps a block leave 128 or 96 registers a thread.
    if (registers >= heavy) return exact || moves_much(traffic) ? 2 : 3;
    if (traffic < 40 * 1024) return 6;
    if (registers == 3 && !exact) return 5;
    return registers == 2 ? 3 : 4; // three tiles of 8-byte values just fit 99 KiB
}
/// Warps that publish aggregates: one lane folds the 64 totals of a tile. Structs of 12 bytes, 1 GiB, 1 / 2 took 625 /
/// 589 us.
constexpr int pipeline_publish_warps(int registers, int traffic, bool exact) {
    return (registers == 3 || registers >= heavy) && !exact && !moves_much(traffic) ? 2 : 1;
}
/// Values of a group that the folding warp, or one that gathers, reads ahead; the latter reads all small ones at once.
/// Structs of 40 bytes, 1 GiB, by the former: 4 / 6 / 8 took 810 / 812 / 835 us.
constexpr int server_fold_batch(std::size_t bytes, bool gathers, int blocks) {
    if (gathers && bytes <= 4) return blocks > 1 ? 8 : 32;
    return bytes <= 8 ? 8 : gathers && bytes > 16 ? 2 : 4;
}
/// Batches in one piece of code: all by the folding warp (structs of 24 / 40 bytes took 571 / 812 us so, 693 / 1004 one
/// by one). A warp that gathers has not the registers for structs of 12 bytes and of more than 16.
constexpr int server_batches_unrolled(std::size_t bytes, bool gathers) {
    return gathers && (bytes == 12 || bytes > 16) ? 1 : 32;
}
/// Whether lanes of a warp that gathers add all values of a group and keep the sum up to their own. Else they stop
/// there, which takes a branch at each value that has many parts. Structs of 36 / 40 bytes, of floats, 1 GiB, took 1062
/// / 930 us with branches, 857 / 799 so; of 40 bytes, of doubles, 539 with them and 579 so.
constexpr bool server_keeps_sums(std::size_t bytes, std::size_t alignment) { return bytes / alignment > 8; }
/// Blocks of `threads` threads that shall fit a multiprocessor. Compiled for sm_86 or sm_89 a block takes 99 KiB of
/// shared memory, all that a multiprocessor has there. Where such code runs through PTX on a device with more, a second
/// block doubles the tiles under way, if the 48 registers a thread that it leaves are enough: on an H200, 1 GiB, 1 / 2
/// blocks: float 613 / 554 us, int32 602 / 547, int64 637 / 593. Where the order counts, values of two registers would
/// have to be scanned one step at a time: double, 2 GiB, 1197 / 1291. (`tree_registers`: of those values, or 0.)
/// sm_89's multiprocessors have a quarter of the bandwidth of an H200's each, and time to spare.
constexpr int pipeline_blocks([[maybe_unused]] int threads, [[maybe_unused]] bool is_plain,
                              [[maybe_unused]] int tree_registers) {
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 890)
    return is_plain && tree_registers <= 1 && threads <= 640 ? 2 : 1;
#else
    return 1;
#endif
}
/// The server's block looks this often whether the others still take tiles.
inline constexpr unsigned server_looks_every_ns = 2000;
/// Bytes of an input whose lines leave the L2 cache first, so that outputs stay there until memory has time for them.
/// Not / so, launches back to back: 2^22 floats 12.7 / 11.9 us, int32 11.7 / 10.9, 2^23 floats 20.9 / 20.3, int32 19.7
/// / 19.3, but 2^24 floats 37.0 / 37.3, int32 35.4 / 36.1.
inline constexpr index_type evicted_first = index_type{32} << 20;
/// Tiles in shared memory, where there is room: 3 / 4 / 5 / 6 took 556 / 529 / 520 / 520 us. More where a tile moves
/// less than 64 KiB through memory, by the same time.
constexpr int pipeline_stages(int traffic) { return std::clamp(6 * 64 * 1024 / traffic, 6, 12); }
/// Loads that a block has under way: 2 / 6 of 32 KiB took 520 / 523 us. Memory is fastest when the front is narrow.
constexpr int pipeline_loads_in_flight(int tile_bytes) { return std::clamp(16 * 1024 / tile_bytes, 2, 4); }
/// A ticket takes 0.95 us. Where a tile does not take longer, the next ticket is drawn before it is needed.
constexpr bool draws_ahead(int traffic) { return traffic < 56 * 1024; }
/// Groups of 32 tiles that cells are fetched into the cache ahead of the server: 0 / 12 took 522 / 520 us.
inline constexpr int prefetched_groups = 12;
/// Looks (some 10 ns each) for a whole group before the server publishes a part of it: with 64, half of the time, short
/// inputs took 3 to 6 % more; 256 made no difference.
inline constexpr int looks_before_part = 128;
/// Steps whose runs a lane works on at once, by the registers that a step's run takes: as many as fit 40 registers (24
/// for small structs, which are unpacked, and for large values, whose shuffles take as many again: structs of 24
/// bytes, 1 GiB, 16 / 24 took 688 / 598 us, of 40 bytes, with registers for more, 24 / 40 took 559 / 539; 8 with two
/// blocks a multiprocessor, so that nothing spills: floats, 1 GiB, 8 / 16 took 554 / 547 us), and 32 elements. And
/// registers that it shuffles at once.
constexpr int steps_at_once(int registers, int value_registers, int traffic, bool small_structs, int run, int blocks) {
    const bool few = small_structs || (value_registers >= heavy && !moves_much(traffic));
    const int room = blocks > 1 ? 8 : few ? 24 : 40;
    return static_cast<int>(std::bit_floor(static_cast<unsigned>(std::clamp(room / registers, 1, 32 / run))));
}
inline constexpr int shuffled_registers = 8;
/// Whether the scans let go of a stage before the carry of its tile is there, so that one tile more is under way. With
/// three stages, which is what fits the shared memory of sm_89, it pays: 1 GiB through PTX on an H200, late / early:
/// float 632 / 614 us, int32 646 / 606, double 613 / 603. With the six of sm_90 it does not: 524 / 526, 528 / 530,
/// 522 / 525. The host reserves the larger form.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
inline constexpr bool frees_stage_early = false;
#else
inline constexpr bool frees_stage_early = true;
#endif
/// Tiles that the blocks of one cluster share instead. 256 KiB, pipeline / a cluster of 8 with a tile each: float 7.2 /
/// 5.3 us, int32 7.1 / 5.5, double 6.8 / 5.5.
inline constexpr int most_tiles_in_cluster = 8;
/// Rows of a warp there, at least. Where a cluster shares tiles, 1 / 2 took 1.38 / 1.39 us for 2^13 floats in a
/// graph, 2.14 / 1.75 for 2^15, 3.52 / 2.37 for 2^16; a multiprocessor without clusters has all of a tile.
constexpr int rows_of_warp(bool clusters) { return clusters ? 2 : 4; }
/// Blocks of the cluster, and warps of a block: as few as the number of blocks allows, to be on many multiprocessors.
/// In a graph 2^13 floats took 2.07 / 1.65 / 1.52 us with 2 blocks of 16 / 4 of 8 / 8 of 4, 2^14 2.32 / 1.82 / 1.65
/// with 4 / 8 / 16 blocks. (A tile for each block: 2.08 and 2.52.)
inline constexpr int most_cluster_blocks = 16;
inline constexpr int least_cluster_warps = 4, cluster_warps = 16;
/// Bytes of rows' totals that a warp reads before it folds them. One batch ahead of the sums in a loop, 2^13 floats
/// took 1.56 us, with 128 bytes 1.39, all at once 1.44, and 2^10, which have few rows, 1.14, 1.06 and 1.26.
inline constexpr std::size_t totals_at_once = 128;
/// A block for each tile, too, where there are at most as many tiles as blocks that are resident, or this many: each
/// folds what is before its tile. 4 MiB, launches back to back, pipeline / this: float 10.5 / 6.1 us, int32 9.3 / 6.1;
/// launches that overlap save 1.9 us of that. 8 MiB, two blocks a multiprocessor: float 10.2 / 8.4, int32 8.8 / 8.5,
/// double 10.9 / 8.9.
inline constexpr int most_tiles_each = 256;
/// Blocks of those that shall fit a multiprocessor. Structs would spill registers.
template <class A>
inline constexpr int few_tiles_blocks = std::is_arithmetic_v<A> ? 2 : 1;
/// Larger accumulators go the simple way.
inline constexpr std::size_t largest_pipelined = 40;

/// Threads of a kernel that runs over elements without a tile: 3 or 4 blocks of them fill a multiprocessor.
inline constexpr int loop_threads = 512;
/// Elements that such a thread has under way: 32 bytes of them, at most 8.
constexpr int loads_at_once(std::size_t bytes) { return static_cast<int>(std::clamp<std::size_t>(32 / bytes, 1, 8)); }

/// Counts in shared memory, of digits or bins: 32 KiB, of which 3 blocks fit a multiprocessor everywhere.
inline constexpr int shared_counts = 8192;
/// Elements that are counted before 32-bit counts are added to the 64-bit ones.
inline constexpr index_type counted_at_once = index_type{1} << 31;
/// Words of 16 bytes that a thread reads before it counts their bytes: 1 / 2 / 4 took 89 / 83 / 80 us for 2^28 bytes,
/// which are read in 59. (With offsets taken from the word's bits, 4 took 68.)
inline constexpr int words_at_once = 4;
/// Elements that a block counts, at least: several times the counts that it adds to the others'.
inline constexpr index_type least_counted = 16 * 1024;

/// radix_sort: 16 warps of 20 keys a thread, with values of 16 elements. Of 10240 keys with 4 bytes, 40 have one digit
/// on average, 160 bytes that go to one place. Two blocks leave 64 registers a thread. Keys and pairs of 2^26 uint32
/// took, by threads x items and blocks: 512 x 20 x 2: 1314 and 2140 us; 512 x 16 x 2: 1354 and 2138; 384 x 24 x 2: 1329
/// and 2174; 384 x 16 x 3: 1405 and 2364; 512 x 12 x 3: 1425 and 2625 (spilled).
inline constexpr int sort_threads = 512;
inline constexpr int sort_blocks = 2;
constexpr int sort_items(std::size_t bytes, bool with_values) {
    const int registers = with_values ? 16 : 20; // of elements
    const std::size_t each = std::max(bytes, sizeof(unsigned)) / sizeof(unsigned);
    return std::max(1, registers / static_cast<int>(each));
}
/// Tiles that a thread looks back at in one step: 2 / 4 / 8 took 1436 / 1405 / 1434 us (384 x 16 x 3). More find the
/// place sooner, and take more of the cache's time.
inline constexpr int sort_look_back = 4;

/// Smallest piece of workspace that is allocated: enough for the descriptors of 8192 tiles of 4-byte values.
inline constexpr std::size_t least_workspace = 64 * 1024;

} // namespace polyscan::cuda::tuning
