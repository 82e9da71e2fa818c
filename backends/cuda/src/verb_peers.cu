// SPDX-License-Identifier: Apache-2.0
// CUB's counterparts of the verbs beside scan, for `polyscan compare --verb --peers`: on the default stream, like the
// registered backend.
#include <cub/device/device_histogram.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <cuda/std/functional>

#include "verbs/verb.hpp"

#include <polyscan/cuda/backend.hpp>

#include <optional>

namespace polyscan::tool {

namespace {

class cub_verbs final : public verb_runner {
public:
    std::string_view name() const override { return "cub"; }
    std::string_view backend() const override { return cuda::backend::name(); }
    bool has(verb what) const override { return what != verb::segmented_scan; } // by offsets only

    void run(const verb_call& call) override {
        visit_verb_type(call.type, [&]<class T>(std::type_identity<T>) {
            std::size_t bytes = 0;
            cuda::check(start<T>(call, nullptr, bytes), "cub");
            if (!workspace_ || static_cast<std::size_t>(workspace_->size()) < bytes)
                workspace_.emplace(static_cast<index_type>(bytes));
            cuda::check(start<T>(call, workspace_->data(), bytes), "cub");
        });
    }

private:
    // Without workspace: says how much it takes.
    template <class T>
    static cudaError_t start(const verb_call& call, void* workspace, std::size_t& bytes) {
        const T* const in = static_cast<const T*>(call.in);
        T* const out = static_cast<T*>(call.out);
        const index_type n = call.size;
        switch (call.what) {
        case verb::reduce: return cub::DeviceReduce::Sum(workspace, bytes, in, out, n);
        case verb::copy_if: return cub::DeviceSelect::If(workspace, bytes, in, out, call.count, n, is_small<T>{});
        case verb::scan_by_key: return cub::DeviceScan::InclusiveSumByKey(workspace, bytes, call.keys, in, out, n);
        case verb::reduce_by_key:
            return cub::DeviceReduce::ReduceByKey(workspace, bytes, call.keys, call.keys_out, in, out, call.count,
                                                  ::cuda::std::plus<>{}, n);
        case verb::radix_sort: return cub::DeviceRadixSort::SortKeys(workspace, bytes, in, out, n);
        case verb::histogram:
            return cub::DeviceHistogram::HistogramEven(workspace, bytes, in, static_cast<int*>(call.out), bins + 1,
                                                       T(0), upper_end<T>, n);
        case verb::segmented_scan: break;
        }
        return cudaErrorNotSupported;
    }

    std::optional<cuda::buffer<std::byte>> workspace_; // kept, as a user of it would
};

const bool registered = register_verb_runner(cuda::backend::name(), [](int) { return std::make_unique<cub_verbs>(); });

} // namespace

} // namespace polyscan::tool
