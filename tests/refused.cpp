// SPDX-License-Identifier: Apache-2.0
/// Calls that must not compile, each with the sentence that says why. CASE chooses; 0 compiles, so that a refusal is
/// not some other error. CMakeLists.txt holds the sentences.
#include <list>
#include <memory>
#include <vector>

#include <polyscan/histogram.hpp>
#include <polyscan/radix_sort.hpp>
#include <polyscan/scan.hpp>

#include "cases.hpp"
#include "reference_backend.hpp"

using namespace polyscan;

struct only_domino : test::reference_backend {
    template <class Policy>
    static constexpr bool supports = std::is_same_v<Policy, default_policy> ||
                                     std::is_same_v<Policy, std::remove_cvref_t<decltype(policies::domino)>>;
};
static_assert(backend<only_domino>);

struct changing_sum {
    int operator()(int a, int b) { return a + b; } // not const
};

int main() {
    only_domino b;
    std::vector<int> in{1, 2}, out(2);
    int total = 0;
#if CASE == 0
    inclusive_scan(b, in, out, plus{}, policies::domino, with_init{1}, with_transform{test::square{}},
                   total_to{&total});
    exclusive_scan(b, in, out, 0, plus{}, policies::domino, total_to{&total});
#elif CASE == 1
    std::vector<polyscan::write<int>> cells(2);
    exclusive_scan(b, cells, cells, no_init, last_write_wins{});
#elif CASE == 2
    std::vector<bool> flags(2);
    inclusive_scan(b, in, flags);
#elif CASE == 3
    inclusive_scan(b, in, out, plus{}, policies::look_back);
#elif CASE == 4
    const std::vector<int> fixed(2);
    inclusive_scan(b, in, fixed);
#elif CASE == 5
    std::list<int> chain{1, 2};
    inclusive_scan(b, chain, out);
#elif CASE == 6
    long wrong = 0;
    inclusive_scan(b, in, out, plus{}, default_policy{}, total_to{&wrong});
#elif CASE == 7
    inclusive_scan<int>(b, in, out, changing_sum{});
#elif CASE == 8
    exclusive_scan(b, in, out, 0, plus{}, default_policy{}, with_init{1});
#elif CASE == 9
    inclusive_scan(b, in, out, plus{}, default_policy{}, with_init{1}, with_init{2});
#elif CASE == 10
    inclusive_scan(b, in, out, plus{}, default_policy{}, 7);
#elif CASE == 11
    radix_sort(b, in, out);
#elif CASE == 12
    histogram(b, in, out, even_bins{0, 10});
#elif CASE == 13
    std::vector<std::unique_ptr<int>> owners(2);
    inclusive_scan(b, owners, owners, [](const std::unique_ptr<int>& earlier, const std::unique_ptr<int>& later) {
        return std::make_unique<int>(*earlier + *later);
    });
#endif
    return total;
}
