// SPDX-License-Identifier: Apache-2.0
#include "scan_stream.hpp"

#include "hand_over.hpp"
#include "oracle.hpp"
#include "program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>

namespace polyscan::tool {

namespace {

constexpr int chunks_under_way = 3; // one being read, one scanned, one written

struct chunk {
    buffer data;  ///< the elements as they are now
    buffer spare; ///< where a conversion writes; empty if there is none
    std::size_t elements = 0;
    std::uint64_t first = 0; ///< position in the whole array
};

// The first failure of any of the three threads; the others stop soon after.
class failure {
public:
    void keep_current() {
        const std::lock_guard lock(mutex_);
        if (!error_) error_ = std::current_exception();
    }
    void rethrow() const {
        if (error_) std::rethrow_exception(error_);
    }

private:
    std::mutex mutex_;
    std::exception_ptr error_;
};

class pipeline {
public:
    pipeline(any_backend& backend, const scan_job& job, array_reader& reader, array_writer& writer)
        : backend_(backend), job_(job), reader_(reader), writer_(writer) {
        const std::size_t widest = std::max({size_of(reader.dtype()), size_of(job.accumulator), size_of(job.output)});
        std::size_t elements = job.chunk_elements;
        if (const auto count = reader.count())
            elements = static_cast<std::size_t>(std::min<std::uint64_t>(elements, *count));
        const bool converts = reader.dtype() != job.accumulator || job.accumulator != job.output;
        for (int i = 0; i < chunks_under_way; ++i) {
            chunk fresh;
            fresh.data = buffer(elements * widest);
            if (converts) fresh.spare = buffer(elements * widest);
            free_.put(std::move(fresh));
        }
        device_ = backend.allocate(std::max<std::size_t>(1, elements) * size_of(job.accumulator));
        total_ = backend.allocate(size_of(job.accumulator));
        capacity_ = elements;
    }

    void run(const std::function<void(std::uint64_t)>& progress) {
        std::thread reading([this] { guarded([this] { read_all(); }); });
        std::thread writing([this, &progress] { guarded([this, &progress] { write_all(progress); }); });
        guarded([this] { scan_all(); });
        reading.join();
        writing.join();
        failure_.rethrow();
    }

private:
    template <class Work>
    void guarded(Work work) {
        try {
            work();
        } catch (...) {
            failure_.keep_current();
            free_.abandon();
            read_.abandon();
            scanned_.abandon();
        }
    }

    void read_all() {
        std::uint64_t position = 0;
        while (capacity_ > 0) {
            auto item = free_.take();
            if (!item) return;
            const std::size_t width = size_of(reader_.dtype());
            const std::size_t bytes = reader_.read({item->data.data(), capacity_ * width});
            if (bytes == 0) break;
            item->elements = bytes / width;
            item->first = position;
            position += item->elements;
            change_type(*item, reader_.dtype(), job_.accumulator);
            read_.put(std::move(*item));
        }
        read_.close();
    }

    void scan_all() {
        const std::size_t width = size_of(job_.accumulator);
        scalar carry = job_.init.value_or(scalar{}); // empty: nothing comes before
        while (auto item = read_.take()) {
            if (item->first > 0 && !may_be_chunked(job_.policy, job_.op, job_.accumulator))
                throw usage_error("--policy", fmt::format("{} groups the whole array: {} on {} needs all of it in one "
                                                          "chunk (--chunk), or another policy",
                                                          job_.policy, job_.op, name(job_.accumulator)));
            scan_call call;
            call.type = job_.accumulator;
            call.op = job_.op;
            call.policy = job_.policy;
            call.kind = job_.kind;
            call.input = call.output = device_.get();
            call.size = static_cast<index_type>(item->elements);
            call.init = carry.empty() ? nullptr : carry.data();
            call.total = total_.get();
            backend_.copy_to_device(device_.get(), item->data.data(), item->elements * width);
            backend_.scan(call);
            backend_.synchronize();
            backend_.copy_to_host(item->data.data(), device_.get(), item->elements * width);
            carry.resize(width);
            backend_.copy_to_host(carry.data(), total_.get(), width);
            scanned_.put(std::move(*item));
        }
        scanned_.close();
    }

    void write_all(const std::function<void(std::uint64_t)>& progress) {
        while (auto item = scanned_.take()) {
            change_type(*item, job_.accumulator, job_.output);
            writer_.write({item->data.data(), item->elements * size_of(job_.output)});
            progress(item->first + item->elements);
            free_.put(std::move(*item));
        }
    }

    void change_type(chunk& item, dtype from, dtype to) const {
        if (from == to) return;
        if (const auto problem = convert(from, item.data.data(), to, item.spare.data(), item.elements))
            throw bad_input(reader_.label(),
                            fmt::format("element {} of the {} is {}, which {} cannot hold", item.first + problem->index,
                                        to == job_.accumulator ? "input" : "result", problem->value_class, name(to)));
        std::swap(item.data, item.spare);
    }

    any_backend& backend_;
    const scan_job& job_;
    array_reader& reader_;
    array_writer& writer_;
    std::size_t capacity_ = 0;
    std::shared_ptr<void> device_;
    std::shared_ptr<void> total_;
    hand_over<chunk> free_;
    hand_over<chunk> read_;
    hand_over<chunk> scanned_;
    failure failure_;
};

} // namespace

void run_scan(any_backend& backend, const scan_job& job, array_reader& reader, array_writer& writer,
              const std::function<void(std::uint64_t)>& progress) {
    const auto count = reader.count();
    if (count && *count > job.chunk_elements && !may_be_chunked(job.policy, job.op, job.accumulator)) {
        const auto tile = static_cast<std::uint64_t>(tile_elements(job.policy, job.accumulator));
        const std::uint64_t whole_tiles = (*count / tile + 1) * tile;
        const std::size_t widest = std::max({size_of(reader.dtype()), size_of(job.accumulator), size_of(job.output)});
        throw usage_error("--policy", fmt::format("{} groups the whole array: {} on {} needs all of it in one chunk "
                                                  "(--chunk {}), or another policy",
                                                  job.policy, job.op, name(job.accumulator), whole_tiles * widest));
    }
    pipeline(backend, job, reader, writer).run(progress);
}

} // namespace polyscan::tool
