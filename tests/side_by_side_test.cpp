// SPDX-License-Identifier: Apache-2.0
/// The promise itself: same policy, same bits, on every backend. All backends of this build scan the same input in one
/// process, and their outputs are compared with each other, byte for byte.
///
/// What cannot be compared is said, not passed over: a backend that is not available here, or was not compiled for a
/// combination. The last line says how many outputs were compared.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <polyscan/registry.hpp>

namespace polyscan::test {
namespace {

struct counts {
    long compared = 0;
    long not_compiled = 0;
};

/// The backends that can run here; says which cannot.
std::vector<std::unique_ptr<any_backend>> backends_here() {
    std::vector<std::unique_ptr<any_backend>> here;
    for (const std::string& name : registered_backends()) {
        auto backend = make_backend(name);
        if (const availability state = backend->available())
            here.push_back(std::move(backend));
        else
            std::printf("side by side: %s skipped: %s\n", name.c_str(), state.reason.c_str());
    }
    return here;
}

/// Numbers of all magnitudes and both signs: any other order of additions shows in the last bits.
template <class T>
std::vector<T> make_elements(index_type n) {
    std::vector<T> x;
    std::uint64_t state = 88172645463325252u;
    for (index_type i = 0; i < n; ++i) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17; // xorshift
        if constexpr (std::is_floating_point_v<T>)
            x.push_back(std::ldexp(static_cast<T>(static_cast<std::int64_t>(state >> 40) - (1 << 23)),
                                   -static_cast<int>(state % 32)));
        else
            x.push_back(static_cast<T>(state >> 5));
    }
    return x;
}

struct outcome {
    std::vector<std::byte> output;
    std::vector<std::byte> total;
};

template <class T>
outcome run(any_backend& on, scan_call call, const std::vector<T>& x) {
    const std::size_t bytes = x.size() * sizeof(T);
    const auto in = on.allocate(bytes), out = on.allocate(bytes), total = on.allocate(sizeof(T));
    on.copy_to_device(in.get(), x.data(), bytes);
    call.input = in.get();
    call.output = out.get();
    call.total = total.get();
    on.scan(call);
    on.synchronize();
    outcome result{std::vector<std::byte>(bytes), std::vector<std::byte>(sizeof(T))};
    on.copy_to_host(result.output.data(), out.get(), bytes);
    on.copy_to_host(result.total.data(), total.get(), sizeof(T));
    return result;
}

template <class T>
void compare_all(const std::vector<std::unique_ptr<any_backend>>& backends, counts& counted) {
    // One element, a partial tile, tile edges of several shapes, and lengths that give three_pass a second level.
    for (const index_type n : {1, 1000, 1024, 8193, 40'000, 1'100'003}) {
        const std::vector<T> x = make_elements<T>(n);
        const T init = static_cast<T>(3);
        for (const char* op : {"plus", "maximum"})
            for_each_policy([&](auto policy) {
                for (const scan_kind kind : {scan_kind::inclusive, scan_kind::exclusive})
                    for (const void* start : {static_cast<const void*>(nullptr), static_cast<const void*>(&init)}) {
                        scan_call call;
                        call.type = dtype_of<T>;
                        call.op = op;
                        call.policy = policy.name();
                        call.kind = kind;
                        call.size = n;
                        call.init = start;
                        std::optional<outcome> first;
                        std::string first_name;
                        for (const auto& backend : backends) {
                            if (backend->unsupported(call)) {
                                ++counted.not_compiled;
                                continue;
                            }
                            const outcome found = run(*backend, call, x);
                            if (!first) {
                                first = found;
                                first_name = backend->name();
                                continue;
                            }
                            ++counted.compared;
                            INFO(first_name, " and ", backend->name(), ": ", call.policy, " ", op, " ", name(call.type),
                                 kind == scan_kind::inclusive ? " inclusive" : " exclusive", " n=", n,
                                 start != nullptr ? " with init" : "");
                            CHECK(found.output == first->output);
                            CHECK(found.total == first->total);
                        }
                    }
            });
    }
}

TEST_CASE("all backends give the same bits under every policy") {
    const auto backends = backends_here();
    std::string names;
    for (const auto& backend : backends) names += ' ' + std::string(backend->name());
    counts counted;
    if (backends.size() < 2) {
        std::printf("side by side: skipped: one backend has nobody beside it (%s)\n", names.c_str());
    } else {
        compare_all<std::int32_t>(backends, counted);
        compare_all<std::int64_t>(backends, counted);
        compare_all<float>(backends, counted);
        compare_all<double>(backends, counted);
        CHECK(counted.compared > 0);
    }
    std::printf("side by side:%s: %ld outputs compared, %ld calls not compiled in\n", names.c_str(), counted.compared,
                counted.not_compiled);
}

} // namespace
} // namespace polyscan::test
