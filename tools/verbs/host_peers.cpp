// SPDX-License-Identifier: Apache-2.0
// What one would use on the host: the standard library on one thread and in parallel, GNU's parallel mode, TBB.
#include "verbs/verb.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#ifdef POLYSCAN_HAS_TBB
#include <execution>
#include <tbb/blocked_range.h>
#include <tbb/parallel_reduce.h>
#include <tbb/parallel_sort.h>
#include <tbb/task_arena.h>
#endif
#ifdef POLYSCAN_HAS_GNU_PARALLEL
#include <omp.h>
#include <parallel/algorithm>
#include <parallel/numeric>
#endif

namespace polyscan::tool {

namespace {

// The obvious loops; speed-ups are counted from them.
class sequential final : public verb_runner {
public:
    std::string_view name() const override { return "std sequential"; }
    std::string_view backend() const override { return "host"; }
    bool has(verb) const override { return true; }

    void run(const verb_call& call) override {
        visit_verb_type(call.type, [&]<class T>(std::type_identity<T>) {
            const T* const in = static_cast<const T*>(call.in);
            T* const out = static_cast<T*>(call.out);
            const index_type n = call.size;
            switch (call.what) {
            case verb::reduce: *out = std::accumulate(in, in + n, T(0), add<T>); return;
            case verb::copy_if: *call.count = std::copy_if(in, in + n, out, is_small<T>{}) - out; return;
            case verb::segmented_scan: scan_runs(in, out, n, [&](index_type i) { return call.flags[i] != 0; }); return;
            case verb::scan_by_key:
                scan_runs(in, out, n, [&](index_type i) { return call.keys[i] != call.keys[i - 1]; });
                return;
            case verb::reduce_by_key: *call.count = reduce_runs(in, call.keys, out, call.keys_out, n); return;
            case verb::radix_sort:
                std::copy(in, in + n, out);
                std::sort(out, out + n);
                return;
            case verb::histogram: count_bins(in, static_cast<std::int32_t*>(call.out), n); return;
            }
        });
    }

private:
    // Integers wrap around, as everywhere.
    template <class T>
    static T add(T a, T b) {
        if constexpr (std::is_integral_v<T>)
            return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));
        else
            return a + b;
    }

    template <class T, class Head>
    static void scan_runs(const T* in, T* out, index_type n, Head is_head) {
        for (index_type i = 0; i < n; ++i) out[i] = i == 0 || is_head(i) ? in[i] : add(out[i - 1], in[i]);
    }

    template <class T>
    static index_type reduce_runs(const T* in, const std::int32_t* keys, T* out, std::int32_t* keys_out, index_type n) {
        index_type runs = 0;
        for (index_type i = 0; i < n; ++i) {
            if (i > 0 && keys[i] == keys[i - 1]) {
                out[runs - 1] = add(out[runs - 1], in[i]);
            } else {
                keys_out[runs] = keys[i];
                out[runs++] = in[i];
            }
        }
        return runs;
    }

    template <class T>
    static void count_bins(const T* in, std::int32_t* counts, index_type n) {
        std::fill_n(counts, bins, 0);
        for (index_type i = 0; i < n; ++i) {
            if constexpr (std::is_integral_v<T>)
                ++counts[in[i] * bins / upper_end<T>];
            else
                ++counts[std::min(bins - 1, static_cast<int>(in[i] * (static_cast<T>(bins) / upper_end<T>)))];
        }
    }
};

#ifdef POLYSCAN_HAS_TBB
class par_unseq final : public verb_runner {
public:
    explicit par_unseq(int threads) : arena_(threads > 0 ? threads : tbb::task_arena::automatic) {}
    std::string_view name() const override { return "std par_unseq"; }
    std::string_view backend() const override { return "host"; }
    bool inherits_affinity() const override { return true; }
    bool has(verb what) const override {
        return what == verb::reduce || what == verb::copy_if || what == verb::radix_sort;
    }

    void run(const verb_call& call) override {
        visit_verb_type(call.type, [&]<class T>(std::type_identity<T>) {
            const T* const in = static_cast<const T*>(call.in);
            T* const out = static_cast<T*>(call.out);
            const auto how = std::execution::par_unseq;
            arena_.execute([&] {
                if (call.what == verb::reduce) {
                    *out = std::reduce(how, in, in + call.size);
                } else if (call.what == verb::copy_if) {
                    *call.count = std::copy_if(how, in, in + call.size, out, is_small<T>{}) - out;
                } else {
                    std::copy(how, in, in + call.size, out);
                    std::sort(how, out, out + call.size);
                }
            });
        });
    }

private:
    tbb::task_arena arena_;
};

class with_tbb final : public verb_runner {
public:
    explicit with_tbb(int threads) : arena_(threads > 0 ? threads : tbb::task_arena::automatic) {}
    std::string_view name() const override { return "tbb"; }
    std::string_view backend() const override { return "host"; }
    bool inherits_affinity() const override { return true; }
    bool has(verb what) const override { return what == verb::reduce || what == verb::radix_sort; }

    void run(const verb_call& call) override {
        visit_verb_type(call.type, [&]<class T>(std::type_identity<T>) {
            const T* const in = static_cast<const T*>(call.in);
            T* const out = static_cast<T*>(call.out);
            arena_.execute([&] {
                if (call.what == verb::reduce) {
                    *out = tbb::parallel_reduce(
                        tbb::blocked_range<index_type>(0, call.size), T(0),
                        [in](const tbb::blocked_range<index_type>& range, T sum) {
                            return std::reduce(in + range.begin(), in + range.end(), sum);
                        },
                        std::plus<>{});
                } else {
                    std::copy(in, in + call.size, out);
                    tbb::parallel_sort(out, out + call.size);
                }
            });
        });
    }

private:
    tbb::task_arena arena_;
};
#endif

#ifdef POLYSCAN_HAS_GNU_PARALLEL
class gnu_parallel final : public verb_runner {
public:
    explicit gnu_parallel(int threads) : threads_(threads) {}
    std::string_view name() const override { return "__gnu_parallel"; }
    std::string_view backend() const override { return "host"; }
    bool has(verb what) const override { return what == verb::reduce || what == verb::radix_sort; }

    void run(const verb_call& call) override {
        if (threads_ > 0) omp_set_num_threads(threads_);
        visit_verb_type(call.type, [&]<class T>(std::type_identity<T>) {
            const T* const in = static_cast<const T*>(call.in);
            T* const out = static_cast<T*>(call.out);
            if (call.what == verb::reduce) {
                *out = __gnu_parallel::accumulate(in, in + call.size, T(0));
            } else {
                std::copy(in, in + call.size, out);
                __gnu_parallel::sort(out, out + call.size);
            }
        });
    }

private:
    int threads_;
};
#endif

template <class Runner>
std::unique_ptr<verb_runner> make(int threads) {
    return std::make_unique<Runner>(threads);
}

const bool registered = register_verb_runner("host", [](int) { return std::make_unique<sequential>(); })
#ifdef POLYSCAN_HAS_TBB
                        && register_verb_runner("host", make<par_unseq>) && register_verb_runner("host", make<with_tbb>)
#endif
#ifdef POLYSCAN_HAS_GNU_PARALLEL
                        && register_verb_runner("host", make<gnu_parallel>)
#endif
    ;

} // namespace

} // namespace polyscan::tool
