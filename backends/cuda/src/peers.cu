// SPDX-License-Identifier: Apache-2.0
// CUB's and Thrust's scans, as peers for the comparison: on the default stream, like the registered backend.
#include <cub/device/device_scan.cuh>
#include <cuda/functional>
#include <cuda/std/functional>
#include <thrust/execution_policy.h>
#include <thrust/scan.h>

#include "peers/frequent.hpp"
#include "peers/peer.hpp"

#include <polyscan/cuda/backend.hpp>

#include <optional>

namespace polyscan::tool {

namespace {

// Their own operators, which their tuning tables know by name.
inline ::cuda::std::plus<> theirs(plus) { return {}; }
inline ::cuda::maximum<> theirs(maximum) { return {}; }

struct cub_device_scan {
    static constexpr std::string_view name = "cub::DeviceScan";

    template <class T, class Operator>
    void run(const T* in, T* out, index_type n, Operator op, T identity, scan_kind kind) {
        const auto scan = [&](void* workspace, std::size_t& bytes) {
            const auto status =
                kind == scan_kind::inclusive
                    ? cub::DeviceScan::InclusiveScan(workspace, bytes, in, out, theirs(op), n)
                    : cub::DeviceScan::ExclusiveScan(workspace, bytes, in, out, theirs(op), identity, n);
            cuda::check(status, "cub::DeviceScan");
        };
        std::size_t bytes = 0;
        scan(nullptr, bytes);
        if (!workspace_ || static_cast<std::size_t>(workspace_->size()) < bytes)
            workspace_.emplace(static_cast<index_type>(bytes));
        scan(workspace_->data(), bytes);
    }

private:
    std::optional<cuda::buffer<std::byte>> workspace_; // kept, as a user of it would
};

// Allocates its workspace in every call, which is how most use it.
struct thrust_scan {
    static constexpr std::string_view name = "thrust::inclusive_scan";

    template <class T, class Operator>
    void run(const T* in, T* out, index_type n, Operator op, T identity, scan_kind kind) {
        const auto how = thrust::cuda::par_nosync;
        if (kind == scan_kind::inclusive)
            thrust::inclusive_scan(how, in, in + n, out, theirs(op));
        else
            thrust::exclusive_scan(how, in, in + n, out, identity, theirs(op));
    }
};

template <class Scan>
class cuda_peer final : public peer {
public:
    std::string_view name() const override { return Scan::name; }
    std::string_view backend() const override { return cuda::backend::name(); }

    std::optional<std::string> unsupported(const scan_call& call) const override {
        if (is_frequent(call)) return std::nullopt;
        return outside_frequent;
    }

    void run(const scan_call& call, int) override {
        try {
            visit_frequent(call, [&]<class T, class Operator>(std::type_identity<T>, Operator op) {
                scan_.run(static_cast<const T*>(call.input), static_cast<T*>(call.output), call.size, op,
                          identity_of<T>(op), call.kind);
            });
        } catch (const thrust::system_error& error) {
            throw backend_error("cuda", std::string(Scan::name), error.what());
        }
    }

private:
    Scan scan_;
};

const bool registered = register_peer(std::make_unique<cuda_peer<cub_device_scan>>()) &&
                        register_peer(std::make_unique<cuda_peer<thrust_scan>>());

} // namespace

} // namespace polyscan::tool
