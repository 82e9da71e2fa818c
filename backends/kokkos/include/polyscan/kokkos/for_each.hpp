// SPDX-License-Identifier: Apache-2.0
/// What the verbs beside scan ask of this backend: a function for every index, and memory.
#pragma once

#include <algorithm>
#include <cstddef>

#include <Kokkos_Core.hpp>

#include <polyscan/kokkos/space.hpp>
#include <polyscan/tile.hpp>

namespace polyscan::kokkos {

/// f(i) for i in [0, n), on the space, asynchronous where that is.
template <class ExecutionSpace, class Function>
void for_each_index(const ExecutionSpace& space, index_type n, const Function& f) {
    if (n == 0) return; // some spaces refuse an empty launch
    translating_errors("parallel_for", [&] {
        Kokkos::parallel_for("polyscan: for each",
                             Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<index_type>>(space, 0, n), f);
    });
}

/// Memory that stays from call to call and only grows, exactly to what is asked for: a sort's is as large as its input.
template <class ExecutionSpace>
class scratch_memory {
    using memory = Kokkos::View<unsigned char*, typename ExecutionSpace::memory_space>;

public:
    /// Room for elements of T, with no contents, until the next request or the end of the backend.
    template <class T>
    struct lent {
        T* place;
        T* data() const { return place; }
    };

    template <class T>
    lent<T> lend(const ExecutionSpace& space, index_type n) {
        const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(T);
        if (memory_.size() < bytes)
            translating_errors("allocation of scratch", [&] {
                space.fence("polyscan: earlier calls use the memory that is about to go");
                memory_ = {};
                memory_ = memory(Kokkos::view_alloc(space, Kokkos::WithoutInitializing, "polyscan scratch"), bytes);
            });
        return {reinterpret_cast<T*>(memory_.data())};
    }

private:
    memory memory_;
};

} // namespace polyscan::kokkos
