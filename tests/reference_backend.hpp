// SPDX-License-Identifier: Apache-2.0
/// The policy-order oracle in the shape of a backend. Its row of the matrix passes trivially, which tests the matrix:
/// break this file on purpose and the matrix must say where.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include <polyscan/backend.hpp>
#include <polyscan/reference.hpp>

namespace polyscan::test {

class reference_backend {
public:
    static std::string_view name() { return "reference"; }
    polyscan::availability available() const { return {}; }
    template <class Policy>
    static constexpr bool supports = true;

    template <class Policy, class Request>
    void scan(const Request& request) {
        using accumulator = typename Request::accumulator_type;
        const index_type size = request.live_size();
        if (size == 0) {
            if (request.total != nullptr && request.empty_total) *request.total = *request.empty_total;
            return;
        }
        std::vector<accumulator> x;
        x.reserve(static_cast<std::size_t>(size));
        for (index_type i = 0; i < size; ++i) x.push_back(request.load(i));
        const auto inclusive = reference::policy_order(Policy{}, std::move(x), request.op, request.init);
        const auto y = reference::outputs(inclusive, request.kind, request.init);
        for (index_type i = 0; i < size; ++i) request.store(i, y[static_cast<std::size_t>(i)]);
        if (request.total != nullptr) *request.total = inclusive.back();
    }

    void synchronize() {}

    template <class T>
    class buffer {
    public:
        explicit buffer(index_type n) : size_(n), data_(new T[static_cast<std::size_t>(n)]) {}
        T* data() const { return data_.get(); }
        index_type size() const { return size_; }

    private:
        index_type size_;
        std::unique_ptr<T[]> data_;
    };
    template <class T>
    buffer<T> allocate(index_type n) {
        return buffer<T>(n);
    }
    template <class T>
    void copy_to_device(T* device, const T* host, index_type n) {
        std::copy_n(host, n, device);
    }
    template <class T>
    void copy_to_host(T* host, const T* device, index_type n) {
        std::copy_n(device, n, host);
    }
};

static_assert(backend<reference_backend>);

} // namespace polyscan::test
