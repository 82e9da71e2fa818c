// SPDX-License-Identifier: Apache-2.0
/// One server for the whole grid. Tiles publish their aggregates as early as they can; one warp, in the block that drew
/// ticket 0, folds them from left to right and hands out the carries. So every cell has one reader, while in look-back
/// every tile reads the cells of many others.
///
/// The server publishes as far as the aggregates reach, so it makes progress with any number of running blocks, one
/// included: it is a warp of its own beside the warps that scan tiles.
#pragma once

#include <polyscan/cuda/arch.cuh>
#include <polyscan/cuda/grid/tile_pass.cuh>
#include <polyscan/cuda/launch.cuh>
#include <polyscan/cuda/published.cuh>
#include <polyscan/cuda/tickets.cuh>

namespace polyscan::cuda {

/// The cells of a call: aggregate of tile t at t, carry of tile t at tiles + t.
template <class A>
class server_cells {
public:
    __device__ server_cells(const ticket_counter& counter, std::uint32_t epoch, index_type tiles)
        : cells_(counter.cells_memory(), epoch), tiles_(tiles) {}

    __device__ index_type tiles() const { return tiles_; }
    __device__ void publish_aggregate(index_type tile, const A& value) const {
        cells_.publish(tile, tile_state::aggregate, value);
    }
    using image = typename cells<A>::image;
    __device__ image fetch_aggregate(index_type tile) const { return cells_.fetch(tile); }
    __device__ bool decode(const image& seen, slot<A>& value) const {
        return cells_.decode(seen, value) != tile_state::empty;
    }
    __device__ void publish_carry(index_type tile, const A& value) const {
        cells_.publish(tiles_ + tile, tile_state::carry, value);
    }
    __device__ bool carry_is_there(index_type tile, slot<A>& value) const {
        return cells_.read(tiles_ + tile, value) != tile_state::empty;
    }
    /// Brings the cells of the 32 tiles from `first` on into the L2 cache, by one warp.
    __device__ void prefetch(index_type first) const {
        constexpr int line = 128, lines = warp_size * static_cast<int>(cell_bytes(sizeof(A))) / line;
        const int lane = static_cast<int>(threadIdx.x) % warp_size;
        if (first + warp_size > tiles_) return;
        for (int i = lane; i < 2 * lines; i += warp_size)
            arch::prefetch_to_l2(static_cast<const char*>(cells_.address(i < lines ? first : tiles_ + first)) +
                                 i % lines * line);
    }
    __device__ void wait_for_carry(index_type tile, slot<A>& value) const { cells_.wait(tiles_ + tile, value); }

private:
    cells<A> cells_;
    index_type tiles_;
};

/// The server, by one warp: groups of 32 tiles, lane l has the aggregate of the l-th. Aggregates are read some groups
/// ahead, so that a read does not hold the chain up where its answer is known already.
template <class KernelRequest>
class prefix_server {
    using A = typename KernelRequest::accumulator_type;
    static constexpr int ahead = tuning::server_groups_ahead(sizeof(A));

public:
    using group_values = shared_array<A, warp_size>;

    __device__ prefix_server(const KernelRequest& request, const server_cells<A>& cells, group_values& values)
        : request_(request), cells_(cells), values_(values), sum_(request.init) {}

    __device__ void serve() {
        const index_type needed = cells_.tiles() - 1; // nobody needs the aggregate of the last tile
        if (needed <= 0) return;
        const int lane = static_cast<int>(threadIdx.x) % warp_size;
        typename server_cells<A>::image read[ahead];
#pragma unroll
        for (int g = 0; g < ahead; ++g) read[g] = fetch(index_type{g} * warp_size + lane, needed);
        for (index_type first = 0; first < needed; first += index_type{ahead} * warp_size) {
#pragma unroll
            for (int g = 0; g < ahead; ++g) {
                const index_type tile = first + g * warp_size + lane;
                if (tile - lane < needed) serve_group(tile, needed, read[g]);
                read[g] = fetch(tile + ahead * warp_size, needed);
            }
        }
    }

private:
    /// Lanes without a tile read the last one: no branch stands between the read and what follows.
    __device__ auto fetch(index_type tile, index_type needed) const {
        return cells_.fetch_aggregate(tile < needed ? tile : needed - 1);
    }

    /// Folds and publishes the aggregates of one group, as far as they reach, until all are done.
    __device__ void serve_group(index_type tile, index_type needed, const typename server_cells<A>::image& read) {
        const int lane = static_cast<int>(threadIdx.x) % warp_size;
        const int size = __popc(__ballot_sync(whole_warp, tile < needed));
        slot<A> value;
        bool known = cells_.decode(read, value); // the read ahead may have been too early
        int done = 0;
        for (;;) {
            if (known) values_[lane] = value.value;
            const unsigned missing = ~__ballot_sync(whole_warp, known);
            const int reached = missing == 0 ? size : min(size, __ffs(static_cast<int>(missing)) - 1);
            __syncwarp(); // read after write: every lane reads all values
            if (reached > done) {
                const A carry = done == 0 && reached == warp_size && sum_.present ? fold_group() : fold(done, reached);
                if (lane >= done && lane < reached) cells_.publish_carry(tile + 1, carry);
                done = reached;
            }
            __syncwarp(); // write after read: the next values replace these
            if (done == size) return;
            if (!known) known = cells_.decode(fetch(tile, needed), value);
        }
    }

    /// Puts values done, ..., reached - 1 behind the sum; lane l gets the sum that ends with its value.
    __device__ A fold(int done, int reached) {
        const int lane = static_cast<int>(threadIdx.x) % warp_size;
        slot<A> mine;
        for (int k = done; k < reached; ++k) {
            sum_.set(cuda::combine(request_.op, sum_, A(values_[k])));
            if (k == lane) mine.value = sum_.place.value;
        }
        return mine.value;
    }

    /// The same for a whole group with something before it. Reads do not wait for sums: the chain is 32 operations long
    /// and nothing else.
    __device__ A fold_group() {
        const int lane = static_cast<int>(threadIdx.x) % warp_size;
        constexpr int batch = tuning::fold_batch(sizeof(A));
        // Structs that take many registers: one batch at a time.
        constexpr int batches_unrolled = tuning::shuffles_rounds<A> ? warp_size / batch : 1;
        slot<A> mine;
        A sum = sum_.place.value;
#pragma unroll batches_unrolled
        for (int first = 0; first < warp_size; first += batch) {
            slot<A> next[batch];
#pragma unroll
            for (int i = 0; i < batch; ++i) next[i].value = values_[first + i];
#pragma unroll
            for (int i = 0; i < batch; ++i) {
                sum = polyscan::combine(request_.op, sum, next[i].value);
                if (first + i == lane) mine.value = sum;
            }
        }
        sum_.set(sum);
        return mine.value;
    }

    const KernelRequest& request_;
    const server_cells<A>& cells_;
    group_values& values_;
    maybe<A> sum_; ///< of all tiles so far, init included; the same in all lanes
};

/// The carry source of the tiles.
template <class KernelRequest, class Group>
class served_carries {
    using A = typename KernelRequest::accumulator_type;

public:
    __device__ served_carries(const KernelRequest& request, notice_board<A>& board, const server_cells<A>& cells,
                              const ticket_counter& counter)
        : request_(request), board_(board), cells_(cells), counter_(counter) {}

    __device__ void begin(index_type) const {}
    __device__ void publish(index_type tile, const A& aggregate) {
        if (tile + 1 < cells_.tiles()) cells_.publish_aggregate(tile, aggregate);
    }
    __device__ tile_entry<A> entry(index_type tile, const A&) {
        // Write after read: the entry of the tile before was read before the barriers of this tile's scan.
        if (Group::is_leader()) {
            maybe<A> carry;
            if (tile == 0) {
                carry = request_.init;
            } else {
                cells_.wait_for_carry(tile, carry.place);
                carry.present = true;
            }
            board_.put(carry);
            // Not before the carry is there: a block that holds a ticket while it waits would keep the aggregate back
            // that the server needs next. On its way while the tile is stored.
            next_ = counter_.draw().number;
        }
        Group::sync(); // read after write: everybody reads the carry
        return board_.entry();
    }

    /// The number of the next tile, after `entry`.
    __device__ index_type next() {
        if (Group::is_leader()) board_.next = next_;
        Group::sync(); // read after write: everybody reads the ticket. It is overwritten after the next tile's barriers
        return board_.next;
    }

private:
    const KernelRequest& request_;
    notice_board<A>& board_;
    const server_cells<A>& cells_;
    const ticket_counter& counter_;
    std::uint32_t next_ = 0; ///< the leader's
};

template <class Block, class KernelRequest>
struct prefix_server_kernel {
    using A = typename KernelRequest::accumulator_type;
    static constexpr int scan_threads = block_shape<Block, A>::threads;
    static constexpr int threads = scan_threads + warp_size;
    using group = thread_group<scan_threads, threads>;
    using scan_type = tile_scan<Block, KernelRequest, group>;
    static constexpr int blocks_per_multiprocessor =
        block_shape<Block, A>::template blocks_per_multiprocessor<KernelRequest>;
    struct shared {
        typename scan_type::storage scan;
        notice_board<A> board;
        typename prefix_server<KernelRequest>::group_values server;
        ticket first;
    };
};

template <class Block, class KernelRequest>
__global__ void __launch_bounds__(prefix_server_kernel<Block, KernelRequest>::threads,
                                  prefix_server_kernel<Block, KernelRequest>::blocks_per_multiprocessor)
    scan_prefix_server(const __grid_constant__ KernelRequest request, const ticket_counter counter) {
    using kernel = prefix_server_kernel<Block, KernelRequest>;
    using A = typename kernel::A;
    using group = typename kernel::group;
    auto& shared = block_memory<typename kernel::shared>();

    if (group::is_leader()) shared.first = counter.draw();
    __syncthreads(); // read after write: everybody, the server's warp included, reads the first ticket
    const ticket first = shared.first;
    const index_type tiles = ceil_div(request.size(), kernel::scan_type::elements);
    const server_cells<A> cells(counter, first.epoch, tiles);

    if (group::rank() >= group::count) {
        if (first.number == 0) prefix_server<KernelRequest>(request, cells, shared.server).serve();
        return;
    }
    typename kernel::scan_type scan(shared.scan);
    served_carries<KernelRequest, group> source(request, shared.board, cells, counter);
    for (index_type tile = first.number; tile < tiles; tile = source.next()) tile_pass(scan, request, tile, source);
    if (!group::is_leader()) return;
    if (tiles == 0 && first.number == 0) store_empty_total(request);
    counter.retire(first.epoch);
}

template <class Block, class Request>
void run(policy<grid::prefix_server, Block>, const Request& request, launcher& on) {
    using kernel = prefix_server_kernel<Block, kernel_request<Request>>;
    const index_type tiles = ceil_div(request.size, kernel::scan_type::elements);
    on.launch_resident(scan_prefix_server<Block, kernel_request<Request>>, tiles, kernel::threads,
                       shared_bytes<typename kernel::shared>, kernel_request<Request>(request),
                       on.counter<typename Request::accumulator_type>(2 * tiles));
}

} // namespace polyscan::cuda
