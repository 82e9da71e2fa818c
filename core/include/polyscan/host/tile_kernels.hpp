// SPDX-License-Identifier: Apache-2.0
/// The default block algorithm (warp_shuffle: rows of some 512 bytes by Sklansky, row offsets by a left fold) on a
/// processor's vectors, for every operator on numbers, a user's lambda included. The bits are those of the tree
/// whatever the width of the vectors. Shared by the backends that run on a host; it knows nothing of threads.
///
/// A tile is scanned row by row, while another tile is folded or not. Outputs go straight to their place, past the
/// caches or not, or by way of a stage of a few rows (`outputs`). What passes from tile to tile is in `scan_state` and
/// `fold_state`.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <polyscan/host/loops.hpp>
#include <polyscan/host/past_caches.hpp>
#include <polyscan/operators.hpp>
#include <polyscan/policy.hpp>
#include <polyscan/request.hpp>
#include <polyscan/tile.hpp>

// nvcc's front end does not read the vector extensions that the kernels are written with. What it compiles goes the
// ways for types that vectors cannot hold, to the same bits.
#if defined(__NVCC__)
#define POLYSCAN_HOST_VECTORS 0
#else
#define POLYSCAN_HOST_VECTORS 1
#endif

namespace polyscan::host {

/// What a vector holds of a T: numbers as they are, structs in words.
template <class T>
using word_of =
    std::conditional_t<std::is_arithmetic_v<T>, T,
                       std::conditional_t<alignof(T) % 8 == 0 && sizeof(T) % 8 == 0, std::uint64_t, std::uint32_t>>;
template <class T>
inline constexpr int words_in = static_cast<int>(sizeof(T) / sizeof(word_of<T>));

template <class T>
struct words_of {
    word_of<T> word[static_cast<std::size_t>(words_in<T>)];
};

/// Structs that are copied like bytes and come apart into words: a vector for each word holds the same word of several
/// of them, so that an operator's arithmetic becomes vector instructions, whatever it is.
template <class T>
concept word_struct = std::is_class_v<T> && std::is_trivially_copyable_v<T> && std::default_initializable<T> &&
                      sizeof(T) % 4 == 0 && alignof(T) % 4 == 0 && sizeof(T) <= 32 && sizeof(words_of<T>) == sizeof(T);

/// What vectors can hold.
template <class T>
concept vectorisable =
    POLYSCAN_HOST_VECTORS != 0 && ((std::integral<T> && !std::same_as<T, bool> && sizeof(T) <= sizeof(std::uint64_t)) ||
                                   std::same_as<T, float> || std::same_as<T, double> || word_struct<T>);

namespace detail {
template <class Operator, class... Built>
inline constexpr bool one_of = (std::is_same_v<Operator, Built> || ...);
}

/// An integer of the size of T, a floating-point number.
template <class T>
using rank_of = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

/// The library's own operators are defined for all pairs of numbers, in any order: a lane may compute what nobody
/// needs.
template <class Operator>
inline constexpr bool takes_anything =
    detail::one_of<Operator, plus, multiplies, minimum, maximum, bit_and, bit_or, bit_xor>;

/// Minimum or maximum of numbers none of which is NaN.
template <class Operator>
struct ordered : Operator {};
template <class Operator>
inline constexpr bool is_ordered = false;
template <class Operator>
inline constexpr bool is_ordered<ordered<Operator>> = true;
template <class Operator>
inline constexpr bool takes_anything<ordered<Operator>> = true;

/// Operands may change places as well as groups.
template <class Operator, class T>
inline constexpr bool may_reorder =
    takes_anything<Operator> && (is_ordered<Operator> || exactly_associative<Operator, T>);

/// x with op(neutral, x) == x, bit for bit, for every x: for the library's own operators on numbers.
template <class Operator, class T>
inline constexpr bool has_neutral = takes_anything<Operator> && std::is_arithmetic_v<T>;
template <class Operator, class T>
    requires has_neutral<Operator, T>
inline constexpr T neutral =
    std::is_same_v<Operator, plus> && std::is_floating_point_v<T> ? static_cast<T>(-0.0) // 0 + -0 is 0
                                                                  : Operator::template identity<T>();

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

template <class T>
inline constexpr index_type row_length = shape_for<block::warp_shuffle, T>.run;
/// What the kernels read: element i of a request, as the operator sees it.
template <class Request>
struct source {
    using value_type = typename Request::accumulator_type;
    using element = std::remove_cvref_t<decltype(std::declval<const Request&>().input[0])>;
    /// Elements in memory, of whatever type, that no transform changes.
    static constexpr bool is_untouched = std::is_pointer_v<typename Request::input_type> &&
                                         std::is_same_v<typename Request::transform_type, no_transform>;
    /// Accumulators in memory, to be loaded as they are.
    static constexpr bool is_plain = is_untouched && std::is_same_v<element, value_type>;
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

/// Sums of as many of these integers as a row has are exact in a float.
template <class Source, class Operator>
inline constexpr bool sums_exactly =
    std::is_same_v<Operator, plus> && std::is_same_v<typename Source::value_type, float> && Source::is_untouched &&
    std::integral<typename Source::element> && sizeof(typename Source::element) <= 2 &&
    (row_length<float> << 16) <= (1 << 24);

/// Where the memory is that will be folded next: half a tile after a row of the first half of a tile, and of the second
/// half. Null: it need not be asked for.
struct prefetch_plan {
    const char* first_half = nullptr;
    const char* second_half = nullptr;
};

/// Where a thread's outputs go: straight to the request's output, or to a buffer, or by way of a stage in the
/// first-level cache, from where they are converted, shifted by one place, aligned or handed to a function.
template <class Request>
class outputs {
public:
    using value_type = typename Request::accumulator_type;
    static constexpr bool writes_memory = Request::writes_memory;
    using element = typename std::conditional_t<writes_memory, std::remove_pointer<typename Request::output_type>,
                                                std::type_identity<value_type>>::type;
    static constexpr bool same_elements = writes_memory && std::is_same_v<element, value_type>;
    static constexpr int row_length = static_cast<int>(host::row_length<value_type>);
    /// 2 KiB: little enough that what is read of other memory meanwhile does not wait, enough that outputs are no
    /// longer on their way to the stage when they are taken from it.
    static constexpr int stage_rows = 4;

    /// `past_caches`: as far as the processor can.
    outputs(const Request& request, bool past_caches)
        : request_(request), past_caches_(past_caches && writes_memory),
          exclusive_(request.kind == scan_kind::exclusive) {
        bool aligned = true;
        if constexpr (same_elements)
            aligned = reinterpret_cast<std::uintptr_t>(request.output) % line_writer::line == 0;
        staged_ = !same_elements || exclusive_ || (past_caches_ && (!aligned || words_in<value_type> > 2));
    }
    ~outputs() {
        lines_.flush();
        if (past_caches_) order_past_caches();
    }
    outputs(const outputs&) = delete;
    outputs& operator=(const outputs&) = delete;

    /// The next row is that of output `first`; `before` is the last inclusive output before it.
    void begin(index_type first, const std::optional<value_type>& before) {
        direct_ = nullptr;
        if constexpr (same_elements)
            if (!staged_) direct_ = request_.output + first;
        if (exclusive_) stage_[lead - 1] = before.value();
        if constexpr (writes_memory)
            if (staged_ && past_caches_) lines_.begin(request_.output + first);
    }
    /// The next rows stay in a buffer.
    void begin_local(value_type* buffer) { direct_ = buffer; }

    const Request& request() const { return request_; }
    bool past_caches() const { return past_caches_; }
    bool is_staged() const { return direct_ == nullptr; }
    /// Rows may be written past the caches where they belong.
    bool streams() const { return past_caches_ && !staged_; }
    /// Where row r after `begin` is to be written.
    value_type* place(int r) {
        return direct_ != nullptr ? direct_ + index_type{r} * row_length : stage_ + lead + r % stage_rows * row_length;
    }

    bool is_exclusive() const { return exclusive_; }
    /// Outputs before `next` have been written without the stage; the last inclusive one was this.
    void go_on_after(index_type next, const value_type& last) {
        stage_[lead - 1] = last;
        if constexpr (writes_memory)
            if (past_caches_) lines_.begin(request_.output + next);
    }

    // For `deliver`.
    const value_type* staged_outputs() const { return stage_ + lead - (exclusive_ ? 1 : 0); }
    void delivered(index_type count) {
        if (exclusive_) stage_[lead - 1] = stage_[lead - 1 + count];
    }
    element* converted() { return converted_; }
    line_writer& lines() { return lines_; }

private:
    static constexpr int lead = std::max<int>(1, 64 / static_cast<int>(sizeof(value_type)));
    static constexpr std::size_t alignment = std::max({std::size_t{64}, alignof(value_type), alignof(element)});

    const Request& request_;
    const bool past_caches_;
    const bool exclusive_;
    bool staged_;
    value_type* direct_ = nullptr;
    line_writer lines_;
    alignas(alignment) value_type stage_[static_cast<std::size_t>(lead + stage_rows * row_length)];
    alignas(alignment) element converted_[same_elements ? 1 : static_cast<std::size_t>(stage_rows * row_length)];
};

} // namespace polyscan::host

#if POLYSCAN_HOST_VECTORS

// Where the compiler's flags are for any x86-64, the processor may turn out to have more.
#if defined(__x86_64__) && !defined(__AVX2__) && !defined(POLYSCAN_HOST_AS_COMPILED)
#define POLYSCAN_HOST_DISPATCH 1
#endif

#define POLYSCAN_HOST_KERNELS <polyscan/host/row_kernels.inl>
#define POLYSCAN_HOST_HALF_WIDTH
#include <polyscan/host/instruction_sets.inl>

namespace polyscan::host {

enum class instruction_set { as_compiled, avx2, avx512 };

namespace detail {
// The best that this processor has and the kernels were compiled for, or less: see below.
inline instruction_set choose_instruction_set([[maybe_unused]] std::string_view limit) {
#if defined(POLYSCAN_HOST_DISPATCH)
    __builtin_cpu_init(); // static objects may be made before it has run
    if (limit == "as_compiled" || !__builtin_cpu_supports("fma")) return instruction_set::as_compiled;
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

/// Where AVX-512 is present, operators that cost next to nothing get vectors of half the width: then memory is what
/// counts, and stores of whole lines were a fifth slower (docs/performance_log.md).
template <class Operator, class T>
inline constexpr bool half_width = may_reorder<Operator, T>;

// In functions with the template parameters Operator and T.
#if defined(POLYSCAN_HOST_DISPATCH)
#define POLYSCAN_HOST_CALL(...)                                                                                        \
    switch (used_instruction_set) {                                                                                    \
    case instruction_set::avx512:                                                                                      \
        if constexpr (half_width<Operator, T>)                                                                         \
            return avx512_half::__VA_ARGS__;                                                                           \
        else                                                                                                           \
            return avx512::__VA_ARGS__;                                                                                \
    case instruction_set::avx2: return avx2::__VA_ARGS__;                                                              \
    default: return as_compiled::__VA_ARGS__;                                                                          \
    }
#else
#define POLYSCAN_HOST_CALL(...) return as_compiled::__VA_ARGS__
#endif

/// Folds a full tile.
template <class T, class Operator, class Source>
void fold_tile(const Operator& op, const Source& in, index_type at, fold_state<T>& fold) {
    POLYSCAN_HOST_CALL(fold_tile<T>(op, in, at, fold));
}

/// Scans `rows` full rows from element `at` on.
template <class T, class Operator, class Source, class Outputs>
void scan_rows(const Operator& op, const Source& in, index_type at, int rows, Outputs& out, scan_state<T>& state) {
    POLYSCAN_HOST_CALL(scan_rows<T>(op, in, at, rows, out, state));
}

/// Scans the full tile at `at` while it folds the one at `ahead`.
template <class T, class Operator, class Source, class Outputs>
void scan_and_fold_tile(const Operator& op, const Source& in, index_type at, Outputs& out, scan_state<T>& state,
                        index_type ahead, fold_state<T>& fold, const prefetch_plan& plan) {
    POLYSCAN_HOST_CALL(scan_and_fold_tile<T>(op, in, at, out, state, ahead, fold, plan));
}

/// Scans the last row of an input, 0 < length < row_length elements, after `rows` full ones. Returns the last output.
template <class T, class Operator, class Source, class Outputs>
T scan_short_row(const Operator& op, const Source& in, index_type at, int length, Outputs& out, int rows,
                 const scan_state<T>& state) {
    POLYSCAN_HOST_CALL(scan_short_row<T>(op, in, at, length, out, rows, state));
}

/// The most elements for `scan_few`: more are not worth a way of their own.
template <class T>
inline constexpr index_type few_elements = 16 * row_length<T>;

/// A whole inclusive scan of 0 < length <= few_elements elements in memory; `init` may be null. False where vectors
/// have no parts, or the operator does not take anything: nothing is done then.
template <class T, class Operator>
bool scan_few(const Operator& op, const T* in, int length, T* out, const T* init) {
#if defined(POLYSCAN_HOST_DISPATCH)
    switch (used_instruction_set) {
    case instruction_set::avx512: return avx512::scan_few(op, in, length, out, init); // in the cache: whole vectors
    case instruction_set::avx2: return avx2::scan_few(op, in, length, out, init);
    default: break;
    }
#endif
    return as_compiled::scan_few(op, in, length, out, init);
}

/// Scans elements [first, first + count), at most a tile, from its beginning. Returns the last output.
template <class T, class Operator, class Source, class Outputs>
T scan_tile(const Operator& op, const Source& in, index_type first, index_type count, Outputs& out,
            scan_state<T>& state) {
    const auto rows = static_cast<int>(count / row_length<T>);
    const index_type done = rows * row_length<T>;
    if (rows > 0) scan_rows(op, in, first, rows, out, state);
    if (done == count) return state.last(op);
    return scan_short_row(op, in, first + done, static_cast<int>(count - done), out, rows, state);
}

/// Brings local prefixes of `rows` rows from element `at` on to their places, behind the carry.
template <class T, class Operator, class Outputs>
void put_rows(const Operator& op, const T* local, const std::optional<T>& carry, index_type at, int rows,
              Outputs& out) {
    POLYSCAN_HOST_CALL(put_rows(op, local, carry, at, rows, out));
}

/// Copies `rows` rows of elements, as the operator sees them, to a buffer.
template <class T, class Source>
void load_rows(const Source& in, index_type at, int rows, T* to) {
    using Operator [[maybe_unused]] = void;
    POLYSCAN_HOST_CALL(load_rows(in, at, rows, to));
}

/// Replaces a full tile in a buffer by its local prefixes, as `Block` makes them.
template <class Block, class T, class Operator>
void scan_block(const Operator& op, T* v) {
    POLYSCAN_HOST_CALL(scan_block_in<Block>(op, v));
}

/// The last of them, of Kogge-Stone's or Brent-Kung's.
template <class Block, class T, class Operator, class Source>
T fold_block(const Operator& op, const Source& in, index_type at) {
    POLYSCAN_HOST_CALL(fold_block<Block, T>(op, in, at));
}

#undef POLYSCAN_HOST_CALL

} // namespace polyscan::host

#endif // POLYSCAN_HOST_VECTORS
