// SPDX-License-Identifier: Apache-2.0
/// The cells of the matrix. A cell is one call: backend, policy, case, size, kind, init, placement, number of workers.
///
/// The code that makes and judges cells depends on the case but not on the backend; it is compiled once, and reaches a
/// backend through two narrow doors: `target` for memory and `run_function` for the call.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <polyscan/backend.hpp>

#include "launch.hpp"

namespace polyscan::test {

/// One backend object with a given number of workers, seen as memory.
class target {
public:
    virtual ~target() = default;
    virtual std::string_view backend() const = 0;
    virtual int workers() const = 0;
    virtual std::shared_ptr<std::byte> allocate(index_type bytes) = 0;
    virtual void copy_to_device(std::byte* device, const std::byte* host, index_type bytes) = 0;
    virtual void copy_to_host(std::byte* host, const std::byte* device, index_type bytes) = 0;
    virtual void synchronize() = 0;
};

/// Runs one call on a target.
template <class Case>
using run_function = std::function<void(target&, std::string_view policy, const case_arguments<Case>&)>;

/// What became of the cells.
class tally {
public:
    virtual ~tally() = default;
    void pass() { ++passed_; }
    void fail(const std::string& what) {
        ++failed_;
        on_fail(what);
    }
    /// `cells` are not run; says why, once per call.
    void skip(index_type cells, const std::string& why) {
        skipped_ += cells;
        on_skip(why);
    }
    index_type passed() const { return passed_; }
    index_type failed() const { return failed_; }
    index_type skipped() const { return skipped_; }

private:
    virtual void on_fail(const std::string& what) = 0;
    virtual void on_skip(const std::string& why) = 0;
    index_type passed_ = 0;
    index_type failed_ = 0;
    index_type skipped_ = 0;
};

/// All cells of one case under one policy. The first target gets every placement, the others take turns. Sizes stop at
/// `elements_limit` elements.
template <class Case>
void check_cells(const std::vector<target*>& targets, const run_function<Case>& run, std::string_view policy,
                 index_type elements_limit, tally& tally);

/// The inclusive prefixes in the order of the policy of that name.
template <class Case>
std::vector<typename Case::accumulator_type> policy_oracle(std::string_view policy,
                                                           const std::vector<typename Case::accumulator_type>& x,
                                                           const std::optional<typename Case::accumulator_type>& init);

// --- from a backend to a target --------------------------------------------------------------------------------------

template <class Backend>
class target_of final : public target {
public:
    template <class Make>
    target_of(int workers, const Make& make) : workers_(workers), backend_(make(workers)) {}

    Backend& object() { return backend_; }

    std::string_view backend() const override { return Backend::name(); }
    int workers() const override { return workers_; }
    std::shared_ptr<std::byte> allocate(index_type bytes) override {
        using buffer = decltype(backend_.template allocate<std::byte>(bytes));
        auto owner = std::make_shared<buffer>(backend_.template allocate<std::byte>(bytes));
        return {owner, owner->data()};
    }
    void copy_to_device(std::byte* device, const std::byte* host, index_type bytes) override {
        backend_.copy_to_device(device, host, bytes);
    }
    void copy_to_host(std::byte* host, const std::byte* device, index_type bytes) override {
        backend_.copy_to_host(host, device, bytes);
    }
    void synchronize() override { backend_.synchronize(); }

private:
    int workers_;
    Backend backend_;
};

} // namespace polyscan::test
