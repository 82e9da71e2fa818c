// SPDX-License-Identifier: Apache-2.0
/// The verbs beside scan in the comparison: `polyscan compare --verb copy_if`. For int32 and float32, under the default
/// policy, with the sum as the operator: enough to see where a backend stands.
///
/// Whoever can run verbs registers a runner: each backend (src/verbs.*), and the libraries that one would otherwise
/// use.
#pragma once

#include <polyscan/any_backend.hpp>
#include <polyscan/function.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace polyscan::tool {

enum class verb { reduce, copy_if, segmented_scan, scan_by_key, reduce_by_key, radix_sort, histogram };

/// In the order of the enumeration.
const std::vector<std::string>& verb_names();
/// Throws usage_error.
verb parse_verb(std::string_view argument, std::string_view text);

/// What all runners compute, so that their results can be compared. Memory is the runner's backend's.
struct verb_call {
    verb what = verb::reduce;
    dtype type = dtype::int32; ///< int32 or float32
    index_type size = 0;
    const void* in = nullptr;
    const std::int32_t* keys = nullptr;  ///< runs of equal neighbours
    const std::uint8_t* flags = nullptr; ///< 1 where a run begins
    void* out = nullptr;                 ///< up to `size` elements; histogram: `bins` counts
    std::int32_t* keys_out = nullptr;    ///< reduce_by_key
    index_type* count = nullptr;         ///< of outputs: copy_if, reduce_by_key
};

/// Generated data are integers in [0, 100) or numbers in [0, 1), most of them small.
template <class T>
inline constexpr T upper_end = std::is_integral_v<T> ? T(100) : T(1);
inline constexpr int bins = 256;
/// copy_if takes half of the elements.
template <class T>
struct is_small {
    POLYSCAN_FUNCTION constexpr bool operator()(T x) const { return x < (std::is_integral_v<T> ? T(50) : T(0.25)); }
};

class verb_runner {
public:
    virtual ~verb_runner() = default;
    /// As in the table: a policy, or the name of another library's function.
    virtual std::string_view name() const = 0;
    /// The backend whose memory and clock it needs; "host": ordinary memory and the steady clock.
    virtual std::string_view backend() const = 0;
    virtual bool is_peer() const { return true; }
    /// Its threads come from a pool (peers/peer.hpp).
    virtual bool inherits_affinity() const { return false; }
    virtual bool has(verb what) const = 0;
    /// On the host it is done on return.
    virtual void run(const verb_call& call) = 0;
};

using verb_runner_factory = std::function<std::unique_ptr<verb_runner>(int threads)>;
/// For runners of that backend. Called during static initialisation; returns true, so that a namespace-scope constant
/// can make the call.
bool register_verb_runner(std::string_view backend, verb_runner_factory make);
/// Those of the backend, for that number of threads (0: their own choice); the host's sequential one comes first.
std::vector<std::unique_ptr<verb_runner>> make_verb_runners(std::string_view backend, int threads);

/// Calls visit(std::type_identity<T>{}) for the element type.
template <class Visitor>
void visit_verb_type(dtype type, Visitor&& visit) {
    if (type == dtype::int32)
        visit(std::type_identity<std::int32_t>{});
    else if (type == dtype::float32)
        visit(std::type_identity<float>{});
    else
        reject("dtype", "verbs beside scan are compiled for int32 and float32");
}

} // namespace polyscan::tool
