// SPDX-License-Identifier: Apache-2.0
// The verbs beside scan, judged by CUB.
#include <string>
#include <vector>

#include <cub/device/device_reduce.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <cuda/functional>
#include <cuda/std/functional>

#include <polyscan/cuda.hpp>

#include "inputs.hpp"

namespace polyscan::test {

namespace {

struct is_even {
    __host__ __device__ bool operator()(std::int32_t value) const { return value % 2 == 0; }
};

/// Calls a CUB function twice: for the size of its temporary memory, and to run.
template <class Call>
void with_memory(const Call& call) {
    std::size_t bytes = 0;
    cuda::check(call(nullptr, bytes), "cub");
    const cuda::buffer<unsigned char> memory(static_cast<index_type>(bytes) + 1);
    cuda::check(call(memory.data(), bytes), "cub");
    cuda::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

} // namespace

std::string verbs_that_differ_from_cub(cuda::backend& on, index_type n) {
    std::vector<std::int32_t> values, names;
    for (index_type i = 0; i < n; ++i) {
        values.push_back(static_cast<std::int32_t>(random_bits(31, i) % 2000) - 1000);
        names.push_back(static_cast<std::int32_t>(random_bits(32, i / 9) % 5));
    }
    const auto in = on.allocate<std::int32_t>(n), keys = on.allocate<std::int32_t>(n);
    const auto ours = on.allocate<std::int32_t>(n), theirs = on.allocate<std::int32_t>(n);
    const auto our_keys = on.allocate<std::int32_t>(n), their_keys = on.allocate<std::int32_t>(n);
    const auto our_count = on.allocate<index_type>(1), their_count = on.allocate<index_type>(1);
    on.copy_to_device(in.data(), values.data(), n);
    on.copy_to_device(keys.data(), names.data(), n);
    const auto source = counted(static_cast<const std::int32_t*>(in.data()), n);
    const auto key_source = counted(static_cast<const std::int32_t*>(keys.data()), n);
    const cudaStream_t stream = on.stream();

    const auto fetched = [&](const auto& memory, index_type count) {
        std::vector<std::int32_t> host(static_cast<std::size_t>(count));
        on.copy_to_host(host.data(), static_cast<const std::int32_t*>(memory.data()), count);
        return host;
    };
    const auto number = [&](const auto& memory) {
        index_type found = 0;
        on.copy_to_host(&found, static_cast<const index_type*>(memory.data()), 1);
        return found;
    };
    std::string different;
    const auto compare = [&](const char* verb, bool counted_too, bool keyed) {
        on.synchronize();
        bool same = true;
        index_type count = n;
        if (counted_too) {
            count = number(their_count);
            same = number(our_count) == count;
        }
        same = same && fetched(ours, count) == fetched(theirs, count);
        if (keyed) same = same && fetched(our_keys, count) == fetched(their_keys, count);
        if (!same) different += std::string(verb) + ' ';
    };

    copy_if(on, source, ours.data(), our_count.data(), is_even{});
    with_memory([&](void* memory, std::size_t& bytes) {
        return cub::DeviceSelect::If(memory, bytes, in.data(), theirs.data(), their_count.data(), n, is_even{}, stream);
    });
    compare("copy_if", true, false);

    unique(on, key_source, ours.data(), our_count.data());
    with_memory([&](void* memory, std::size_t& bytes) {
        return cub::DeviceSelect::Unique(memory, bytes, keys.data(), theirs.data(), their_count.data(), n, stream);
    });
    compare("unique", true, false);

    inclusive_scan_by_key(on, key_source, in.data(), ours.data());
    with_memory([&](void* memory, std::size_t& bytes) {
        return cub::DeviceScan::InclusiveSumByKey(memory, bytes, keys.data(), in.data(), theirs.data(), n,
                                                  ::cuda::std::equal_to<>{}, stream);
    });
    compare("inclusive_scan_by_key", false, false);

    exclusive_scan_by_key(on, key_source, in.data(), ours.data());
    with_memory([&](void* memory, std::size_t& bytes) {
        return cub::DeviceScan::ExclusiveSumByKey(memory, bytes, keys.data(), in.data(), theirs.data(), n,
                                                  ::cuda::std::equal_to<>{}, stream);
    });
    compare("exclusive_scan_by_key", false, false);

    reduce_by_key(on, key_source, in.data(), our_keys.data(), ours.data(), our_count.data(), maximum{});
    with_memory([&](void* memory, std::size_t& bytes) {
        return cub::DeviceReduce::ReduceByKey(memory, bytes, keys.data(), their_keys.data(), in.data(), theirs.data(),
                                              their_count.data(), ::cuda::maximum<>{}, n, stream);
    });
    compare("reduce_by_key", true, true);

    run_length_encode(on, key_source, our_keys.data(), ours.data(), our_count.data());
    with_memory([&](void* memory, std::size_t& bytes) {
        return cub::DeviceRunLengthEncode::Encode(memory, bytes, keys.data(), their_keys.data(), theirs.data(),
                                                  their_count.data(), n, stream);
    });
    compare("run_length_encode", true, true);

    reduce(on, source, ours.data());
    with_memory([&](void* memory, std::size_t& bytes) {
        return cub::DeviceReduce::Sum(memory, bytes, in.data(), theirs.data(), n, stream);
    });
    on.synchronize();
    if (fetched(ours, 1) != fetched(theirs, 1)) different += "reduce ";
    return different;
}

} // namespace polyscan::test
