// SPDX-License-Identifier: Apache-2.0
#include <polyscan/registry.hpp>

#include <map>

namespace polyscan {

namespace {
// A function-local static: registration runs during static initialisation, in an unknown order of translation units.
std::map<std::string, backend_factory, std::less<>>& factories() {
    static std::map<std::string, backend_factory, std::less<>> all;
    return all;
}
} // namespace

bool register_backend(std::string_view name, backend_factory factory) {
    if (!factories().emplace(std::string(name), std::move(factory)).second)
        reject("backend", "'" + std::string(name) + "' is registered twice");
    return true;
}

std::vector<std::string> registered_backends() {
    std::vector<std::string> names;
    for (const auto& [name, factory] : factories()) names.push_back(name);
    return names;
}

std::unique_ptr<any_backend> make_backend(std::string_view name, const backend_options& options) {
    const auto found = factories().find(name);
    if (found == factories().end()) reject("backend", "'" + std::string(name) + "' is not compiled into this program");
    return found->second(options);
}

const std::vector<std::string_view>& operator_names() {
    static const std::vector<std::string_view> names{"plus",    "multiplies", "minimum", "maximum",
                                                     "bit_and", "bit_or",     "bit_xor"};
    return names;
}

bool operator_accepts(std::string_view op, dtype type) {
    return visit_dtype(type, [&]<class T>(std::type_identity<T>) {
        if (op == "bit_and" || op == "bit_or" || op == "bit_xor") return std::is_integral_v<T>;
        if (op == "minimum" || op == "maximum") return std::is_arithmetic_v<T>;
        return op == "plus" || op == "multiplies";
    });
}

} // namespace polyscan
