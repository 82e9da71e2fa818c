// SPDX-License-Identifier: Apache-2.0
// The verbs beside scan, for `polyscan compare --verb`.
#include <polyscan/kokkos.hpp>

#include "runtime.hpp"
#include "verbs/backend_verbs.hpp"

namespace polyscan::kokkos {
namespace {

const bool registered = tool::register_verb_runner(backend<>::name(), [](int threads) {
    ensure_running(threads);
    return std::make_unique<tool::backend_verbs<backend<>>>(backend<>());
});

} // namespace
} // namespace polyscan::kokkos
