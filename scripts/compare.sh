#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what is missing, builds the polyscan program with every backend that this machine can build, and compares
# the backends: correctness and speed, in one table.
#
#   scripts/compare.sh [argument of `polyscan compare`]...
#
# Without arguments it makes the program's default run; with --help the program explains its own. Relative file names
# are taken from where you are. What scripts/setup.sh --help lists goes for this script too.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

setup_arguments=() # POLYSCAN_BACKENDS restricts the backends

# Messages go to standard error: standard output belongs to the table, or to the JSON that was asked for.
{
    setup "${setup_arguments[@]}"
    configure
    build polyscan_tool
} >&2
[ -z "$polyscan_python" ] || export POLYSCAN_PYTHON="$polyscan_python"
exec "$build/bin/polyscan" compare "$@"
