// SPDX-License-Identifier: Apache-2.0
/// Histograms: how many elements fall into each bin.
///
///     std::vector<float> in{0.1f, 0.7f, 0.9f, 2.5f};
///     std::vector<int> counts(4);
///     polyscan::openmp::backend cpu;
///     polyscan::histogram(cpu, in, counts, polyscan::even_bins{0.0f, 1.0f});    // 1 0 1 1, and 2.5 is in no bin
///     std::vector<float> edges{0.0f, 0.5f, 0.8f, 1.0f, 100.0f};
///     polyscan::histogram(cpu, in, counts, edges);                              // 1 1 1 1
///
/// Arguments:
///     histogram(backend, in, counts, even_bins{lower, upper})
///     histogram(backend, in, counts, edges)
/// `counts` has as many elements as there are bins, one at least; a bare pointer does not say how many, so device
/// memory goes through polyscan::counted(pointer, bins). All of them are written: counts of an earlier call do not
/// matter. They are integers (of 4 or 8 bytes, for the CUDA backend), exact, and wrap around where their type is too
/// small. The number of elements may stand in the backend's memory (`counted(in, capacity, count)`, view.hpp).
///
/// Every bin contains its lower bound and not its upper one, the last bin too (NumPy counts the upper bound of the last
/// bin). Elements outside of all bins, NaN among them, are not counted. lower < upper. Where does x belong?
///  - even_bins, integers: to bin floor((x - lower) bins / (upper - lower)), exactly; (upper - lower) bins < 2^64.
///  - even_bins, else: to bin floor((x - lower) scale), at most bins - 1, where scale = bins / (upper - lower). Each
///    operation is rounded: to float where the bounds are float and the elements have no more than 4 bytes and are not
///    integers, else to double. Upper - lower and scale must be finite.
///  - edges (bins + 1 of them, in the backend's memory, none above the next): to bin i with edges[i] <= x < edges[i +
///    1], compared by value (an integer beside a floating-point edge as that type holds it). Backends that work in the
///    host's memory refuse edges that are out of order; on a device no one looks, and such edges put elements into bins
///    of no meaning.
///
/// The memory of `counts` does not overlap that of anything else. std::invalid_argument for a broken contract, before
/// anything is written.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include <polyscan/backend.hpp>
#include <polyscan/error.hpp>
#include <polyscan/function.hpp>
#include <polyscan/indexed.hpp>
#include <polyscan/tile.hpp>
#include <polyscan/view.hpp>

namespace polyscan {

/// Bins of one width over [lower, upper).
template <class Level>
    requires std::is_arithmetic_v<Level>
struct even_bins {
    Level lower;
    Level upper;
};
template <class Lower, class Upper>
even_bins(Lower, Upper) -> even_bins<std::common_type_t<Lower, Upper>>;

namespace detail {

inline constexpr index_type no_bin = -1;

/// a < b by value, whatever the signs of integer types; an integer beside a floating-point number as that type holds
/// it.
template <class A, class B>
POLYSCAN_FUNCTION constexpr bool less_by_value(const A& a, const B& b) {
    if constexpr (std::is_integral_v<A> && std::is_integral_v<B>)
        return std::cmp_less(+a, +b); // + turns bool and characters into integers
    else if constexpr (std::is_arithmetic_v<A> && std::is_arithmetic_v<B>)
        return static_cast<std::common_type_t<A, B>>(a) < static_cast<std::common_type_t<A, B>>(b);
    else
        return a < b;
}

/// Bins over integers.
template <std::integral Level>
class exact_bins {
    static_assert(sizeof(Level) <= sizeof(std::uint64_t), "bounds are integers of 64 bits at most");

public:
    exact_bins(even_bins<Level> of, index_type bins)
        : lower_(of.lower), upper_(of.upper), bins_(static_cast<std::uint64_t>(bins)) {
        if (!(of.lower < of.upper)) reject("bins", "lower must be less than upper");
        range_ = difference<std::uint64_t>(of.upper);
        reciprocal_ = ~std::uint64_t{0} / range_;
        if (bins_ > reciprocal_)
            reject("bins", "upper - lower times the number of bins must be less than 2^64; take fewer bins");
        const std::uint64_t width = range_ / bins_;
        if (width * bins_ == range_ && std::has_single_bit(width)) shift_ = std::countr_zero(width);
    }

    template <class T>
    POLYSCAN_FUNCTION index_type operator()(const T& x) const {
        if (!has(x)) return no_bin;
        if (shift_ >= 0) return static_cast<index_type>(difference<std::uint64_t>(x) >> shift_);
        // Quotient by a reciprocal that is rounded down: right, or one too small.
        const std::uint64_t scaled = difference<std::uint64_t>(x) * bins_;
        const std::uint64_t guess = high_product(scaled, reciprocal_);
        return static_cast<index_type>(guess + (scaled - guess * range_ >= range_ ? 1 : 0));
    }
    /// The same as an Index, which holds all bins.
    template <class Index, class T>
    POLYSCAN_FUNCTION Index as(const T& x) const {
        if constexpr (sizeof(T) <= sizeof(std::uint32_t) && sizeof(Level) <= sizeof(std::uint32_t)) {
            if (shift_ >= 0) return has(x) ? static_cast<Index>(difference<std::uint32_t>(x) >> shift_) : Index{no_bin};
        }
        return static_cast<Index>((*this)(x));
    }

private:
    template <class T>
    POLYSCAN_FUNCTION bool has(const T& x) const {
        return !less_by_value(x, lower_) && less_by_value(x, upper_);
    }
    template <class Word, class T>
    POLYSCAN_FUNCTION Word difference(const T& x) const {
        return static_cast<Word>(x) - static_cast<Word>(lower_);
    }
    POLYSCAN_FUNCTION static std::uint64_t high_product(std::uint64_t a, std::uint64_t b) {
        __extension__ using wide = unsigned __int128;
        return static_cast<std::uint64_t>(static_cast<wide>(a) * b >> 64);
    }

    Level lower_, upper_;
    std::uint64_t bins_, range_, reciprocal_;
    int shift_ = -1; ///< where bins are as wide as a power of two
};

/// Bins over floating-point numbers. A difference and a product: there is nothing that could become a fused
/// multiply-add, so the bits do not depend on a compiler's switches.
template <std::floating_point Number>
class scaled_bins {
public:
    scaled_bins(Number lower, Number upper, index_type bins) : lower_(lower), upper_(upper), last_(bins - 1) {
        if (!(lower < upper)) reject("bins", "lower must be less than upper, and neither may be NaN");
        scale_ = static_cast<Number>(bins) / (upper - lower);
        if (!std::isfinite(upper - lower) || !std::isfinite(scale_))
            reject("bins", "upper - lower and the number of bins over it must be finite");
    }

    template <class T>
    POLYSCAN_FUNCTION index_type operator()(const T& element) const {
        const auto x = static_cast<Number>(element);
        if (!has(x)) return no_bin;
        // 32 bits, where they hold all bins: some processors convert to 64 slowly.
        constexpr index_type narrow = std::numeric_limits<std::int32_t>::max() / 2;
        return last_ < narrow ? bin<std::int32_t>(x) : bin<index_type>(x);
    }
    /// The same as an Index, which holds all bins, without a branch.
    template <class Index, class T>
    POLYSCAN_FUNCTION Index as(const T& element) const {
        const auto x = static_cast<Number>(element);
        const Index any = bin<Index>(has(x) ? x : lower_);
        return has(x) ? any : Index{no_bin};
    }

private:
    POLYSCAN_FUNCTION bool has(Number x) const { return x >= lower_ && x < upper_; }
    template <class Index>
    POLYSCAN_FUNCTION Index bin(Number x) const {
        const Number place = (x - lower_) * scale_;
        const auto whole = static_cast<Index>(place), last = static_cast<Index>(last_);
        return whole < last ? whole : last;
    }

    Number lower_, upper_, scale_;
    index_type last_;
};

template <class Element, class Level>
auto bins_over(even_bins<Level> of, index_type bins) {
    if constexpr (std::is_integral_v<Element> && std::is_integral_v<Level>) {
        return exact_bins<Level>(of, bins);
    } else {
        constexpr bool single = std::is_same_v<Level, float> && !std::is_integral_v<Element> && sizeof(Element) <= 4;
        using number = std::conditional_t<single, float, double>;
        return scaled_bins<number>(static_cast<number>(of.lower), static_cast<number>(of.upper), bins);
    }
}

/// Bins between edges in memory.
template <class Edge>
class searched_bins {
public:
    searched_bins(const Edge* edges, index_type bins) : edges_(edges), bins_(bins) {}

    /// By those who can read the edges.
    void check() const {
        for (index_type i = 0; i < bins_; ++i)
            if (!(edges_[i] <= edges_[i + 1]))
                reject("edges", "edge " + std::to_string(i) + " is greater than the next, or one of them is NaN");
    }

    template <class T>
    POLYSCAN_FUNCTION index_type operator()(const T& x) const {
        // Invariant: edges before `first` are <= x, those from `end` on are > x. NaN is less than nothing: it ends
        // behind the last edge.
        index_type first = 0, end = bins_ + 1;
        while (first < end) {
            const index_type middle = first + (end - first) / 2;
            if (less_by_value(x, edges_[middle]))
                end = middle;
            else
                first = middle + 1;
        }
        return first <= bins_ ? first - 1 : no_bin;
    }
    template <class Index, class T>
    POLYSCAN_FUNCTION Index as(const T& x) const {
        return static_cast<Index>((*this)(x));
    }

private:
    const Edge* edges_;
    index_type bins_;
};

/// One histogram, checked: what the verb hands to a backend. bin_of(x) is a bin or no_bin, and so is bin_of.as<int>(x)
/// where an int holds all bins.
template <class Input, class Bins, class Count>
struct histogram_request {
    using input_type = Input;
    using count_type = Count;

    Input input;
    index_type size;
    const index_type* count; ///< or null: the number of elements is read when the work runs
    Bins bin_of;
    Count* counts;
    index_type bins;
};

// --- a histogram for any backend, of its for_each --------------------------------------------------------------------

/// A part of the elements, counted into bins of its own: privates[bin * parts + part].
template <class Request>
struct count_part {
    Request request;
    index_type* privates;
    index_type parts;

    POLYSCAN_FUNCTION void operator()(index_type part) const {
        const index_type n = live_count(request.size, request.count), length = ceil_div(n, parts);
        for (index_type bin = 0; bin < request.bins; ++bin) privates[bin * parts + part] = 0;
        const index_type first = part * length, end = first + length < n ? first + length : n;
        for (index_type i = first; i < end; ++i) {
            const index_type bin = request.bin_of(request.input[i]);
            if (bin != no_bin) ++privates[bin * parts + part];
        }
    }
};

template <class Request>
struct sum_bin {
    Request request;
    const index_type* privates;
    index_type parts;

    POLYSCAN_FUNCTION void operator()(index_type bin) const {
        index_type sum = 0;
        for (index_type part = 0; part < parts; ++part) sum += privates[bin * parts + part];
        request.counts[bin] = static_cast<typename Request::count_type>(sum);
    }
};

/// Parts are many, for a device, but neither so many that their bins are more than the elements, nor more than one
/// call wants to sum.
constexpr index_type histogram_parts(index_type size, index_type bins) {
    constexpr index_type least_elements = 1024, most_parts = 4096;
    return std::clamp<index_type>(size / std::max(least_elements, bins), 1, most_parts);
}

template <class Backend, class Request>
void histogram_with_for_each(Backend& backend, const Request& request) {
    const index_type parts = histogram_parts(request.size, request.bins);
    auto privates = backend.template scratch<index_type>(parts * request.bins);
    backend.for_each(parts, count_part<Request>{request, privates.data(), parts});
    backend.for_each(request.bins, sum_bin<Request>{request, privates.data(), parts});
}

template <class Backend, class Counts, class Source, class Bins>
void histogram(Backend& backend, const Source& source, Counts* counts, index_type size, const Bins& bins) {
    using request_type = histogram_request<decltype(source.begin), Bins, Counts>;
    const request_type request{source.begin, source.size, source.count, bins, counts, size};
    if constexpr (requires { backend.histogram(request); }) {
        backend.histogram(request);
    } else {
        static_assert(runs_functions<Backend>,
                      "histogram needs a backend with for_each and scratch, or with a histogram of its own");
        histogram_with_for_each(backend, request);
    }
}

template <class T>
inline constexpr bool is_even_bins = false;
template <class Level>
inline constexpr bool is_even_bins<even_bins<Level>> = true;

} // namespace detail

/// counts[i] = number of elements in bin i; `bins` is even_bins or a range of edges. See the head of this file.
template <backend Backend, class In, class Counts, class Bins>
void histogram(Backend& backend, In&& in, Counts&& counts, const Bins& bins) {
    const auto source = detail::first_input(std::forward<In>(in), "in");
    const auto target = detail::as_counted(std::forward<Counts>(counts), "counts");
    using counts_iterator = std::remove_cv_t<decltype(target.begin)>;
    using count_type = std::remove_pointer_t<counts_iterator>;
    static_assert(std::is_pointer_v<counts_iterator> && std::is_integral_v<count_type> &&
                      !std::is_const_v<count_type> && !std::is_same_v<count_type, bool>,
                  "counts are integers in contiguous, writable memory");
    if (target.count != nullptr) reject("counts", "a run-time count is for inputs");
    if (target.size == detail::unknown_size)
        reject("counts", "a bare pointer does not say how many bins there are; use polyscan::counted(pointer, bins)");
    if (target.size == 0) reject("counts", "there must be a bin");
    const detail::memory to = detail::memory_of("counts", target.begin, target.size);
    const detail::memory from = detail::memory_of("in", source.begin, source.size);
    if constexpr (detail::is_even_bins<Bins>) {
        using element = std::iter_value_t<std::remove_cv_t<decltype(source.begin)>>;
        const auto checked = detail::bins_over<element>(bins, target.size);
        detail::check_apart({to}, {from, detail::count_of(source)});
        detail::histogram(backend, source, target.begin, target.size, checked);
    } else {
        const auto edges = detail::first_input(bins, "edges");
        static_assert(std::is_pointer_v<std::remove_cv_t<decltype(edges.begin)>>, "edges lie in contiguous memory");
        using edge = std::remove_cvref_t<decltype(*edges.begin)>;
        if (edges.size != target.size + 1)
            reject("edges", "has " + std::to_string(edges.size) + " elements; one more than counts, that is " +
                                std::to_string(target.size + 1) + ", are needed");
        detail::check_apart({to},
                            {from, detail::memory_of("edges", edges.begin, edges.size), detail::count_of(source)});
        detail::histogram(backend, source, target.begin, target.size,
                          detail::searched_bins<edge>(edges.begin, target.size));
    }
}

} // namespace polyscan
