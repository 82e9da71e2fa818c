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

/// Whether an output contains its own element.
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

/// Elements of an input with room for `capacity`, whose number is not known before the work runs: never more than the
/// room, never fewer than none.
POLYSCAN_FUNCTION constexpr index_type live_count(index_type capacity, const index_type* count) {
    if (count == nullptr || *count > capacity) return capacity;
    return *count > 0 ? *count : 0;
}

/// An output that is not memory: `function(i, value)` is called once for each i, in any order and perhaps at once,
/// where the backend runs. See to_function in view.hpp.
template <class Function>
struct function_output {
    Function function;
};

/// `input` is read at [0, live_size()) only, each element converted by `transform` and then to the accumulator type;
/// `output`, a pointer or a function_output, is written there only. Input and output may be the same memory; otherwise
/// they do not overlap. An exclusive request always has an init (the verbs fill in the operator's identity). `total`,
/// where not null, receives the last inclusive output, init included; without elements it receives `empty_total`, if
/// there is one, else it is not written.
template <class Accumulator, class Input, class Output, class Operator, class Transform = no_transform>
struct scan_request {
    using accumulator_type = Accumulator;
    using operator_type = Operator;
    using input_type = Input;
    using output_type = Output;
    using transform_type = Transform;
    static constexpr bool writes_memory = std::is_pointer_v<Output>;

    Input input;
    Output output;
    index_type size;
    Operator op;
    Transform transform;
    std::optional<Accumulator> init;
    scan_kind kind;
    Accumulator* total;
    std::optional<Accumulator> empty_total = init;
    /// Memory of the backend, or null. Where not null, the number of elements is read from it when the work runs.
    const index_type* count = nullptr;

    /// The number of elements, where `count` can be read.
    POLYSCAN_FUNCTION index_type live_size() const { return live_count(size, count); }
    /// Element i as the operator sees it.
    POLYSCAN_FUNCTION Accumulator load(index_type i) const { return static_cast<Accumulator>(transform(input[i])); }

    /// Output i.
    POLYSCAN_FUNCTION void store(index_type i, const Accumulator& value) const {
        if constexpr (writes_memory)
            output[i] = static_cast<std::remove_reference_t<decltype(output[i])>>(value);
        else
            output.function(i, value);
    }
};

} // namespace polyscan
