// SPDX-License-Identifier: Apache-2.0
/// Reduction: the fold of all elements, as one value in the backend's memory.
///
///     std::vector<int> in{3, 1, 4, 1, 5};
///     int sum = 0;
///     polyscan::openmp::backend cpu;
///     polyscan::reduce(cpu, in, &sum);                                      // 14
///     polyscan::reduce(cpu, in, &sum, polyscan::maximum{});                 // 5
///     polyscan::transform_reduce(cpu, in, &sum, polyscan::plus{}, [](int x) { return x * x; });   // 52
///
/// Arguments; those in brackets may be left out from the right:
///     reduce<Accumulator>(backend, in, result [, op [, policy [, options...]]])
///     transform_reduce<Accumulator>(backend, in, result, op, transform [, policy [, options...]])
/// Options: `with_init{value}`; reduce takes `with_transform{f}`, too.
///
/// The bits of the result are those of the total that an inclusive scan under the same policy would give (scan.hpp,
/// `total_to`): floating point sums are the same on every backend. The rules of scan.hpp hold for input, operator and
/// accumulator, with the type of `*result` in the place of the output's. `result` is memory of the backend, outside the
/// input; its type is the accumulator. Without elements it receives the init or the operator's identity; where there is
/// neither, it is not written.
#pragma once

#include <optional>
#include <type_traits>
#include <utility>

#include <polyscan/indexed.hpp>
#include <polyscan/scan.hpp>

namespace polyscan {

namespace detail {

/// A backend's own reduction, if it has one: the request's output is null and not to be used.
template <class Policy, class Backend, class Request>
void reduce_request(Backend& backend, const Request& request) {
    if constexpr (requires { backend.template reduce<Policy>(request); }) {
        backend.template reduce<Policy>(request);
    } else {
        backend.template scan<Policy>(
            scan_request<typename Request::accumulator_type, typename Request::input_type, function_output<dropped>,
                         typename Request::operator_type, typename Request::transform_type>{request.input,
                                                                                            {},
                                                                                            request.size,
                                                                                            request.op,
                                                                                            request.transform,
                                                                                            request.init,
                                                                                            request.kind,
                                                                                            request.total,
                                                                                            request.empty_total,
                                                                                            request.count});
    }
}

/// The sum of load(i) over a range of indices.
template <class Policy, class A, class Backend, class Load>
void sum_indices(Backend& backend, index_range range, const Load& load, A* total) {
    static_assert(Backend::template supports<Policy>, "this backend does not have this policy");
    reduce_request<Policy>(backend, scan_request<A, index_iterator, A*, plus, Load>{
                                        index_iterator{}, nullptr, range.size, plus{}, load, std::nullopt,
                                        scan_kind::inclusive, total, A{}, range.count});
}

} // namespace detail

/// *result = op(x_0, ..., x_{n-1}). See the head of this file.
template <class Accumulator = deduced, backend Backend, class In, class Result, class Operator = plus,
          scan_policy Policy = default_policy, class... Options>
void reduce(Backend& backend, In&& in, Result* result, const Operator& op = {}, const Policy& = {},
            const Options&... options) {
    static_assert(((detail::is_init_option<Options> || detail::is_transform_option<Options>) && ...),
                  "options are with_init and with_transform");
    static_assert((0 + ... + int(detail::is_init_option<Options>)) <= 1, "with_init is given twice");
    static_assert((0 + ... + int(detail::is_transform_option<Options>)) <= 1, "with_transform is given twice");
    static_assert(Backend::template supports<Policy>, "this backend does not have this policy");
    const auto source = detail::first_input(std::forward<In>(in), "in");
    const auto& init = detail::find_init(options...);
    auto transform = detail::find_transform(options...);
    using init_type = std::remove_cvref_t<decltype(init)>;
    using element = detail::element_of<std::remove_cv_t<decltype(source.begin)>, decltype(transform)>;
    static_assert(detail::callable_to_deduce<Accumulator, init_type, element, Operator>,
                  "the operator must be callable with two transformed input elements, on a const object, or the "
                  "accumulator type must be named: reduce<Accumulator>(...)");
    using accumulator_type = typename detail::accumulator<Accumulator, init_type, element, Result, Operator>::type;
    static_assert(std::is_same_v<accumulator_type, Result>,
                  "the result must be of the accumulator type; name it: reduce<Accumulator>(...)");
    detail::require_accumulator<accumulator_type, element, Operator>();
    if (result == nullptr) reject("result", "is null");
    const detail::memory to{"result", result, sizeof(Result)};
    detail::check_apart({to}, {detail::memory_of("in", source.begin, source.size), detail::count_of(source)});

    std::optional<accumulator_type> start, empty_total;
    if constexpr (!std::is_same_v<init_type, no_init_t>) {
        start.emplace(static_cast<accumulator_type>(init));
        empty_total.emplace(*start);
    } else if constexpr (has_identity<Operator, accumulator_type>) {
        empty_total.emplace(identity_of<accumulator_type>(op));
    }
    detail::reduce_request<Policy>(
        backend, scan_request<accumulator_type, decltype(source.begin), accumulator_type*, detail::kept<Operator>,
                              decltype(transform)>{source.begin, nullptr, source.size, op, std::move(transform),
                                                   std::move(start), scan_kind::inclusive, result,
                                                   std::move(empty_total), source.count});
}

/// *result = op(f(x_0), ..., f(x_{n-1})). See the head of this file.
template <class Accumulator = deduced, backend Backend, class In, class Result, class Operator, class Function,
          scan_policy Policy = default_policy, class... Options>
void transform_reduce(Backend& backend, In&& in, Result* result, const Operator& op, const Function& transform,
                      const Policy& how = {}, const Options&... options) {
    static_assert((detail::is_init_option<Options> && ...), "the option is with_init");
    reduce<Accumulator>(backend, std::forward<In>(in), result, op, how, with_transform{transform}, options...);
}

} // namespace polyscan
