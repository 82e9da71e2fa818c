// SPDX-License-Identifier: Apache-2.0
/// A peer is what a user would otherwise pick: a scan of another library, measured in the same run as the policies.
///
/// One source file per peer, which registers itself; a peer that the compiler or the installed packages do not allow is
/// not compiled. A backend may bring its own: its registration source registers peers that name it.
#pragma once

#include <polyscan/any_backend.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace polyscan::tool {

class peer {
public:
    virtual ~peer() = default;

    /// As in the table: "tbb::parallel_scan".
    virtual std::string_view name() const = 0;
    /// The backend whose memory, copy and clock it is measured with; "host": ordinary memory and the steady clock.
    virtual std::string_view backend() const { return "host"; }
    /// Nothing if the call can run, else the reason. Looks at type, operator and kind only.
    virtual std::optional<std::string> unsupported(const scan_call& call) const = 0;
    /// Runs the call, whose policy means nothing here and which has no init; on the host it is done on return.
    /// `threads` is the number to use, 0: the peer's own choice. Throws backend_error.
    virtual void run(const scan_call& call, int threads) = 0;
    /// Its threads come from a pool whose new threads inherit the caller's processors: the caller must not be bound to
    /// one of them (OMP_PROC_BIND does that to the initial thread).
    virtual bool inherits_affinity() const { return false; }
};

/// Called during static initialisation; returns true, so that a namespace-scope constant can make the call.
bool register_peer(std::unique_ptr<peer> another);

/// In alphabetical order.
const std::vector<std::unique_ptr<peer>>& registered_peers();

/// The sequential scan of the standard library: what speed-ups are counted from. Always there.
peer& sequential_peer();

} // namespace polyscan::tool
