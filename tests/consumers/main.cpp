// SPDX-License-Identifier: Apache-2.0
/// What every consumer builds: a scan of a user's own type with a user's own operator, from headers alone.
#include <cstdio>
#include <vector>

#include <polyscan/openmp.hpp>
#include <polyscan/version.hpp>

namespace {

/// x -> scale * x + offset, modulo 2^32.
struct map {
    unsigned scale;
    unsigned offset;
    friend bool operator==(const map&, const map&) = default;
};

struct compose {
    map operator()(const map& earlier, const map& later) const {
        return {later.scale * earlier.scale, later.scale * earlier.offset + later.offset};
    }
};

#if defined(__SIZEOF_INT128__)
/// Where a compiler's extensions are on, integers of 128 bits are integers: sums of 5, which one vector of narrower
/// ones would hold, and of a million.
bool scans_wide_integers(const polyscan::openmp::backend& cpu) {
    __extension__ using wide = __int128;
    for (const std::size_t n : {std::size_t{5}, std::size_t{1'000'000}}) {
        std::vector<wide> in;
        for (std::size_t i = 0; i < n; ++i) in.push_back((wide{1} << 80) - static_cast<wide>(i));
        std::vector<wide> out(n);
        polyscan::inclusive_scan(cpu, in, out);
        wide sum = 0;
        for (std::size_t i = 0; i < n; ++i)
            if (out[i] != (sum += in[i])) return false;
    }
    return true;
}
#else
bool scans_wide_integers(const polyscan::openmp::backend&) { return true; }
#endif

} // namespace

int main() {
    std::vector<map> in;
    for (unsigned i = 0; i < 1'000'000; ++i) in.push_back({2 * i + 1, i});
    std::vector<map> out(in.size());

    const polyscan::openmp::backend cpu;
    polyscan::inclusive_scan(cpu, in, out, compose{});

    map expected = in[0];
    for (std::size_t i = 1; i < in.size(); ++i) {
        expected = compose{}(expected, in[i]);
        if (out[i] != expected) {
            std::printf("wrong at %zu\n", i);
            return 1;
        }
    }
    if (!scans_wide_integers(cpu)) {
        std::printf("wrong sums of 128 bits\n");
        return 1;
    }
    std::printf("polyscan %s: right\n", polyscan::version);
    return 0;
}
