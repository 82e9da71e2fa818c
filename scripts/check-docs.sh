#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks the documentation without building it: public names without a comment, links that lead nowhere, code that is in no
# source, figures that are in no record, spelling. The site itself is scripts/docs.sh's matter; what pages quote is built
# and run by `ctest -L docs`.
#
#   scripts/check-docs.sh [PROGRAM]...     PROGRAM is ignored
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
cd -- "$root"

for tool in doxygen codespell python3; do
    command -v "$tool" >/dev/null || { printf 'polyscan: %s is needed (apt-get install %s)\n' "$tool" "$tool" >&2 && exit 2; }
done

{ cat docs/Doxyfile && printf 'OUTPUT_DIRECTORY = %s\n' "$work"; } >"$work/Doxyfile"
doxygen "$work/Doxyfile" >"$work/log" 2>&1 || { cat "$work/log" >&2 && exit 1; }

status=0
python3 scripts/check-docs.py names "$work/xml" || status=1
python3 scripts/check-docs.py links || status=1
python3 scripts/check-docs.py code || status=1
python3 scripts/check-figures.py || status=1
# Words that codespell takes for misspelt others.
if git ls-files -z --cached --others --exclude-standard -- '*.md' '*.hpp' '*.cpp' '*.cuh' '*.cu' '*.inl' '*.py' '*.sh' '*.txt' '*.cmake' |
    xargs -0 -r codespell --ignore-words-list=inout,hist,ot,crate,nd,numer,ser; then
    printf 'documentation, spelling: good\n'
else
    status=1
fi
exit "$status"
