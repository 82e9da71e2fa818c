// SPDX-License-Identifier: Apache-2.0
/// The pipeline of the default policy for racecheck of compute-sanitizer, which orders what a thread did before its own
/// arrival at a barrier: in this program every lane arrives (POLYSCAN_EVERY_LANE_ARRIVES). scripts/gpu-check.sh runs
/// it.
#include <cstdio>
#include <cstring>
#include <optional>
#include <vector>

#include <polyscan/cuda.hpp>
#include <polyscan/reference.hpp>

namespace {

using namespace polyscan;

struct twice_and_one {
    POLYSCAN_FUNCTION std::int8_t operator()(std::int8_t value) const {
        return static_cast<std::int8_t>(2 * value + 1);
    }
};

/// Lanes take several neighbours, whose bytes fill whole accesses.
template <class T, int N>
struct several {
    T x[N];
};
struct add_each {
    template <class T, int N>
    POLYSCAN_FUNCTION several<T, N> operator()(const several<T, N>& a, const several<T, N>& b) const {
        several<T, N> sum{};
        for (int i = 0; i < N; ++i) sum.x[i] = a.x[i] + b.x[i];
        return sum;
    }
};

/// Scans of some tiles and a part of one, by one block and by three, input and output `shift` elements on. Returns how
/// many were wrong.
template <class T, class Operator, class Transform = no_transform>
int wrong(const char* name, Operator op, index_type shift, auto element, Transform transform = {}) {
    using request = scan_request<T, const T*, T*, Operator, Transform>;
    const index_type n = 5 * cuda::pipeline_shape<cuda::kernel_request<request>>::elements + 77;
    std::vector<T> x;
    for (index_type i = 0; i < n; ++i) x.push_back(element(i));
    std::vector<T> seen;
    for (const T& value : x) seen.push_back(transform(value));
    const std::vector<T> expected = reference::policy_order(default_policy{}, seen, op, std::optional<T>{});
    int count = 0;
    for (const int blocks : {1, 3}) {
        cuda::backend on;
        on.hooks().most_blocks = blocks; // few tiles, which would be scanned without the pipeline
        cuda::buffer<T> in(n + shift), out(n + shift);
        on.copy_to_device(in.data() + shift, x.data(), n);
        inclusive_scan<T>(on, counted(static_cast<const T*>(in.data() + shift), n), out.data() + shift, op,
                          default_policy{}, with_transform{transform});
        std::vector<T> y(x.size());
        on.copy_to_host(y.data(), out.data() + shift, n);
        if (std::memcmp(y.data(), expected.data(), y.size() * sizeof(T)) == 0) continue;
        std::printf("ERROR: %s by %d blocks\n", name, blocks);
        ++count;
    }
    return count;
}

} // namespace

int main() {
    const auto part = [](index_type i) { return static_cast<int>(i * 37 % 101) - 50; };
    const auto number = [&](index_type i) { return part(i) / 8.0; };
    int count = 0;
    count += wrong<float>("float", plus{}, 1, [&](index_type i) { return static_cast<float>(number(i)); });
    count += wrong<double>("double", plus{}, 0, number);
    count += wrong<std::int32_t>("int32", plus{}, 1, part);
    count += wrong<std::int8_t>("int8", maximum{}, 1, [&](index_type i) { return static_cast<std::int8_t>(part(i)); });
    count += wrong<std::int8_t>(
        "int8, transformed", plus{}, 1, [&](index_type i) { return static_cast<std::int8_t>(part(i)); },
        twice_and_one{});
    count += wrong<affine<std::uint64_t>>("affine maps of integers", compose_affine{}, 0, [&](index_type i) {
        return affine<std::uint64_t>{static_cast<std::uint64_t>(2 * i + 1), static_cast<std::uint64_t>(part(i))};
    });
    count += wrong<affine<double>>("affine maps", compose_affine{}, 0,
                                   [&](index_type i) { return affine<double>{1 + number(i) / 64, number(i)}; });
    for (const index_type shift : {0, 1}) {
        count += wrong<several<float, 3>>("structs of 12 bytes", add_each{}, shift, [&](index_type i) {
            return several<float, 3>{{static_cast<float>(number(i)), static_cast<float>(number(2 * i)), 0.3f}};
        });
        count += wrong<several<double, 5>>("structs of 40 bytes", add_each{}, shift, [&](index_type i) {
            return several<double, 5>{{number(i), number(2 * i), number(3 * i), 0.3, 1e-9 * number(i)}};
        });
    }
    std::printf("%d wrong\n", count);
    return count == 0 ? 0 : 1;
}
