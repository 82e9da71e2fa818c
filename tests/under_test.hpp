// SPDX-License-Identifier: Apache-2.0
/// The backend that a test program is about, for its one source file.
///
/// POLYSCAN_TEST_BACKEND names the header that defines `backend_under_test`.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "doctest_tally.hpp"
#include "matrix.hpp"
#include POLYSCAN_TEST_BACKEND

namespace polyscan::test {
namespace {

using backend_type = backend_under_test::type;

inline const std::vector<std::unique_ptr<target>>& targets() {
    static const auto all = make_targets<backend_under_test>();
    return all;
}

inline std::vector<target*> pointers() {
    std::vector<target*> result;
    for (const auto& each : targets()) result.push_back(each.get());
    return result;
}

inline backend_type& object(target& on) { return static_cast<target_of<backend_type>&>(on).object(); }

/// Whether the backend cannot run here; counts and names what was skipped.
inline bool skipped(std::string_view what) {
    const polyscan::availability here = object(*targets().front()).available();
    if (!here) cells.skip(1, std::string(backend_type::name()) + ' ' + std::string(what) + ": " + here.reason);
    return !here;
}

/// What a call that must be refused says.
template <class Call>
std::string refusal(Call call) {
    try {
        call();
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "not refused";
}

} // namespace
} // namespace polyscan::test
