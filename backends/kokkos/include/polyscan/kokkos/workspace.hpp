// SPDX-License-Identifier: Apache-2.0
/// The memory that teams meet in. It belongs to one backend object, grows when a call needs more, and is never cleared
/// between calls: statuses carry the call's epoch, counters go on from where the last call left them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <polyscan/kokkos/for_each.hpp>
#include <polyscan/kokkos/space.hpp>
#include <polyscan/kokkos/tiles.hpp>
#include <polyscan/kokkos/tuning.hpp>

namespace polyscan::kokkos {

template <class ExecutionSpace>
class workspace {
public:
    explicit workspace(const ExecutionSpace& space) : space_(space) {}

    /// The instance that all of it is used on.
    const ExecutionSpace& space() const { return space_; }

    /// Starts a call: a new epoch.
    void begin_call() {
        // A call that threw half-way leaves counters behind that nobody knows.
        if (busy_ || ++epoch_ == tile_status::epoch_limit) clear();
        busy_ = true;
        reserve(counters_, counters);
    }
    /// The call has been launched. Its teams will have taken `tickets` tickets, and its server will have served
    /// `served` tiles.
    void end_call(index_type tickets, index_type served) {
        tickets_ += static_cast<std::uint64_t>(tickets);
        served_ += static_cast<std::uint64_t>(served);
        busy_ = false;
    }

    ticket_counter tickets() const { return {counters_.data() + ticket_place, tickets_}; }
    std::uint64_t* server_lock() const { return counters_.data() + lock_place; }
    std::uint64_t* server_count() const { return counters_.data() + served_place; }
    std::uint64_t served() const { return served_; }

    /// Descriptors of `tiles` tiles. Statuses, status words and values have memory of their own each: a value that an
    /// earlier call left must not be taken for a status of this epoch.
    template <class A>
    tile_descriptors<A> descriptors(index_type tiles) {
        const auto count = static_cast<std::size_t>(tiles);
        if constexpr (fits_status_word<A>) {
            reserve(words_, count);
            return {words_.data(), epoch_};
        } else {
            reserve(statuses_, count);
            A* const aggregates = values<A>(2 * tiles);
            return {statuses_.data(), aggregates, aggregates + tiles, epoch_};
        }
    }

    /// Room for `count` values, with no contents. Valid until the next request for values.
    template <class A>
    A* values(index_type count) {
        static_assert(alignof(A) <= alignment, "accumulators of this alignment do not fit Kokkos' memory");
        reserve(values_, static_cast<std::size_t>(count) * sizeof(A));
        return reinterpret_cast<A*>(values_.data());
    }

    /// What the verbs beside scan work in: scans leave it alone.
    scratch_memory<ExecutionSpace>& scratch() { return scratch_; }

private:
    template <class T>
    using memory = Kokkos::View<T*, typename ExecutionSpace::memory_space>;
    static constexpr std::size_t alignment = 64; // of Kokkos' allocations, on every memory space

    // Each on lines of its own: tickets are drawn all the time.
    static constexpr std::size_t separate = 128 / sizeof(std::uint64_t);
    static constexpr std::size_t ticket_place = 0;
    static constexpr std::size_t lock_place = separate;
    static constexpr std::size_t served_place = 2 * separate;
    static constexpr std::size_t counters = 3 * separate;

    template <class T>
    void reserve(memory<T>& which, std::size_t count) {
        if (which.size() >= count) return;
        translating_errors("allocation of workspace", [&] {
            space_.fence("polyscan: earlier scans use the memory that is about to go");
            which = {};
            which = memory<T>(Kokkos::view_alloc(space_, Kokkos::WithoutInitializing, "polyscan workspace"),
                              std::max(count + count / 2, tuning::least_tiles));
            Kokkos::deep_copy(space_, which, T{0});
        });
    }

    // Back to the state of new memory. Asynchronous, in order with the calls before and after.
    void clear() {
        if (counters_.size() > 0) Kokkos::deep_copy(space_, counters_, std::uint64_t{0});
        if (words_.size() > 0) Kokkos::deep_copy(space_, words_, std::uint64_t{0});
        if (statuses_.size() > 0) Kokkos::deep_copy(space_, statuses_, std::uint32_t{0});
        epoch_ = 1;
        tickets_ = 0;
        served_ = 0;
    }

    ExecutionSpace space_;
    memory<std::uint64_t> counters_;
    memory<std::uint64_t> words_;
    memory<std::uint32_t> statuses_;
    memory<unsigned char> values_;
    scratch_memory<ExecutionSpace> scratch_;
    std::uint32_t epoch_ = 0;
    std::uint64_t tickets_ = 0;
    std::uint64_t served_ = 0;
    bool busy_ = false;
};

} // namespace polyscan::kokkos
