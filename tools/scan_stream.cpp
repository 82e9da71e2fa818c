// SPDX-License-Identifier: Apache-2.0
#include "scan_stream.hpp"

#include "hand_over.hpp"
#include "oracle.hpp"
#include "program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

namespace polyscan::tool {

namespace {

// One being read, one scanned, one written; where the backend has memory of its own also one on the way to it and one
// on the way back.
constexpr int chunks_on_host = 3;
constexpr int chunks_with_device = 5;

struct chunk {
    buffer data;                  ///< the elements as they are now
    buffer spare;                 ///< where a conversion writes; empty if there is none
    std::shared_ptr<void> device; ///< the backend's memory for the elements; null if it reaches the host's
    std::size_t elements = 0;
    std::uint64_t first = 0; ///< position in the whole array
};

// For backends whose copies and scans take turns.
class taking_turns final : public copier {
public:
    taking_turns(any_backend& backend, std::mutex& turn) : backend_(backend), turn_(turn) {}
    void copy_to_device(void* device, const void* host, std::size_t bytes) override {
        const std::lock_guard lock(turn_);
        backend_.copy_to_device(device, host, bytes);
    }
    void copy_to_host(void* host, const void* device, std::size_t bytes) override {
        const std::lock_guard lock(turn_);
        backend_.copy_to_host(host, device, bytes);
    }

private:
    any_backend& backend_;
    std::mutex& turn_;
};

// The first failure of any of the threads; the others stop soon after.
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
        : backend_(backend), job_(job), reader_(reader), writer_(writer), on_host_(backend.reaches_host_memory()) {
        const std::size_t widest = std::max({size_of(reader.dtype()), size_of(job.accumulator), size_of(job.output)});
        std::size_t elements = job.chunk_elements;
        if (const auto count = reader.count())
            elements = static_cast<std::size_t>(std::min<std::uint64_t>(elements, *count));
        const bool converts = reader.dtype() != job.accumulator || job.accumulator != job.output;
        const auto host_memory = [&] { return buffer(backend.allocate_host(elements * widest), elements * widest); };
        for (int i = 0; i < (on_host_ ? chunks_on_host : chunks_with_device); ++i) {
            chunk fresh;
            fresh.data = host_memory();
            if (converts) fresh.spare = host_memory();
            if (!on_host_)
                fresh.device = backend.allocate(std::max<std::size_t>(1, elements) * size_of(job.accumulator));
            free_.put(std::move(fresh));
        }
        if (!on_host_) {
            upload_ = make_copier();
            download_ = make_copier();
        }
        total_ = backend.allocate(size_of(job.accumulator));
        capacity_ = elements;
    }

    void run(const std::function<void(std::uint64_t)>& progress) {
        std::vector<std::thread> stages;
        const auto start = [&](auto stage) {
            try {
                stages.emplace_back([this, stage] { guarded(stage); });
            } catch (const std::system_error& error) {
                throw std::runtime_error(fmt::format("no thread can be started: {}", error.code().message()));
            }
        };
        guarded([&] { // starting a thread may fail, and those that run have to end all the same
            start([this] { read_all(); });
            if (!on_host_) {
                start([this] { upload_all(); });
                start([this] { download_all(); });
            }
            start([this, &progress] { write_all(progress); });
            scan_all();
        });
        for (std::thread& stage : stages) stage.join();
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
            uploaded_.abandon();
            computed_.abandon();
            scanned_.abandon();
        }
    }

    std::unique_ptr<copier> make_copier() {
        auto own = backend_.make_copier();
        return own ? std::move(own) : std::make_unique<taking_turns>(backend_, turn_);
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

    void upload_all() {
        while (auto item = read_.take()) {
            upload_->copy_to_device(item->device.get(), item->data.data(), item->elements * size_of(job_.accumulator));
            uploaded_.put(std::move(*item));
        }
        uploaded_.close();
    }

    void scan_all() {
        const std::size_t width = size_of(job_.accumulator);
        hand_over<chunk>& from = on_host_ ? read_ : uploaded_;
        hand_over<chunk>& to = on_host_ ? scanned_ : computed_;
        scalar carry = job_.init.value_or(scalar{}); // empty: nothing comes before
        while (auto item = from.take()) {
            if (item->first > 0 && !may_be_chunked(job_.policy, job_.op, job_.accumulator))
                throw usage_error("--policy", fmt::format("{} groups the whole array: {} on {} needs all of it in one "
                                                          "chunk (--chunk), or another policy",
                                                          job_.policy, job_.op, name(job_.accumulator)));
            scan_call call;
            call.type = job_.accumulator;
            call.op = job_.op;
            call.policy = job_.policy;
            call.kind = job_.kind;
            call.input = call.output = on_host_ ? item->data.data() : item->device.get();
            call.size = static_cast<index_type>(item->elements);
            call.init = carry.empty() ? nullptr : carry.data();
            call.total = total_.get();
            {
                const std::lock_guard lock(turn_);
                backend_.scan(call);
                backend_.synchronize();
                carry.resize(width);
                backend_.copy_to_host(carry.data(), total_.get(), width);
            }
            to.put(std::move(*item));
        }
        to.close();
    }

    void download_all() {
        while (auto item = computed_.take()) {
            download_->copy_to_host(item->data.data(), item->device.get(), item->elements * size_of(job_.accumulator));
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
    bool on_host_;
    std::size_t capacity_ = 0;
    std::shared_ptr<void> total_;
    std::mutex turn_;
    std::unique_ptr<copier> upload_;
    std::unique_ptr<copier> download_;
    hand_over<chunk> free_;
    hand_over<chunk> read_;
    hand_over<chunk> uploaded_;
    hand_over<chunk> computed_;
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
