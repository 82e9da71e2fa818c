// SPDX-License-Identifier: Apache-2.0
/// What a caller may hand in, what is rejected and with which words, and that nothing beyond it is touched.
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "inputs.hpp"
#include POLYSCAN_TEST_BACKEND

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#include <unistd.h>
#define POLYSCAN_TEST_PAGES 1
#endif

namespace polyscan::test {
namespace {

/// The message of the std::invalid_argument that `call` throws.
std::string rejection(auto call) {
    try {
        call();
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "not rejected";
}
bool begins(const std::string& text, std::string_view start) { return text.starts_with(start); }

auto ordinary() { return backend_under_test::make(backend_under_test::concurrencies().front()); }

/// Calls `check(policy)` with each grid algorithm over one block algorithm.
void every_grid(auto check) {
    for_each_policy([&]<class Grid, class Block>(policy<Grid, Block> how) {
        if constexpr (std::is_same_v<Block, block::coarse>) check(how);
    });
}

constexpr int untouched = -77;

TEST_CASE("rejected: overlap of input and output") {
    auto on = ordinary();
    std::vector<int> memory(100);
    for (int i = 0; i < 100; ++i) memory[static_cast<std::size_t>(i)] = i;
    const std::vector<int> before = memory;
    const std::span<int> all(memory);
    for (const std::size_t shift : {1u, 2u, 39u}) {
        CHECK(begins(rejection([&] { inclusive_scan(on, all.first(40), all.subspan(shift, 40)); }), "out: overlaps"));
        CHECK(begins(rejection([&] { inclusive_scan(on, all.subspan(shift, 40), all.first(40)); }), "out: overlaps"));
        CHECK(begins(rejection([&] { exclusive_scan(on, all.subspan(shift, 40), all.first(40)); }), "out: overlaps"));
    }
    CHECK(memory == before); // before anything is written
    // Neighbours share no byte.
    inclusive_scan(on, all.first(40), all.subspan(40, 40));
    CHECK(memory[79] == 39 * 40 / 2);
    // Output elements are larger: 40 of them reach over the input although the starts are far apart.
    std::vector<std::int64_t> wide(100, 1);
    const std::span<std::int32_t> narrow(reinterpret_cast<std::int32_t*>(wide.data()) + 79, 40);
    CHECK(begins(rejection([&] { inclusive_scan<std::int64_t>(on, narrow, std::span(wide).first(40)); }),
                 "out: overlaps"));
    // The last byte of one is the first of the other.
    std::vector<std::byte> bytes(200);
    const std::span<std::uint8_t> left(reinterpret_cast<std::uint8_t*>(bytes.data()), 100);
    CHECK(begins(rejection([&] { inclusive_scan(on, left, left.data() + 99); }), "out: overlaps"));
    CHECK(rejection([&] { inclusive_scan(on, left, left.data() + 100); }) == "not rejected");
}

TEST_CASE("rejected: in place with elements of another size") {
    auto on = ordinary();
    std::vector<std::int64_t> memory(10, 1);
    const std::span<std::int32_t> narrow(reinterpret_cast<std::int32_t*>(memory.data()), 10);
    CHECK(begins(rejection([&] { inclusive_scan(on, narrow, memory); }), "out: in place"));
}

TEST_CASE("rejected: null") {
    auto on = ordinary();
    std::vector<int> values(3, 1);
    int* const nowhere = nullptr;
    CHECK(begins(rejection([&] { inclusive_scan(on, values, nowhere); }), "out: is null"));
    CHECK(begins(rejection([&] { inclusive_scan(on, counted(nowhere, 3), values); }), "in: is null"));
    // Of nothing, null is a fine address.
    CHECK(rejection([&] { inclusive_scan(on, counted(nowhere, 0), nowhere); }) == "not rejected");
    CHECK(rejection([&] { inclusive_scan(on, std::span<const int>(), std::span<int>()); }) == "not rejected");
}

TEST_CASE("rejected: an output shorter than the input") {
    auto on = ordinary();
    const std::vector<int> in(5, 1);
    std::vector<int> out(4, untouched);
    CHECK(rejection([&] { inclusive_scan(on, in, out); }) == "out: has 4 elements, fewer than the input's 5");
    CHECK(begins(rejection([&] { exclusive_scan(on, in, out); }), "out: has 4 elements"));
    CHECK(out == std::vector<int>(4, untouched));
    out.assign(7, untouched); // longer is fine, and the rest stays
    inclusive_scan(on, in, out);
    CHECK(out == std::vector<int>{1, 2, 3, 4, 5, untouched, untouched});
}

TEST_CASE("rejected: a total inside input or output") {
    auto on = ordinary();
    std::vector<int> in(5, 1), out(6, untouched);
    for (const std::size_t i : {0u, 2u, 4u}) {
        CHECK(begins(rejection([&] { inclusive_scan(on, in, out, plus{}, default_policy{}, total_to{&out[i]}); }),
                     "total: lies inside the output"));
        CHECK(begins(rejection([&] { inclusive_scan(on, in, out, plus{}, default_policy{}, total_to{&in[i]}); }),
                     "total: lies inside the input"));
    }
    inclusive_scan(on, in, out, plus{}, default_policy{}, total_to{&out[5]}); // directly behind
    CHECK(out[5] == 5);
}

TEST_CASE("rejected: a total where the number of elements is read") {
    auto on = ordinary();
    const std::vector<index_type> in(5, 1);
    std::vector<index_type> out(5, untouched);
    index_type count = 3;
    CHECK(begins(rejection([&] {
                     inclusive_scan(on, counted(in.data(), 5, &count), out, plus{}, default_policy{}, total_to{&count});
                 }),
                 "total: lies where the count"));
    CHECK(count == 3);
}

TEST_CASE("rejected: lengths that are negative or missing") {
    auto on = ordinary();
    std::vector<int> values(3, 1), out(3);
    CHECK(begins(rejection([&] { (void)counted(values.data(), -1); }), "counted:"));
    CHECK(begins(rejection([&] { (void)counted(values.data(), std::numeric_limits<std::uint64_t>::max()); }),
                 "counted:"));
    const auto to = [](std::uint64_t end) { return std::views::iota(std::uint64_t{0}, end); };
    for (const std::uint64_t many : {std::uint64_t{1} << 63, std::numeric_limits<std::uint64_t>::max()})
        CHECK(begins(rejection([&] { inclusive_scan(on, to(many), out); }), "in: the number of elements must be less"));
    // 2^64 bytes: more than there is beside each other.
    CHECK(begins(rejection([&] { inclusive_scan(on, counted(values.data(), index_type{1} << 62), out.data()); }),
                 "out: overlaps"));
    CHECK(begins(rejection([&] { radix_sort(on, counted(values.data(), index_type{1} << 62), out.data()); }),
                 "out: overlaps"));
    CHECK(begins(rejection([&] { inclusive_scan(on, values.data(), out); }), "in: a bare pointer"));
    CHECK(begins(rejection([&] { inclusive_scan(on, static_cast<const int*>(values.data()), out); }),
                 "in: a bare pointer"));
}

TEST_CASE("nothing: succeeds, writes no output; the total is init, else the identity, else not written") {
    auto on = ordinary();
    every_grid([&](auto how) {
        CAPTURE(how.name());
        const std::vector<int> none;
        std::vector<int> out(2, untouched);
        int total = untouched;
        inclusive_scan(on, none, out, plus{}, how, total_to{&total}, with_init{5});
        CHECK(total == 5);
        inclusive_scan(on, none, out, plus{}, how, total_to{&total});
        CHECK(total == 0);
        exclusive_scan(on, none, out, 6, plus{}, how, total_to{&total});
        CHECK(total == 6);
        CHECK(out == std::vector<int>(2, untouched));
    });
    std::vector<int> out(2, untouched);
    int total = untouched;
    exclusive_scan(on, std::vector<int>{}, out, no_init, multiplies{}, default_policy{}, total_to{&total});
    CHECK(total == 1);
    const std::vector<polyscan::write<int>> no_cells;
    std::vector<polyscan::write<int>> cells(1);
    polyscan::write<int> last{untouched, true};
    inclusive_scan(on, no_cells, cells, last_write_wins{}, default_policy{}, total_to{&last});
    CHECK(last.value == untouched);
}

// --- inputs of many kinds --------------------------------------------------------------------------------------------

/// What std::mdspan of rank 1 looks like.
template <class T>
struct strided_view {
    T* first;
    int length;
    int step;
    T* data_handle() const { return first; }
    int extent(int) const { return length; }
    int stride(int) const { return step; }
    static constexpr std::size_t rank() { return 1; }
};
/// What a Kokkos::View of rank 1 looks like.
template <class T>
struct labelled_view {
    using memory_space = void;
    using array_layout = void;
    struct rank_type {
        constexpr operator std::size_t() const { return 1; }
    };
    static constexpr rank_type rank{};
    T* first;
    std::size_t length;
    T* data() const { return first; }
    std::size_t extent(int) const { return length; }
    std::size_t stride(int) const { return 1; }
};

TEST_CASE("accepted: vector, array, span, views, pointers, iterators") {
    auto on = ordinary();
    const std::vector<int> right{3, 4, 8, 9, 14};
    std::vector<int> in{3, 1, 4, 1, 5}, out;
    const auto fresh = [&]() -> std::vector<int>& { return out.assign(5, untouched), out; };

    inclusive_scan(on, in, fresh());
    CHECK(out == right);
    inclusive_scan(on, std::as_const(in), fresh());
    CHECK(out == right);
    inclusive_scan(on, std::span<const int>(in), std::span<int>(fresh()));
    CHECK(out == right);
    inclusive_scan(on, std::span<int, 5>(in), fresh());
    CHECK(out == right);
    inclusive_scan(on, counted(in.data(), 5), fresh().data());
    CHECK(out == right);
    inclusive_scan(on, counted(in.cbegin(), 5u), fresh());
    CHECK(out == right);
    const std::array<int, 5> fixed{3, 1, 4, 1, 5};
    std::array<int, 5> array{};
    inclusive_scan(on, fixed, array);
    CHECK(std::ranges::equal(array, right));
    const int raw[5] = {3, 1, 4, 1, 5};
    int raw_out[5] = {};
    inclusive_scan(on, raw, raw_out);
    CHECK(std::ranges::equal(raw_out, right));
    inclusive_scan(on, strided_view<const int>{in.data(), 5, 1}, strided_view<int>{fresh().data(), 5, 1});
    CHECK(out == right);
    inclusive_scan(on, labelled_view<const int>{in.data(), 5}, labelled_view<int>{fresh().data(), 5});
    CHECK(out == right);
    CHECK(begins(rejection([&] { inclusive_scan(on, strided_view<const int>{in.data(), 2, 2}, fresh()); }),
                 "in: a rank-1 view must have stride 1"));
    CHECK(begins(rejection([&] { inclusive_scan(on, in, strided_view<int>{fresh().data(), 5, 2}); }),
                 "out: a rank-1 view must have stride 1"));
}

TEST_CASE("accepted: iterators that compute their elements") {
    auto on = ordinary();
    constexpr int n = 20'000;
    std::vector<std::int64_t> out(n);
    inclusive_scan<std::int64_t>(on, std::views::iota(1, n + 1), out);
    CHECK(out[0] == 1);
    CHECK(out[n - 1] == std::int64_t{n} * (n + 1) / 2);
    inclusive_scan<std::int64_t>(on, counted(std::views::iota(1).begin(), n), out);
    CHECK(out[n - 1] == std::int64_t{n} * (n + 1) / 2);
    const auto squares = std::views::iota(std::int64_t{1}, std::int64_t{n} + 1) |
                         std::views::transform([](std::int64_t i) { return i * i; });
    exclusive_scan(on, squares, out, std::int64_t{10});
    CHECK(out[0] == 10);
    CHECK(out[3] == 10 + 1 + 4 + 9);
    // The same by option.
    std::vector<std::int64_t> same(n);
    exclusive_scan(on, std::views::iota(std::int64_t{1}, std::int64_t{n} + 1), same, std::int64_t{10}, plus{},
                   default_policy{}, with_transform{[](std::int64_t i) { return i * i; }});
    CHECK(same == out);
    const std::vector<int> in(100, 2);
    inclusive_scan(
        on, std::ranges::subrange(std::make_reverse_iterator(in.end()), std::make_reverse_iterator(in.begin())), out);
    CHECK(out[99] == 200);
}

TEST_CASE("accepted: proxies, which are never written through") {
    auto on = ordinary();
    std::vector<bool> in{true, false, true, false};
    std::vector<int> out(4, untouched);
    inclusive_scan(on, in, to_function([&](index_type i, auto value) { out[static_cast<std::size_t>(i)] = value; }),
                   maximum{});
    CHECK(out == std::vector<int>{1, 1, 1, 1});
    CHECK(in == std::vector<bool>{true, false, true, false});
}

TEST_CASE("accepted: bool, in a backend's memory and as an accumulator") {
    auto on = ordinary();
    constexpr int n = 5'000; // several tiles
    auto in = on.template allocate<bool>(n), out = on.template allocate<bool>(n);
    for (int i = 0; i < n; ++i) in.data()[i] = i == 3'000;
    every_grid([&](auto how) {
        bool any = false;
        for (int i = 0; i < n; ++i) out.data()[i] = i < 3'000; // all wrong
        inclusive_scan(on, counted(in.data(), n), out.data(), plus{}, how, total_to{&any});
        on.synchronize();
        CHECK((!out.data()[2'999] && out.data()[3'000] && out.data()[n - 1] && any));
        any = false;
        reduce(on, counted(in.data(), n), &any, plus{}, how);
        on.synchronize();
        CHECK(any);
    });
}

TEST_CASE("accepted: an operator with state, as a lambda") {
    auto on = ordinary();
    std::vector<int> in(5'000, 1), out(5'000);
    int modulus = 97; // not a constant: it has to be captured
    inclusive_scan(on, in, out, [modulus](int a, int b) { return (a + b) % modulus; });
    CHECK(out[4'999] == 5'000 % 97);
}

TEST_CASE("accepted: room without end for a number of elements that is read late") {
    auto on = ordinary();
    const index_type live = 4;
    const auto numbers = counted(index_iterator(), std::numeric_limits<index_type>::max(), &live);
    index_type total = 0, selected = 0;
    std::vector<int> counts(2);
    reduce(on, numbers, &total);
    CHECK(total == 6);
    copy_if(on, numbers, to_function([](index_type, index_type) {}), &selected, [](index_type i) { return i > 0; });
    CHECK(selected == 3);
    histogram(on, numbers, counts, even_bins{0, 6});
    CHECK(counts == std::vector<int>{3, 1});
}

int sum_of(int earlier, int later) { return earlier + later; }
bool is_odd(int x) { return x % 2 != 0; }
bool same_parity(int a, int b) { return is_odd(a) == is_odd(b); }

TEST_CASE("accepted: functions as operators, predicates and equivalences") {
    auto on = ordinary();
    const std::vector<int> in{3, 1, 4, 1, 5};
    std::vector<int> out(5), keys_out(5);
    int total = 0;
    index_type count = 0;
    inclusive_scan(on, in, out, sum_of);
    CHECK(out == std::vector<int>{3, 4, 8, 9, 14});
    transform_reduce(on, in, &total, sum_of, is_odd);
    CHECK(total == 4);
    partition(on, in, out, &count, is_odd);
    CHECK(out == std::vector<int>{3, 1, 1, 5, 4});
    unique(on, in, out, &count, same_parity);
    CHECK(count == 3);
    inclusive_segmented_scan(on, in, head_flags(std::vector<char>{1, 0, 0, 1, 0}), out, sum_of);
    CHECK(out == std::vector<int>{3, 4, 8, 1, 6});
    inclusive_scan_by_key(on, in, in, out, sum_of, same_parity);
    CHECK(out == std::vector<int>{3, 4, 4, 1, 6});
    reduce_by_key(on, in, in, keys_out, out, &count, sum_of, same_parity);
    CHECK(count == 3);
    CHECK(out[2] == 6);
}

TEST_CASE("the worked example") {
    auto on = ordinary();
    const std::vector<int> in{2, 1, 3, 1, 0, 4, 1, 2, 0, 3, 1, 2, 2, 6, 1, 2};
    std::vector<int> out(16);
    inclusive_scan(on, in, out);
    CHECK(out == std::vector<int>{2, 3, 6, 7, 7, 11, 12, 14, 14, 17, 18, 20, 22, 28, 29, 31});
}

// --- what is touched -------------------------------------------------------------------------------------------------

#ifdef POLYSCAN_TEST_PAGES
/// Memory whose last byte is followed by a page that must not be touched, or whose first follows one.
class fenced {
public:
    fenced(std::size_t bytes, bool at_end) {
        const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
        const std::size_t inner = (bytes + page - 1) / page * page;
        size_ = inner + 2 * page;
        base_ = static_cast<std::byte*>(mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        REQUIRE(base_ != MAP_FAILED);
        REQUIRE(mprotect(base_ + page, inner, PROT_READ | PROT_WRITE) == 0);
        data_ = base_ + page + (at_end ? inner - bytes : 0);
    }
    fenced(const fenced&) = delete;
    fenced& operator=(const fenced&) = delete;
    ~fenced() { munmap(base_, size_); }
    std::byte* data() const { return data_; }

private:
    std::byte* base_;
    std::size_t size_;
    std::byte* data_;
};

TEST_CASE("nothing outside [0, n) is read or written: neighbouring pages are out of bounds") {
    auto on = ordinary();
    const auto check = [&]<class Case>(Case, auto how) {
        using T = typename Case::accumulator_type;
        const index_type tile = shape_for<typename decltype(how)::block_type, T>.elements();
        for (const index_type n :
             {index_type{1}, index_type{3}, index_type{63}, tile - 1, tile, tile + 1, 4 * tile + 17}) {
            const std::vector<T> x = make_input<Case>(n, 5);
            for (const bool at_end : {false, true}) {
                const fenced in(x.size() * sizeof(T), at_end), out(x.size() * sizeof(T), at_end);
                const std::span<T> from(reinterpret_cast<T*>(in.data()), x.size()),
                    to(reinterpret_cast<T*>(out.data()), x.size());
                std::ranges::copy(x, from.begin());
                inclusive_scan(on, from, to, plus{}, how);
                exclusive_scan(on, from, from, plus::identity<T>(), plus{}, how);
                CHECK(same_bits(to[static_cast<std::size_t>(n - 1)], reference::policy_order(how, x, plus{}).back()));
            }
        }
    };
    for_each_policy([&](auto how) { check(cases::float_plus{}, how); });
    check(cases::int8_plus{}, default_policy{});
    check(cases::double_plus{}, default_policy{});
}
#endif

} // namespace
} // namespace polyscan::test
