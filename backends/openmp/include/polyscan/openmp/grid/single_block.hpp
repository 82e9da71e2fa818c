// SPDX-License-Identifier: Apache-2.0
/// Single block: one thread walks over the tiles and keeps the running total. No other thread, no waiting.
#pragma once

#include <polyscan/openmp/grid/tile_pass.hpp>

namespace polyscan::openmp {

template <class Block, class Request, class Team>
void grid_scan(policy<grid::single_block, Block>, const Request& request, const Team&, int) {
    scan_in_order<Block>(request);
}

} // namespace polyscan::openmp
