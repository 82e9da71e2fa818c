// SPDX-License-Identifier: Apache-2.0
/// The concepts, both ways: for each requirement one type that satisfies it and one that misses exactly that. And calls
/// that must not compile: where the answer is a constraint, by `requires`; where it is a static_assert with a sentence,
/// by compiling tests/refused.cpp (CMakeLists.txt).
#include <array>
#include <complex>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <polyscan/scan.hpp>
#include <polyscan/scan_elements.hpp>

#include "cases.hpp"
#include "launch_impl.hpp"
#include "reference_backend.hpp"

namespace polyscan {
namespace {

// --- backend ---------------------------------------------------------------------------------------------------------

/// What a toy leaves out.
enum class without { nothing, name, available, supports, scan, synchronize, allocate, copy_to_device, copy_to_host };

template <without What>
struct toy {
    static std::string_view name()
        requires(What != without::name)
    {
        return "toy";
    }
    polyscan::availability available() const
        requires(What != without::available)
    {
        return {};
    }
    template <class Policy>
        requires(What != without::supports)
    static constexpr bool supports = true;
    template <class Policy, class Request>
        requires(What != without::scan)
    void scan(const Request&) {}
    void synchronize()
        requires(What != without::synchronize)
    {}
    template <class T>
        requires(What != without::allocate)
    std::vector<T> allocate(index_type n) {
        return std::vector<T>(static_cast<std::size_t>(n));
    }
    template <class T>
        requires(What != without::copy_to_device)
    void copy_to_device(T*, const T*, index_type) {}
    template <class T>
        requires(What != without::copy_to_host)
    void copy_to_host(T*, const T*, index_type) {}
};

static_assert(backend<toy<without::nothing>>);
static_assert(!backend<toy<without::name>>);
static_assert(!backend<toy<without::available>>);
static_assert(!backend<toy<without::supports>>);
static_assert(!backend<toy<without::scan>>);
static_assert(!backend<toy<without::synchronize>>);
static_assert(!backend<toy<without::allocate>>);
static_assert(!backend<toy<without::copy_to_device>>);
static_assert(!backend<toy<without::copy_to_host>>);
static_assert(backend<test::reference_backend>);
static_assert(!backend<int>);

/// The right names with the wrong types.
struct says_bool : toy<without::nothing> {
    bool available() const { return true; } // no reason
};
struct returns_int : toy<without::nothing> {
    template <class Policy, class Request>
    int scan(const Request&) {
        return 0;
    }
};
struct raw_memory : toy<without::nothing> {
    template <class T>
    T* allocate(index_type) {
        return nullptr; // nobody frees it
    }
};
static_assert(!backend<says_bool>);
static_assert(!backend<returns_int>);
static_assert(!backend<raw_memory>);

// --- policy ----------------------------------------------------------------------------------------------------------

static_assert(scan_policy<default_policy>);
static_assert(scan_policy<const default_policy&>);
static_assert(scan_policy<policy<grid::domino, block::coarse>>);
static_assert(!scan_policy<grid::domino>);
static_assert(!scan_policy<block::coarse>);
static_assert(!scan_policy<int>);

// --- operators -------------------------------------------------------------------------------------------------------

struct identity_of_one_type {
    int operator()(int a, int b) const { return a + b; }
    static constexpr int identity() { return 0; }
};
struct identity_of_every_type {
    template <class T>
    T operator()(const T& a, const T& b) const {
        return a + b;
    }
    template <class T>
    static constexpr T identity() {
        return T{};
    }
};
struct identity_of_another_type {
    std::string operator()(const std::string& a, const std::string& b) const { return a + b; }
    static constexpr int* identity() { return nullptr; }
};
struct identity_with_argument {
    int operator()(int a, int b) const { return a + b; }
    static constexpr int identity(int x) { return x; }
};
struct identity_per_object {
    int operator()(int a, int b) const { return a + b; }
    int identity() const { return 0; }
};
static_assert(has_identity<identity_of_one_type, int>);
static_assert(has_identity<identity_of_every_type, double>);
static_assert(!has_identity<identity_of_another_type, std::vector<int>>);
static_assert(!has_identity<identity_with_argument, int>);
static_assert(!has_identity<identity_per_object, int>);

template <class Op, class T>
concept calls = requires(const Op& op, const T& x) { op(x, x); };
static_assert(calls<bit_and, int> && !calls<bit_and, float> && !calls<bit_xor, std::complex<float>>);
static_assert(calls<last_write_wins, write<int>> && !calls<last_write_wins, int>);
static_assert(calls<compose_affine, affine<double>> && !calls<compose_affine, double>);

// --- verbs -----------------------------------------------------------------------------------------------------------

template <class Backend, class... Arguments>
concept scans =
    requires(Backend& b, Arguments&&... arguments) { inclusive_scan(b, static_cast<Arguments&&>(arguments)...); };
using toy_backend = toy<without::nothing>;
static_assert(scans<toy_backend, std::vector<int>&, std::vector<int>&>);
static_assert(!scans<int, std::vector<int>&, std::vector<int>&>);
static_assert(!scans<toy_backend, std::vector<int>&>);
static_assert(!scans<toy_backend, std::vector<int>&, std::vector<int>&, plus, int>); // no policy

// --- the accumulator rule --------------------------------------------------------------------------------------------

template <class Init, class Element, class Out, class Op>
using accumulator_of = typename detail::accumulator<deduced, Init, Element, Out, Op>::type;
// With init: common_type<Init, Out> where both are arithmetic, else Init.
static_assert(std::is_same_v<accumulator_of<int, std::int8_t, std::int8_t, plus>, int>);
static_assert(std::is_same_v<accumulator_of<int, std::int8_t, double, plus>, double>);
static_assert(std::is_same_v<accumulator_of<long long, int, int, plus>, long long>);
static_assert(std::is_same_v<accumulator_of<std::string, const char*, std::string, test::concatenate>, std::string>);
static_assert(std::is_same_v<accumulator_of<affine<double>, affine<double>, double, compose_affine>, affine<double>>);
// Without: common_type<decay of op(x, x), Out>.
static_assert(std::is_same_v<accumulator_of<no_init_t, std::uint8_t, std::uint64_t, plus>, std::uint64_t>);
static_assert(std::is_same_v<accumulator_of<no_init_t, double, int, plus>, double>);
static_assert(std::is_same_v<accumulator_of<no_init_t, half, float, plus>, float>);
static_assert(std::is_same_v<accumulator_of<no_init_t, std::int8_t, std::int8_t, plus>, std::int8_t>);

TEST_CASE("the static checks of this file compiled") {
    // And a call on the toy, so that its members are more than declarations.
    toy_backend b;
    std::vector<int> in{1, 2}, out(2);
    inclusive_scan(b, in, out);
    exclusive_scan(b, in, out);
    CHECK(out == std::vector<int>{0, 0});
}

// --- a backend that lacks a grid algorithm ---------------------------------------------------------------------------

struct partial : test::reference_backend {
    template <class Policy>
    static constexpr bool supports = !std::is_same_v<typename Policy::grid_type, grid::three_pass>;
};
/// Claims every policy. Sums of int32 run as sums of uint32.
struct sums_of_words {
    template <class T, class Operator, class Policy>
    static constexpr bool contains = std::is_same_v<T, std::uint32_t> && std::is_same_v<Operator, plus>;
};

/// What is left of any_backend does not matter here.
class registered_partial final : public adapted_backend<partial, sums_of_words> {
public:
    registered_partial() : adapted_backend(partial()) {}
    std::string description() const override { return "partial"; }
    int threads() const override { return 1; }
    std::shared_ptr<void> allocate(std::size_t) override { return nullptr; }
    void copy_to_device(void*, const void*, std::size_t) override {}
    void copy_to_host(void*, const void*, std::size_t) override {}
    void copy(void*, const void*, std::size_t) override {}
    double elapsed(const std::function<void()>&) override { return 0; }
};

TEST_CASE("a policy that a backend lacks is left out of the run-time face and of the matrix, and said") {
    const std::vector<std::int32_t> in{3, 1, 4, 1, 5};
    const std::vector<std::int32_t> sums{3, 4, 8, 9, 14};
    for_each_policy([&]<class Grid, class Block>(policy<Grid, Block> how) {
        constexpr bool there = !std::is_same_v<Grid, grid::three_pass>;
        const std::string name = how.name();
        CAPTURE(name);

        std::vector<std::int32_t> out(in.size());
        registered_partial by_name;
        scan_call call;
        call.policy = name;
        call.input = in.data();
        call.output = out.data();
        call.size = 5;
        CHECK(by_name.unsupported(call).has_value() == !there);
        if (there) {
            by_name.scan(call);
            CHECK(out == sums);
        } else {
            CHECK_THROWS_AS(by_name.scan(call), std::invalid_argument);
        }

        std::vector<std::int32_t> again(in.size());
        partial on;
        test::case_arguments<test::cases::int32_plus> cell;
        cell.in = in.data();
        cell.out = again.data();
        cell.size = 5;
        if (there) {
            test::run_case(on, name, cell);
            CHECK(again == sums);
        } else {
            CHECK_THROWS_AS(test::run_case(on, name, cell), std::logic_error);
        }
    });
}

} // namespace
} // namespace polyscan
