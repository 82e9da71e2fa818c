// SPDX-License-Identifier: Apache-2.0
/// The contract of a backend, in one page.
///
/// A backend is an object that says where scans run. It owns what a call needs (threads, a stream, a workspace); one
/// object serves one host thread at a time, several objects may be used at once.
///
/// It must:
///  1. say its `name()`;
///  2. say whether it can run here (`available()`): no device is an answer, not an exception;
///  3. say which policies it has (`supports<Policy>`); using one that it lacks does not compile;
///  4. run a request under a policy (`scan<Policy>(request)`), with exactly the association tree of that policy
///     (docs/determinism.md) unless `exactly_associative` allows another. The call may return before the scan is done;
///     later calls on the same backend see its results;
///  5. wait for everything it was given (`synchronize()`);
///  6. hand out memory that its scans can reach (`allocate<T>(n)`: an object with `data()` and `size()` that frees the
///     memory when destroyed) and copy elements between it and the host (`copy_to_device`, `copy_to_host`).
///
/// It may, for the verbs that are more than scans (radix_sort, histogram; without it those do not compile):
///  7. run a function for every index (`for_each(n, f)`: f(i) once for each i in [0, n), in any order and perhaps at
///     once, in order with its scans; f is trivially copyable, and its calls do not wait for each other);
///  8. lend memory that belongs to it (`scratch<T>(n)`: an object with `data()`, room for n elements with no contents,
///     valid until that object is destroyed or the next call of `scratch`; scans leave it alone).
/// It may have such a verb itself, too, where that is faster (`radix_sort(request)`, `histogram(request)`; for copy_if
/// and its like under the default policy `select(request)` and `partition(request)`), and a total without a scan
/// (`reduce<Policy>(request)`: the bits that `scan<Policy>` would store in the total; the request's output is null).
///
/// A scan throws std::invalid_argument only for what the verbs cannot check, and polyscan::backend_error when the
/// runtime fails. An exception that a user's operator throws on the host passes through.
#pragma once

#include <concepts>
#include <string_view>

#include <polyscan/error.hpp>
#include <polyscan/policy.hpp>
#include <polyscan/request.hpp>

namespace polyscan {

namespace detail {
using probe_request = scan_request<int, const int*, int*, plus>;
}

/// Points 1 to 6 of the head of this file.
template <class B>
concept backend = requires(B& b, const B& c, const detail::probe_request& request, int* device, const int* host) {
    { B::name() } -> std::convertible_to<std::string_view>;
    { c.available() } -> std::same_as<availability>;
    { B::template supports<default_policy> } -> std::convertible_to<bool>;
    { b.template scan<default_policy>(request) } -> std::same_as<void>;
    { b.synchronize() } -> std::same_as<void>;
    { b.template allocate<int>(index_type{1}).data() } -> std::convertible_to<int*>;
    { b.copy_to_device(device, host, index_type{1}) } -> std::same_as<void>;
    { b.copy_to_host(device, host, index_type{1}) } -> std::same_as<void>;
};

/// Points 7 and 8.
template <class B>
concept runs_functions = requires(B& b, void (*f)(index_type)) {
    { b.for_each(index_type{1}, f) } -> std::same_as<void>;
    { b.template scratch<unsigned char>(index_type{1}).data() } -> std::convertible_to<unsigned char*>;
};

} // namespace polyscan
