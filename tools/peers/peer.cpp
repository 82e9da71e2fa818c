// SPDX-License-Identifier: Apache-2.0
#include "peers/peer.hpp"

#include <algorithm>

namespace polyscan::tool {

namespace {
std::vector<std::unique_ptr<peer>>& all() {
    static std::vector<std::unique_ptr<peer>> peers;
    return peers;
}
} // namespace

bool register_peer(std::unique_ptr<peer> another) {
    const auto later =
        std::find_if(all().begin(), all().end(), [&](const auto& p) { return p->name() > another->name(); });
    all().insert(later, std::move(another));
    return true;
}

const std::vector<std::unique_ptr<peer>>& registered_peers() { return all(); }

} // namespace polyscan::tool
