// SPDX-License-Identifier: Apache-2.0
// The verbs beside scan, for `polyscan compare --verb`.
#include <polyscan/openmp.hpp>

#include "verbs/backend_verbs.hpp"

namespace polyscan::openmp {
namespace {

const bool registered = tool::register_verb_runner(
    backend::name(), [](int threads) { return std::make_unique<tool::backend_verbs<backend>>(backend(threads)); });

} // namespace
} // namespace polyscan::openmp
