// SPDX-License-Identifier: Apache-2.0
#include "names.hpp"

#include "program.hpp"

#include <polyscan/policy.hpp>
#include <polyscan/registry.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

namespace polyscan::tool {

namespace {

// Without --backend the first of these that is available is taken, then any other in alphabetical order: a GPU before
// the CPU, and the backend written for a machine before a portable layer.
constexpr std::array<std::string_view, 2> preferred_backends{"cuda", "openmp"};

std::string unknown(std::string_view what, std::string_view text, const std::vector<std::string>& known) {
    return fmt::format("unknown {} '{}' (known: {})", what, text, list_of(known));
}

std::vector<std::string> dtype_names() {
    std::vector<std::string> names;
    for (int i = 0; i <= static_cast<int>(dtype::complex128); ++i) names.emplace_back(name(static_cast<dtype>(i)));
    return names;
}

std::uint64_t parse_digits(std::string_view argument, std::string_view text, std::string_view whole) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc::result_out_of_range) throw usage_error(argument, fmt::format("'{}' is too large", whole));
    if (error != std::errc{} || end != text.data() + text.size())
        throw usage_error(argument, fmt::format("'{}' is not a number such as 1000, 2^22 or 64M", whole));
    return value;
}

} // namespace

std::string list_of(const std::vector<std::string>& names) { return fmt::format("{}", fmt::join(names, ", ")); }

dtype parse_dtype(std::string_view argument, std::string_view text) {
    if (const auto type = dtype_from_name(text)) return *type;
    throw usage_error(argument, unknown("dtype", text, dtype_names()));
}

std::string parse_operator(std::string_view argument, std::string_view text) {
    const auto& names = operator_names();
    if (std::find(names.begin(), names.end(), text) == names.end())
        throw usage_error(argument, unknown("operator", text, {names.begin(), names.end()}));
    return std::string(text);
}

scan_kind parse_kind(std::string_view argument, std::string_view text) {
    if (text == "inclusive") return scan_kind::inclusive;
    if (text == "exclusive") return scan_kind::exclusive;
    throw usage_error(argument, unknown("kind", text, {"inclusive", "exclusive"}));
}

std::string_view kind_name(scan_kind kind) { return kind == scan_kind::inclusive ? "inclusive" : "exclusive"; }

std::string parse_policy(std::string_view argument, std::string_view text) {
    if (const auto full = canonical_policy_name(text)) return *full;
    throw usage_error(argument, fmt::format("unknown policy '{}' ('polyscan info' lists them)", text));
}

std::vector<std::string> all_policies() {
    std::vector<std::string> names;
    for_each_policy([&](auto policy) { names.push_back(policy.name()); });
    return names;
}

std::vector<std::string> parse_policies(std::string_view argument, const std::vector<std::string>& texts) {
    if (texts.empty()) return all_policies();
    std::vector<std::string> names;
    for (const std::string& text : texts) {
        if (text == "all") return all_policies();
        const std::string full = parse_policy(argument, text);
        if (std::find(names.begin(), names.end(), full) == names.end()) names.push_back(full);
    }
    return names;
}

std::uint64_t parse_count(std::string_view argument, std::string_view text) {
    constexpr auto largest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    const auto too_large = [&] { return usage_error(argument, fmt::format("'{}' is too large", text)); };
    std::uint64_t value = 1;
    if (const auto hat = text.find('^'); hat != std::string_view::npos) {
        const std::uint64_t base = parse_digits(argument, text.substr(0, hat), text);
        const std::uint64_t power = parse_digits(argument, text.substr(hat + 1), text);
        for (std::uint64_t i = 0; i < power && value != 0 && (base > 1 || i == 0); ++i) {
            if (base != 0 && value > largest / base) throw too_large();
            value *= base;
        }
    } else {
        int shift = 0;
        std::string_view digits = text;
        if (!text.empty()) {
            if (text.back() == 'K') shift = 10;
            if (text.back() == 'M') shift = 20;
            if (text.back() == 'G') shift = 30;
            if (shift > 0) digits.remove_suffix(1);
        }
        value = parse_digits(argument, digits, text);
        if (value > largest >> shift) throw too_large();
        value <<= shift;
    }
    return value;
}

std::vector<std::uint64_t> parse_counts(std::string_view argument, std::string_view text) {
    std::vector<std::uint64_t> counts;
    while (true) {
        const auto comma = text.find(',');
        const std::string_view item = text.substr(0, comma);
        if (const auto dots = item.find(".."); dots != std::string_view::npos) {
            const std::uint64_t first = parse_count(argument, item.substr(0, dots));
            const std::uint64_t last = parse_count(argument, item.substr(dots + 2));
            if (first == 0 || last < first)
                throw usage_error(argument, fmt::format("'{}' is not a rising range from at least 1", item));
            for (std::uint64_t n = first; n <= last; n *= 2) counts.push_back(n);
        } else {
            counts.push_back(parse_count(argument, item));
        }
        if (comma == std::string_view::npos) return counts;
        text.remove_prefix(comma + 1);
    }
}

void require_operator(std::string_view op, dtype type) {
    if (!operator_accepts(op, type)) throw usage_error("--op", fmt::format("{} is not defined for {}", op, name(type)));
}

std::vector<chosen_backend> choose_backends(std::string_view argument, const std::vector<std::string>& names,
                                            int threads) {
    const std::vector<std::string> known = registered_backends();
    std::vector<chosen_backend> chosen;
    for (const std::string& wanted : names.empty() ? known : names) {
        if (std::find(known.begin(), known.end(), wanted) == known.end())
            throw usage_error(argument, known.empty()
                                            ? fmt::format("'{}' is not compiled into this program, nor is any", wanted)
                                            : unknown("backend", wanted, known));
        if (std::any_of(chosen.begin(), chosen.end(), [&](const auto& other) { return other.name == wanted; }))
            continue;
        auto backend = make_backend(wanted, {threads});
        if (const availability state = backend->available(); !state) {
            if (!names.empty())
                throw usage_error(argument, fmt::format("{} is not available: {}", wanted, state.reason));
            chosen.push_back({wanted, nullptr, state.reason});
        } else {
            chosen.push_back({wanted, std::move(backend), {}});
        }
    }
    return chosen;
}

std::unique_ptr<any_backend> choose_backend(const std::string& name, int threads) {
    if (!name.empty()) return std::move(choose_backends("--backend", {name}, threads).front().backend);
    std::vector<std::string> order;
    const std::vector<std::string> known = registered_backends();
    for (const std::string_view first : preferred_backends)
        if (std::find(known.begin(), known.end(), first) != known.end()) order.emplace_back(first);
    for (const std::string& other : known)
        if (std::find(order.begin(), order.end(), other) == order.end()) order.push_back(other);
    std::string reasons;
    for (const std::string& candidate : order) {
        auto backend = make_backend(candidate, {threads});
        const availability state = backend->available();
        if (state) return backend;
        reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", candidate, state.reason);
    }
    throw usage_error("--backend", reasons.empty() ? "no backend is compiled into this program"
                                                   : fmt::format("no backend is available ({})", reasons));
}

} // namespace polyscan::tool
