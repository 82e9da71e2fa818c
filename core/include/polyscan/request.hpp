// SPDX-License-Identifier: Apache-2.0
/// One scan, checked and with all types settled: what the verbs hand to a backend.
#pragma once

#include <optional>
#include <type_traits>
#include <utility>

#include <polyscan/function.hpp>
#include <polyscan/operators.hpp>
#include <polyscan/tile.hpp>

namespace polyscan {

enum class scan_kind {
    inclusive, ///< out[i] = op(init, x_0, ..., x_i)
    exclusive  ///< out[i] = op(init, x_0, ..., x_{i-1}), out[0] = init
};

/// The default input transform.
struct no_transform {
    template <class T>
    POLYSCAN_FUNCTION constexpr const T& operator()(const T& value) const {
        return value;
    }
};

/// `input` is read at [0, size) only, each element converted by `transform` and then to the accumulator type; `output`
/// is written at [0, size) only. The two may be the same memory; otherwise they do not overlap. An exclusive request
/// always has an init (the verbs fill in the operator's identity). `total`, where not null, receives the last inclusive
/// output, init included; with size 0 it receives init if there is one, else it is not written.
template <class Accumulator, class Input, class Output, class Operator, class Transform = no_transform>
struct scan_request {
    using accumulator_type = Accumulator;
    using operator_type = Operator;
    using input_type = Input;
    using output_type = Output;
    using transform_type = Transform;

    Input input;
    Output output;
    index_type size;
    Operator op;
    Transform transform;
    std::optional<Accumulator> init;
    scan_kind kind;
    Accumulator* total;

    /// Element i as the operator sees it.
    POLYSCAN_FUNCTION Accumulator load(index_type i) const { return static_cast<Accumulator>(transform(input[i])); }

    POLYSCAN_FUNCTION void store(index_type i, const Accumulator& value) const {
        output[i] = static_cast<std::remove_reference_t<decltype(output[i])>>(value);
    }
};

} // namespace polyscan
