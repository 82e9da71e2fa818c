// SPDX-License-Identifier: Apache-2.0
/// The default block algorithm (warp_shuffle: rows of 512 bytes by Sklansky, row offsets by a left fold) on a
/// processor's vectors, for every operator on numbers, a user's lambda included. The bits are those of the tree
/// whatever the width of the vectors. Shared by the backends that run on a host; it knows nothing of threads.
///
/// A tile is scanned in strips of whole rows (`scan_rows`), which may lie in the caches or not, while a strip of a
/// later tile is folded (`scan_and_fold_strip`) or not. What passes from strip to strip is in `scan_state` and
/// `fold_state`.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <polyscan/host/loops.hpp>
#include <polyscan/operators.hpp>
#include <polyscan/policy.hpp>
#include <polyscan/request.hpp>
#include <polyscan/tile.hpp>

namespace polyscan::host {

/// Numbers that vectors can hold.
template <class T>
concept vectorisable =
    (std::integral<T> && !std::same_as<T, bool>) || std::same_as<T, float> || std::same_as<T, double>;

namespace detail {
template <class Operator, class... Built>
inline constexpr bool one_of = (std::is_same_v<Operator, Built> || ...);
}

/// The library's own operators are defined for all pairs of numbers, in any order: a lane may compute what nobody
/// needs.
template <class Operator>
inline constexpr bool takes_anything =
    detail::one_of<Operator, plus, multiplies, minimum, maximum, bit_and, bit_or, bit_xor>;

/// Operands may change places as well as groups.
template <class Operator, class T>
inline constexpr bool may_reorder = takes_anything<Operator> && exactly_associative<Operator, T>;

/// What is folded of a tile so far.
template <class T>
struct fold_state {
    T value{};
    bool empty = true;

    template <class Operator>
    void append(const Operator& op, const T& later) {
        value = empty ? later : combine(op, value, later);
        empty = false;
    }
};

/// Where a scan stands: what goes before the local prefixes of the next row. The offset is the fold of the tile's
/// earlier rows, the carry that of the earlier tiles; where operands may be reordered, the offset is both.
template <class T>
struct scan_state {
    T offset{};
    T carry{};
    bool has_offset = false;
    bool has_carry = false;
    /// Outputs go past the caches; their address must be a multiple of `alignment`.
    bool past_caches = false;

    template <class Operator>
    void begin_tile(const Operator&, const std::optional<T>& before) {
        has_offset = false;
        has_carry = before.has_value();
        if (before) carry = *before;
        if constexpr (may_reorder<Operator, T>) {
            std::swap(has_offset, has_carry);
            offset = carry;
        }
    }
    /// The last output so far, after at least one row.
    template <class Operator>
    T last(const Operator& op) const {
        return has_carry ? combine(op, carry, offset) : offset;
    }
};

/// A strip takes a part of the first-level cache that leaves room for others: 64 rows or fewer.
inline constexpr index_type strip_bytes = 8192;

template <class T>
inline constexpr index_type row_length = shape_for<block::warp_shuffle, T>.run;
template <class T>
inline constexpr index_type strip_length = strip_bytes / static_cast<index_type>(sizeof(T));
template <class T>
inline constexpr int strip_rows = static_cast<int>(strip_length<T> / row_length<T>);

/// Where `past_caches` may write.
inline constexpr std::size_t alignment = 64;

/// What the kernels read: element i of a request, as the operator sees it.
template <class Request>
struct source {
    using value_type = typename Request::accumulator_type;
    using element = std::remove_cvref_t<decltype(std::declval<const Request&>().input[0])>;
    /// Accumulators in memory, to be loaded as they are.
    static constexpr bool is_plain = std::is_pointer_v<typename Request::input_type> &&
                                     std::is_same_v<element, value_type> &&
                                     std::is_same_v<typename Request::transform_type, no_transform>;
    /// Bytes of memory per row of input; 0 if it does not lie in memory.
    static constexpr int row_bytes = std::is_pointer_v<typename Request::input_type>
                                         ? static_cast<int>(row_length<value_type> * sizeof(element))
                                         : 0;

    typename Request::input_type input;
    const Request* request;

    explicit source(const Request& r) : input(r.input), request(&r) {}

    const value_type* data() const
        requires is_plain
    {
        return input;
    }
    void skip(index_type elements) { input += elements; }
    value_type load(index_type i) const { return static_cast<value_type>(request->transform(input[i])); }
};

} // namespace polyscan::host

// The kernels as the compiler's flags say ...
#define POLYSCAN_HOST_ISA as_compiled
#define POLYSCAN_HOST_TARGET
#if defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512BW__) && defined(__AVX512DQ__)
#define POLYSCAN_HOST_BYTES 64
#elif defined(__AVX2__)
#define POLYSCAN_HOST_BYTES 32
#else
#define POLYSCAN_HOST_BYTES 16
#endif
#include <polyscan/host/row_kernels.inl>
#undef POLYSCAN_HOST_ISA
#undef POLYSCAN_HOST_TARGET

// ... and, where those are for any x86-64, once more for what the processor may turn out to have.
#if defined(__x86_64__) && !defined(__AVX2__) && !defined(POLYSCAN_HOST_AS_COMPILED)
#define POLYSCAN_HOST_DISPATCH 1
#undef POLYSCAN_HOST_BYTES
#define POLYSCAN_HOST_BYTES 32
#define POLYSCAN_HOST_ISA avx2
#define POLYSCAN_HOST_TARGET [[gnu::target("avx2")]]
#include <polyscan/host/row_kernels.inl>
#undef POLYSCAN_HOST_ISA
#undef POLYSCAN_HOST_TARGET
#undef POLYSCAN_HOST_BYTES
#define POLYSCAN_HOST_BYTES 64
#define POLYSCAN_HOST_ISA avx512
#define POLYSCAN_HOST_TARGET [[gnu::target("avx512f,avx512vl,avx512bw,avx512dq")]]
#include <polyscan/host/row_kernels.inl>
#undef POLYSCAN_HOST_ISA
#undef POLYSCAN_HOST_TARGET
#endif
#undef POLYSCAN_HOST_BYTES

namespace polyscan::host {

enum class instruction_set { as_compiled, avx2, avx512 };

namespace detail {
// The best that this processor has and the kernels were compiled for, or less: see below.
inline instruction_set choose_instruction_set([[maybe_unused]] std::string_view limit) {
#if defined(POLYSCAN_HOST_DISPATCH)
    __builtin_cpu_init(); // static objects may be made before it has run
    if (limit == "as_compiled") return instruction_set::as_compiled;
    if (limit != "avx2" && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
        return instruction_set::avx512;
    if (__builtin_cpu_supports("avx2")) return instruction_set::avx2;
#endif
    return instruction_set::as_compiled;
}
} // namespace detail

/// What the kernels use. POLYSCAN_INSTRUCTION_SET in the environment (as_compiled, avx2) asks for less than there is. A
/// scan that runs before this object is made finds zero, which is as_compiled.
inline const instruction_set used_instruction_set = [] {
    const char* const limit = std::getenv("POLYSCAN_INSTRUCTION_SET");
    return detail::choose_instruction_set(limit == nullptr ? "" : limit);
}();

#if defined(POLYSCAN_HOST_DISPATCH)
#define POLYSCAN_HOST_CALL(...)                                                                                        \
    switch (used_instruction_set) {                                                                                    \
    case instruction_set::avx512: return avx512::__VA_ARGS__;                                                          \
    case instruction_set::avx2: return avx2::__VA_ARGS__;                                                              \
    default: return as_compiled::__VA_ARGS__;                                                                          \
    }
#else
#define POLYSCAN_HOST_CALL(...) return as_compiled::__VA_ARGS__
#endif

/// Scans `rows` full rows from element `at` on; `out` is where the first output goes.
template <class T, class Operator, class Source>
void scan_rows(const Operator& op, const Source& in, index_type at, int rows, T* out, scan_state<T>& state) {
    POLYSCAN_HOST_CALL(scan_rows<T>(op, in, at, rows, out, state));
}

/// Scans a strip from `at` on, with a carry, while it folds the strip from `ahead` on and asks for the memory at
/// `prefetch`, a strip of input elements, unless that is null.
template <class T, class Operator, class Source>
void scan_and_fold_strip(const Operator& op, const Source& in, index_type at, T* out, scan_state<T>& state,
                         index_type ahead, fold_state<T>& fold, const char* prefetch) {
    POLYSCAN_HOST_CALL(scan_and_fold_strip<T>(op, in, at, out, state, ahead, fold, prefetch));
}

/// Folds a strip.
template <class T, class Operator, class Source>
void fold_strip(const Operator& op, const Source& in, index_type at, fold_state<T>& fold) {
    POLYSCAN_HOST_CALL(fold_strip<T>(op, in, at, fold));
}

/// Scans the last row of an input, 0 < length < row_length elements.
template <class T, class Operator, class Source>
void scan_short_row(const Operator& op, const Source& in, index_type at, int length, T* out,
                    const scan_state<T>& state) {
    POLYSCAN_HOST_CALL(scan_short_row<T>(op, in, at, length, out, state));
}

#undef POLYSCAN_HOST_CALL

} // namespace polyscan::host
