// SPDX-License-Identifier: Apache-2.0
// OpenMP 5's scan directive.
#include "peers/peer.hpp"

#include "operations.hpp"

#include <omp.h>

namespace polyscan::tool {

namespace {

// The compilers here know `inscan` for the built-in + on arithmetic types; other operators would each need a
// `declare reduction` of their own.
template <class T>
void inclusive(const T* in, T* out, index_type n, int threads) {
    T sum{};
#pragma omp parallel for reduction(inscan, + : sum) num_threads(threads)
    for (index_type i = 0; i < n; ++i) {
        sum = static_cast<T>(sum + in[i]);
#pragma omp scan inclusive(sum)
        out[i] = sum;
    }
}

template <class T>
void exclusive(const T* in, T* out, index_type n, int threads) {
    T sum{};
#pragma omp parallel for reduction(inscan, + : sum) num_threads(threads)
    for (index_type i = 0; i < n; ++i) {
        out[i] = sum;
#pragma omp scan exclusive(sum)
        sum = static_cast<T>(sum + in[i]);
    }
}

class openmp_inscan : public peer {
public:
    std::string_view name() const override { return "OpenMP inscan"; }

    std::optional<std::string> unsupported(const scan_call& call) const override {
        const bool summed = call.type == dtype::uint32 || call.type == dtype::uint64 || call.type == dtype::int32 ||
                            call.type == dtype::int64 || call.type == dtype::float32 || call.type == dtype::float64;
        if (call.op == "plus" && summed) return std::nullopt;
        return "compiled for plus on 32- and 64-bit types only";
    }

    void run(const scan_call& call, int threads) override {
        const int team = threads > 0 ? threads : omp_get_max_threads();
        const auto scan = [&]<class T>(std::type_identity<T>) {
            const T* const in = static_cast<const T*>(call.input);
            T* const out = static_cast<T*>(call.output);
            if (call.kind == scan_kind::inclusive)
                inclusive(in, out, call.size, team);
            else
                exclusive(in, out, call.size, team);
        };
        // Signed integers are scanned as unsigned ones of the same size: the same bits, and wrapping is defined.
        switch (call.type) {
        case dtype::int32:
        case dtype::uint32: return scan(std::type_identity<std::uint32_t>{});
        case dtype::int64:
        case dtype::uint64: return scan(std::type_identity<std::uint64_t>{});
        case dtype::float32: return scan(std::type_identity<float>{});
        default: return scan(std::type_identity<double>{});
        }
    }
};

const bool registered = register_peer(std::make_unique<openmp_inscan>());
} // namespace

} // namespace polyscan::tool
