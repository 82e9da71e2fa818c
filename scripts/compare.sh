#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what is missing, builds the polyscan program with every backend that this machine can build, and compares
# the backends: correctness and speed, in one table.
#
#   scripts/compare.sh [--report DIR] [argument of `polyscan compare`]...
#
# With --report DIR the result is also a page with pictures, DIR/index.html, and the record it was made from.
# Without arguments it makes the program's default run; with --help the program explains its own. Relative file names
# are taken from where you are. What scripts/setup.sh --help lists goes for this script too.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

setup_arguments=() # POLYSCAN_BACKENDS restricts the backends
report=""
arguments=()
while [ "$#" -gt 0 ]; do
    case $1 in
    --report)
        [ "$#" -gt 1 ] || { say "--report needs a folder" >&2 && exit 2; }
        report=$2
        shift
        ;;
    --report=*) report=${1#*=} ;;
    *) arguments+=("$1") ;;
    esac
    shift
done

# Messages go to standard error: standard output belongs to the table, or to the JSON that was asked for.
{
    setup "${setup_arguments[@]}"
    configure
    build polyscan_tool
} >&2
[ -z "$polyscan_python" ] || export POLYSCAN_PYTHON="$polyscan_python"
[ -n "$report" ] || exec "$build/bin/polyscan" compare "${arguments[@]}"

mkdir -p -- "$report"
status=0
"$build/bin/polyscan" compare --json "$report/comparison.json" "${arguments[@]}" || status=$?
# A mismatch (1) and a backend that failed (3) belong into the report; without a record there is none.
if [ "$status" != 2 ]; then
    "${polyscan_python:-python3}" "$root/tools/report/report.py" --output "$report" "$report/comparison.json" >&2
fi
exit "$status"
