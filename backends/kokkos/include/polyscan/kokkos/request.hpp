// SPDX-License-Identifier: Apache-2.0
/// A scan request as kernels see it.
#pragma once

#include <type_traits>

#include <polyscan/kokkos/value.hpp>
#include <polyscan/request.hpp>

namespace polyscan::kokkos {

/// scan_request in the form that a kernel takes by value.
template <class Request>
struct kernel_request {
    using accumulator_type = typename Request::accumulator_type;
    using operator_type = typename Request::operator_type;
    using output_type = typename Request::output_type;

    typename Request::input_type input;
    output_type output;
    index_type size;
    operator_type op;
    typename Request::transform_type transform;
    maybe<accumulator_type> init;
    scan_kind kind;
    accumulator_type* total;
    maybe<accumulator_type> empty_total;

    /// The first `live_size` elements of `r`.
    kernel_request(const Request& r, index_type live_size)
        : input(r.input), output(r.output), size(live_size), op(r.op), transform(r.transform), init(r.init),
          kind(r.kind), total(r.total), empty_total(r.empty_total) {}

    KOKKOS_FUNCTION accumulator_type load(index_type i) const {
        return static_cast<accumulator_type>(transform(input[i]));
    }
    KOKKOS_FUNCTION void store(index_type i, const accumulator_type& value) const {
        if constexpr (Request::writes_memory)
            output[i] = static_cast<std::remove_pointer_t<output_type>>(value);
        else
            output.function(i, value);
    }
};

} // namespace polyscan::kokkos
