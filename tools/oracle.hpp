// SPDX-License-Identifier: Apache-2.0
/// The oracles of core/reference.hpp by name, evaluated piece by piece so that memory stays with the result alone.
#pragma once

#include <polyscan/tile.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "elements.hpp"

namespace polyscan::tool {

/// Regrouping cannot change the result's bits.
bool is_exact(std::string_view op, dtype type);

/// Elements of a tile under the policy.
index_type tile_elements(std::string_view policy, dtype type);

/// The neutral element. Every operator with a name has one on every dtype that it accepts.
scalar identity_of(std::string_view op, dtype type);

/// Whether input may be scanned in chunks of whole tiles, each continuing from the last output of the one before, with
/// the bits of one scan: not for three_pass, whose carries are not a left fold, unless the operator is exact.
bool may_be_chunked(std::string_view policy, std::string_view op, dtype type);

/// Names the association tree: policies with the same answer have the same bits, and share their expected outputs.
/// "sequential", "left_fold/<block>" or "three_pass/<block>".
std::string tree_of(std::string_view policy, std::string_view op, dtype type);

/// What a scan must write, bit for bit: the left fold for exact operators, the policy's order for the others.
/// `init` is required for exclusive scans.
void expected_outputs(const std::string& tree, std::string_view op, dtype type, scan_kind kind,
                      const std::optional<scalar>& init, const void* input, void* output, std::size_t n);

/// What a result of unknown order was found to be.
struct bound_check {
    std::optional<std::size_t> mismatch; ///< first element outside the bound
    bool same_as_left_fold = false;      ///< equal to the sequential left fold, bit for bit
};

/// Holds results of unknown order to the error bound for plus on floating point: output i may differ from the sum
/// of its inputs, evaluated with more digits, by i times the unit roundoff times the sum of their absolute values
/// (Jeannerod and Rump, 2013: valid for any order of summation and any n). No init. Exact operators must be equal.
bound_check check_bound(std::string_view op, dtype type, scan_kind kind, const void* input, const void* output,
                        std::size_t n);

} // namespace polyscan::tool
