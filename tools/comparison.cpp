// SPDX-License-Identifier: Apache-2.0
#include "comparison.hpp"

#include "measure.hpp"
#include "oracle.hpp"
#include "peers/peer.hpp"
#include "unbound.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

namespace polyscan::tool {

namespace {

constexpr double least_seconds = 0.005; // per repetition
constexpr std::size_t piece = std::size_t{1} << 20;
// After a parallel region the OpenMP runtime's workers spin for some milliseconds.
constexpr std::chrono::milliseconds until_workers_sleep{5};

// A backend with its copy of the input.
struct place {
    any_backend* backend = nullptr;
    std::shared_ptr<void> input;
    std::shared_ptr<void> output;
    std::optional<double> copy_seconds;
};

class comparing {
public:
    comparing(const std::vector<chosen_backend>& backends, const comparison_job& job,
              const std::function<void(std::string_view, double)>& progress)
        : backends_(backends), job_(job), progress_(progress), bytes_(job.size * size_of(job.type)),
          host_output_(bytes_) {
        if (job.kind == scan_kind::exclusive) init_ = identity_of(job.op, job.type);
    }

    comparison run() {
        list_rows();
        check_all();
        time_all();
        return std::move(result_);
    }

private:
    // What a row runs; parallel to the rows of the result.
    struct work {
        place* where = nullptr; ///< null: the host's memory
        peer* other = nullptr;  ///< null: a policy, or the copy
        scan_call call;
        bool is_copy = false;
    };

    scan_call call_on(const void* input, void* output, const std::string& policy) const {
        scan_call call;
        call.type = job_.type;
        call.op = job_.op;
        call.policy = policy;
        call.kind = job_.kind;
        call.input = input;
        call.output = output;
        call.size = static_cast<index_type>(job_.size);
        call.init = init_ ? init_->data() : nullptr;
        return call;
    }

    void add(comparison_row row, work what) {
        result_.rows.push_back(std::move(row));
        works_.push_back(std::move(what));
    }

    void skip(std::size_t i, std::string reason) {
        result_.rows[i].verdict = "skipped";
        result_.rows[i].reason = std::move(reason);
    }

    void list_rows() {
        places_.reserve(backends_.size()); // rows point into it
        for (const chosen_backend& candidate : backends_) {
            if (!candidate.backend) {
                for (const std::string& policy : job_.policies) {
                    add({candidate.name, policy, false, 0}, {});
                    skip(result_.rows.size() - 1, candidate.reason);
                }
                continue;
            }
            any_backend& backend = *candidate.backend;
            place& here = places_.emplace_back();
            here.backend = &backend;
            here.input = backend.allocate(bytes_);
            here.output = backend.allocate(bytes_);
            backend.copy_to_device(here.input.get(), job_.input->data(), bytes_);
            const int threads = backend.threads();
            work copying{&here, nullptr, call_on(here.input.get(), here.output.get(), {}), true};
            add({"copy", candidate.name, true, threads}, copying);
            for (const std::string& policy : job_.policies) {
                work scanning{&here, nullptr, call_on(here.input.get(), here.output.get(), policy), false};
                add({candidate.name, policy, false, threads}, scanning);
                if (const auto reason = backend.unsupported(scanning.call)) skip(result_.rows.size() - 1, *reason);
            }
        }
        add_peer(sequential_peer(), 1);
        if (!job_.peers) return;
        for (const auto& other : registered_peers()) add_peer(*other, job_.threads);
    }

    void add_peer(peer& other, int threads) {
        place* where = nullptr;
        const std::string home(other.backend());
        if (home != "host") {
            const auto found =
                std::find_if(places_.begin(), places_.end(), [&](const place& p) { return p.backend->name() == home; });
            if (found == places_.end()) return; // its backend is not in this run
            where = &*found;
        }
        work what{where, &other, {}, false};
        what.call = where ? call_on(where->input.get(), where->output.get(), {})
                          : call_on(job_.input->data(), host_output_.data(), {});
        what.call.init = nullptr;
        const int shown = where         ? where->backend->threads()
                          : threads > 0 ? threads
                                        : static_cast<int>(std::thread::hardware_concurrency());
        add({home, std::string(other.name()), true, shown}, what);
        if (const auto reason = other.unsupported(what.call))
            skip(result_.rows.size() - 1, *reason);
        else if (&other != &sequential_peer() && job_.op != "plus" && !is_exact(job_.op, job_.type))
            skip(result_.rows.size() - 1,
                 fmt::format("{} on {} has no error bound to hold it to", job_.op, name(job_.type)));
    }

    void run_once(std::size_t i) {
        work& what = works_[i];
        if (what.other) {
            what.other->run(what.call, job_.threads);
        } else if (what.is_copy) {
            what.where->backend->copy(what.call.output, what.call.input, bytes_);
        } else {
            what.where->backend->scan(what.call);
        }
    }

    double run_timed(std::size_t i) {
        const work& what = works_[i];
        // The mask of the thread changes outside the measured time.
        std::optional<unbound> wide;
        if (what.other) wide.emplace();
        if (what.where) return what.where->backend->elapsed([&] { run_once(i); });
        using clock = std::chrono::steady_clock;
        const auto start = clock::now();
        what.other->run(what.call, job_.threads);
        return std::chrono::duration<double>(clock::now() - start).count();
    }

    // So that outputs left from another row, or never written, are not taken for results.
    void spoil_output(const work& what) {
        const buffer garbage = [] {
            buffer fill(piece);
            std::memset(fill.data(), 0xa5, piece);
            return fill;
        }();
        for (std::size_t first = 0; first < bytes_; first += piece) {
            const std::size_t length = std::min(piece, bytes_ - first);
            auto* const target = static_cast<std::byte*>(what.call.output) + first;
            if (what.where)
                what.where->backend->copy_to_device(target, garbage.data(), length);
            else
                std::memcpy(target, garbage.data(), length);
        }
    }

    std::optional<std::size_t> difference(const work& what, const void* expected) {
        buffer part(piece);
        const std::size_t width = size_of(job_.type);
        for (std::size_t first = 0; first < bytes_; first += piece) {
            const std::size_t length = std::min(piece, bytes_ - first);
            what.where->backend->copy_to_host(part.data(), static_cast<const std::byte*>(what.call.output) + first,
                                              length);
            const auto* const right = static_cast<const std::byte*>(expected) + first;
            if (const auto at = first_difference(job_.type, part.data(), right, length / width))
                return first / width + *at;
        }
        return std::nullopt;
    }

    void check(std::size_t i, const void* expected) {
        work& what = works_[i];
        comparison_row& row = result_.rows[i];
        try {
            spoil_output(what);
            std::optional<unbound> wide;
            if (what.other) wide.emplace();
            run_once(i);
            if (what.where) what.where->backend->synchronize();
            if (!what.other) {
                judge_row(row, difference(what, expected),
                          what.is_copy || is_exact(job_.op, job_.type) ? "exact" : "same bits");
                return;
            }
            if (what.where) what.where->backend->copy_to_host(host_output_.data(), what.call.output, bytes_);
            const bound_check found =
                check_bound(job_.op, job_.type, job_.kind, job_.input->data(), host_output_.data(), job_.size);
            judge_row(row, found.mismatch, found.same_as_left_fold ? "exact" : "within bound");
        } catch (const backend_error& error) {
            fail_row(result_, row, error.what());
        }
    }

    // Rows with the same tree share their expected outputs, which are the only large array besides the input.
    void check_all() {
        std::size_t done = 0;
        const auto pending = [&](std::size_t i) { return result_.rows[i].verdict.empty(); };
        const auto check_one = [&](std::size_t i, const void* expected) {
            progress_("checking", share_of_checking * static_cast<double>(++done) / static_cast<double>(works_.size()));
            check(i, expected);
        };
        for (std::size_t i = 0; i < works_.size(); ++i)
            if (pending(i) && (works_[i].other || works_[i].is_copy)) check_one(i, job_.input->data());
        buffer expected;
        for (std::size_t first = 0; first < works_.size(); ++first) {
            if (!pending(first)) continue;
            const std::string tree = tree_of(result_.rows[first].policy, job_.op, job_.type);
            if (expected.size() == 0) expected = buffer(bytes_);
            expected_outputs(tree, job_.op, job_.type, job_.kind, init_, job_.input->data(), expected.data(),
                             job_.size);
            for (std::size_t i = first; i < works_.size(); ++i)
                if (pending(i) && tree_of(result_.rows[i].policy, job_.op, job_.type) == tree)
                    check_one(i, expected.data());
        }
    }

    void time_all() {
        time_rows(
            result_, job_.repetitions, [this](std::size_t i) { return run_timed(i); },
            [this](std::size_t i) {
                const peer* other = works_[i].other;
                return other != nullptr && (other == &sequential_peer() || other->inherits_affinity());
            },
            progress_);
        for (std::size_t i = 0; i < works_.size(); ++i)
            if (works_[i].is_copy && result_.rows[i].median > 0) works_[i].where->copy_seconds = result_.rows[i].median;
        add_ratios();
    }

    void add_ratios() {
        double sequential = 0;
        for (std::size_t i = 0; i < works_.size(); ++i)
            if (works_[i].other == &sequential_peer()) sequential = result_.rows[i].median;
        // The host's memory is copied by the first CPU backend, if there is one.
        std::optional<double> host_copy;
        for (const place& here : places_)
            if (!host_copy && here.backend->threads() > 0) host_copy = here.copy_seconds;
        for (std::size_t i = 0; i < works_.size(); ++i) {
            comparison_row& row = result_.rows[i];
            if (row.median <= 0) continue;
            const auto copy = works_[i].where ? works_[i].where->copy_seconds : host_copy;
            if (copy) row.copy_ratio = *copy / row.median;
            if (sequential > 0 && !works_[i].is_copy) row.speed_up = sequential / row.median;
        }
    }

    const std::vector<chosen_backend>& backends_;
    const comparison_job& job_;
    const std::function<void(std::string_view, double)>& progress_;
    std::size_t bytes_;
    buffer host_output_;
    std::optional<scalar> init_;
    std::vector<place> places_;
    std::vector<work> works_;
    comparison result_;
};

} // namespace

void judge_row(comparison_row& row, std::optional<std::size_t> mismatch, std::string_view good) {
    row.matches = !mismatch;
    row.verdict = mismatch ? fmt::format("mismatch at {}", *mismatch) : std::string(good);
}

void fail_row(comparison& result, comparison_row& row, const std::string& message) {
    row.matches.reset();
    row.verdict = "skipped";
    row.reason = "failed: " + message;
    if (result.failure.empty()) result.failure = message;
}

void time_rows(comparison& result, int repetitions, const std::function<double(std::size_t)>& run,
               const std::function<bool(std::size_t)>& needs_quiet,
               const std::function<void(std::string_view, double)>& progress) {
    std::vector<timed_call> calls;
    std::vector<std::size_t> row_of;
    for (std::size_t i = 0; i < result.rows.size(); ++i) {
        if (result.rows[i].verdict == "skipped") continue;
        timed_call call;
        call.run = [&run, i] { return run(i); };
        if (needs_quiet(i)) call.before = [] { std::this_thread::sleep_for(until_workers_sleep); };
        calls.push_back(std::move(call));
        row_of.push_back(i);
    }
    const auto measured = measure(calls, repetitions, least_seconds, [&](double done) {
        progress("timing", share_of_checking + (1 - share_of_checking) * done);
    });
    for (std::size_t k = 0; k < measured.size(); ++k) {
        comparison_row& row = result.rows[row_of[k]];
        if (!measured[k].error.empty()) {
            fail_row(result, row, measured[k].error);
            continue;
        }
        row.median = measured[k].median;
        row.spread = measured[k].spread;
    }
}

comparison compare(const std::vector<chosen_backend>& backends, const comparison_job& job,
                   const std::function<void(std::string_view, double)>& progress) {
    return comparing(backends, job, progress).run();
}

} // namespace polyscan::tool
