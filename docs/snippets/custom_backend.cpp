// SPDX-License-Identifier: Apache-2.0
/// A backend of one's own: the last step of docs/tutorial.md.
#include <algorithm>
#include <exception>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include <polyscan/openmp.hpp>
#include <polyscan/reference.hpp>

#include "expect.hpp"

namespace two_threads {

// [block]
// What `coarse` fixes: a left fold in every run, Kogge-Stone over the run totals, the earlier total in front.
template <class T, class Operator>
void scan_tile(T* v, polyscan::index_type m, polyscan::index_type run, const Operator& op) {
    std::vector<T> totals;
    for (polyscan::index_type first = 0; first < m; first += run) {
        const polyscan::index_type end = std::min(first + run, m);
        for (polyscan::index_type i = first + 1; i < end; ++i) v[i] = polyscan::combine(op, v[i - 1], v[i]);
        totals.push_back(v[end - 1]);
    }
    for (std::size_t s = 1; s < totals.size(); s *= 2)
        for (std::size_t i = totals.size() - 1; i >= s; --i) // from the right: reads what this round has not written
            totals[i] = polyscan::combine(op, totals[i - s], totals[i]);
    for (polyscan::index_type i = run; i < m; ++i)
        v[i] = polyscan::combine(op, totals[static_cast<std::size_t>(i / run - 1)], v[i]);
}
// [block]

// [backend]
class backend {
public:
    static constexpr std::string_view name() { return "two_threads"; }
    polyscan::availability available() const { return {}; }

    // One policy: three passes, each tile scanned by `coarse`.
    template <class Policy>
    static constexpr bool supports =
        std::is_same_v<Policy, polyscan::policy<polyscan::grid::three_pass, polyscan::block::coarse>>;

    template <class Policy, class Request>
    void scan(const Request& request) {
        using T = typename Request::accumulator_type;
        constexpr polyscan::tile_shape shape = polyscan::shape_for<polyscan::block::coarse, T>;
        const polyscan::index_type n = request.live_size(), tile = shape.elements(),
                                   tiles = polyscan::ceil_div(n, tile);
        if (n == 0) {
            if (request.total != nullptr && request.empty_total) *request.total = *request.empty_total;
            return;
        }
        // Pass 1: every tile on its own. A simple backend may keep the locals instead of scanning twice.
        std::vector<T> local(static_cast<std::size_t>(n));
        on_both(tiles, [&](polyscan::index_type k) {
            const polyscan::index_type first = k * tile, m = std::min(tile, n - first);
            for (polyscan::index_type i = first; i < first + m; ++i)
                local[static_cast<std::size_t>(i)] = request.load(i);
            scan_tile(local.data() + first, m, shape.run, request.op);
        });
        // Pass 2: the aggregates, by the same policy; it ends when one tile holds them all.
        std::vector<T> scanned;
        if (tiles > 1) {
            for (polyscan::index_type k = 0; k < tiles; ++k)
                scanned.push_back(local[static_cast<std::size_t>(std::min((k + 1) * tile, n) - 1)]);
            polyscan::inclusive_scan(*this, std::vector<T>(scanned), scanned, request.op, Policy{});
        }
        // Pass 3: the carry in front of every local. Exclusive: stored one place later.
        const auto output = [&](polyscan::index_type i) {
            const polyscan::index_type k = i / tile;
            T value = local[static_cast<std::size_t>(i)];
            if (k > 0) {
                const T& before = scanned[static_cast<std::size_t>(k - 1)];
                value = polyscan::combine(
                    request.op, request.init ? polyscan::combine(request.op, *request.init, before) : before, value);
            } else if (request.init) {
                value = polyscan::combine(request.op, *request.init, value);
            }
            return value;
        };
        const bool exclusive = request.kind == polyscan::scan_kind::exclusive;
        on_both(tiles, [&](polyscan::index_type k) {
            for (polyscan::index_type i = k * tile; i < std::min((k + 1) * tile, n); ++i)
                request.store(i, !exclusive ? output(i) : i == 0 ? *request.init : output(i - 1));
        });
        if (request.total != nullptr) *request.total = output(n - 1);
    }

    void synchronize() {} // a call returns when its scan is done

    template <class T>
    std::vector<T> allocate(polyscan::index_type n) {
        return std::vector<T>(static_cast<std::size_t>(n));
    }
    template <class T>
    void copy_to_device(T* to, const T* from, polyscan::index_type n) {
        std::copy_n(from, n, to);
    }
    template <class T>
    void copy_to_host(T* to, const T* from, polyscan::index_type n) {
        std::copy_n(from, n, to);
    }

private:
    // Even tiles here, odd ones there; joining makes their writes visible. What an operator throws there is thrown
    // here: an exception that leaves a thread ends the program.
    static void on_both(polyscan::index_type tiles, const auto& work) {
        std::exception_ptr thrown;
        std::jthread other([&] {
            try {
                for (polyscan::index_type k = 1; k < tiles; k += 2) work(k);
            } catch (...) {
                thrown = std::current_exception();
            }
        });
        for (polyscan::index_type k = 0; k < tiles; k += 2) work(k); // if this throws, `other` is joined, too
        other.join();
        if (thrown) std::rethrow_exception(thrown);
    }
};
static_assert(polyscan::backend<backend>);
// [backend]

} // namespace two_threads

int main() {
    using snippet::expect;
    // [use]
    using how = polyscan::policy<polyscan::grid::three_pass, polyscan::block::coarse>;
    two_threads::backend mine;
    polyscan::openmp::backend theirs;

    std::vector<float> in(100000), a(in.size()), b(in.size());
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = 1.0F / static_cast<float>(i + 1);
    polyscan::inclusive_scan(mine, in, a, polyscan::plus{}, how{});
    polyscan::inclusive_scan(theirs, in, b, polyscan::plus{}, how{}); // the same policy: the same bits
    // [use]
    expect(a == b, "the same policy gives the same bits");
    expect(a == polyscan::reference::policy_order(how{}, in, polyscan::plus{}), "the oracle agrees");
    float total_a = 0, total_b = 0;
    for (const int n : {0, 1, 4095, 4096, 4097, 100000}) {
        polyscan::exclusive_scan(mine, polyscan::counted(in.data(), n), a, 0.5F, polyscan::plus{}, how{},
                                 polyscan::total_to{&total_a});
        polyscan::exclusive_scan(theirs, polyscan::counted(in.data(), n), b, 0.5F, polyscan::plus{}, how{},
                                 polyscan::total_to{&total_b});
        expect(a == b && total_a == total_b, "exclusive, init and total agree");
    }
    for (const std::size_t bad : {std::size_t{0}, std::size_t{4096}}) { // in a tile here, and in one there
        const auto checked = [&](float earlier, float later) {
            if (earlier == in[bad] || later == in[bad]) throw std::runtime_error("not this one");
            return earlier + later;
        };
        bool caught = false;
        try {
            polyscan::inclusive_scan(mine, in, a, checked, how{});
        } catch (const std::runtime_error&) {
            caught = true;
        }
        expect(caught, "what the operator throws reaches the caller");
    }
}
