// SPDX-License-Identifier: Apache-2.0
/// Scans an array that need not fit into memory: chunks of whole tiles, each continuing from the last output of the one
/// before. Reading, scanning and writing overlap, and with a device the copies to it and back: three chunks are under
/// way, five with a device.
#pragma once

#include "array_file.hpp"
#include "elements.hpp"

#include <polyscan/any_backend.hpp>

#include <functional>
#include <optional>
#include <string>

namespace polyscan::tool {

struct scan_job {
    std::string op;
    std::string policy;
    scan_kind kind = scan_kind::inclusive;
    dtype accumulator = dtype::int32;
    dtype output = dtype::int32;
    std::optional<scalar> init;     ///< of the accumulator's type
    std::size_t chunk_elements = 0; ///< a multiple of the tile
};

/// Runs the job to the end of the input; the writer is left to be finished. `progress` is told the elements done.
/// Throws usage_error, bad_input, backend_error. Memory: a buffer of a chunk in the widest of the three types, two if a
/// conversion is needed, for each chunk under way; on a device one of accumulators for each.
void run_scan(any_backend& backend, const scan_job& job, array_reader& reader, array_writer& writer,
              const std::function<void(std::uint64_t)>& progress);

} // namespace polyscan::tool
