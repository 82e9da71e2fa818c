// SPDX-License-Identifier: Apache-2.0
/// Definitions of matrix.hpp, for the translation units that instantiate them per case.
#pragma once

#include <cmath>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <polyscan/reference.hpp>

#include "inputs.hpp"
#include "matrix.hpp"

namespace polyscan::test {

template <class Case>
std::vector<typename Case::accumulator_type> policy_oracle(std::string_view policy,
                                                           const std::vector<typename Case::accumulator_type>& x,
                                                           const std::optional<typename Case::accumulator_type>& init) {
    const typename Case::operator_type op{};
    if constexpr (Case::every_policy) {
        std::vector<typename Case::accumulator_type> y;
        visit_policy(policy, [&](auto how) { y = reference::policy_order(how, x, op, init); });
        return y;
    } else {
        if (policy != default_policy::name())
            throw std::logic_error("policy_oracle: this case has the default policy only");
        return reference::policy_order(default_policy{}, x, op, init);
    }
}

namespace detail {

inline tile_shape shape_by_name(std::string_view policy, index_type bytes) {
    tile_shape shape{};
    visit_policy(policy,
                 [&]<class Grid, class Block>(polyscan::policy<Grid, Block>) { shape = shape_of(Block{}, bytes); });
    return shape;
}

/// Elements in memory of a target, between two guard zones. `shift` moves the first element away from the start of the
/// buffer, and so from any alignment but its own. All of it holds a pattern until something writes.
template <class T>
class guarded {
public:
    guarded(target& owner, index_type n, index_type shift) : target_(owner), n_(n), first_(guard + shift) {
        const index_type bytes = (first_ + n + guard) * index_type{sizeof(T)};
        expected_.resize(static_cast<std::size_t>(bytes));
        // A pattern that differs from byte to byte: a guard element copied over another would show.
        for (std::size_t i = 0; i < expected_.size(); ++i) expected_[i] = static_cast<std::byte>(0xa5 ^ i);
        memory_ = owner.allocate(bytes);
        owner.copy_to_device(memory_.get(), expected_.data(), bytes);
    }

    T* data() const { return reinterpret_cast<T*>(memory_.get()) + first_; }

    /// Puts `values` where data() points.
    void fill(const std::vector<T>& values) {
        if (values.empty()) return;
        std::memcpy(static_cast<void*>(expected_.data() + first_ * index_type{sizeof(T)}), values.data(),
                    values.size() * sizeof(T));
        target_.copy_to_device(memory_.get() + first_ * index_type{sizeof(T)},
                               expected_.data() + first_ * index_type{sizeof(T)}, n_ * index_type{sizeof(T)});
    }

    /// Reads everything back; then value(i) is element i.
    void fetch() {
        found_.resize(expected_.size());
        target_.copy_to_host(found_.data(), memory_.get(), static_cast<index_type>(found_.size()));
    }
    T value(index_type i) const {
        alignas(T) std::byte bytes[sizeof(T)];
        std::memcpy(bytes, found_.data() + (first_ + i) * index_type{sizeof(T)}, sizeof(T));
        return *std::launder(reinterpret_cast<const T*>(bytes));
    }

    /// Where a byte outside of data()[0, n) changed; nothing if none did.
    std::optional<std::string> guards_broken() const {
        const auto before = static_cast<std::size_t>(first_) * sizeof(T);
        const auto after = static_cast<std::size_t>(first_ + n_) * sizeof(T);
        for (std::size_t i = 0; i < found_.size(); ++i) {
            if (i == before) i = after;
            if (i < found_.size() && found_[i] != expected_[i])
                return i < before ? "written " + std::to_string(before - i) + " bytes before the first element"
                                  : "written " + std::to_string(i - after) + " bytes behind the last element";
        }
        return std::nullopt;
    }
    /// A byte changed since fill(), anywhere.
    bool changed() const { return found_ != expected_; }
    /// No byte of element i changed.
    bool untouched(index_type i) const {
        const auto at = (first_ + i) * index_type{sizeof(T)};
        return std::equal(found_.begin() + at, found_.begin() + at + index_type{sizeof(T)}, expected_.begin() + at);
    }

private:
    static constexpr index_type guard = sizeof(T) < 64 ? 64 : 2;
    target& target_;
    index_type n_;
    index_type first_;
    std::vector<std::byte> expected_;
    std::vector<std::byte> found_;
    std::shared_ptr<std::byte> memory_;
};

/// The same for elements that are more than their bytes: host memory, guards are elements.
template <class T>
    requires(!std::is_trivially_copyable_v<T>)
class guarded<T> {
public:
    guarded(target&, index_type n, index_type shift)
        : n_(n), first_(guard + shift), values_(static_cast<std::size_t>(first_ + n + guard), pattern()) {}
    T* data() { return values_.data() + first_; }
    void fill(const std::vector<T>& values) {
        std::copy(values.begin(), values.end(), data());
        filled_ = values_;
    }
    void fetch() {}
    const T& value(index_type i) const { return values_[static_cast<std::size_t>(first_ + i)]; }
    std::optional<std::string> guards_broken() const {
        for (index_type i = 0; i < static_cast<index_type>(values_.size()); ++i)
            if ((i < first_ || i >= first_ + n_) && values_[static_cast<std::size_t>(i)] != pattern())
                return "element " + std::to_string(i - first_) + " written";
        return std::nullopt;
    }
    bool changed() const { return values_ != filled_; }
    bool untouched(index_type i) const {
        return filled_.empty() ? value(i) == pattern() : value(i) == filled_[static_cast<std::size_t>(first_ + i)];
    }

private:
    static T pattern() { return T("guard"); }
    static constexpr index_type guard = 4;
    index_type n_;
    index_type first_;
    std::vector<T> values_;
    std::vector<T> filled_;
};

enum class placement { apart, in_place, shifted };

inline const char* name(placement where) {
    switch (where) {
    case placement::apart: return "apart";
    case placement::in_place: return "in place";
    case placement::shifted: return "shifted";
    }
    return "";
}

/// One input with what must come out of it, for both kinds.
template <class Case>
struct expectation {
    using accumulator = typename Case::accumulator_type;
    std::vector<typename Case::in_type> input;
    std::optional<accumulator> init;
    std::vector<accumulator> inclusive; ///< the prefixes, by the oracle that applies
    const char* oracle;
    const char* input_name;
};

struct variant {
    scan_kind kind;
    placement where;
    bool with_total;
};

/// Runs one cell; nothing if it is good, else what is wrong.
template <class Case>
std::optional<std::string> run_cell(target& on, const run_function<Case>& run, std::string_view policy,
                                    const expectation<Case>& expected, const variant& how) {
    using in_type = typename Case::in_type;
    using out_type = typename Case::out_type;
    using accumulator = typename Case::accumulator_type;
    const auto n = static_cast<index_type>(expected.input.size());

    // Shifts differ between input and output, so that no alignment trick works for both.
    const bool shifted = how.where == placement::shifted;
    guarded<in_type> in(on, n, shifted ? 3 : 0);
    guarded<out_type> out(on, how.where == placement::in_place ? 0 : n, shifted ? 1 : 0);
    guarded<accumulator> total(on, 1, 0);
    in.fill(expected.input);

    case_arguments<Case> arguments;
    arguments.in = in.data();
    arguments.size = n;
    arguments.kind = how.kind;
    if (expected.init) arguments.init.emplace(*expected.init);
    arguments.total = how.with_total ? total.data() : nullptr;
    if constexpr (std::is_same_v<in_type, out_type>)
        arguments.out = how.where == placement::in_place ? in.data() : out.data();
    else
        arguments.out = out.data();
    try {
        run(on, policy, arguments);
        on.synchronize();
    } catch (const std::exception& error) {
        return std::string("threw ") + error.what();
    }
    in.fetch();
    out.fetch();
    total.fetch();

    if (const auto broken = in.guards_broken()) return "input " + *broken;
    if (const auto broken = out.guards_broken()) return "output " + *broken;
    if (const auto broken = total.guards_broken()) return "total " + *broken;
    if (how.where != placement::in_place && in.changed()) return "input was changed";

    const auto wrong = [&](index_type i, const auto& found, const auto& right) {
        return "element " + std::to_string(i) + " is " + show(found) + ", " + expected.oracle + " has " + show(right);
    };
    const std::optional<accumulator> start = [&]() -> std::optional<accumulator> {
        if (expected.init) return *expected.init;
        if constexpr (has_identity<typename Case::operator_type, accumulator>)
            return identity_of<accumulator>(typename Case::operator_type{});
        else
            return std::nullopt;
    }();
    for (index_type i = 0; i < n; ++i) {
        const accumulator& right = how.kind == scan_kind::inclusive ? expected.inclusive[static_cast<std::size_t>(i)]
                                   : i == 0                         ? *start
                                            : expected.inclusive[static_cast<std::size_t>(i - 1)];
        const out_type as_output = static_cast<out_type>(right);
        const out_type found = [&]() -> out_type {
            if constexpr (std::is_same_v<in_type, out_type>)
                if (how.where == placement::in_place) return in.value(i);
            return out.value(i);
        }();
        if (!same_bits(found, as_output)) return wrong(i, found, as_output);
    }
    if (!how.with_total) return std::nullopt;
    if (n > 0) {
        const accumulator found = total.value(0);
        if (!same_bits(found, expected.inclusive.back()))
            return "total: " + wrong(n - 1, found, expected.inclusive.back());
    } else if (start) {
        const accumulator found = total.value(0);
        if (!same_bits(found, *start)) return "total of nothing is " + show(found) + ", not " + show(*start);
    }
    return std::nullopt;
}

template <class Case>
std::string where_is(const target& on, std::string_view policy, const expectation<Case>& expected, const variant& how) {
    return std::string(on.backend()) + ' ' + std::string(policy) + ' ' + std::string(Case::name) +
           " n=" + std::to_string(expected.input.size()) +
           (how.kind == scan_kind::inclusive ? " inclusive" : " exclusive") + (expected.init ? " init " : " ") +
           name(how.where) + (how.with_total ? " total" : "") + " workers=" + std::to_string(on.workers()) +
           expected.input_name;
}

/// The oracles among themselves: exact operators do not see the tree, sums stay within their bound. Nothing if so.
template <class Case>
std::optional<std::string> oracles_disagree(const std::vector<typename Case::accumulator_type>& x,
                                            const std::optional<typename Case::accumulator_type>& init,
                                            const std::vector<typename Case::accumulator_type>& sequential,
                                            const std::vector<typename Case::accumulator_type>& tree,
                                            tile_shape shape) {
    using accumulator = typename Case::accumulator_type;
    using op = typename Case::operator_type;
    if constexpr (exactly_associative<op, accumulator> || !std::is_floating_point_v<accumulator>) {
        constexpr bool rounds = std::is_same_v<accumulator, std::complex<float>> ||
                                std::is_same_v<accumulator, affine<float>> ||
                                std::is_same_v<accumulator, affine<double>>;
        if constexpr (!rounds) {
            for (std::size_t i = 0; i < x.size(); ++i)
                if (!same_bits(sequential[i], tree[i])) return "the oracles differ at " + std::to_string(i);
        }
    } else if constexpr (std::is_same_v<op, plus>) {
        error_bound<accumulator> bound(shape);
        if (init) bound.next(std::fabs(static_cast<double>(*init)));
        for (std::size_t i = 0; i < x.size(); ++i) {
            const double limit = bound.next(std::fabs(static_cast<double>(x[i])));
            const double difference = std::fabs(static_cast<double>(sequential[i]) - static_cast<double>(tree[i]));
            if (!(difference <= limit)) return "the error bound is passed at " + std::to_string(i);
        }
    }
    return std::nullopt;
}

/// Inputs with values that need rules: signed zeros, infinities, NaN.
template <class Case>
std::vector<std::pair<const char*, std::vector<typename Case::in_type>>> special_inputs(index_type n) {
    using in_type = typename Case::in_type;
    using op = typename Case::operator_type;
    std::vector<std::pair<const char*, std::vector<in_type>>> result;
    if constexpr ((std::is_same_v<op, minimum> || std::is_same_v<op, maximum>) &&
                  std::is_floating_point_v<typename Case::accumulator_type>) {
        constexpr float inf = std::numeric_limits<float>::infinity();
        constexpr bool is_minimum = std::is_same_v<op, minimum>;
        const auto make = [&](auto value) {
            std::vector<in_type> values;
            for (index_type i = 0; i < n; ++i) values.push_back(in_type(value(i)));
            return values;
        };
        // The neutral element of the operator everywhere: a made-up one (FLT_MAX) would show.
        result.emplace_back(" all neutral infinities", make([&](index_type) { return is_minimum ? inf : -inf; }));
        // Zeros of the weaker sign, then one of the stronger, in the second half.
        result.emplace_back(" zeros of both signs", make([&](index_type i) {
                                const bool strong = i == n / 2 + 1;
                                return strong == is_minimum ? -0.0f : 0.0f;
                            }));
        result.emplace_back(" infinities", make([&](index_type i) {
                                if (i == n - n / 3) return is_minimum ? -inf : inf;
                                return i % 5 == 0 ? (is_minimum ? inf : -inf)
                                                  : static_cast<float>(random_bits(3, i) % 64);
                            }));
        result.emplace_back(" one NaN", make([&](index_type i) {
                                return i == n / 2 ? std::numeric_limits<float>::quiet_NaN()
                                                  : static_cast<float>(random_bits(4, i) % 64);
                            }));
    }
    return result;
}

} // namespace detail

template <class Case>
void check_cells(const std::vector<target*>& targets, const run_function<Case>& run, std::string_view policy,
                 index_type elements_limit, tally& tally) {
    using accumulator = typename Case::accumulator_type;
    using op = typename Case::operator_type;
    constexpr bool exact = exactly_associative<op, accumulator>;
    using detail::placement;
    const tile_shape shape = detail::shape_by_name(policy, shape_bytes<accumulator>);

    const auto check = [&](target& on, const detail::expectation<Case>& expected, const detail::variant& how) {
        if (const auto wrong = detail::run_cell<Case>(on, run, policy, expected, how))
            tally.fail(detail::where_is(on, policy, expected, how) + ": " + *wrong);
        else
            tally.pass();
    };
    // All cells of one input: both inits here, kinds and placements inside.
    std::size_t turn = 0;
    const auto check_input = [&](const std::vector<typename Case::in_type>& input, const char* input_name) {
        const std::vector<accumulator> x = converted<Case>(input);
        for (const bool with_init : {false, true}) {
            std::optional<accumulator> init;
            if (with_init) init.emplace(make_init<Case>(x.size()));
            const std::vector<accumulator> sequential = reference::sequential(x, op{}, init);
            const std::vector<accumulator> tree = policy_oracle<Case>(policy, x, init);
            if (const auto wrong = detail::oracles_disagree<Case>(x, init, sequential, tree, shape))
                tally.fail(std::string(policy) + ' ' + std::string(Case::name) + " n=" + std::to_string(x.size()) +
                           ": " + *wrong);
            detail::expectation<Case> expected{input, init, exact ? sequential : tree,
                                               exact ? "the sequential oracle" : "the policy oracle", input_name};
            // An exclusive call without init starts with the identity, which takes part like any init.
            detail::expectation<Case> from_identity = expected;
            constexpr bool can_start = has_identity<op, accumulator>;
            if constexpr (can_start) {
                if (!with_init) {
                    const std::optional<accumulator> start = identity_of<accumulator>(op{});
                    from_identity.inclusive =
                        exact ? reference::sequential(x, op{}, start) : policy_oracle<Case>(policy, x, start);
                }
            }
            std::vector<detail::variant> variants;
            for (const scan_kind kind : {scan_kind::inclusive, scan_kind::exclusive}) {
                if (kind == scan_kind::exclusive && !with_init && !can_start) continue;
                variants.push_back({kind, placement::apart, true});
                variants.push_back({kind, placement::shifted, false});
                if (std::is_same_v<typename Case::in_type, typename Case::out_type>)
                    variants.push_back({kind, placement::in_place, true});
            }
            const auto expectation_for = [&](const detail::variant& how) -> const detail::expectation<Case>& {
                return how.kind == scan_kind::exclusive ? from_identity : expected;
            };
            // Long inputs cost time, and what placements do shows in short ones: there the placements take turns.
            const std::size_t step = x.size() > 20'000 ? 3 : 1;
            for (std::size_t k = step == 1 ? 0 : turn % step; k < variants.size(); k += step)
                check(*targets.front(), expectation_for(variants[k]), variants[k]);
            for (std::size_t other = 1; other < targets.size(); ++other) {
                const detail::variant& how = variants[turn++ % variants.size()];
                check(*targets[other], expectation_for(how), how);
            }
        }
    };

    for (const size_with_reason& size : sizes_for(shape, shape_bytes<accumulator>, elements_limit))
        check_input(make_input<Case>(size.n, static_cast<std::uint64_t>(size.n) + 1), "");
    for (const index_type n : {index_type{10}, shape.elements() + 1, 3 * shape.elements() - 1})
        if (n <= elements_limit)
            for (const auto& [name, input] : detail::special_inputs<Case>(n)) check_input(input, name);
}

} // namespace polyscan::test
