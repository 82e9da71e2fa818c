// SPDX-License-Identifier: Apache-2.0
/// The backends linked into this program, by name. `core` names none of them: each registers itself.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <polyscan/any_backend.hpp>

namespace polyscan {

/// What can be asked of any backend by name.
struct backend_options {
    int threads = 0; ///< for CPU backends; 0: as many as there are processors to run on
};

/// Makes a backend object.
using backend_factory = std::function<std::unique_ptr<any_backend>(const backend_options&)>;

/// Called by a backend's registration source during static initialisation. Names are unique.
/// Returns true, so that a namespace-scope constant can make the call.
bool register_backend(std::string_view name, backend_factory factory);

/// Names of the registered backends, sorted.
std::vector<std::string> registered_backends();

/// A new backend object. std::invalid_argument if no backend of that name was compiled in.
/// Never throws because a device is missing: ask `available()`.
std::unique_ptr<any_backend> make_backend(std::string_view name, const backend_options& options = {});

} // namespace polyscan
