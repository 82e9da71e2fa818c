// SPDX-License-Identifier: Apache-2.0
#include "copy.hpp"

#include <algorithm>
#include <cstring>

#include <polyscan/host/past_caches.hpp>
#include <polyscan/kokkos/host_team.hpp>

namespace polyscan::kokkos {

void host_copy(const Kokkos::DefaultHostExecutionSpace& space, void* destination, const void* source, std::size_t bytes,
               int threads) {
    // The same division of labour as a scan's: sections by ticket, so that the writing front moves as one.
    constexpr auto section = static_cast<std::size_t>(openmp::tuning::section_bytes);
    auto* const to = static_cast<std::byte*>(destination);
    const auto* const from = static_cast<const std::byte*>(source);
    const bool small = bytes < static_cast<std::size_t>(openmp::tuning::parallel_bytes);
    const bool leaves_caches = 2 * bytes >= host::last_level_bytes();
    openmp::ticket_counter tickets;
    host_team(space).run(small ? 1 : threads, [&](openmp::failure&) {
        for (std::size_t first; (first = static_cast<std::size_t>(tickets.take()) * section) < bytes;) {
            const std::size_t length = std::min(section, bytes - first);
            if (leaves_caches)
                host::copy_past_caches(to + first, from + first, length);
            else
                std::memcpy(to + first, from + first, length);
        }
        host::order_past_caches();
    });
}

} // namespace polyscan::kokkos
