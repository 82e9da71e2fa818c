// SPDX-License-Identifier: Apache-2.0
/// A radix sort out of stable partitions, and the library's own: measurements in order, each with the number that it
/// had.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "../example.hpp"

namespace {

using example::index_type;

// [by hand]
struct bit_is_clear {
    int bit;
    POLYSCAN_FUNCTION bool operator()(std::uint16_t key) const { return (key >> bit & 1) == 0; }
};

// From the lowest bit to the highest: those without it first. Each partition keeps the order of the ones before.
void sort_by_partitions(example::backend& where, example::array<std::uint16_t>& keys,
                        example::array<std::uint16_t>& other) {
    example::array<index_type> zeros(where, 1);
    for (int bit = 0; bit < 16; bit += 2) {
        polyscan::partition(where, keys.view(), other.data(), zeros.data(), bit_is_clear{bit});
        polyscan::partition(where, other.view(), keys.data(), zeros.data(), bit_is_clear{bit + 1});
    }
}
// [by hand]

} // namespace

int main(int argc, char* argv[]) {
    return example::run(argc, argv, [](example::backend& where) {
        const std::size_t n = 200003;
        std::vector<float> measured(n);
        std::vector<int> number(n);
        std::vector<std::uint16_t> small(n);
        example::random next(11);
        for (std::size_t i = 0; i < n; ++i) {
            measured[i] =
                static_cast<float>(next.below(20000) - 10000) / 8; // with repetitions: order among equals shows
            number[i] = static_cast<int>(i);
            small[i] = static_cast<std::uint16_t>(next());
        }
        measured[5] = -0.0F;
        measured[17] = std::nanf("");

        example::array<float> keys(where, measured);
        example::array<int> values(where, number);
        // [library]
        polyscan::radix_sort_by_key(where, keys.view(), values.view(), keys.data(), values.data()); // in place, stable
        // [library]
        std::vector<int> expected = number;
        std::ranges::sort(expected, [&](int a, int b) {
            const float x = measured[static_cast<std::size_t>(a)], y = measured[static_cast<std::size_t>(b)];
            if (std::isnan(x) || std::isnan(y))
                return std::isnan(x) == std::isnan(y) ? a < b : std::isnan(y); // NaN last
            return x == y ? a < b : x < y;                                     // -0 is +0; equals in their order
        });
        example::require(values.to_host() == expected, "sorted by key, equals in their order");

        example::array<std::uint16_t> by_hand(where, small), other(where, static_cast<index_type>(n));
        sort_by_partitions(where, by_hand, other);
        std::ranges::sort(small);
        example::require(by_hand.to_host() == small, "sorted by partitions");
        std::printf("%zu measurements and %zu keys sorted\n", n, n);
    });
}
