// SPDX-License-Identifier: Apache-2.0
/// What a block algorithm is to the grid algorithms. A specialisation has
///     using group = Group;                               // the threads that scan a tile
///     static constexpr int elements;                     // of a full tile
///     struct storage;                                    // its shared memory
///     explicit tile_scan(storage&);
///     void load(request, first, count);                  // elements first, ..., first + count - 1
///     void scan(request, publish);                       // local prefixes; the leader calls publish(aggregate), early
///     void store(request, entry);                        // op(carry, local), shifted by one for exclusive scans
///     static A fold(request, first);                     // aggregate of a full tile, by one warp, the same bits
/// All threads of `Group` call load, scan, store in this order; `scan` passes a barrier of the group at least once,
/// unless the group is one warp.
#pragma once

namespace polyscan::cuda {

template <class Block, class KernelRequest, class Group>
class tile_scan;

} // namespace polyscan::cuda
