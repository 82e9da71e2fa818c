// SPDX-License-Identifier: Apache-2.0
/// Compaction of a piece of the input on a processor's vectors, for elements that are copied like bytes. Shared by the
/// backends that run on a host; it knows nothing of threads.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <type_traits>

#include <polyscan/host/tile_kernels.hpp>
#include <polyscan/select.hpp>

namespace polyscan::host {

/// Elements of a piece, at most.
inline constexpr int piece_limit = 1024;
/// 4 KiB: with what is made of it, a part of the first-level cache.
template <class T>
inline constexpr int piece_length =
    static_cast<int>(std::clamp<std::size_t>(std::bit_floor(4096 / sizeof(T)), 1, piece_limit));

/// What is selected, of a select_request.
template <class Request>
using selected_type = std::iter_value_t<decltype(Request::in)>;

/// An integer as wide as what a test looks at, if that is a number.
template <class T>
using flag_word_for = std::conditional_t<
    !std::is_arithmetic_v<T> || sizeof(T) == 1, std::int8_t,
    std::conditional_t<sizeof(T) == 2, std::int16_t, std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>>>;
template <class Test, class T>
struct flag_word_of {
    using type = flag_word_for<T>;
};
template <class Flags, class T>
struct flag_word_of<polyscan::detail::flag_test<Flags>, T> {
    using type = flag_word_for<std::remove_cvref_t<decltype(std::declval<const Flags&>()[0])>>;
};
template <class Test, class T>
struct flag_word_of<polyscan::detail::none_of<Test>, T> : flag_word_of<Test, T> {};
template <class Test, class T>
using flag_word = typename flag_word_of<Test, T>::type;

namespace detail {

/// The numbers of the bits that are set in a byte, in front.
struct set_bits_table {
    std::array<std::array<std::uint8_t, 8>, 256> table{};
    constexpr set_bits_table() {
        for (unsigned byte = 0; byte < 256; ++byte)
            for (unsigned bit = 0, found = 0; bit < 8; ++bit)
                if ((byte >> bit & 1) != 0) table[byte][found++] = static_cast<std::uint8_t>(bit);
    }
};

} // namespace detail
inline constexpr detail::set_bits_table set_bits;

} // namespace polyscan::host

#if defined(__GNUC__)
#define POLYSCAN_UNREACHABLE() __builtin_unreachable()
#else
#define POLYSCAN_UNREACHABLE() static_cast<void>(0)
#endif

// nvcc gets the loops over elements.
#define POLYSCAN_HOST_KERNELS <polyscan/host/select_rows.inl>
#include <polyscan/host/instruction_sets.inl>

namespace polyscan::host {

/// Where the elements of a piece are: in memory, or brought there from an iterator.
template <class Request>
class piece_values {
public:
    using T = selected_type<Request>;
    static constexpr bool in_memory = std::is_same_v<decltype(Request::in), const T*>;

    /// Of elements [first, first + count), count <= piece_length.
    const T* of(const Request& request, index_type first, [[maybe_unused]] int count) {
        if constexpr (in_memory) {
            return request.in + first;
        } else {
            T* const values = reinterpret_cast<T*>(bytes_);
            for (int j = 0; j < count; ++j) std::construct_at(values + j, request.in[first + j]);
            return values;
        }
    }
    /// Of element i, unless that is -1 or nowhere.
    static const T* address(const Request& request, index_type i) {
        if constexpr (in_memory) return i < 0 ? nullptr : request.in + i;
        return nullptr;
    }

private:
    alignas(in_memory ? 1 : alignof(T)) std::byte bytes_[in_memory ? 1 : sizeof(T) * piece_length<T>];
};

#if defined(POLYSCAN_HOST_DISPATCH)
#define POLYSCAN_HOST_CALL(...)                                                                                        \
    switch (used_instruction_set) {                                                                                    \
    case instruction_set::avx512: return avx512::selecting::__VA_ARGS__;                                               \
    case instruction_set::avx2: return avx2::selecting::__VA_ARGS__;                                                   \
    default: return as_compiled::selecting::__VA_ARGS__;                                                               \
    }
#else
#define POLYSCAN_HOST_CALL(...) return as_compiled::selecting::__VA_ARGS__
#endif

/// Brings those of elements [first, first + count) that are selected to `chosen`, and the others, if they are wanted,
/// to `others`: both have room for `count`, all of which is overwritten. `values` are the elements, at most
/// piece_length. Meanwhile the memory of as many elements from `fetched` on is asked for, unless that is null. Returns
/// how many are selected.
template <bool Both, class T, class Test>
int select_piece(const T* values, const Test& test, index_type first, int count, T* chosen, T* others,
                 const T* fetched) {
    POLYSCAN_HOST_CALL(select_piece<Both, T>(values, test, first, count, chosen, others, fetched));
}
/// How many are selected, alone.
template <class T, class Test>
int count_piece(const T* values, const Test& test, index_type first, int count, const T* fetched) {
    POLYSCAN_HOST_CALL(count_piece(values, test, first, count, fetched));
}

#undef POLYSCAN_HOST_CALL

} // namespace polyscan::host
