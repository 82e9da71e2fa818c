// SPDX-License-Identifier: Apache-2.0
/// The verbs beside scan in the shared matrix. As there (launch.hpp, matrix.hpp), a backend's compiler sees a verb as
/// `run_...(backend, policy name, arguments)`, which primitives_impl.hpp defines through the public verbs; what makes
/// and judges cells is compiled once, in primitive_cells.cpp, and reaches a backend through `target` and a function.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include <polyscan/primitives.hpp>

#include "cases.hpp"
#include "matrix.hpp"

namespace polyscan::test {

namespace cases {
/// Not a case of the scans, whose kernels take numbers and structs alike.
struct packed_affine : test_case<std::uint64_t, std::uint64_t, std::uint64_t, compose_packed> {
    static constexpr std::string_view name = "packed_affine";
};
} // namespace cases

/// Each grid and each block algorithm once or twice, the default among them.
using primitive_policies =
    type_list<default_policy, policy<grid::single_block, block::warp_shuffle>, policy<grid::three_pass, block::coarse>,
              policy<grid::look_back, block::brent_kung>, policy<grid::domino, block::kogge_stone>>;

// All pointers are memory of the backend. `live`, where not null, holds the number of elements, `size` then is the room
// for them.

template <class Case>
struct reduce_arguments {
    const typename Case::in_type* in = nullptr;
    index_type size = 0;
    const index_type* live = nullptr;
    std::optional<typename Case::accumulator_type> init;
    typename Case::accumulator_type* result = nullptr;
};

enum class selection_verb { copy_if, copy_flagged, remove_if, partition, unique };

/// `Case` is a type with an element type alone.
template <class Case>
struct select_arguments {
    selection_verb verb = selection_verb::copy_if;
    const typename Case::in_type* in = nullptr;
    const std::uint8_t* flags = nullptr;
    index_type size = 0;
    const index_type* live = nullptr;
    typename Case::in_type* out = nullptr;
    index_type* count = nullptr;
};

enum class segments_by { flags, offsets, keys };

template <class Case>
struct segmented_arguments {
    segments_by by = segments_by::flags;
    scan_kind kind = scan_kind::inclusive;
    const typename Case::in_type* in = nullptr;
    const std::uint8_t* flags = nullptr;
    const std::int32_t* keys = nullptr;
    const index_type* offsets = nullptr;
    index_type offsets_size = 0;
    index_type size = 0;
    const index_type* live = nullptr;
    std::optional<typename Case::accumulator_type> init;
    typename Case::out_type* out = nullptr;
};

template <class Case>
struct runs_arguments {
    bool lengths = false; ///< run_length_encode; else reduce_by_key
    const std::int32_t* keys = nullptr;
    const typename Case::in_type* in = nullptr;
    index_type size = 0;
    const index_type* live = nullptr;
    std::int32_t* keys_out = nullptr;
    typename Case::out_type* out = nullptr; ///< of reduce_by_key
    std::int32_t* lengths_out = nullptr;    ///< of run_length_encode
    index_type* count = nullptr;
};

/// Runs a verb under the policy of that full name, one of `Policies`.
template <class Policies, class Backend, class Case>
void run_reduce(Backend& backend, std::string_view policy, const reduce_arguments<Case>& arguments);
template <class Policies, class Backend, class Case>
void run_select(Backend& backend, std::string_view policy, const select_arguments<Case>& arguments);
template <class Policies, class Backend, class Case>
void run_segmented(Backend& backend, std::string_view policy, const segmented_arguments<Case>& arguments);
template <class Policies, class Backend, class Case>
void run_runs(Backend& backend, std::string_view policy, const runs_arguments<Case>& arguments);

template <class Arguments>
using primitive_function = std::function<void(target&, std::string_view policy, const Arguments&)>;

/// All cells of one case under one policy, as check_cells in matrix.hpp.
template <class Case>
void check_reduce(const std::vector<target*>&, const primitive_function<reduce_arguments<Case>>&,
                  std::string_view policy, index_type elements_limit, tally&);
template <class Case>
void check_select(const std::vector<target*>&, const primitive_function<select_arguments<Case>>&,
                  std::string_view policy, index_type elements_limit, tally&);
template <class Case>
void check_segmented(const std::vector<target*>&, const primitive_function<segmented_arguments<Case>>&,
                     std::string_view policy, index_type elements_limit, tally&);
template <class Case>
void check_runs(const std::vector<target*>&, const primitive_function<runs_arguments<Case>>&, std::string_view policy,
                index_type elements_limit, tally&);

/// Segments and runs over hundreds of tiles, and tiles enough that whoever folds aggregates or hands carries out does
/// so in several steps: `elements` at most. Under the default policy; targets take turns.
template <class Case>
void check_long_reduce(const std::vector<target*>&, const primitive_function<reduce_arguments<Case>>&,
                       index_type elements, tally&);
template <class Case>
void check_long_segmented(const std::vector<target*>&, const primitive_function<segmented_arguments<Case>>&,
                          index_type elements, tally&);
template <class Case>
void check_long_runs(const std::vector<target*>&, const primitive_function<runs_arguments<Case>>&, index_type elements,
                     tally&);

/// The predicate of the selections: about one element in two, whatever its type.
struct is_chosen {
    template <class T>
    POLYSCAN_FUNCTION bool operator()(const T& value) const {
        return (reinterpret_cast<const unsigned char&>(value) & 2) != 0;
    }
};
/// The equality of `unique`: runs of some length in any input.
struct same_residue {
    template <class T>
    POLYSCAN_FUNCTION bool operator()(const T& a, const T& b) const {
        return (reinterpret_cast<const unsigned char&>(a) & 3) == (reinterpret_cast<const unsigned char&>(b) & 3);
    }
};

} // namespace polyscan::test

// Each list calls X(case of cases.hpp, `primitive_policies` or `default_alone`). Cross only what interacts: every verb,
// kind and form of segments for one case under the default policy, a few forms for the others.

// Exact; the tree shows; order; widening; a transform; NaN and signed zeros; neither default constructor nor identity;
// poison for made-up elements.
#define POLYSCAN_REDUCE_CASES(X)                                                                                       \
    X(int32_plus, primitive_policies)                                                                                  \
    X(float_plus, primitive_policies)                                                                                  \
    X(permutation5, default_alone)                                                                                     \
    X(affine_double, default_alone)                                                                                    \
    X(uint8_uint64_plus, default_alone)                                                                                \
    X(int32_squares_int64_plus, default_alone)                                                                         \
    X(double_minimum, default_alone)                                                                                   \
    X(sealed_plus, default_alone)                                                                                      \
    X(marked_plus, default_alone)

#define POLYSCAN_SELECT_CASES(X)                                                                                       \
    X(int32_plus, primitive_policies)                                                                                  \
    X(uint8_uint64_plus, default_alone)                                                                                \
    X(words_12_bytes, default_alone)

#define POLYSCAN_SEGMENTED_CASES(X)                                                                                    \
    X(float_plus, primitive_policies)                                                                                  \
    X(double_plus, default_alone)                                                                                      \
    X(permutation5, default_alone)                                                                                     \
    X(affine_double, default_alone)                                                                                    \
    X(marked_plus, default_alone)

/// Every other kind of operator, in one form: inclusive, by flags.
#define POLYSCAN_OPERATOR_CASES(X)                                                                                     \
    X(int32_multiplies, default_alone)                                                                                 \
    X(int32_minimum, default_alone)                                                                                    \
    X(int32_bit_xor, default_alone)                                                                                    \
    X(float_maximum, default_alone)                                                                                    \
    X(int64_plus, default_alone)                                                                                       \
    X(uint8_uint64_plus, default_alone)                                                                                \
    X(int32_fill_forward, default_alone)                                                                               \
    X(int32_squares_int64_plus, default_alone)                                                                         \
    X(packed_affine, default_alone)                                                                                    \
    X(sealed_plus, default_alone)

#define POLYSCAN_RUNS_CASES(X)                                                                                         \
    X(int32_plus, primitive_policies)                                                                                  \
    X(float_plus, default_alone)                                                                                       \
    X(permutation5, default_alone)                                                                                     \
    X(packed_affine, default_alone)                                                                                    \
    X(sealed_plus, default_alone)

/// Of those, the ones of hundreds of tiles: what may be regrouped; sums that round; order, and large values.
#define POLYSCAN_LONG_REDUCE_CASES(X)                                                                                  \
    X(int32_plus, primitive_policies)                                                                                  \
    X(float_plus, primitive_policies)                                                                                  \
    X(affine_double, default_alone)
/// Of those, the ones with segments over hundreds of tiles: sums that round, of 4 and of 8 bytes; what is exact, and
/// may be regrouped; order.
#define POLYSCAN_LONG_SEGMENTED_CASES(X)                                                                               \
    X(float_plus, primitive_policies)                                                                                  \
    X(double_plus, default_alone)                                                                                      \
    X(int32_bit_xor, default_alone)                                                                                    \
    X(int32_fill_forward, default_alone)                                                                               \
    X(packed_affine, default_alone)
#define POLYSCAN_LONG_RUNS_CASES(X)                                                                                    \
    X(int32_plus, primitive_policies)                                                                                  \
    X(float_plus, default_alone)                                                                                       \
    X(packed_affine, default_alone)

/// What only a host can hold: reduce, segmented and by key, a few forms.
#define POLYSCAN_PRIMITIVE_HOST_CASES(X) X(string_concatenate, primitive_policies)

namespace polyscan::test {

using default_alone = type_list<default_policy>;

enum class forms { all, few, one };

template <class Case>
inline constexpr forms forms_of_case = forms::few;
template <>
inline constexpr forms forms_of_case<cases::int32_plus> = forms::all; // selections
template <>
inline constexpr forms forms_of_case<cases::float_plus> = forms::all; // segmented scans
#define POLYSCAN_ONE_FORM(name, policies)                                                                              \
    template <>                                                                                                        \
    inline constexpr forms forms_of_case<cases::name> = forms::one;
POLYSCAN_OPERATOR_CASES(POLYSCAN_ONE_FORM)
#undef POLYSCAN_ONE_FORM

/// What a case is instantiated in. Reductions and runs do not ask.
template <class Case, class Policy>
inline constexpr forms forms_of =
    forms_of_case<Case> == forms::all && !std::is_same_v<Policy, default_policy> ? forms::few : forms_of_case<Case>;

} // namespace polyscan::test
