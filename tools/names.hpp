// SPDX-License-Identifier: Apache-2.0
/// Arguments that are names or numbers: checked here once, with the same messages in every command.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <polyscan/any_backend.hpp>

namespace polyscan::tool {

dtype parse_dtype(std::string_view argument, std::string_view text);
std::string parse_operator(std::string_view argument, std::string_view text);
scan_kind parse_kind(std::string_view argument, std::string_view text);
/// The full name, `grid/block`.
std::string parse_policy(std::string_view argument, std::string_view text);
std::vector<std::string> parse_policies(std::string_view argument, const std::vector<std::string>& texts);
std::vector<std::string> all_policies();

std::string_view kind_name(scan_kind kind);

/// "4194304", "2^22", "64M" (K, M and G are powers of 1024).
std::uint64_t parse_count(std::string_view argument, std::string_view text);
/// "2^10..2^28" (doubling), "1000,2^20", or both mixed.
std::vector<std::uint64_t> parse_counts(std::string_view argument, std::string_view text);

/// "a, b, c"
std::string list_of(const std::vector<std::string>& names);

/// Throws usage_error unless the operator is defined for the dtype.
void require_operator(std::string_view op, dtype type);

/// A backend that can run here, or an answer why not.
struct chosen_backend {
    std::string name;
    std::unique_ptr<any_backend> backend; ///< null where it is not available
    std::string reason;                   ///< why not
};

/// The backends that `argument` names, all of which must be available (usage_error if not); with no names
/// every compiled-in backend, available or not.
std::vector<chosen_backend> choose_backends(std::string_view argument, const std::vector<std::string>& names,
                                            int threads);
/// The named backend, or the preferred one of those available.
std::unique_ptr<any_backend> choose_backend(const std::string& name, int threads);

} // namespace polyscan::tool
