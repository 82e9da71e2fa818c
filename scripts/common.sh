# shellcheck shell=bash disable=SC2034,SC2120 # variables and optional arguments are for the scripts that source this
# SPDX-License-Identifier: Apache-2.0
# What test.sh and compare.sh share. Sourced; expects `set -euo pipefail`.

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
# Where ccache is found: two clones of the same sources share what it keeps.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$root}
# Found by setup and configure.
polyscan_cmake=""
polyscan_ctest=""
polyscan_python=""
polyscan_backends=""
polyscan_cudacxx=""
polyscan_switches=""
build=""
preset_arguments=()
for_few_cores=()
if [ "$(nproc)" -le 4 ]; then for_few_cores=(-DPOLYSCAN_JOIN_INSTANTIATIONS=ON); fi
light_cuda_tests=-DPOLYSCAN_LIGHT_CUDA_TESTS=ON
if nvidia-smi -L >/dev/null 2>&1; then light_cuda_tests=-DPOLYSCAN_LIGHT_CUDA_TESTS=OFF; fi

say() { printf '%s\n' "polyscan: $*"; }

# quietly TITLE LOG COMMAND...: one line of progress; on failure the end of the log, and where the rest is.
quietly() {
    local title=$1 log=$2 start=$SECONDS
    shift 2
    say "$title"
    if "$@" >"$log" 2>&1 </dev/null; then
        say "  done in $((SECONDS - start)) s"
        return 0
    fi
    say "FAILED: $title; the end of $log:"
    grep -n -E 'error|Error|FAILED' "$log" | head -n 20 || true
    tail -n 40 -- "$log"
    return 1
}

read_findings() {
    # shellcheck source=/dev/null
    . "$root/build/setup.env"
    if [ -n "$polyscan_cudacxx" ] && [ -z "${CUDACXX:-}" ]; then
        export CUDACXX=$polyscan_cudacxx
    fi
    polyscan_ctest=$(dirname -- "$polyscan_cmake")/ctest
}

# Sets polyscan_cmake, polyscan_python, polyscan_backends and the reasons for what is left out.
setup() {
    bash "$root/scripts/setup.sh" "$@"
    read_findings
}

# choose_build: the folder and the preset of exactly the usable backends or, where there is no such preset, `all` less
# what is left out. Sets build and preset_arguments.
choose_build() {
    local backend
    case $polyscan_backends in
    openmp,kokkos,cuda) build="$root/build/all" && preset_arguments=(--preset all) ;;
    *,*)
        build="$root/build/${polyscan_backends//,/-}"
        preset_arguments=(--preset all -B "$build")
        for backend in openmp kokkos cuda; do
            if [[ ",$polyscan_backends," != *",$backend,"* ]]; then
                preset_arguments+=("-DPOLYSCAN_${backend^^}=OFF")
            fi
        done
        ;;
    *) build="$root/build/$polyscan_backends" && preset_arguments=(--preset "$polyscan_backends") ;;
    esac
}

# configure: POLYSCAN_CMAKE_ARGS holds further arguments, separated by blanks.
configure() {
    local extra=()
    choose_build
    if [ -n "$polyscan_python" ]; then
        preset_arguments+=("-DPython3_EXECUTABLE=$polyscan_python")
    fi
    preset_arguments+=("${for_few_cores[@]}" "$light_cuda_tests")
    read -r -a extra <<<"$polyscan_switches ${POLYSCAN_CMAKE_ARGS:-}" || true
    mkdir -p "$build"
    (cd -- "$root" && quietly "configuring ${polyscan_backends//,/, } in ${build#"$root/"}" "$build/configure.log" \
        "$polyscan_cmake" "${preset_arguments[@]}" "${extra[@]}")
}

# build [TARGET...]
build() {
    local targets=()
    [ "$#" -eq 0 ] || targets=(--target "$@")
    quietly "building${1:+ $*}" "$build/build.log" "$polyscan_cmake" --build "$build" "${targets[@]}"
}
