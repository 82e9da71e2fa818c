// SPDX-License-Identifier: Apache-2.0
/// One comparison of a verb beside scan: every backend, and the peers, on the same input; checked, then timed in one
/// interleaved run.
#pragma once

#include "comparison.hpp"
#include "verbs/verb.hpp"

namespace polyscan::tool {

/// `job.verb` names the verb; op, kind and policies do not matter.
comparison compare_verb(const std::vector<chosen_backend>& backends, const comparison_job& job,
                        const std::function<void(std::string_view, double)>& progress);

} // namespace polyscan::tool
