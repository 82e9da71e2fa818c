// SPDX-License-Identifier: Apache-2.0
/// What the applications share: the backend that they are compiled for, and moving vectors to and from its memory.
/// Everything else that they use is polyscan's public interface.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

// One source, three compilers: EXAMPLE_CUDA and EXAMPLE_KOKKOS are set by CMakeLists.txt.
#if defined(EXAMPLE_CUDA)
#include <polyscan/cuda.hpp>
#elif defined(EXAMPLE_KOKKOS)
#include <polyscan/kokkos.hpp>
#else
#include <polyscan/openmp.hpp>
#endif
#include <polyscan/primitives.hpp>

namespace example {

#if defined(EXAMPLE_CUDA)
using backend = polyscan::cuda::backend;
#elif defined(EXAMPLE_KOKKOS)
using backend = polyscan::kokkos::backend<>;
#else
using backend = polyscan::openmp::backend;
#endif

using polyscan::index_type;

/// Elements in the backend's memory. Copying to it and from it is in order with the backend's scans.
template <class T>
class array {
public:
    array(backend& where, index_type size) : where_(where), memory_(where.allocate<T>(size)), size_(size) {}
    array(backend& where, const std::vector<T>& values) : array(where, static_cast<index_type>(values.size())) {
        where_.copy_to_device(data(), values.data(), size_);
    }

    /// A plain pointer: what functions that run on the device capture, and what an output is.
    T* data() { return memory_.data(); }
    index_type size() const { return size_; }
    /// As an input.
    auto view() { return polyscan::counted(static_cast<const T*>(data()), size_); }
    auto first(index_type n) { return polyscan::counted(static_cast<const T*>(data()), n); }

    std::vector<T> to_host() { return to_host(size_); }
    std::vector<T> to_host(index_type n) {
        std::vector<T> values(static_cast<std::size_t>(n));
        where_.copy_to_host(values.data(), data(), n);
        where_.synchronize();
        return values;
    }
    /// The only element of an array of one: a count, a total.
    T value() { return to_host(1)[0]; }

private:
    backend& where_;
    decltype(std::declval<backend&>().template allocate<T>(0)) memory_;
    index_type size_;
};

/// Exits with 1 and says why where a result is wrong.
inline void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "wrong: %s\n", what);
    std::exit(1);
}

/// Calls `program(backend)`; where the backend cannot run, says so and returns what ctest takes for "skipped".
template <class Program>
int run(int argc, char* argv[], Program program) {
#if defined(EXAMPLE_KOKKOS)
    Kokkos::ScopeGuard kokkos(argc, argv);
#else
    static_cast<void>(argc);
    static_cast<void>(argv);
#endif
    backend where;
    if (const polyscan::availability here = where.available(); !here) {
        std::printf("skipped: no %s here: %s\n", std::string(backend::name()).c_str(), here.reason.c_str());
        return 77;
    }
    program(where);
    return 0;
}

/// Reproducible pseudo-random numbers (splitmix64), the same on every platform.
class random {
public:
    explicit random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t operator()() {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }
    /// In [0, bound).
    int below(int bound) { return static_cast<int>((*this)() % static_cast<std::uint64_t>(bound)); }
    /// In [0, 1).
    double unit() { return static_cast<double>((*this)() >> 11) * 0x1p-53; }

private:
    std::uint64_t state_;
};

} // namespace example
