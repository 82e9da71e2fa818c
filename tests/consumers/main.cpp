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
    std::printf("polyscan %s: right\n", polyscan::version);
    return 0;
}
