// SPDX-License-Identifier: Apache-2.0
/// Times the host's scans beside the roof that each of them has: the parallel pass that reads and writes the same bytes
/// and computes nothing. Prints ratios; scripts/check-host-speed.py compares them with the stored ones.
///
///     host_bench [--sizes 24,27] [--only TEXT] [--repetitions 15] [--threads N] [--json FILE]
///     host_bench --small [--json FILE]            short inputs, beside std::inclusive_scan
///
/// Repetitions of all rows of a size are interleaved, in random order. Beside every sample stands what an empty
/// parallel region took: some machines change between states by themselves, and only ratios within one state mean
/// anything (docs/benchmarks.md).
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <omp.h>

#include <polyscan/host/past_caches.hpp>
#include <polyscan/openmp.hpp>
#include <polyscan/primitives.hpp>

namespace {

using polyscan::index_type;
using clock_type = std::chrono::steady_clock;

double seconds_of(const auto& work) {
    const auto start = clock_type::now();
    work();
    return std::chrono::duration<double>(clock_type::now() - start).count();
}

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    const std::size_t middle = values.size() / 2;
    return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// Distance of the quartiles over the median.
double spread(std::vector<double> values) {
    if (values.size() < 2) return 0;
    std::sort(values.begin(), values.end());
    return (values[values.size() * 3 / 4] - values[values.size() / 4]) / median(values);
}

/// What an empty parallel region takes, in microseconds.
double empty_region(int threads) {
    std::vector<double> times;
    for (int i = 0; i < 31; ++i) {
        times.push_back(seconds_of([&] {
#pragma omp parallel num_threads(threads)
            asm volatile("" ::: "memory");
        }));
    }
    return 1e6 * median(times);
}

/// Bytes that start at a multiple of 64.
class memory {
public:
    explicit memory(std::size_t bytes) : bytes_(static_cast<std::byte*>(::operator new(bytes, alignment))) {}
    memory(const memory&) = delete;
    memory& operator=(const memory&) = delete;
    ~memory() { ::operator delete(bytes_, alignment); }

    template <class T>
    T* at(std::size_t offset = 0) const {
        return reinterpret_cast<T*>(bytes_ + offset);
    }

private:
    static constexpr std::align_val_t alignment{4096};
    std::byte* bytes_;
};

// ---- Roofs

/// Reads `in_bytes` and writes `out_bytes`, both cut into as many sections as a scan would take.
void parallel_move(std::byte* to, std::size_t out_bytes, const std::byte* from, std::size_t in_bytes, int threads) {
    constexpr std::size_t section = 128 * 1024;
    const std::size_t sections = (std::max(in_bytes, out_bytes) + section - 1) / section;
    polyscan::openmp::ticket_counter tickets;
    polyscan::openmp::omp_team{}.run(threads, [&](polyscan::openmp::failure&) {
        alignas(64) std::byte line[64];
        std::memset(line, 1, sizeof line);
        for (std::size_t s; (s = static_cast<std::size_t>(tickets.take())) < sections;) {
            const std::size_t in_begin = in_bytes * s / sections, in_end = in_bytes * (s + 1) / sections;
            const std::size_t out_begin = out_bytes * s / sections / 64 * 64,
                              out_end = s + 1 == sections ? out_bytes : out_bytes * (s + 1) / sections / 64 * 64;
            if (in_bytes == out_bytes) {
                polyscan::host::copy_past_caches(to + out_begin, from + out_begin, out_end - out_begin);
                continue;
            }
            // A piece of each in turn, as a scan does.
            constexpr std::size_t pieces = 64;
            std::uint64_t seen = 0;
            for (std::size_t p = 0; p < pieces; ++p) {
                const std::size_t a = in_begin + (in_end - in_begin) * p / pieces,
                                  b = in_begin + (in_end - in_begin) * (p + 1) / pieces;
                std::size_t i = a;
                for (; i + 8 <= b; i += 8) {
                    std::uint64_t word = 0;
                    std::memcpy(&word, from + i, 8);
                    seen ^= word;
                }
                const std::size_t c = out_begin + (out_end - out_begin) * p / pieces / 64 * 64,
                                  d = p + 1 == pieces ? out_end
                                                      : out_begin + (out_end - out_begin) * (p + 1) / pieces / 64 * 64;
                std::memcpy(line, &seen, 8);
                for (std::size_t o = c; o + 64 <= d; o += 64) polyscan::host::copy_past_caches(to + o, line, 64);
            }
        }
        polyscan::host::order_past_caches();
    });
}

/// Reads and writes the same memory.
void parallel_touch(std::byte* data, std::size_t bytes, int threads) {
    constexpr std::size_t section = 128 * 1024;
    polyscan::openmp::ticket_counter tickets;
    polyscan::openmp::omp_team{}.run(threads, [&](polyscan::openmp::failure&) {
        for (std::size_t first; (first = static_cast<std::size_t>(tickets.take()) * section) < bytes;) {
            auto* const words = reinterpret_cast<std::uint64_t*>(data + first);
            for (std::size_t i = 0; i < std::min(section, bytes - first) / 8; ++i) words[i] ^= 1;
        }
    });
}

// ---- Rows

struct row {
    std::string name;
    std::string roof; ///< the name of the row that it is compared with; empty for a roof
    double bytes = 0; ///< read and written once
    std::function<void()> run;
    std::vector<double> times, states;
};

struct settings {
    std::vector<int> sizes{24, 27};
    std::string only;
    int repetitions = 15;
    int threads = polyscan::openmp::omp_team::processors();
    const char* json = nullptr;
    bool small = false;
};

class rows_of_size {
public:
    rows_of_size(const settings& wanted, index_type n)
        : wanted_(wanted), n_(n), in_(static_cast<std::size_t>(n) * 16 + 4096),
          out_(static_cast<std::size_t>(n) * 16 + 4096), runs_(static_cast<std::size_t>(n) * 5) {
        cpu_.emplace_back(wanted.threads);
        // Small numbers of both signs, as whichever type: the bits of integers, doubles and floats alike.
        // Written by the threads that will read it, where memory has a place.
        auto* const words = in_.at<std::uint32_t>();
        const index_type count = 4 * n;
#pragma omp parallel for num_threads(wanted.threads)
        for (index_type i = 0; i < count; ++i)
            words[i] = 0x3f800000u ^ static_cast<std::uint32_t>(i * 2654435761 >> 9 & 0x803fffff);
        auto* const outputs = out_.at<std::uint32_t>();
#pragma omp parallel for num_threads(wanted.threads)
        for (index_type i = 0; i < count; ++i) outputs[i] = 0;
        // Runs of 32 elements on average: their numbers as keys, and 1 where one begins.
        auto* const keys = runs_.at<std::int32_t>();
        auto* const flags = runs_.at<std::uint8_t>(static_cast<std::size_t>(n) * 4);
        for (index_type i = 0, key = 0; i < n; ++i) {
            flags[i] = i == 0 || (i * 2654435761 >> 20 & 31) == 0 ? 1 : 0;
            keys[i] = static_cast<std::int32_t>(key += flags[i]);
        }
        add_all();
    }

    std::vector<row>& rows() { return rows_; }

private:
    bool wanted(const std::string& name) const {
        return wanted_.only.empty() || name.find(wanted_.only) != std::string::npos;
    }

    std::string move_roof(std::size_t in_each, std::size_t out_each) {
        const std::string name = "move " + std::to_string(in_each) + " to " + std::to_string(out_each) + " bytes";
        if (std::none_of(rows_.begin(), rows_.end(), [&](const row& r) { return r.name == name; })) {
            const auto n = static_cast<std::size_t>(n_);
            rows_.push_back({name,
                             "",
                             static_cast<double>(n * (in_each + out_each)),
                             [=, this] {
                                 parallel_move(out_.at<std::byte>(), n * out_each, in_.at<std::byte>(), n * in_each,
                                               wanted_.threads);
                             },
                             {},
                             {}});
        }
        return name;
    }
    std::string touch_roof(std::size_t each) {
        const std::string name = "touch " + std::to_string(each) + " bytes";
        if (std::none_of(rows_.begin(), rows_.end(), [&](const row& r) { return r.name == name; })) {
            const auto n = static_cast<std::size_t>(n_);
            rows_.push_back({name,
                             "",
                             static_cast<double>(2 * n * each),
                             [=, this] { parallel_touch(out_.at<std::byte>(), n * each, wanted_.threads); },
                             {},
                             {}});
        }
        return name;
    }

    /// `scan(in, out)` from In to Out, `in_shift` and `out_shift` bytes from a line.
    template <class In, class Out>
    void add(const std::string& name, auto scan, std::size_t in_shift = 0, std::size_t out_shift = 0) {
        if (!wanted(name)) return;
        const std::string roof = move_roof(sizeof(In), sizeof(Out));
        const auto in = polyscan::counted(in_.at<const In>(in_shift), n_);
        Out* const out = out_.at<Out>(out_shift);
        rows_.push_back({name,
                         roof,
                         static_cast<double>(n_) * (sizeof(In) + sizeof(Out)),
                         [=, this] { scan(cpu_.front(), in, out); },
                         {},
                         {}});
    }
    template <class T>
    void add_in_place(const std::string& name) {
        if (!wanted(name)) return;
        const std::string roof = touch_roof(sizeof(T));
        T* const data = out_.at<T>();
        rows_.push_back({name,
                         roof,
                         static_cast<double>(n_) * 2 * sizeof(T),
                         [=, this] { polyscan::inclusive_scan(cpu_.front(), polyscan::counted(data, n_), data); },
                         {},
                         {}});
    }

    /// `select(in, out, count)`, of which `out_each` bytes leave for each element of T.
    template <class T>
    void add_selection(const std::string& name, std::size_t out_each, auto select) {
        if (!wanted(name)) return;
        const std::string roof = move_roof(sizeof(T), out_each);
        const auto in = polyscan::counted(in_.at<const T>(), n_);
        T* const out = out_.at<T>();
        rows_.push_back({name,
                         roof,
                         static_cast<double>(n_) * static_cast<double>(sizeof(T) + out_each),
                         [=, this] { select(cpu_.front(), in, out, &count_); },
                         {},
                         {}});
    }

    template <class T>
    void add_segmented(const std::string& name) {
        const auto n = static_cast<std::size_t>(n_);
        const auto in = polyscan::counted(in_.at<const T>(), n_);
        const auto keys = polyscan::counted(runs_.at<const std::int32_t>(), n_);
        const auto flags = polyscan::counted(runs_.at<const std::uint8_t>(n * 4), n_);
        T* const out = out_.at<T>();
        if (wanted(name + " segmented"))
            rows_.push_back(
                {name + " segmented",
                 move_roof(sizeof(T) + 1, sizeof(T)),
                 static_cast<double>(n * (2 * sizeof(T) + 1)),
                 [=, this] { polyscan::inclusive_segmented_scan(cpu_.front(), in, polyscan::head_flags(flags), out); },
                 {},
                 {}});
        if (wanted(name + " by key"))
            rows_.push_back({name + " by key",
                             move_roof(sizeof(T) + 4, sizeof(T)),
                             static_cast<double>(n * (2 * sizeof(T) + 4)),
                             [=, this] { polyscan::inclusive_scan_by_key(cpu_.front(), keys, in, out); },
                             {},
                             {}});
    }

    void add_all();

    const settings& wanted_;
    index_type count_ = 0;
    index_type n_;
    memory in_, out_, runs_;
    std::vector<polyscan::openmp::backend> cpu_;
    std::vector<row> rows_;
};

void rows_of_size::add_all() {
    using namespace polyscan;
    const auto inclusive = [](auto op) {
        return [op](auto& cpu, auto in, auto* out) { inclusive_scan(cpu, in, out, op); };
    };
    const auto under = [](auto how) {
        return [how](auto& cpu, auto in, auto* out) { inclusive_scan(cpu, in, out, plus{}, how); };
    };
    add<std::int32_t, std::int32_t>("int32 plus", inclusive(plus{}));
    add<float, float>("float plus", inclusive(plus{}));
    add<std::int64_t, std::int64_t>("int64 plus", inclusive(plus{}));
    add<double, double>("double plus", inclusive(plus{}));
    add_in_place<float>("float plus in place");
    const auto exclusive = [](auto& cpu, auto in, auto* out) { exclusive_scan(cpu, in, out); };
    add<std::int32_t, std::int32_t>("int32 exclusive", exclusive);
    add<float, float>("float exclusive", exclusive);
    add<double, double>("double exclusive", exclusive);
    add<float, float>("float init", [](auto& cpu, auto in, auto* out) {
        inclusive_scan(cpu, in, out, plus{}, default_policy{}, with_init{1.0f});
    });
    add<float, float>("float transform", [](auto& cpu, auto in, auto* out) {
        inclusive_scan(cpu, in, out, plus{}, default_policy{}, with_transform{[](float x) { return x * x; }});
    });
    add<float, float>("float output at 16 mod 64", inclusive(plus{}), 0, 16);
    add<float, float>("float both at 16 mod 64", inclusive(plus{}), 16, 16);
    add<std::int8_t, std::int64_t>("int8 to int64", inclusive(plus{}));
    add<std::int16_t, std::int64_t>("int16 to int64", inclusive(plus{}));
    add<std::int8_t, float>("int8 to float", inclusive(plus{}));
    add<std::int16_t, float>("int16 to float", inclusive(plus{}));
    add<float, double>("float to double", inclusive(plus{}));
    add<float, float>("float by double", [](auto& cpu, auto in, auto* out) { inclusive_scan<double>(cpu, in, out); });
    add<std::int32_t, std::int32_t>("int32 maximum", inclusive(maximum{}));
    add<float, float>("float minimum", inclusive(minimum{}));
    add<double, double>("double maximum", inclusive(maximum{}));
    add<std::uint32_t, std::uint32_t>("uint32 bit_or", inclusive(bit_or{}));
    add<std::int32_t, std::int32_t>("int32 lambda max",
                                    inclusive([](std::int32_t a, std::int32_t b) { return a < b ? b : a; }));
    add<float, float>("float lambda max", inclusive([](float a, float b) { return a < b ? b : a; }));
    add<affine<double>, affine<double>>("affine double", inclusive(compose_affine{}));
    struct pair {
        std::int32_t count;
        float sum;
    };
    add<pair, pair>("struct 8 bytes", inclusive([](pair a, pair b) { return pair{a.count + b.count, a.sum + b.sum}; }));
    const auto half_of = [](auto which) {
        return [which](auto& cpu, auto in, auto* out, index_type* count) { copy_if(cpu, in, out, count, which); };
    };
    const auto is_odd = [](auto x) { return (x & 1) != 0; };
    const auto is_small = [](auto x) { return x * x < decltype(x)(1.5625); };
    add_selection<std::int32_t>("int32 copy_if", 2, half_of(is_odd));
    add_selection<float>("float copy_if", 2, half_of(is_small));
    add_selection<std::int64_t>("int64 copy_if", 4, half_of(is_odd));
    add_selection<std::uint8_t>("uint8 copy_if", 1, half_of(is_odd)); // more than half of the bytes: the roof is low
    add_selection<std::int32_t>("int32 partition", 4, [=](auto& cpu, auto in, auto* out, index_type* count) {
        partition(cpu, in, out, count, is_odd);
    });
    add_selection<std::int32_t>("int32 unique", 4,
                                [](auto& cpu, auto in, auto* out, index_type* count) { unique(cpu, in, out, count); });
    add_segmented<std::int32_t>("int32");
    add_segmented<float>("float");
    add<float, float>("float kogge_stone", under(policy<grid::prefix_server, block::kogge_stone>{}));
    add<float, float>("float brent_kung", under(policy<grid::prefix_server, block::brent_kung>{}));
    add<float, float>("float coarse", under(policy<grid::prefix_server, block::coarse>{}));
    add<std::int32_t, std::int32_t>("int32 kogge_stone", under(policy<grid::prefix_server, block::kogge_stone>{}));
    add<float, float>("float three_pass/warp_shuffle", under(policy<grid::three_pass, block::warp_shuffle>{}));
    add<float, float>("float domino/warp_shuffle", under(policy<grid::domino, block::warp_shuffle>{}));
    add<float, float>("float look_back/warp_shuffle", under(policy<grid::look_back, block::warp_shuffle>{}));
    add<float, float>("float three_pass/kogge_stone", under(policies::three_pass));
}

// ---- Measuring

void measure(std::vector<row>& rows, int repetitions, double least_seconds, int threads) {
    std::mt19937 random(1);
    std::vector<std::size_t> order(rows.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (row& r : rows) r.run();
    for (int repetition = 0; repetition < repetitions; ++repetition) {
        std::shuffle(order.begin(), order.end(), random);
        for (const std::size_t i : order) {
            row& r = rows[i];
            const double before = empty_region(threads);
            int calls = 0;
            const auto start = clock_type::now();
            double taken = 0;
            do {
                r.run();
                ++calls;
                taken = std::chrono::duration<double>(clock_type::now() - start).count();
            } while (taken < least_seconds);
            r.times.push_back(taken / calls);
            r.states.push_back((before + empty_region(threads)) / 2);
        }
    }
}

/// Short inputs, beside the standard library's sequential scan: the time of one call among many, median of repetitions.
template <class T>
void small_rows(const settings& wanted, const char* type, std::FILE* json, bool& first) {
    constexpr index_type longest = index_type{1} << 18;
    const memory in(longest * sizeof(T)), out(longest * sizeof(T));
    const T* const from = in.at<const T>();
    T* const to = out.at<T>();
    std::memset(in.at<std::byte>(), 0, longest * sizeof(T));
    std::memset(out.at<std::byte>(), 0, longest * sizeof(T));
    const polyscan::openmp::backend cpu(wanted.threads);
    std::printf("%-8s %10s %12s %12s %8s\n", type, "n", "ns", "std ns", "speed-up");
    for (index_type n = 1; n <= longest; n += std::max<index_type>(1, n < 16 ? n : n / 2)) {
        std::vector<double> ours, theirs;
        index_type length = n;
        const int calls = static_cast<int>(std::max<index_type>(1, 40000 / (n + 20)));
        const auto one = [&](const auto& scan) {
            return 1e9 / calls * seconds_of([&] {
                       for (int i = 0; i < calls; ++i) {
                           asm volatile("" : "+r"(length)::"memory");
                           scan();
                       }
                   });
        };
        for (int repetition = 0; repetition < 4 * wanted.repetitions; ++repetition) {
            ours.push_back(one([&] { polyscan::inclusive_scan(cpu, polyscan::counted(from, length), to); }));
            theirs.push_back(one([&] { std::inclusive_scan(from, from + length, to); }));
        }
        std::printf("%-8s %10lld %12.1f %12.1f %8.2f\n", type, static_cast<long long>(n), median(ours), median(theirs),
                    median(theirs) / median(ours));
        if (json == nullptr) continue;
        std::fprintf(json, "%s\n{\"row\": \"small %s\", \"n\": %lld, \"median_ns\": %.2f, \"std_ns\": %.2f}",
                     first ? "" : ",", type, static_cast<long long>(n), median(ours), median(theirs));
        first = false;
    }
    std::fflush(stdout);
}

void report(const std::vector<row>& rows, index_type n, std::FILE* json, bool& first) {
    const auto named = [&](const std::string& name) {
        return std::find_if(rows.begin(), rows.end(), [&](const row& r) { return r.name == name; });
    };
    std::printf("%-32s %10s %12s %8s %8s %8s %10s\n", "row", "n", "us", "GB/s", "ratio", "spread", "region us");
    for (const row& r : rows) {
        const double time = median(r.times);
        const auto roof = named(r.roof);
        const double ratio = roof == rows.end() ? 1 : median(roof->times) / time;
        std::printf("%-32s %10lld %12.2f %8.1f %8.3f %8.3f %10.2f\n", r.name.c_str(), static_cast<long long>(n),
                    1e6 * time, r.bytes / time * 1e-9, ratio, spread(r.times), median(r.states));
        if (json == nullptr) continue;
        std::fprintf(json,
                     "%s\n{\"row\": \"%s\", \"n\": %lld, \"roof\": \"%s\", \"median_us\": %.3f, \"gbps\": %.2f, "
                     "\"ratio\": %.4f, \"spread\": %.4f, \"empty_region_us\": %.2f}",
                     first ? "" : ",", r.name.c_str(), static_cast<long long>(n), r.roof.c_str(), 1e6 * time,
                     r.bytes / time * 1e-9, ratio, spread(r.times), median(r.states));
        first = false;
    }
    std::fflush(stdout);
}

[[noreturn]] void refuse(const char* what, const char* rule) {
    std::fprintf(stderr, "host_bench: %s: %s\n", what, rule);
    std::exit(2);
}

int number(const char* option, std::string_view text, int least, int most) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most)
        refuse(option, ("takes numbers from " + std::to_string(least) + " to " + std::to_string(most)).c_str());
    return value;
}

} // namespace

int main(int argc, char** argv) {
    settings wanted;
    for (int i = 1; i < argc; ++i) {
        const std::string_view option = argv[i];
        if (option == "--small") {
            wanted.small = true;
        } else if (i + 1 < argc && option == "--sizes") {
            wanted.sizes.clear();
            for (std::string_view left = argv[++i]; !left.empty();) {
                const std::string_view item = left.substr(0, left.find(','));
                wanted.sizes.push_back(number("--sizes", item, 0, 40)); // powers of two
                left.remove_prefix(std::min(left.size(), item.size() + 1));
            }
        } else if (i + 1 < argc && option == "--only") {
            wanted.only = argv[++i];
        } else if (i + 1 < argc && option == "--repetitions") {
            wanted.repetitions = number("--repetitions", argv[++i], 1, 10000);
        } else if (i + 1 < argc && option == "--threads") {
            wanted.threads = number("--threads", argv[++i], 1, 4096);
        } else if (i + 1 < argc && option == "--json") {
            wanted.json = argv[++i];
        } else {
            refuse(argv[i], "unknown, or without its value");
        }
    }
    std::FILE* const json = wanted.json == nullptr ? nullptr : std::fopen(wanted.json, "w");
    if (wanted.json != nullptr && json == nullptr) refuse(wanted.json, "cannot be written");
    bool first = true;
    if (json != nullptr) std::fprintf(json, "{\"schema\": 1, \"threads\": %d, \"rows\": [", wanted.threads);
    if (wanted.small) {
        small_rows<std::int32_t>(wanted, "int32", json, first);
        small_rows<float>(wanted, "float", json, first);
        small_rows<std::int64_t>(wanted, "int64", json, first);
        small_rows<double>(wanted, "double", json, first);
        wanted.sizes.clear();
    }
    for (const int size : wanted.sizes) {
        rows_of_size work(wanted, index_type{1} << size);
        measure(work.rows(), wanted.repetitions, 0.005, wanted.threads);
        report(work.rows(), index_type{1} << size, json, first);
    }
    if (json != nullptr) {
        std::fprintf(json, "\n]}\n");
        const bool is_written = std::ferror(json) == 0;
        if (std::fclose(json) != 0 || !is_written) refuse(wanted.json, "cannot be written");
    }
    return 0;
}
