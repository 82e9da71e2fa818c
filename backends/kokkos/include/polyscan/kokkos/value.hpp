// SPDX-License-Identifier: Apache-2.0
/// Values in kernels. An accumulator is trivially copyable, and may have neither a default constructor nor an identity
/// nor an assignment: so places for values start empty and are filled by copying, and "no value yet" is said with a
/// flag, never with a made-up value.
#pragma once

#include <new>
#include <optional>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <polyscan/operators.hpp>

namespace polyscan::kokkos {

/// Puts a copy of `value` into the place, whatever was there before.
template <class A>
KOKKOS_INLINE_FUNCTION void put(A* place, const A& value) {
    ::new (static_cast<void*>(place)) A(value);
}

/// A value or nothing; std::optional is for the host only.
template <class A>
class maybe {
    static_assert(std::is_trivially_copyable_v<A>, "values travel between teams as bytes");

public:
    KOKKOS_FUNCTION maybe() {}
    KOKKOS_FUNCTION maybe(const A& value) : place_(value), present_(true) {}
    explicit maybe(const std::optional<A>& value) {
        if (value) set(*value);
    }

    KOKKOS_FUNCTION void set(const A& value) {
        put(&place_.value, value);
        present_ = true;
    }
    KOKKOS_FUNCTION bool present() const { return present_; }
    KOKKOS_FUNCTION const A& operator*() const { return place_.value; }

private:
    union place {
        A value;
        char nothing;
        KOKKOS_FUNCTION place() : nothing() {}
        KOKKOS_FUNCTION explicit place(const A& v) : value(v) {}
    };
    place place_;
    bool present_ = false;
};

/// op(earlier, later), where there may be nothing earlier.
template <class Operator, class A>
KOKKOS_FUNCTION A combine(const Operator& op, const maybe<A>& earlier, const A& later) {
    return earlier.present() ? polyscan::combine(op, *earlier, later) : later;
}

} // namespace polyscan::kokkos
