#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Fuzzes the reader of array files: the header of a .npy file comes from anywhere.
#
#   scripts/check-fuzz.sh [PROGRAM]     PROGRAM is ignored: the reader is built with its own sanitizers
#
# SECONDS_TO_FUZZ says for how long, 20 when unset; FUZZ_CXX names a clang++ with libFuzzer.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
compiler=${FUZZ_CXX:-clang++-19}
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

command -v "$compiler" >/dev/null || { printf 'polyscan: %s is needed (apt-get install clang-19)\n' "$compiler" >&2 && exit 2; }

"$compiler" -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -DFMT_HEADER_ONLY \
    -I"$root/core/include" -I"$root/tools" \
    "$root/tests/npy_fuzz.cpp" "$root"/tools/{array_reader,npy_header,file}.cpp "$root/core/src/dtype.cpp" -o "$work/npy_fuzz"
cd -- "$work"
if ! ./npy_fuzz -max_len=4096 -max_total_time="${SECONDS_TO_FUZZ:-20}" -print_final_stats=1 2>fuzz.log; then
    tail -n 40 fuzz.log >&2
    printf 'fuzzing: FAILED\n' >&2
    exit 1
fi
printf 'fuzzing: %s inputs, no finding\n' "$(sed -n 's/^stat::number_of_executed_units: *//p' fuzz.log)"
