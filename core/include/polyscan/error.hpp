// SPDX-License-Identifier: Apache-2.0
/// Errors come in two families, and one thing that looks like an error is data:
///  - the caller broke the contract: std::invalid_argument, its message names the argument and the rule;
///  - the backend failed (out of memory, a launch failed, ...): polyscan::backend_error, or std::bad_alloc where the
///    memory is the host's;
///  - the backend cannot be used on this machine: polyscan::availability, a value with a reason.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace polyscan {

/// A backend's runtime reported a failure. The output of the call that threw is unspecified; the backend object
/// remains usable.
class backend_error : public std::runtime_error {
public:
    backend_error(std::string_view backend, std::string_view call, std::string_view message)
        : std::runtime_error(std::string(backend) + ": " + std::string(call) + ": " + std::string(message)),
          backend_(backend), call_(call), message_(message) {}

    /// The backend's name.
    const std::string& backend() const noexcept { return backend_; }
    /// What was called.
    const std::string& call() const noexcept { return call_; }
    /// The runtime's own words.
    const std::string& message() const noexcept { return message_; }

private:
    std::string backend_;
    std::string call_;
    std::string message_;
};

/// Whether a backend can run here and now. `reason` says in one sentence why not; it is empty when it can.
struct availability {
    bool available = true;
    std::string reason;

    explicit operator bool() const noexcept { return available; }
    /// It cannot, and why.
    static availability no(std::string why) { return {false, std::move(why)}; }
};

/// Throws std::invalid_argument as "<argument>: <rule>".
[[noreturn]] inline void reject(std::string_view argument, std::string_view rule) {
    throw std::invalid_argument(std::string(argument) + ": " + std::string(rule));
}

} // namespace polyscan
