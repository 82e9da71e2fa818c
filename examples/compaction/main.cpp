// SPDX-License-Identifier: Apache-2.0
/// Stream compaction: particles that have left the box are dropped, the others close the gaps, in their order.
#include <algorithm>

#include "../example.hpp"

namespace {

struct particle {
    float x, y, weight;
};

// [inside]
struct inside {
    POLYSCAN_FUNCTION bool operator()(const particle& p) const { return p.x >= 0 && p.x < 1 && p.y >= 0 && p.y < 1; }
};
// [inside]

struct weight_of {
    POLYSCAN_FUNCTION float operator()(const particle& p) const { return p.weight; }
};

// [by hand]
// With nothing but a scan: element i goes to the place that the exclusive sum of the flags says.
void compact_by_hand(example::backend& where, example::array<particle>& all, particle* kept,
                     polyscan::index_type* count) {
    const particle* const in = all.data();
    polyscan::exclusive_scan(
        where, all.view(),
        polyscan::to_function([=] POLYSCAN_FUNCTION(polyscan::index_type i, polyscan::index_type before) {
            if (inside{}(in[i])) kept[before] = in[i];
        }),
        polyscan::index_type{0}, polyscan::plus{}, polyscan::default_policy{}, polyscan::with_transform{inside{}},
        polyscan::total_to{count});
}
// [by hand]

} // namespace

int main(int argc, char* argv[]) {
    return example::run(argc, argv, [](example::backend& where) {
        std::vector<particle> particles(1 << 20);
        example::random next(7);
        for (particle& p : particles) {
            p.x = static_cast<float>(next.unit() * 1.5 - 0.25);
            p.y = static_cast<float>(next.unit() * 1.5 - 0.25);
            p.weight = static_cast<float>(next.unit());
        }
        const auto n = static_cast<example::index_type>(particles.size());
        example::array<particle> all(where, particles), kept(where, n), by_hand(where, n);
        example::array<example::index_type> count(where, 1), count_by_hand(where, 1);
        example::array<float> weights(where, n), total(where, 1);

        // [copy_if]
        polyscan::copy_if(where, all.view(), kept.data(), count.data(), inside{});
        // The count stays where it is: this call reads it when it runs, and the host waits for nothing.
        const auto live = polyscan::counted(static_cast<const particle*>(kept.data()), n, count.data());
        polyscan::inclusive_scan<float>(where, live, weights.data(), polyscan::plus{}, polyscan::default_policy{},
                                        polyscan::with_transform{weight_of{}}, polyscan::total_to{total.data()});
        // [copy_if]
        compact_by_hand(where, all, by_hand.data(), count_by_hand.data());

        std::vector<particle> expected;
        std::copy_if(particles.begin(), particles.end(), std::back_inserter(expected), inside{});
        const auto same = [](const particle& a, const particle& b) {
            return a.x == b.x && a.y == b.y && a.weight == b.weight;
        };
        const example::index_type survivors = count.value();
        example::require(survivors == static_cast<example::index_type>(expected.size()), "the number of survivors");
        example::require(std::ranges::equal(kept.to_host(survivors), expected, same), "the survivors and their order");
        example::require(count_by_hand.value() == survivors &&
                             std::ranges::equal(by_hand.to_host(survivors), expected, same),
                         "the same by hand");
        double weight = 0;
        for (const particle& p : expected) weight += static_cast<double>(p.weight);
        example::require(std::abs(static_cast<double>(total.value()) - weight) < 1e-3 * weight,
                         "the weight of the survivors");
        std::printf("%lld of %lld particles are inside\n", static_cast<long long>(survivors),
                    static_cast<long long>(n));
    });
}
