// SPDX-License-Identifier: Apache-2.0
#include "oracle.hpp"

#include "operations.hpp"

#include <polyscan/reference.hpp>

#include <cmath>
#include <cstring>
#include <limits>

namespace polyscan::tool {

namespace {

// Elements evaluated at a time; more than a tile of every shape.
constexpr index_type piece = index_type{1} << 16;

template <class T>
T value_of(const scalar& bytes) {
    T value;
    std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
}

template <class Visitor>
void visit_block(std::string_view name, Visitor&& visit) {
    const auto attempt = [&](auto block) {
        if (name == block.name) visit(block);
    };
    [&]<class... Blocks>(type_list<Blocks...>) { (attempt(Blocks{}), ...); }(block_algorithms{});
}

// Evaluates `scan_piece` on pieces of `length` elements, each behind the last output of the one before.
template <class T, class Scan>
void in_pieces(index_type length, const T* x, T* y, std::size_t n, std::optional<T> carry, Scan scan_piece) {
    const auto step = static_cast<std::size_t>(length);
    for (std::size_t first = 0; first < n; first += step) {
        const std::size_t last = std::min(n, first + step);
        const std::vector<T> part = scan_piece(std::vector<T>(x + first, x + last), carry);
        std::copy(part.begin(), part.end(), y + first);
        carry = part.back();
    }
}

// One tile has no carries: what remains is the local scan, whichever the grid algorithm.
template <class Block, class T, class Operator>
void three_pass(const T* x, T* y, std::size_t n, const Operator& op, const std::optional<T>& init) {
    constexpr policy<grid::three_pass, Block> how;
    const auto tile = static_cast<std::size_t>(shape_for<Block, T>.elements());
    std::vector<T> aggregates;
    for (std::size_t first = 0; first < n; first += tile) {
        const std::size_t last = std::min(n, first + tile);
        const std::vector<T> local = reference::policy_order(how, std::vector<T>(x + first, x + last), op);
        std::copy(local.begin(), local.end(), y + first);
        aggregates.push_back(local.back());
    }
    const std::vector<T> earlier = reference::policy_order(how, std::move(aggregates), op);
    for (std::size_t i = 0; i < n; ++i) {
        std::optional<T> carry = init;
        if (i >= tile) {
            const T sum = earlier[i / tile - 1];
            carry = init ? combine(op, *init, sum) : sum;
        }
        if (carry) y[i] = combine(op, *carry, T(y[i]));
    }
}

template <class T, class Operator>
void inclusive(const std::string& tree, const T* x, T* y, std::size_t n, const Operator& op,
               const std::optional<T>& init) {
    if constexpr (exactly_associative<Operator, T>) {
        in_pieces(piece, x, y, n, init, [&](const std::vector<T>& part, const std::optional<T>& carry) {
            return reference::sequential(part, op, carry);
        });
    } else {
        const auto slash = tree.find('/');
        visit_block(std::string_view(tree).substr(slash + 1), [&]<class Block>(Block) {
            if (tree.starts_with(grid::three_pass::name)) {
                three_pass<Block>(x, y, n, op, init);
                return;
            }
            const index_type tile = shape_for<Block, T>.elements();
            in_pieces(piece / tile * tile, x, y, n, init, [&](std::vector<T> part, const std::optional<T>& carry) {
                return reference::policy_order(policy<grid::single_block, Block>{}, std::move(part), op, carry);
            });
        });
    }
}

// More digits than the element type has.
template <class T>
struct wider {
    using type = long double;
};
template <>
struct wider<float> {
    using type = double;
};

// Real numbers, `stride` apart: the parts of complex numbers are summed independently.
template <class T>
std::optional<std::size_t> outside_bound(const T* x, const T* y, std::size_t n, std::size_t stride, scan_kind kind) {
    using wide = typename wider<T>::type;
    const wide unit = std::numeric_limits<T>::epsilon() / wide{2};
    wide sum = 0;
    wide magnitude = 0;
    const std::size_t shift = kind == scan_kind::exclusive ? 1 : 0;
    if (shift == 1 && n > 0 && y[0] != T{0}) return 0;
    for (std::size_t i = 0; i + shift < n; ++i) {
        sum += x[i * stride];
        magnitude += std::abs(wide{x[i * stride]});
        const wide result = y[(i + shift) * stride];
        if (!std::isfinite(sum)) continue; // the bound is for finite sums
        if (!(std::abs(result - sum) <= static_cast<wide>(i + 1) * unit * magnitude)) return i + shift;
    }
    return std::nullopt;
}

} // namespace

bool is_exact(std::string_view op, dtype type) {
    bool exact = false;
    visit_operation(op, type, [&]<class T, class Operator>(std::type_identity<T>, Operator) {
        exact = exactly_associative<Operator, T>;
    });
    return exact;
}

index_type tile_elements(std::string_view policy, dtype type) {
    index_type elements = 1;
    visit_policy(policy, [&]<class Grid, class Block>(polyscan::policy<Grid, Block>) {
        elements = shape_of(Block{}, static_cast<index_type>(size_of(type))).elements();
    });
    return elements;
}

scalar identity_of(std::string_view op, dtype type) {
    scalar bytes(size_of(type));
    visit_operation(op, type, [&]<class T, class Operator>(std::type_identity<T>, Operator) {
        const T value = polyscan::identity_of<T>(Operator{});
        std::memcpy(bytes.data(), &value, sizeof(T));
    });
    return bytes;
}

bool may_be_chunked(std::string_view policy, std::string_view op, dtype type) {
    return !policy.starts_with(grid::three_pass::name) || is_exact(op, type);
}

std::string tree_of(std::string_view policy, std::string_view op, dtype type) {
    if (is_exact(op, type)) return "sequential";
    const std::string_view block = policy.substr(policy.find('/') + 1);
    return std::string(may_be_chunked(policy, op, type) ? "left_fold" : "three_pass") + "/" + std::string(block);
}

void expected_outputs(const std::string& tree, std::string_view op, dtype type, scan_kind kind,
                      const std::optional<scalar>& init, const void* input, void* output, std::size_t n) {
    if (n == 0) return;
    visit_operation(op, type, [&]<class T, class Operator>(std::type_identity<T>, Operator function) {
        const std::optional<T> first = init ? std::optional<T>(value_of<T>(*init)) : std::nullopt;
        T* const y = static_cast<T*>(output);
        inclusive(tree, static_cast<const T*>(input), y, n, function, first);
        if (kind == scan_kind::exclusive) {
            std::copy_backward(y, y + (n - 1), y + n);
            y[0] = first.value();
        }
    });
}

bound_check check_bound(std::string_view op, dtype type, scan_kind kind, const void* input, const void* output,
                        std::size_t n) {
    bound_check result;
    visit_operation(op, type, [&]<class T, class Operator>(std::type_identity<T>, Operator function) {
        const T* const x = static_cast<const T*>(input);
        const T* const y = static_cast<const T*>(output);
        std::vector<T> fold(n);
        in_pieces(piece, x, fold.data(), n, std::optional<T>(),
                  [&](const std::vector<T>& part, const std::optional<T>& carry) {
                      return reference::sequential(part, function, carry);
                  });
        if (kind == scan_kind::exclusive)
            fold = reference::outputs(std::move(fold), kind, std::optional<T>(polyscan::identity_of<T>(function)));
        result.mismatch = first_difference(type, fold.data(), y, n);
        result.same_as_left_fold = !result.mismatch;
        if constexpr (std::is_same_v<Operator, plus> && !exactly_associative<Operator, T>) {
            if (result.same_as_left_fold) return;
            if constexpr (std::is_floating_point_v<T>) {
                result.mismatch = outside_bound(x, y, n, 1, kind);
            } else {
                using real = typename T::value_type;
                const auto* const re = reinterpret_cast<const real*>(x);
                const auto* const out = reinterpret_cast<const real*>(y);
                result.mismatch = outside_bound(re, out, n, 2, kind);
                if (!result.mismatch) result.mismatch = outside_bound(re + 1, out + 1, n, 2, kind);
            }
        }
    });
    return result;
}

} // namespace polyscan::tool
