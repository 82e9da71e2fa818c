// SPDX-License-Identifier: Apache-2.0
/// The oracles, on inputs that a person can check; and what else core computes: operators, conversions, shapes, names.
#include <bit>
#include <cmath>
#include <complex>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <polyscan/reference.hpp>
#include <polyscan/tile_status.hpp>

#include "inputs.hpp"

namespace polyscan {
namespace {

using test::check_value_input;
using test::fnv1a;
using test::same_bits;

template <class T>
std::vector<T> check_value_inputs(index_type n) {
    std::vector<T> x;
    x.reserve(static_cast<std::size_t>(n));
    for (index_type i = 0; i < n; ++i) x.push_back(static_cast<T>(check_value_input(i)));
    return x;
}

// --- oracles ---------------------------------------------------------------------------------------------------------

TEST_CASE("sequential: the worked example of four blocks of four") {
    const std::vector<int> x{2, 1, 3, 1, 0, 4, 1, 2, 0, 3, 1, 2, 2, 6, 1, 2};
    const std::vector<int> y{2, 3, 6, 7, 7, 11, 12, 14, 14, 17, 18, 20, 22, 28, 29, 31};
    CHECK(reference::sequential(x, plus{}) == y);
    for_each_policy([&](auto how) { CHECK(reference::policy_order(how, x, plus{}) == y); });
}

TEST_CASE("sequential: init comes first, and order is kept") {
    const std::vector<std::string> x{"a", "b", "c"};
    const test::concatenate join;
    const std::optional<std::string> init("0");
    CHECK(reference::sequential(x, join) == std::vector<std::string>{"a", "ab", "abc"});
    CHECK(reference::sequential(x, join, init) == std::vector<std::string>{"0a", "0ab", "0abc"});
    CHECK(reference::outputs(reference::sequential(x, join, init), scan_kind::exclusive, init) ==
          std::vector<std::string>{"0", "0a", "0ab"});
    CHECK(reference::outputs(reference::sequential(x, join), scan_kind::inclusive, {}) ==
          std::vector<std::string>{"a", "ab", "abc"});
}

TEST_CASE("both oracles: nothing and one element") {
    for_each_policy([](auto how) {
        CHECK(reference::policy_order(how, std::vector<int>{}, plus{}).empty());
        CHECK(reference::policy_order(how, std::vector<int>{7}, plus{}) == std::vector<int>{7});
        CHECK(reference::policy_order(how, std::vector<int>{7}, plus{}, std::optional(1)) == std::vector<int>{8});
    });
    CHECK(reference::sequential(std::vector<int>{}, plus{}).empty());
    CHECK(reference::outputs(std::vector<int>{}, scan_kind::exclusive, std::optional(1)).empty());
}

TEST_CASE("policy order: check values of the default tree") {
    const default_policy how{};
    CHECK(fnv1a(reference::policy_order(how, check_value_inputs<float>(8193), plus{})) == 0xb83346831ba042adu);
    CHECK(fnv1a(reference::policy_order(how, check_value_inputs<double>(8193), plus{})) == 0x82c2453f63071b59u);
    CHECK(fnv1a(reference::policy_order(how, check_value_inputs<float>(262145), plus{})) == 0x8e9a116ca64a8c51u);
    CHECK(fnv1a(reference::policy_order(how, check_value_inputs<double>(262145), plus{})) == 0x30114a527964662cu);
}

TEST_CASE("large: check values of the default tree" * doctest::skip()) {
    constexpr index_type n = (index_type{1} << 26) + 777;
    const default_policy how{};
    CHECK(fnv1a(reference::policy_order(how, check_value_inputs<float>(n), plus{})) == 0xc38bd14495b05050u);
    CHECK(fnv1a(reference::policy_order(how, check_value_inputs<double>(n), plus{})) == 0xd22bb70f43476160u);
}

/// A second statement of every tree, from the output's end: which operation makes prefix i of a tile, by recursion. It
/// shares no code with the oracle.
template <class T, class Op>
struct recursive_trees {
    const T* x;
    index_type m; ///< elements of the tile
    tile_shape shape;
    Op op;

    // Balanced reduction of [first, last], 2^k elements, halves of equal length.
    T balanced(index_type first, index_type last) const {
        if (first == last) return x[first];
        const index_type middle = first + (last - first) / 2;
        return combine(op, balanced(first, middle), balanced(middle + 1, last));
    }
    // Kogge-Stone: after the rounds with strides below s, element i covers the last min(2s, i + 1) elements up to i.
    template <class Leaf>
    T doubling(index_type i, index_type stride, const Leaf& leaf) const {
        if (stride == 0) return leaf(i);
        const T later = doubling(i, stride / 2, leaf);
        return i >= stride ? combine(op, doubling(i - stride, stride / 2, leaf), later) : later;
    }
    static index_type largest_stride(index_type count) {
        return count <= 1 ? 0 : static_cast<index_type>(std::bit_floor(static_cast<std::uint64_t>(count - 1)));
    }
    T prefix(block::kogge_stone, index_type i) const {
        return doubling(i, largest_stride(m), [&](index_type k) { return x[k]; });
    }
    // Brent-Kung: the binary digits of i + 1 cut [0, i] into balanced pieces, longest first, folded from the left.
    T prefix(block::brent_kung, index_type i) const {
        std::optional<T> fold;
        index_type first = 0;
        for (index_type rest = i + 1; rest > 0;) {
            const auto length = static_cast<index_type>(std::bit_floor(static_cast<std::uint64_t>(rest)));
            const T piece = balanced(first, first + length - 1);
            fold.emplace(fold ? combine(op, *fold, piece) : piece);
            first += length;
            rest -= length;
        }
        return *fold;
    }
    T prefix(block::coarse, index_type i) const {
        const auto in_run = [&](index_type last) {
            T fold = x[last - last % shape.run];
            for (index_type k = last - last % shape.run + 1; k <= last; ++k) fold = combine(op, fold, x[k]);
            return fold;
        };
        const index_type run = i / shape.run;
        if (run == 0) return in_run(i);
        const auto total = [&](index_type r) { return in_run(std::min((r + 1) * shape.run, m) - 1); };
        const index_type runs = (m + shape.run - 1) / shape.run;
        return combine(op, doubling(run - 1, largest_stride(runs), total), in_run(i));
    }
    // Sklansky in the row: the highest differing bit decides; it is the fold of the pieces by binary digits, grouped
    // from the right.
    T in_row(index_type first, index_type i, index_type half) const {
        if (half == 0) return x[first + i];
        return i < half ? in_row(first, i, half / 2)
                        : combine(op, in_row(first, half - 1, half / 2), in_row(first + half, i - half, half / 2));
    }
    T prefix(block::warp_shuffle, index_type i) const {
        const index_type row = i / shape.run;
        const T local = in_row(row * shape.run, i % shape.run, shape.run / 2);
        if (row == 0) return local;
        T offset = in_row(0, shape.run - 1, shape.run / 2);
        for (index_type r = 1; r < row; ++r)
            offset = combine(op, offset, in_row(r * shape.run, shape.run - 1, shape.run / 2));
        return combine(op, offset, local);
    }
};

template <class Grid, class Block, class T, class Op>
T recursive_prefix(policy<Grid, Block> how, const std::vector<T>& x, index_type i, Op op,
                   const std::optional<T>& init) {
    constexpr tile_shape shape = shape_for<Block, T>;
    const auto n = static_cast<index_type>(x.size());
    const auto local = [&](index_type k) {
        const index_type first = k / shape.elements() * shape.elements();
        return recursive_trees<T, Op>{x.data() + first, std::min(shape.elements(), n - first), shape, op}.prefix(
            Block{}, k - first);
    };
    const index_type tile = i / shape.elements();
    std::vector<T> aggregates;
    for (index_type t = 0; t < tile; ++t) aggregates.push_back(local((t + 1) * shape.elements() - 1));
    std::optional<T> carry = init;
    if (tile > 0) {
        if constexpr (std::is_same_v<Grid, grid::three_pass>) {
            const T before = recursive_prefix(how, aggregates, tile - 1, op, std::optional<T>{});
            carry.emplace(init ? combine(op, *init, before) : before);
        } else {
            for (const T& aggregate : aggregates) carry.emplace(carry ? combine(op, *carry, aggregate) : aggregate);
        }
    }
    return carry ? combine(op, *carry, local(i)) : local(i);
}

template <class T>
void compare_with_recursion(const std::vector<T>& x, auto op, std::initializer_list<index_type> sizes) {
    for_each_policy([&]<class Grid, class Block>(policy<Grid, Block> how) {
        const index_type tile = shape_for<Block, T>.elements();
        for (const index_type parts : sizes) { // in eighths of a tile
            const index_type n = std::max<index_type>(1, tile * parts / 8 + parts % 3 - 1);
            const std::vector<T> part(x.begin(), x.begin() + n);
            for (const bool with_init : {false, true}) {
                const std::optional<T> init = with_init ? std::optional<T>(x.back()) : std::nullopt;
                const std::vector<T> y = reference::policy_order(how, part, op, init);
                for (index_type i = 0; i < n; i = i < 9 ? i + 1 : i + 1 + (i * 7 + parts) % (n / 12 + 2)) {
                    CAPTURE(how.name());
                    CAPTURE(n);
                    CAPTURE(i);
                    REQUIRE(same_bits(y[static_cast<std::size_t>(i)], recursive_prefix(how, part, i, op, init)));
                }
                REQUIRE(same_bits(y.back(), recursive_prefix(how, part, n - 1, op, init)));
            }
        }
    });
}

TEST_CASE("policy order: a second statement of the trees gives the same bits") {
    compare_with_recursion(test::make_input<test::cases::float_plus>(30'000, 1), plus{}, {0, 1, 3, 8, 9, 23});
    compare_with_recursion(test::make_input<test::cases::affine_double>(9'000, 2), compose_affine{}, {2, 8, 17});
    compare_with_recursion(test::make_input<test::cases::permutation5>(20'000, 3), test::compose_permutation{},
                           {7, 17});
    // Tiles of 64: three_pass recurses.
    using large = test::words<std::uint64_t, 64>;
    std::vector<large> x = test::make_input<test::cases::words_512_bytes>(4'200, 4);
    const policy<grid::three_pass, block::kogge_stone> how;
    x.resize(4'100);
    const std::vector<large> y = reference::policy_order(how, x, test::compose_words{});
    CHECK(y == reference::sequential(x, test::compose_words{}));
}

/// Float sums in a 512-byte element: the recursion's tree shows in the bits.
struct wide_float {
    float value;
    char padding[508];
};
struct add_wide {
    wide_float operator()(const wide_float& a, const wide_float& b) const { return {a.value + b.value, {}}; }
};

TEST_CASE("policy order: three_pass recurses with the same tree") {
    for_each_policy([]<class Grid, class Block>(policy<Grid, Block> how) {
        std::vector<wide_float> x;
        for (index_type i = 0; i < 4'200; ++i) x.push_back({check_value_input(i), {}});
        const auto y = reference::policy_order(how, x, add_wide{});
        for (const index_type i :
             {index_type{0}, index_type{63}, index_type{64}, index_type{4'095}, index_type{4'096}, index_type{4'199}}) {
            CAPTURE(how.name());
            CAPTURE(i);
            CHECK(y[static_cast<std::size_t>(i)].value ==
                  recursive_prefix(how, x, i, add_wide{}, std::optional<wide_float>{}).value);
        }
    });
}

TEST_CASE("policy order: accumulators of any size have an end") {
    struct giant {
        std::uint64_t word[5'000]; // 40 KB: more than a tile's memory
    };
    const auto add = [](const giant& a, const giant& b) {
        giant sum{};
        sum.word[4'999] = a.word[4'999] + b.word[4'999];
        return sum;
    };
    for_each_policy([]<class Grid, class Block>(policy<Grid, Block>) {
        // Two elements at least, or the recursion of three_pass would not get shorter.
        CHECK(shape_of(Block{}, sizeof(giant)).elements() >= 2);
    });
    if (shape_of(block::kogge_stone{}, sizeof(giant)).elements() < 2) return;
    const std::vector<giant> x(9, giant{{1}});
    CHECK(reference::policy_order(policies::three_pass, x, add).size() == 9);
}

TEST_CASE("error bound: holds for every policy, and is not vacuous") {
    const std::vector<float> x = test::make_input<test::cases::float_plus>(100'000, 9);
    const std::vector<float> right = reference::sequential(x, plus{});
    for_each_policy([&]<class Grid, class Block>(policy<Grid, Block> how) {
        const std::vector<float> y = reference::policy_order(how, x, plus{});
        test::error_bound<float> bound(shape_for<Block, float>);
        index_type differing = 0, beyond = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
            const double limit = bound.next(std::fabs(static_cast<double>(x[i])));
            const double difference = std::fabs(static_cast<double>(y[i]) - static_cast<double>(right[i]));
            differing += difference > 0 ? 1 : 0;
            beyond += difference > limit ? 1 : 0;
        }
        CAPTURE(how.name());
        CHECK(differing > 0);
        CHECK(beyond == 0);
    });
}

// --- tiles, names, status words --------------------------------------------------------------------------------------

TEST_CASE("tile shapes") {
    const auto check = [](index_type bytes, index_type one_each, tile_shape coarse, index_type row) {
        CAPTURE(bytes);
        CHECK(shape_of(block::kogge_stone{}, bytes).elements() == one_each);
        CHECK(shape_of(block::brent_kung{}, bytes).elements() == one_each);
        CHECK(shape_of(block::coarse{}, bytes).threads == coarse.threads);
        CHECK(shape_of(block::coarse{}, bytes).run == coarse.run);
        CHECK(shape_of(block::warp_shuffle{}, bytes).threads == 64);
        CHECK(shape_of(block::warp_shuffle{}, bytes).run == row);
    };
    check(1, 1024, {1024, 4}, 128);
    check(2, 1024, {1024, 4}, 128);
    check(3, 1024, {1024, 4}, 128);
    check(4, 1024, {1024, 4}, 128);
    check(5, 1024, {1024, 4}, 64);
    check(8, 1024, {1024, 4}, 64);
    check(12, 1024, {1024, 4}, 32);
    check(16, 1024, {1024, 3}, 32);
    check(17, 1024, {1024, 2}, 32);
    check(20, 1024, {1024, 2}, 32);
    check(21, 1024, {1024, 2}, 16);
    check(24, 1024, {1024, 2}, 16);
    check(32, 1024, {1024, 1}, 16);
    check(40, 512, {512, 2}, 16);
    check(41, 512, {512, 2}, 8);
    check(64, 512, {512, 1}, 8);
    check(512, 64, {64, 1}, 1);
    CHECK(shape_for<block::warp_shuffle, std::string>.elements() == 64 * 32);
    for (index_type bytes = 1; bytes <= 2048; ++bytes) {
        const tile_shape coarse = shape_of(block::coarse{}, bytes);
        CHECK(coarse.elements() * bytes <= 48 * 1024);
        CHECK(shape_of(block::kogge_stone{}, bytes).elements() * bytes <= 32 * 1024);
    }
    CHECK(ceil_div(0, 4) == 0);
    CHECK(ceil_div(1, 4) == 1);
    CHECK(ceil_div(4, 4) == 1);
    CHECK(ceil_div(5, 4) == 2);
    CHECK(ceil_div(std::numeric_limits<index_type>::max(), 2) == (index_type{1} << 62));
}

TEST_CASE("policy names") {
    index_type count = 0;
    for_each_policy([&](auto how) {
        ++count;
        CHECK(canonical_policy_name(how.name()) == how.name());
        bool same = false;
        CHECK(visit_policy(how.name(), [&](auto found) { same = std::is_same_v<decltype(found), decltype(how)>; }));
        CHECK(same);
    });
    CHECK(count == 20);
    CHECK(canonical_policy_name("default") == "prefix_server/warp_shuffle");
    CHECK(canonical_policy_name("prefix_server") == "prefix_server/warp_shuffle");
    CHECK(canonical_policy_name("kogge_stone") == "single_block/kogge_stone");
    CHECK(canonical_policy_name("brent_kung") == "single_block/brent_kung");
    CHECK(canonical_policy_name("coarse") == "single_block/coarse");
    CHECK(canonical_policy_name("warp_shuffle") == "single_block/warp_shuffle");
    CHECK(canonical_policy_name("three_pass") == "three_pass/kogge_stone");
    CHECK(canonical_policy_name("domino") == "domino/kogge_stone");
    CHECK(canonical_policy_name("look_back") == "look_back/kogge_stone");
    for (const char* wrong :
         {"", "domino/", "/coarse", "domino/domino", "Domino", "domino/kogge_stone ", "single_block"})
        CHECK(!canonical_policy_name(wrong));
    CHECK(!visit_policy("nonsense", [](auto) { FAIL("visited"); }));
}

TEST_CASE("status words") {
    for (const std::uint32_t epoch : {1u, 2u, tile_status::epoch_limit - 1}) {
        for (const tile_state state : {tile_state::empty, tile_state::aggregate, tile_state::carry}) {
            const std::uint32_t word = tile_status::pack(epoch, state);
            CHECK(tile_status::state(word, epoch) == state);
            CHECK(tile_status::state(word, epoch - 1) == tile_state::empty);
        }
        CHECK(tile_status::state(0, epoch) == tile_state::empty); // zeroed memory
    }
    const auto round_trip = [](auto value) {
        const std::uint64_t word = tile_status_word::pack(0xdeadbeefu, value);
        CHECK(tile_status_word::status(word) == 0xdeadbeefu);
        CHECK(tile_status_word::value<decltype(value)>(word) == value);
    };
    round_trip(std::int8_t{-1});
    round_trip(std::int32_t{-2});
    round_trip(-0.5f);
    round_trip(test::words<std::uint8_t, 3>{{1, 2, 255}});
    CHECK(fits_status_word<test::sealed>);
    CHECK(!fits_status_word<double>);
    CHECK(!fits_status_word<std::string>);
}

// --- operators -------------------------------------------------------------------------------------------------------

TEST_CASE_TEMPLATE("minimum and maximum: IEEE 754-2019", T, float, double, long double) {
    // None of these is a NaN, and a long double has bits that mean nothing.
    const auto same = [](T a, T b) { return a == b && std::signbit(a) == std::signbit(b); };
    const T nan = std::numeric_limits<T>::quiet_NaN(), inf = std::numeric_limits<T>::infinity();
    const std::vector<T> ascending{-inf,    T(-1),  -std::numeric_limits<T>::denorm_min(),
                                   T(-0.0), T(0.0), std::numeric_limits<T>::denorm_min(),
                                   T(1),    inf};
    for (std::size_t i = 0; i < ascending.size(); ++i)
        for (std::size_t k = 0; k < ascending.size(); ++k) {
            CHECK(same(minimum{}(ascending[i], ascending[k]), ascending[std::min(i, k)]));
            CHECK(same(maximum{}(ascending[i], ascending[k]), ascending[std::max(i, k)]));
        }
    for (const T value : ascending) {
        CHECK(std::isnan(minimum{}(value, nan)));
        CHECK(std::isnan(minimum{}(nan, value)));
        CHECK(std::isnan(maximum{}(value, nan)));
        CHECK(std::isnan(maximum{}(nan, value)));
        CHECK(same(minimum{}(identity_of<T>(minimum{}), value), value));
        CHECK(same(maximum{}(value, identity_of<T>(maximum{})), value));
    }
}

template <class T, class Op>
void check_associative(Op op, const std::vector<T>& values) {
    for (const T& a : values)
        for (const T& b : values)
            for (const T& c : values)
                REQUIRE(same_bits(combine(op, combine(op, a, b), c), combine(op, a, combine(op, b, c))));
}

TEST_CASE("operators declared exact are associative on every combination") {
    std::vector<std::int8_t> small;
    for (int i = -128; i < 128; i += 5) small.push_back(static_cast<std::int8_t>(i));
    check_associative(plus{}, small);
    check_associative(multiplies{}, small);
    check_associative(minimum{}, small);
    check_associative(maximum{}, small);
    check_associative(bit_and{}, small);
    check_associative(bit_or{}, small);
    check_associative(bit_xor{}, small);
    using limits = std::numeric_limits<float>;
    const std::vector<float> floats{
        0.0f, -0.0f, 1.0f, -1.0f, limits::infinity(), -limits::infinity(), limits::quiet_NaN()};
    check_associative(minimum{}, floats);
    check_associative(maximum{}, floats);
    check_associative(test::compose_permutation{}, test::make_input<test::cases::permutation5>(40, 1));
    check_associative(test::compose_words{}, test::make_input<test::cases::words_3_bytes>(40, 1));
    check_associative(compose_affine{}, test::make_input<test::cases::affine_uint64>(40, 1));
    check_associative(last_write_wins{}, test::make_input<test::cases::write_int32>(40, 1));
    CHECK(!exactly_associative<plus, float>);
    CHECK(!exactly_associative<compose_affine, affine<double>>);
    CHECK(exactly_associative<compose_affine, affine<std::uint64_t>>);
}

TEST_CASE("integers wrap") {
    CHECK(plus{}(std::numeric_limits<int>::max(), 1) == std::numeric_limits<int>::min());
    CHECK(plus{}(std::int8_t{127}, std::int8_t{1}) == std::int8_t{-128});
    CHECK(multiplies{}(std::uint16_t{65535}, std::uint16_t{65535}) ==
          std::uint16_t{1}); // promoted to int it would overflow
    CHECK(multiplies{}(std::numeric_limits<std::int64_t>::min(), std::int64_t{-1}) ==
          std::numeric_limits<std::int64_t>::min());
    static_assert(std::is_same_v<decltype(plus{}(std::int8_t{1}, std::int8_t{1})), std::int8_t>);
}

TEST_CASE("complex product is the plain formula") {
    using complex = std::complex<float>;
    CHECK(multiplies{}(complex(1, 2), complex(3, 4)) == complex(-5, 10));
    CHECK(plus{}(complex(1, 2), complex(3, 4)) == complex(4, 6));
    CHECK(identity_of<complex>(multiplies{}) == complex(1, 0));
    // The standard's product would recover an infinity here.
    const float inf = std::numeric_limits<float>::infinity();
    const complex product = multiplies{}(complex(inf, inf), complex(1, 0));
    CHECK(std::isnan(product.real()));
}

TEST_CASE("affine maps compose, the earlier one first") {
    const affine<double> earlier{2, 3}, later{5, 7}; // 5 (2 x + 3) + 7
    CHECK(compose_affine{}(earlier, later) == affine<double>{10, 22});
    CHECK(compose_affine{}(later, earlier) == affine<double>{10, 17});
    CHECK(compose_affine{}(compose_affine::identity<affine<double>>(), later) == later);
    // One rounding of the multiply-add: 1 + 2^-53 squared in between.
    const double e = std::ldexp(1.0, -30);
    CHECK(compose_affine{}(affine<double>{1, 1 + e}, affine<double>{1 - e, -1}).offset == -std::ldexp(1.0, -60));
}

TEST_CASE("last write wins") {
    using cell = write<int>;
    CHECK(last_write_wins{}(cell{1, true}, cell{2, true}) == cell{2, true});
    CHECK(last_write_wins{}(cell{1, true}, cell{2, false}) == cell{1, true});
    CHECK(last_write_wins{}(cell{1, false}, cell{2, true}) == cell{2, true});
}

TEST_CASE("identities") {
    CHECK(has_identity<plus, int>);
    CHECK(has_identity<test::compose_permutation, test::permutation>);
    CHECK(!has_identity<last_write_wins, write<int>>);
    CHECK(!has_identity<test::compose_words, test::words<std::uint8_t, 3>>);
    CHECK(!has_identity<minimum, std::complex<float>>);
    CHECK(identity_of<std::uint8_t>(bit_and{}) == 255);
    CHECK(identity_of<std::uint64_t>(minimum{}) == std::numeric_limits<std::uint64_t>::max());
    CHECK(identity_of<float>(maximum{}) == -std::numeric_limits<float>::infinity());
    CHECK(identity_of<std::string>(test::concatenate{}).empty());
}

// --- half and bfloat16 -----------------------------------------------------------------------------------------------

TEST_CASE("half: every value survives the way to float and back") {
    for (std::uint32_t bits = 0; bits < 65536; ++bits) {
        half h;
        h.bits = static_cast<std::uint16_t>(bits);
        const float f = h;
        if (std::isnan(f)) {
            CHECK(std::isnan(static_cast<float>(half(f))));
            continue;
        }
        REQUIRE(half(f).bits == h.bits);
        const int exponent = static_cast<int>(bits >> 10 & 31), fraction = static_cast<int>(bits & 1023);
        const float magnitude = exponent == 31  ? std::numeric_limits<float>::infinity()
                                : exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                                : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
        REQUIRE(same_bits(f, (bits & 0x8000u) != 0 ? -magnitude : magnitude));
    }
}

TEST_CASE("half: rounds to nearest, ties to even") {
    // Between every two neighbours: a quarter, the middle, three quarters.
    for (std::uint32_t bits = 0; bits < 0x7bffu; ++bits) {
        half low, high;
        low.bits = static_cast<std::uint16_t>(bits);
        high.bits = static_cast<std::uint16_t>(bits + 1);
        const float a = low, b = high;
        for (const float sign : {1.0f, -1.0f}) {
            const std::uint16_t s = sign < 0 ? 0x8000 : 0;
            REQUIRE(half(sign * (a + (b - a) * 0.25f)).bits == (low.bits | s));
            REQUIRE(half(sign * (a + (b - a) * 0.5f)).bits == (((bits & 1) != 0 ? high.bits : low.bits) | s));
            REQUIRE(half(sign * (a + (b - a) * 0.75f)).bits == (high.bits | s));
        }
    }
    CHECK(half(65519.0f).bits == 0x7bff);
    CHECK(half(65520.0f).bits == 0x7c00);
    CHECK(half(1e30f).bits == 0x7c00);
    CHECK(half(-1e30f).bits == 0xfc00);
    CHECK(half(std::ldexp(1.0f, -25)).bits == 0);
    CHECK(half(-std::ldexp(1.0f, -149)).bits == 0x8000);
}

#ifdef __FLT16_MANT_DIG__
TEST_CASE("half: the compiler's type agrees") {
    for (index_type i = 0; i < 2'000'000; ++i) {
        const auto word = static_cast<std::uint32_t>(test::random_bits(5, i));
        // All exponents, and every other one in the range that half has.
        const float f = std::bit_cast<float>(i % 2 == 0 ? word : (word & 0x8fffffffu) | 0x30000000u);
        if (std::isnan(f)) continue;
        __extension__ const _Float16 native = static_cast<_Float16>(f);
        REQUIRE(half(f).bits == std::bit_cast<std::uint16_t>(native));
    }
}
#endif

TEST_CASE("bfloat16: the upper half of a float, rounded to nearest, ties to even") {
    for (std::uint32_t bits = 0; bits < 65536; ++bits) {
        bfloat16 b;
        b.bits = static_cast<std::uint16_t>(bits);
        const float f = b;
        if (std::isnan(f)) {
            CHECK(std::isnan(static_cast<float>(bfloat16(f))));
            continue;
        }
        REQUIRE(bfloat16(f).bits == bits);
        if (std::isinf(f)) continue;
        const auto between = [&](std::uint32_t low) { return bfloat16(std::bit_cast<float>(bits << 16 | low)).bits; };
        REQUIRE(between(0x7fff) == bits);
        REQUIRE(between(0x8000) == (bits + (bits & 1)));
        REQUIRE(between(0x8001) == bits + 1);
    }
}

} // namespace
} // namespace polyscan
