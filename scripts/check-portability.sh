#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Compiles the host headers as other users would: for aarch64, with clang and its own warnings, through nvcc, and the
# Kokkos backend's without OpenMP. What a machine lacks a compiler for is said, and not taken for a success: exit 77
# when nothing could be checked.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
includes=(-I "$root/core/include" -I "$root/backends/openmp/include")
checked=0 failed=0

cat >"$work/user.cpp" <<'SOURCE'
#include <complex>
#include <cstdint>

#include <polyscan/openmp.hpp>

struct pair {
    std::int32_t count;
    float sum;
};

void scan(const polyscan::openmp::backend& cpu, polyscan::index_type n, const float* x, float* y, const short* s,
          const pair* p, pair* q, std::complex<double>* z) {
    using namespace polyscan;
    inclusive_scan(cpu, counted(x, n), y);
    exclusive_scan(cpu, counted(x, n), y, 1.0f, maximum{}, policies::kogge_stone);
    inclusive_scan(cpu, counted(s, n), y);
    inclusive_scan(cpu, counted(x, n), y, [](float a, float b) { return a < b ? b : a; });
    inclusive_scan(cpu, counted(p, n), q, [](pair a, pair b) { return pair{a.count + b.count, a.sum + b.sum}; });
    inclusive_scan(cpu, counted(z, n), z, multiplies{}, policies::three_pass);
}
SOURCE
cp "$work/user.cpp" "$work/user.cu"

# check NAME COMMAND...: skipped where the command is missing.
check() {
    local name=$1
    shift
    if ! command -v -- "$1" >"$work/which" 2>&1; then
        printf 'not checked: %s: there is no %s\n' "$name" "$1"
        return
    fi
    checked=$((checked + 1))
    if "$@" >"$work/log" 2>&1 && [ ! -s "$work/log" ]; then
        printf 'good: %s\n' "$name"
    else
        printf 'FAILED: %s\n' "$name"
        head -n 30 -- "$work/log"
        failed=$((failed + 1))
    fi
}

warnings=(-Wall -Wextra -Wpedantic -Wconversion -Wshadow)
check "aarch64" aarch64-linux-gnu-g++ -std=c++20 -O2 -fopenmp "${warnings[@]}" "${includes[@]}" -c "$work/user.cpp" -o "$work/user.o"
check "clang with its own warnings" clang++-19 -std=c++20 -O2 -fopenmp "${warnings[@]}" "${includes[@]}" -c "$work/user.cpp" -o "$work/user.o"
nvcc=${CUDACXX:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
check "nvcc" "$nvcc" -std=c++20 -O1 -arch=sm_89 --expt-relaxed-constexpr -diag-suppress 1675 -Xcompiler=-fopenmp "${includes[@]}" -c "$work/user.cu" -o "$work/user.o"
# Without OpenMP: what the Kokkos backend takes of these headers must not need its header.
printf '#include <polyscan/openmp/grid/prefix_server.hpp>\n#include <polyscan/openmp/backend.hpp>\n#ifdef _OMP_H\n#error "omp.h"\n#endif\n' >"$work/no_openmp.cpp"
check "without OpenMP" g++ -std=c++20 -fsyntax-only "${warnings[@]}" "${includes[@]}" "$work/no_openmp.cpp"

[ "$failed" = 0 ] || exit 1
[ "$checked" -gt 0 ] || exit 77
