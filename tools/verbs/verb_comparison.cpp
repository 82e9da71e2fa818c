// SPDX-License-Identifier: Apache-2.0
#include "verbs/verb_comparison.hpp"

#include "unbound.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <thread>

namespace polyscan::tool {

namespace {

// The host's copy of what a call reads, or wrote.
struct arrays {
    std::vector<std::byte> elements;
    std::vector<std::int32_t> keys;
    std::vector<std::uint8_t> flags;
    index_type count = 0;
};

// Memory of a backend for a call; `backend` null: the host's.
struct place {
    any_backend* backend = nullptr;
    verb_call call;
    std::vector<std::shared_ptr<void>> memory;
    std::optional<double> copy_seconds;
};

bool writes_count(verb what) { return what == verb::copy_if || what == verb::reduce_by_key; }
bool restarts_at_keys(verb what) {
    return what == verb::segmented_scan || what == verb::scan_by_key || what == verb::reduce_by_key;
}

class comparing_verb {
public:
    comparing_verb(const std::vector<chosen_backend>& backends, const comparison_job& job,
                   const std::function<void(std::string_view, double)>& progress)
        : backends_(backends), job_(job), progress_(progress), what_(parse_verb("--verb", job.verb)),
          width_(size_of(job.type)), n_(job.size), runners_(make_verb_runners("host", job.threads)) {}

    comparison run() {
        make_keys();
        host_ = make_place(nullptr);
        runners_.front()->run(host_.call); // the sequential one
        expected_ = fetch(host_);
        list_rows();
        for (std::size_t i = 0; i < works_.size(); ++i) {
            progress_("checking", share_of_checking * static_cast<double>(i + 1) / static_cast<double>(works_.size()));
            check(i);
        }
        time_all();
        return std::move(result_);
    }

private:
    struct work {
        place* where;
        verb_runner* runner; ///< null: the copy
    };

    // Runs of 32 elements on average.
    void make_keys() {
        keys_.resize(n_);
        flags_.resize(n_);
        std::uint64_t state = 88172645463325252u;
        std::int32_t key = 0;
        for (std::size_t i = 0; i < n_; ++i) {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17; // xorshift
            flags_[i] = i == 0 || state % 32 == 0;
            if (i > 0 && flags_[i] != 0) ++key;
            keys_[i] = key;
        }
    }

    place make_place(any_backend* backend) {
        place here;
        here.backend = backend;
        const auto allocate = [&](std::size_t bytes, const void* content) -> void* {
            bytes = std::max<std::size_t>(bytes, 1);
            if (backend != nullptr) {
                here.memory.push_back(backend->allocate(bytes));
                if (content != nullptr) backend->copy_to_device(here.memory.back().get(), content, bytes);
            } else {
                auto owner = std::make_shared<buffer>(bytes);
                if (content != nullptr) std::memcpy(owner->data(), content, bytes);
                here.memory.push_back({owner, owner->data()});
            }
            return here.memory.back().get();
        };
        here.call.what = what_;
        here.call.type = job_.type;
        here.call.size = static_cast<index_type>(n_);
        here.call.in = allocate(n_ * width_, job_.input->data());
        here.call.out = allocate(out_bytes(), nullptr);
        here.call.count = static_cast<index_type*>(allocate(sizeof(index_type), nullptr));
        if (restarts_at_keys(what_)) {
            here.call.keys = static_cast<const std::int32_t*>(allocate(n_ * sizeof(std::int32_t), keys_.data()));
            here.call.flags = static_cast<const std::uint8_t*>(allocate(n_, flags_.data()));
            here.call.keys_out = static_cast<std::int32_t*>(allocate(n_ * sizeof(std::int32_t), nullptr));
        }
        return here;
    }

    std::size_t out_bytes() const { return std::max(n_ * width_, bins * sizeof(std::int32_t)); }

    void to_host(const place& from, void* host, const void* device, std::size_t bytes) const {
        if (from.backend != nullptr)
            from.backend->copy_to_host(host, device, bytes);
        else
            std::memcpy(host, device, bytes);
    }

    // What a call has written, no more.
    arrays fetch(const place& from) const {
        arrays found;
        std::size_t elements = n_;
        if (writes_count(what_)) {
            to_host(from, &found.count, from.call.count, sizeof(index_type));
            if (found.count < 0 || static_cast<std::size_t>(found.count) > n_) return found; // a mismatch
            elements = static_cast<std::size_t>(found.count);
        } else if (what_ == verb::reduce) {
            elements = 1;
        }
        found.elements.resize(what_ == verb::histogram ? bins * sizeof(std::int32_t) : elements * width_);
        to_host(from, found.elements.data(), from.call.out, found.elements.size());
        if (what_ == verb::reduce_by_key) {
            found.keys.resize(elements);
            to_host(from, found.keys.data(), from.call.keys_out, elements * sizeof(std::int32_t));
        }
        return found;
    }

    // What must be moved at least: inputs read once, outputs written once.
    double bytes_moved() const {
        const auto n = static_cast<double>(n_), w = static_cast<double>(width_);
        const auto outputs = static_cast<double>(expected_.count);
        switch (what_) {
        case verb::reduce:
        case verb::histogram: return n * w;
        case verb::copy_if: return (n + outputs) * w;
        case verb::segmented_scan: return n * (2 * w + 1);
        case verb::scan_by_key: return n * (2 * w + 4);
        case verb::reduce_by_key: return (n + outputs) * (w + 4);
        case verb::radix_sort: return 2 * n * w;
        }
        return 0;
    }

    void add(comparison_row row, work what) {
        row.bytes = bytes_moved();
        result_.rows.push_back(std::move(row));
        works_.push_back(what);
    }

    void list_rows() {
        places_.reserve(backends_.size()); // rows point into it
        for (const chosen_backend& candidate : backends_) {
            if (!candidate.backend) {
                add({candidate.name, default_policy::name()}, {nullptr, nullptr});
                result_.rows.back().verdict = "skipped";
                result_.rows.back().reason = candidate.reason;
                continue;
            }
            place& here = places_.emplace_back(make_place(candidate.backend.get()));
            comparison_row copy{"copy", candidate.name, true};
            copy.threads = candidate.backend->threads();
            add(copy, {&here, nullptr});
            result_.rows.back().bytes = 2 * static_cast<double>(n_ * width_);
            for (auto& runner : make_verb_runners(candidate.name, job_.threads)) {
                if (!runner->is_peer() || job_.peers) add_runner(here, *runner);
                runners_.push_back(std::move(runner));
            }
        }
        for (const auto& runner : runners_)
            if (runner->backend() == "host" && (job_.peers || runner == runners_.front())) add_runner(host_, *runner);
    }

    void add_runner(place& where, verb_runner& runner) {
        if (!runner.has(what_)) return;
        comparison_row row{std::string(runner.backend()), std::string(runner.name()), runner.is_peer()};
        row.threads = where.backend != nullptr            ? where.backend->threads()
                      : &runner == runners_.front().get() ? 1
                      : job_.threads > 0                  ? job_.threads
                                                          : static_cast<int>(std::thread::hardware_concurrency());
        add(std::move(row), {&where, &runner});
    }

    void run_once(const work& what) {
        if (what.runner != nullptr)
            what.runner->run(what.where->call);
        else
            what.where->backend->copy(what.where->call.out, what.where->call.in, n_ * width_);
    }

    double run_timed(std::size_t i) {
        const work& what = works_[i];
        std::optional<unbound> wide;
        if (what.runner != nullptr && what.runner->is_peer()) wide.emplace();
        if (what.where->backend != nullptr) return what.where->backend->elapsed([&] { run_once(what); });
        const auto start = std::chrono::steady_clock::now();
        run_once(what);
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }

    // So that outputs left from another row are not taken for results.
    void spoil(const place& where) const {
        const std::vector<std::byte> garbage(out_bytes(), std::byte{0xa5});
        const auto fill = [&](void* memory, std::size_t bytes) {
            if (memory == nullptr) return;
            if (where.backend != nullptr)
                where.backend->copy_to_device(memory, garbage.data(), bytes);
            else
                std::memcpy(memory, garbage.data(), bytes);
        };
        fill(where.call.out, out_bytes());
        fill(where.call.keys_out, n_ * sizeof(std::int32_t));
        fill(where.call.count, sizeof(index_type));
    }

    void check(std::size_t i) {
        comparison_row& row = result_.rows[i];
        if (row.verdict == "skipped") return;
        const work& what = works_[i];
        try {
            spoil(*what.where);
            std::optional<unbound> wide;
            if (what.runner != nullptr && what.runner->is_peer()) wide.emplace();
            run_once(what);
            if (what.where->backend != nullptr) what.where->backend->synchronize();
            if (what.runner == nullptr) {
                std::vector<std::byte> copied(n_ * width_);
                to_host(*what.where, copied.data(), what.where->call.out, copied.size());
                const auto at = first_difference(job_.type, copied.data(), job_.input->data(), n_);
                judge_row(row, at, "exact");
                return;
            }
            judge_result(row, *what.runner, fetch(*what.where));
        } catch (const backend_error& error) {
            fail_row(result_, row, error.what());
        }
    }

    void judge_result(comparison_row& row, const verb_runner& runner, arrays found) {
        if (found.elements.size() != expected_.elements.size() || found.count != expected_.count) {
            judge_row(row, static_cast<std::size_t>(std::min(found.count, expected_.count)), "");
            return;
        }
        const auto keys = std::mismatch(found.keys.begin(), found.keys.end(), expected_.keys.begin());
        if (keys.first != found.keys.end()) {
            judge_row(row, static_cast<std::size_t>(keys.first - found.keys.begin()), "");
            return;
        }
        const bool same = found.elements == expected_.elements;
        if (same || !is_rounded()) {
            const auto type = what_ == verb::histogram ? dtype::int32 : job_.type;
            judge_row(row,
                      first_difference(type, found.elements.data(), expected_.elements.data(),
                                       found.elements.size() / size_of(type)),
                      "exact");
        } else {
            judge_row(row, outside_bound(found), "within bound");
        }
        // The promise: the bits of one backend's sums are those of every other's.
        if (runner.is_peer() || row.matches != true) return;
        if (first_outputs_.empty()) {
            first_outputs_ = std::move(found.elements);
        } else if (is_rounded()) {
            judge_row(row,
                      first_difference(job_.type, found.elements.data(), first_outputs_.data(),
                                       found.elements.size() / width_),
                      "same bits");
        }
    }

    // Sums of floating-point numbers depend on the order; all else does not.
    bool is_rounded() const {
        return job_.type == dtype::float32 && (what_ == verb::reduce || restarts_at_keys(what_));
    }

    // Any order of summation stays within this bound (oracle.hpp, check_bound). Inputs are not negative.
    std::optional<std::size_t> outside_bound(const arrays& found) const {
        const auto* const x = reinterpret_cast<const float*>(job_.input->data());
        const auto* const y = reinterpret_cast<const float*>(found.elements.data());
        constexpr double unit = std::numeric_limits<float>::epsilon() / 2.0;
        double sum = 0, additions = 0;
        std::size_t output = 0;
        for (std::size_t i = 0; i < n_; ++i) {
            if (restarts_at_keys(what_) && flags_[i] != 0) sum = additions = 0;
            sum += static_cast<double>(x[i]);
            ++additions;
            const bool last_of_run = i + 1 == n_ || (what_ == verb::reduce_by_key && flags_[i + 1] != 0);
            if ((what_ == verb::reduce || what_ == verb::reduce_by_key) && !last_of_run) continue;
            if (!(std::abs(static_cast<double>(y[output]) - sum) <= additions * unit * sum)) return output;
            ++output;
        }
        return std::nullopt;
    }

    void time_all() {
        time_rows(
            result_, job_.repetitions, [this](std::size_t i) { return run_timed(i); },
            [this](std::size_t i) {
                const verb_runner* runner = works_[i].runner;
                return runner != nullptr && (runner == runners_.front().get() || runner->inherits_affinity());
            },
            progress_);
        for (std::size_t i = 0; i < works_.size(); ++i)
            if (works_[i].runner == nullptr && result_.rows[i].median > 0)
                works_[i].where->copy_seconds = result_.rows[i].median;
        add_ratios();
    }

    void add_ratios() {
        double sequential = 0;
        for (std::size_t i = 0; i < works_.size(); ++i)
            if (works_[i].runner == runners_.front().get()) sequential = result_.rows[i].median;
        for (const place& here : places_)
            if (!host_.copy_seconds && here.backend->threads() > 0) host_.copy_seconds = here.copy_seconds;
        for (std::size_t i = 0; i < works_.size(); ++i) {
            comparison_row& row = result_.rows[i];
            if (row.median <= 0) continue;
            // A copy of as many bytes: the measured one, longer or shorter.
            if (const auto copy = works_[i].where->copy_seconds)
                row.copy_ratio = *copy * row.bytes / (2 * static_cast<double>(n_ * width_)) / row.median;
            if (sequential > 0 && works_[i].runner != nullptr) row.speed_up = sequential / row.median;
        }
    }

    const std::vector<chosen_backend>& backends_;
    const comparison_job& job_;
    const std::function<void(std::string_view, double)>& progress_;
    verb what_;
    std::size_t width_;
    std::size_t n_;
    std::vector<std::unique_ptr<verb_runner>> runners_;
    std::vector<std::int32_t> keys_;
    std::vector<std::uint8_t> flags_;
    place host_;
    std::vector<place> places_;
    arrays expected_;
    std::vector<std::byte> first_outputs_;
    std::vector<work> works_;
    comparison result_;
};

} // namespace

comparison compare_verb(const std::vector<chosen_backend>& backends, const comparison_job& job,
                        const std::function<void(std::string_view, double)>& progress) {
    return comparing_verb(backends, job, progress).run();
}

} // namespace polyscan::tool
