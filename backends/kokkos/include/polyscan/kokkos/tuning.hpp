// SPDX-License-Identifier: Apache-2.0
/// The numbers of this backend, each with its reason. None of them changes a result.
#pragma once

#include <cstddef>

namespace polyscan::kokkos::tuning {

/// Vector lanes per team member on devices: their threads run in groups of at least this many, and a row of the
/// warp_shuffle tree is made for it.
inline constexpr int vector_lanes = 32;

/// Threads (members times lanes) per team on devices, at most. Enough to load a tile with few rounds, few enough that
/// several teams share a multiprocessor: one team waits for its carry while others load.
inline constexpr int team_threads = 256;

/// Smallest number of tiles that the workspace is made for.
inline constexpr std::size_t least_tiles = 1024;

} // namespace polyscan::kokkos::tuning
