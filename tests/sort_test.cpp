// SPDX-License-Identifier: Apache-2.0
/// radix_sort and radix_sort_by_key against std::stable_sort: all keys and kinds of values, orders, parts of keys,
/// lengths, inputs, in place or not, at addresses that are aligned to nothing but an element. A failing cell names all
/// of that. The last line says how many cells ran.
///
/// POLYSCAN_TEST_BACKEND names the header that defines `backend_under_test`.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include "inputs.hpp"
#include "sort.hpp"
#include "under_test.hpp"

namespace polyscan::test {
namespace {

// --- inputs ----------------------------------------------------------------------------------------------------------

enum class kind { random, few, equal, ascending, descending, one_byte, two_bytes, special };
constexpr kind kinds[] = {kind::random,     kind::few,      kind::equal,     kind::ascending,
                          kind::descending, kind::one_byte, kind::two_bytes, kind::special};
constexpr const char* name_of(kind of) {
    constexpr const char* names[] = {"random",     "few",      "equal",     "ascending",
                                     "descending", "one byte", "two bytes", "special"};
    return names[static_cast<int>(of)];
}

template <class Key>
constexpr bool floating = std::is_floating_point_v<Key> || std::is_same_v<Key, half>;
template <class Key>
using word = typename polyscan::detail::unsigned_of<sizeof(Key)>::type;

template <class Key>
Key from_bits(std::uint64_t bits) {
    const auto narrow = static_cast<word<Key>>(bits);
    Key key;
    std::memcpy(static_cast<void*>(&key), &narrow, sizeof key);
    return key;
}

/// Zeros of both signs, infinities, NaNs of both signs with payloads, the least and the greatest numbers.
template <class Key>
Key special(std::uint64_t r) {
    if constexpr (floating<Key>) {
        constexpr int fraction = std::is_same_v<Key, double> ? 52 : std::is_same_v<Key, float> ? 23 : 10;
        constexpr std::uint64_t sign = std::uint64_t{1} << (8 * sizeof(Key) - 1);
        constexpr std::uint64_t infinity = sign - (std::uint64_t{1} << fraction);
        const std::uint64_t values[] = {0,
                                        1,
                                        infinity,
                                        infinity + 1,
                                        infinity + 5,
                                        sign - 1,     // NaNs
                                        infinity - 1, // the greatest number
                                        std::uint64_t{1} << fraction,
                                        (std::uint64_t{1} << fraction) - 1};
        return from_bits<Key>(values[r % std::size(values)] | ((r >> 32 & 1) != 0 ? sign : 0));
    } else {
        using limits = std::numeric_limits<Key>;
        const Key values[] = {limits::min(), limits::max(),
                              Key{0},        static_cast<Key>(limits::max() / 2),
                              Key{1},        static_cast<Key>(~std::uint64_t{0})};
        return values[r % std::size(values)];
    }
}

template <class Key>
bool comes_before(const Key& a, const Key& b) {
    if constexpr (floating<Key>) {
        const auto x = static_cast<double>(a), y = static_cast<double>(b);
        if (std::isnan(x)) return false;
        return std::isnan(y) || x < y;
    } else {
        return a < b;
    }
}

template <class Key>
std::vector<Key> make_keys(kind of, index_type n, std::uint64_t seed) {
    std::vector<Key> keys;
    keys.reserve(static_cast<std::size_t>(n));
    const int byte = static_cast<int>(seed % sizeof(Key)), other = static_cast<int>((seed + 2) % sizeof(Key));
    for (index_type i = 0; i < n; ++i) {
        const std::uint64_t r = random_bits(seed, i);
        switch (of) {
        case kind::few: keys.push_back(from_bits<Key>(random_bits(1, static_cast<index_type>(r % 5)))); break;
        case kind::equal: keys.push_back(from_bits<Key>(random_bits(seed, 0))); break;
        case kind::one_byte: keys.push_back(from_bits<Key>((r & 0xff) << (8 * byte))); break;
        case kind::two_bytes:
            keys.push_back(from_bits<Key>((r & 0xff) << (8 * byte) | (r >> 8 & 0xff) << (8 * other)));
            break;
        case kind::special: keys.push_back(special<Key>(r)); break;
        default: keys.push_back(from_bits<Key>(r));
        }
    }
    if (of == kind::ascending) std::stable_sort(keys.begin(), keys.end(), comes_before<Key>);
    if (of == kind::descending)
        std::stable_sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) { return comes_before(b, a); });
    return keys;
}

template <class Value>
std::vector<Value> make_values(index_type n) {
    std::vector<Value> values(static_cast<std::size_t>(n));
    if constexpr (!std::is_same_v<Value, keys_only>)
        for (index_type i = 0; i < n; ++i) { // no two alike, where the type has room
            std::uint64_t words[2] = {static_cast<std::uint64_t>(i) * 2 + 1, random_bits(7, i)};
            std::memcpy(&values[static_cast<std::size_t>(i)], words, sizeof(Value));
        }
    return values;
}

// --- what is right ---------------------------------------------------------------------------------------------------

/// A part of a key, as the documentation words it: the key as an unsigned number that orders it, and bits of that.
template <class Key>
std::uint64_t part_of(const Key& key, bit_range bits) {
    word<Key> raw;
    std::memcpy(&raw, static_cast<const void*>(&key), sizeof key);
    constexpr int width = 8 * sizeof(Key);
    const auto sign = static_cast<word<Key>>(word<Key>{1} << (width - 1));
    std::uint64_t ordered = raw;
    if constexpr (floating<Key>) {
        const auto value = static_cast<double>(key);
        if (std::isnan(value))
            ordered = static_cast<word<Key>>(~word<Key>{0});
        else if (value == 0)
            ordered = sign;
        else
            ordered = std::signbit(value) ? static_cast<word<Key>>(~raw) : static_cast<word<Key>>(raw + sign);
    } else if constexpr (std::is_signed_v<Key>) {
        ordered = static_cast<word<Key>>(raw + sign);
    }
    const int end = bits.end == bit_range::all ? width : bits.end;
    if (bits.begin == end) return 0;
    return ordered << (64 - end) >> (64 - end + bits.begin);
}

/// Which input element is at each place of the output.
template <class Key>
std::vector<std::size_t> right_order(const std::vector<Key>& keys, sort_order order, bit_range bits) {
    std::vector<std::size_t> places(keys.size());
    std::iota(places.begin(), places.end(), std::size_t{0});
    const bool whole = bits.begin == 0 && bits.end == bit_range::all;
    std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
        if (order == sort_order::descending) std::swap(a, b);
        return whole ? comes_before(keys[a], keys[b]) : part_of(keys[a], bits) < part_of(keys[b], bits);
    });
    return places;
}

// --- one call --------------------------------------------------------------------------------------------------------

/// An array in the backend's memory, between guards, `shift` elements away from an aligned address.
template <class T>
class guarded {
public:
    guarded(target& on, index_type n, int shift)
        : on_(on), n_(n), bytes_(2 * margin + (n + shift) * size), memory_(on.allocate(bytes_)),
          data_(memory_.get() + margin + shift * size) {
        const std::vector<std::byte> poison(static_cast<std::size_t>(bytes_), fill);
        on_.copy_to_device(memory_.get(), poison.data(), bytes_);
    }
    T* data() const { return reinterpret_cast<T*>(data_); }
    void set(const std::vector<T>& values) {
        on_.copy_to_device(data_, reinterpret_cast<const std::byte*>(values.data()), n_ * size);
    }
    /// The elements, if all around them is untouched; else fails.
    std::vector<T> get(const std::string& cell) const {
        std::vector<std::byte> all(static_cast<std::size_t>(bytes_));
        on_.copy_to_host(all.data(), memory_.get(), bytes_);
        const auto first = static_cast<std::size_t>(data_ - memory_.get()),
                   last = first + static_cast<std::size_t>(n_ * size);
        const auto untouched = [](std::byte byte) { return byte == fill; };
        if (!std::all_of(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(first), untouched) ||
            !std::all_of(all.begin() + static_cast<std::ptrdiff_t>(last), all.end(), untouched))
            cells.fail(cell + ": wrote outside of its output");
        std::vector<T> values(static_cast<std::size_t>(n_));
        if (n_ > 0) std::memcpy(static_cast<void*>(values.data()), all.data() + first, last - first);
        return values;
    }

    std::vector<T> untouched() const {
        std::vector<T> values(static_cast<std::size_t>(n_));
        if (n_ > 0) std::memset(static_cast<void*>(values.data()), static_cast<int>(fill), values.size() * sizeof(T));
        return values;
    }

private:
    static constexpr index_type margin = 256, size = sizeof(T);
    static constexpr std::byte fill{0xa5};
    target& on_;
    index_type n_, bytes_;
    std::shared_ptr<std::byte> memory_;
    std::byte* data_;
};

template <class T>
bool same_memory(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() &&
           (a.empty() || std::memcmp(static_cast<const void*>(a.data()), b.data(), a.size() * sizeof(T)) == 0);
}

struct form {
    sort_order order = sort_order::ascending;
    bit_range bits = {};
    bool keys_in_place = false;
    bool values_in_place = false;
    int shift = 0;
    index_type live = -1; ///< the run-time number of elements
};

template <class Key, class Value>
void check_sort(target& on, kind of, index_type n, std::uint64_t seed, const form& with) {
    constexpr bool has_values = !std::is_same_v<Value, keys_only>;
    const std::string cell = std::string(backend_type::name()) + " sort of " + std::to_string(sizeof(Key)) + "+" +
                             std::to_string(sizeof(Value)) +
                             (floating<Key>           ? " floating, "
                              : std::is_signed_v<Key> ? " signed, "
                                                      : " unsigned, ") +
                             name_of(of) + ", n = " + std::to_string(n) + ", live = " + std::to_string(with.live) +
                             (with.order == sort_order::descending ? ", descending" : "") + ", bits [" +
                             std::to_string(with.bits.begin) + ", " + std::to_string(with.bits.end) + "), in place " +
                             std::to_string(with.keys_in_place) + std::to_string(with.values_in_place) + ", shift " +
                             std::to_string(with.shift) + ", workers " + std::to_string(on.workers());
    const auto keys = make_keys<Key>(of, n, seed);
    const auto values = make_values<Value>(has_values ? n : 0);
    guarded<Key> keys_in(on, n, with.shift), keys_out(on, n, (with.shift + 1) % 4);
    guarded<Value> values_in(on, has_values ? n : 0, 3 - with.shift), values_out(on, has_values ? n : 0, with.shift);
    guarded<index_type> live(on, 1, 0);
    keys_in.set(keys);
    values_in.set(values);
    live.set({with.live});

    sort_arguments<Key, Value> a;
    a.keys = keys_in.data();
    a.keys_out = with.keys_in_place ? keys_in.data() : keys_out.data();
    a.values = values_in.data();
    a.values_out = with.values_in_place ? values_in.data() : values_out.data();
    a.size = n;
    a.live = with.live >= 0 ? live.data() : nullptr;
    a.order = with.order;
    a.bits = with.bits;
    const index_type before = cells.failed();
    try {
        run_sort(object(on), a);
        on.synchronize();
    } catch (const std::exception& error) {
        return cells.fail(cell + ": " + error.what());
    }

    const auto sorted = static_cast<std::size_t>(with.live >= 0 ? std::min(n, with.live) : n);
    const auto places = right_order(std::vector<Key>(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(sorted)),
                                    with.order, with.bits);
    const auto judge = [&](const char* what, auto& in, auto& out, bool in_place, const auto& original) {
        const auto found = (in_place ? in : out).get(cell);
        // What is behind the live elements is not written: it is the input's, or what was there.
        auto right = in_place ? original : out.untouched();
        for (std::size_t i = 0; i < sorted; ++i) right[i] = original[places[i]];
        if (!same_memory(found, right)) cells.fail(cell + ": wrong " + what);
        if (!in_place && !same_memory(in.get(cell), original)) cells.fail(cell + ": changed the input " + what);
    };
    judge("keys", keys_in, keys_out, with.keys_in_place, keys);
    if constexpr (has_values) judge("values", values_in, values_out, with.values_in_place, values);
    if (cells.failed() == before) cells.pass();
}

/// Lengths, each with its reason: nothing; one; two; around a vector and a digit's values; around the tiles of the
/// for_each form (1024) and of the CUDA backend (512 threads; 16 pairs or 20 keys each, or half of that); some of those
/// and a rest.
constexpr index_type sizes[] = {0,    1,    2,    31,   255,  256,   257,   1023,  1024,
                                1025, 4096, 5121, 8191, 8192, 10239, 10240, 10241, 30000};

template <class Key, class Value>
void check_all(std::string_view name) {
    if (skipped(name)) return;
    constexpr int width = 8 * sizeof(Key);
    for (const auto& each : targets()) {
        std::uint64_t seed = 1;
        for (const index_type n : sizes)
            for (const kind of : kinds) {
                if (n > longest_input) continue;
                ++seed;
                form with;
                with.order = seed % 2 == 0 ? sort_order::ascending : sort_order::descending;
                with.keys_in_place = seed / 2 % 2 != 0;
                with.values_in_place = seed / 4 % 2 != 0;
                with.shift = static_cast<int>(seed / 3 % 4);
                check_sort<Key, Value>(*each, of, n, seed, with);
            }
        // Every combination of the above over one length, and parts of keys: none, a bit, less and more than a digit,
        // whole digits, across digits, all but the ends.
        const bit_range parts[] = {{},
                                   {0, 0},
                                   {width, width},
                                   {0, 1},
                                   {width - 1, width},
                                   {3, 7},
                                   {0, width / 2},
                                   {1, width},
                                   {width / 2 - 1, width / 2 + 3}};
        for (const bit_range bits : parts)
            for (const sort_order order : {sort_order::ascending, sort_order::descending})
                for (const kind of : {kind::random, kind::special})
                    for (int in_place = 0; in_place < (std::is_same_v<Value, keys_only> ? 2 : 4); ++in_place)
                        check_sort<Key, Value>(*each, of, 2500, ++seed,
                                               {order, bits, in_place % 2 != 0, in_place / 2 != 0, 1, -1});
        // The number of elements is read when the work runs: none, one, some, more than there is room for.
        for (const index_type live : {0, 1, 1500, 2500, 9999})
            for (const bool in_place : {false, true})
                check_sort<Key, Value>(*each, kind::random, 2500, ++seed,
                                       {sort_order::ascending, {}, in_place, in_place, 0, live});
    }
}

#define POLYSCAN_TEST_SORT(key, value)                                                                                 \
    TEST_CASE("sort: " #key ", " #value) { check_all<key, value>("sort of " #key ", " #value); }
POLYSCAN_SORT_KEYS_CASES(POLYSCAN_TEST_SORT)
POLYSCAN_SORT_PAIRS_CASES(POLYSCAN_TEST_SORT)

TEST_CASE("sort: long inputs, in many chunks and tiles") {
    if (skipped("long sorts")) return;
    for (const auto& each : targets()) {
        // Three chunks of a host's and a rest; more than 2^20; more than a last-level cache holds (with its copy),
        // where hosts write line by line.
        for (const index_type n : {index_type{70'001}, index_type{1'100'003}}) {
            if (n > longest_input) continue;
            for (const kind of : {kind::random, kind::few, kind::one_byte})
                check_sort<std::uint32_t, keys_only>(*each, of, n, 5, {sort_order::ascending, {}, false, false, 3, -1});
            check_sort<float, std::uint64_t>(*each, kind::random, n, 6,
                                             {sort_order::descending, {}, true, true, 1, -1});
            check_sort<std::uint64_t, bytes_16>(*each, kind::random, n, 7,
                                                {sort_order::ascending, {9, 30}, false, true, 2, -1});
        }
    }
    if (longest_input < 1'000'000) return;
    target& first = *targets().front();
    check_sort<std::uint32_t, keys_only>(first, kind::random, 5'000'011, 8,
                                         {sort_order::ascending, {}, false, false, 1, -1});
    check_sort<std::uint8_t, bytes_3>(first, kind::random, 9'000'001, 9,
                                      {sort_order::ascending, {}, true, false, 3, -1});
    check_sort<double, std::uint32_t>(first, kind::special, 3'000'001, 10,
                                      {sort_order::descending, {}, false, false, 2, -1});
    check_sort<std::int32_t, std::uint8_t>(first, kind::random, 5'000'001, 11,
                                           {sort_order::ascending, {}, false, false, 0, -1});
}

// --- refused calls ---------------------------------------------------------------------------------------------------

TEST_CASE("sort: what is refused, before anything is written") {
    if (skipped("refused sorts")) return;
    backend_type& on = object(*targets().front());
    auto keys = on.template allocate<std::uint32_t>(100), other = on.template allocate<std::uint32_t>(100);
    auto values = on.template allocate<std::uint32_t>(100), more = on.template allocate<std::uint32_t>(100);
    using arguments = sort_arguments<std::uint32_t, std::uint32_t>;
    const arguments good{keys.data(), other.data(), values.data(), more.data(), 100, nullptr};
    CHECK(refusal([&] { run_sort(on, good); }) == "not refused");
    const auto refused = [&](auto change) {
        arguments bad = good;
        change(bad);
        return refusal([&] { run_sort(on, bad); });
    };
    CHECK(refused([](arguments& a) { a.bits = {-1, 8}; }) == "bits: begin must lie in [0, 32]");
    CHECK(refused([](arguments& a) { a.bits = {33, 33}; }) == "bits: begin must lie in [0, 32]");
    CHECK(refused([](arguments& a) { a.bits = {8, 7}; }).starts_with("bits: end must lie in [begin, 32]"));
    CHECK(refused([](arguments& a) { a.bits = {0, 33}; }).starts_with("bits: end must lie in [begin, 32]"));
    CHECK(refused([](arguments& a) { a.keys = nullptr; }) == "keys: is null although it has elements");
    CHECK(refused([](arguments& a) { a.values = nullptr; }) == "values: is null although it has elements");
    CHECK(refused([](arguments& a) { a.keys_out = nullptr; }) == "keys_out: is null although it has elements");
    CHECK(refused([](arguments& a) { a.values_out = nullptr; }) == "values_out: is null although it has elements");
    CHECK(refused([](arguments& a) {
              a.size = 99, a.keys_out = const_cast<std::uint32_t*>(a.keys) + 1;
          }).starts_with("keys_out: overlaps keys"));
    CHECK(refused([](arguments& a) {
              a.keys_out = const_cast<std::uint32_t*>(a.values);
          }).starts_with("keys_out: overlaps values"));
    CHECK(refused([](arguments& a) {
              a.values_out = const_cast<std::uint32_t*>(a.keys);
          }).starts_with("values_out: overlaps keys"));
    CHECK(refused([](arguments& a) { a.values_out = a.keys_out; }).starts_with("values_out: overlaps keys_out"));
    CHECK(refused([](arguments& a) {
              a.keys_out = const_cast<std::uint32_t*>(a.keys), a.values_out = a.keys_out;
          }).starts_with("values_out: overlaps keys"));
#ifdef POLYSCAN_TEST_HOST
    std::vector<int> in(10), few(9);
    CHECK(refusal([&] { radix_sort(on, in, few); }) == "out: has 9 elements, fewer than the input's 10");
    CHECK(refusal([&] { radix_sort(on, in.data(), in.data()); }).starts_with("in: a bare pointer has no length"));
    CHECK(refusal([&] { radix_sort_by_key(on, in, few, in, in); }).starts_with("values: has 9 elements"));
#endif
}

#ifdef POLYSCAN_TEST_HOST
TEST_CASE("sort: keys of type bool, and bfloat16") {
    backend_type& cpu = object(*targets().front());
    bool truths[] = {true, false, true, false}, sorted[4];
    const char values[] = {'a', 'b', 'c', 'd'};
    char values_out[4];
    radix_sort_by_key(cpu, truths, values, sorted, values_out);
    cpu.synchronize();
    CHECK(std::string(values_out, 4) == "bdac");
    CHECK((!sorted[0] && !sorted[1] && sorted[2] && sorted[3]));
    const bfloat16 numbers[] = {bfloat16(2.0f), bfloat16(-0.0f), bfloat16(-8.0f), bfloat16(0.0f)};
    bfloat16 out[4];
    radix_sort(cpu, numbers, out);
    cpu.synchronize();
    CHECK((float(out[0]) == -8 && out[1].bits == 0x8000 && out[2].bits == 0 && float(out[3]) == 2));
}

TEST_CASE("sort: values that ask for more alignment than the copy of them has") {
    struct alignas(4096) page {
        char name;
    };
    backend_type& cpu = object(*targets().front());
    const int keys[] = {2, 1, 2};
    int keys_out[3];
    const std::vector<page> values{{'a'}, {'b'}, {'c'}};
    std::vector<page> out(3);
    radix_sort_by_key(cpu, keys, values, keys_out, out);
    cpu.synchronize();
    CHECK((out[0].name == 'b' && out[1].name == 'a' && out[2].name == 'c'));
}
#endif

TEST_CASE("sort: the documentation's examples") {
    if (skipped("examples")) return;
    target& on = *targets().front();
    guarded<std::int32_t> in(on, 5, 1), out(on, 5, 0);
    in.set({3, -1, 4, 1, -5});
    sort_arguments<std::int32_t, keys_only> a;
    a.keys = in.data();
    a.keys_out = out.data();
    a.size = 5;
    run_sort(object(on), a);
    on.synchronize();
    CHECK(out.get("ascending") == std::vector<std::int32_t>{-5, -1, 1, 3, 4});
    a.order = sort_order::descending;
    run_sort(object(on), a);
    on.synchronize();
    CHECK(out.get("descending") == std::vector<std::int32_t>{4, 3, 1, -1, -5});
    guarded<std::uint32_t> keys(on, 4, 0), values(on, 4, 1), keys_out(on, 4, 2), values_out(on, 4, 3);
    keys.set({2, 1, 2, 0});
    values.set({'a', 'b', 'c', 'd'});
    sort_arguments<std::uint32_t, std::uint32_t> b;
    b.keys = keys.data();
    b.keys_out = keys_out.data();
    b.values = values.data();
    b.values_out = values_out.data();
    b.size = 4;
    run_sort(object(on), b);
    on.synchronize();
    CHECK(keys_out.get("keys") == std::vector<std::uint32_t>{0, 1, 2, 2});
    CHECK(values_out.get("values") == std::vector<std::uint32_t>{'d', 'b', 'a', 'c'});
    // Each form of the kernels once, over a tile and a rest: what sanitizers run.
    check_sort<std::uint32_t, keys_only>(on, kind::random, 8000, 1, {});
    check_sort<float, std::uint64_t>(on, kind::special, 8000, 2, {sort_order::descending, {}, true, true, 1, -1});
    check_sort<std::uint8_t, bytes_3>(on, kind::random, 8000, 3, {sort_order::ascending, {}, true, false, 1, 7500});
}

} // namespace
} // namespace polyscan::test
