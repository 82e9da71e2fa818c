// SPDX-License-Identifier: Apache-2.0
/// The numbers of this backend, each with its reason. None of them changes a result.
#pragma once

#include <cstddef>

#include <polyscan/tile.hpp>

namespace polyscan::openmp::tuning {

/// Consecutive tiles that a thread takes with one ticket span about this much: large against the cost of a ticket and a
/// hand-over between cores (about 0.2 us), small enough that those which a thread has in hand stay in a 1 MiB
/// second-level cache.
inline constexpr index_type section_bytes = 128 * 1024;

/// Sections that a thread has reduced and not begun to scan. With one, a thread needs the carry of a section as soon as
/// it has published that section's aggregates, and waits for whoever is slowest, section after section. (Sums of 2^27
/// int32 by 16 threads, copy ratio with one, two, three: 0.72, 1.18, 1.11; of 2^26 by two: 0.87, 0.90, 0.87.)
inline constexpr index_type sections_waiting = 2;

/// Below this much input a scan runs in the calling thread. Starting a team that sleeps costs 55 to 80 us, which is
/// what one thread needs for about 1 MiB.
inline constexpr index_type parallel_bytes = 1024 * 1024;

/// Two values on different lines of this size do not disturb each other: two cache lines, because processors fetch
/// lines in pairs.
inline constexpr std::size_t separate = 128;

/// Vector registers and cache lines are at most this wide.
inline constexpr std::size_t alignment = 64;

/// Memory from this size on is asked for in pages of it.
inline constexpr std::size_t huge_page = 2 * 1024 * 1024;

/// A cache line. What is written line by line starts at a multiple of it.
inline constexpr std::size_t line = 64;

/// Pieces of a parallel loop or sort for each thread: one that lags is waited for by the others no longer than a
/// quarter of its work.
inline constexpr index_type pieces_each = 4;

/// Elements of a chunk, at least: many against the 256 lines that each chunk leaves incomplete.
inline constexpr index_type least_sort_chunk = 16 * 1024;

/// Digits that are counted in 32 bits: half the memory of 64, so that four passes' counts leave room in the first-level
/// cache.
inline constexpr index_type counted_at_once = index_type{1} << 30;

/// Elements of a histogram that a thread takes with one ticket: long against the ticket.
inline constexpr index_type histogram_piece = 32 * 1024;

/// Sets of bins that neighbours go to in turn, where there are no more bins than this: 32 KiB of counts. An increment
/// of the count that was incremented just before waits for it, some 5 cycles.
inline constexpr index_type histogram_sets = 4;
inline constexpr index_type bins_in_sets = 1024;

/// Counts of all threads, at most, that are held beside the output: 64 MiB.
inline constexpr index_type private_bins = index_type{8} << 20;

/// Sections of a selection: what was selected of the last one waits in the second-level cache while the next one passes
/// through it. (Of 2^25 int32, half of them selected: 32 KiB 6.3 ms, 64 KiB 6.6, 128 KiB 6.2, 256 KiB 7.6.)
inline constexpr index_type select_section_bytes = 128 * 1024;
inline constexpr index_type select_section_elements = 32 * 1024;

/// Pieces of 4 KiB between what is selected and what is asked for: 16 KiB.
inline constexpr index_type select_pieces_ahead = 4;

/// A reduction takes this many sections with a ticket, at most, and leaves each thread this many tickets to balance.
inline constexpr index_type reduce_sections = 16;
inline constexpr index_type reduce_tickets_each = 8;

/// How often a waiting thread looks again before it offers its processor to others: about 30 us, a few times what a
/// section takes. Less, and on a busy machine every wait costs a time slice (measured: a tenth of the speed with 256);
/// more, and a waiting thread keeps the awaited one from running where there are more threads than processors.
inline constexpr int spins_before_yield = 2048;

/// Tiles per section for accumulators of `bytes` bytes.
constexpr index_type section_tiles(tile_shape shape, index_type bytes) {
    return std::max<index_type>(1, section_bytes / (shape.elements() * bytes));
}

} // namespace polyscan::openmp::tuning
