// SPDX-License-Identifier: Apache-2.0
// The verbs beside scan, for `polyscan compare --verb`. On the default stream, like the registered backend.
#include <polyscan/cuda.hpp>

#include "verbs/backend_verbs.hpp"

namespace polyscan::cuda {
namespace {

const bool registered = tool::register_verb_runner(
    backend::name(), [](int) { return std::make_unique<tool::backend_verbs<backend>>(backend()); });

} // namespace
} // namespace polyscan::cuda
