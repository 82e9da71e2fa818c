#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what is missing, builds polyscan with every backend that this machine can build, and runs all tests.
#
#   scripts/test.sh [--backends openmp,kokkos,cuda] [argument of ctest]...
#
# For instance: scripts/test.sh -R contract -V. What scripts/setup.sh --help lists goes for this script too.
# POLYSCAN_CMAKE_ARGS holds further arguments for the configuration.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

summary() { # STATUS JUNIT SECONDS
    local backend reason counts
    counts=$(sed -n '/<testsuite/,/>/p' "$2" 2>/dev/null | tr '\n\t' '  ' |
        sed -n 's/.* tests="\([0-9]*\)" *failures="\([0-9]*\)" *disabled="\([0-9]*\)" *skipped="\([0-9]*\)".*/\1 tests, \2 failed, \4 skipped/p')
    say "backends tested: ${polyscan_backends//,/, }"
    for backend in openmp kokkos cuda; do
        reason=polyscan_left_out_$backend
        [ -z "${!reason}" ] || say "backend NOT tested: $backend: ${!reason}"
    done
    say "${counts:-no count of tests} in $3 s: $([ "$1" = 0 ] && echo good || echo FAILED)"
}

main() {
    local setup_arguments=() status=0 start
    case ${1:-} in
    -h | --help)
        sed -n '3,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
        return
        ;;
    --backends) setup_arguments=("$1" "${2:?--backends needs a list}") && shift 2 ;;
    --backends=*) setup_arguments=("$1") && shift ;;
    esac
    setup "${setup_arguments[@]}"
    configure
    build all
    start=$SECONDS
    rm -f -- "$build/tests.xml"
    # Tests whose code uses all processors run alone all the same.
    "$polyscan_ctest" --test-dir "$build" -j "$(nproc)" --output-on-failure --no-tests=error --output-junit "$build/tests.xml" "$@" || status=$?
    summary "$status" "$build/tests.xml" "$((SECONDS - start))"
    return "$status"
}

main "$@"
