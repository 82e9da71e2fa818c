// SPDX-License-Identifier: Apache-2.0
/// The seam between the matrix and a backend's compiler. The matrix is host C++ and knows a cell only as
/// `run_case<Backend, Case>(backend, policy name, arguments)`; launch_impl.hpp defines it through the public verbs, and
/// each backend instantiates it in translation units of its own (for CUDA: .cu files, one per case).
#pragma once

#include <optional>
#include <string_view>

#include <polyscan/scan.hpp>

namespace polyscan::test {

/// What is crossed with what: element types and operator of a cell. `Name` is a type with `static constexpr const char*
/// name`.
template <class In, class Accumulator, class Out, class Operator, class Transform = no_transform>
struct test_case {
    using in_type = In;
    using accumulator_type = Accumulator;
    using out_type = Out;
    using operator_type = Operator;
    using transform_type = Transform;
};

/// All pointers are memory of the backend.
template <class Case>
struct case_arguments {
    const typename Case::in_type* in = nullptr;
    typename Case::out_type* out = nullptr;
    index_type size = 0;
    scan_kind kind = scan_kind::inclusive;
    std::optional<typename Case::accumulator_type> init;
    typename Case::accumulator_type* total = nullptr;
    typename Case::operator_type op = {};
};

/// Runs the verb that `arguments` describe under the policy of that full name, which the backend must have
/// (std::logic_error). Exclusive without init uses the identity
/// and must not be asked of an operator that has none (std::logic_error).
template <class Backend, class Case>
void run_case(Backend& backend, std::string_view policy, const case_arguments<Case>& arguments);

/// The same for the default policy alone: keeps the types-times-operators product cheap to compile.
template <class Backend, class Case>
void run_case_default(Backend& backend, const case_arguments<Case>& arguments);

} // namespace polyscan::test
