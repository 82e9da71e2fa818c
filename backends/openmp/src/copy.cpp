// SPDX-License-Identifier: Apache-2.0
#include "copy.hpp"

#include <algorithm>
#include <cstring>

#include <polyscan/host/past_caches.hpp>
#include <polyscan/openmp/team.hpp>

namespace polyscan::openmp {

void parallel_copy(void* destination, const void* source, std::size_t bytes, int threads) {
    // The same division of labour as a scan's: sections by ticket, so that the writing front moves as one.
    constexpr auto section = static_cast<std::size_t>(tuning::section_bytes);
    // Past the caches where a scan's outputs would go that way too.
    const bool past_caches = 2 * bytes > host::last_level_bytes();
    auto* const to = static_cast<std::byte*>(destination);
    const auto* const from = static_cast<const std::byte*>(source);
    ticket_counter tickets;
    const bool small = bytes < static_cast<std::size_t>(tuning::parallel_bytes);
    omp_team{}.run(small ? 1 : threads, [&](failure&) {
        for (std::size_t first; (first = static_cast<std::size_t>(tickets.take()) * section) < bytes;) {
            const std::size_t length = std::min(section, bytes - first);
            if (past_caches)
                host::copy_past_caches(to + first, from + first, length);
            else
                std::memcpy(to + first, from + first, length);
        }
        if (past_caches) host::order_past_caches();
    });
}

} // namespace polyscan::openmp
