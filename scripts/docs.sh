#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the documentation site in build/docs/html, and checks its links.
#
#   scripts/docs.sh
#
# Needs doxygen (as root on Debian and Ubuntu it is installed); Sphinx and what it uses go into .venv. What a page shows as
# code or as a picture is built and checked by the tests (ctest -L docs), not here.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

output="$root/build/docs"
python="$root/.venv/bin/python"

case ${1:-} in
-h | --help)
    sed -n '3,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
    exit 0
    ;;
esac
mkdir -p "$output/doxygen"

if ! command -v doxygen >/dev/null; then
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
        say "doxygen is needed (on Debian: sudo apt-get install doxygen)" >&2
        exit 2
    fi
    quietly "installing doxygen" "$output/setup.log" apt-get install -q -y --no-install-recommends doxygen
fi
if [ ! -x "$python" ]; then
    quietly "making .venv" "$output/setup.log" /usr/bin/python3 -m venv "$root/.venv"
fi
if ! "$python" -I -c 'import sphinx, myst_parser, furo, matplotlib' 2>/dev/null; then
    quietly "installing Sphinx in .venv" "$output/setup.log" \
        "$python" -m pip install -q --disable-pip-version-check -r "$root/docs/requirements.txt"
fi

cd -- "$root"
{ cat docs/Doxyfile && printf 'OUTPUT_DIRECTORY = %s\n' "$output/doxygen"; } >"$output/Doxyfile"
quietly "reading the headers" "$output/doxygen.log" doxygen "$output/Doxyfile"
quietly "making pages" "$output/sphinx.log" "$python" -m sphinx -W --keep-going -q -j 2 -b html \
    -c docs -d "$output/doctrees" -D "api_xml=$output/doxygen/xml" . "$output/html"
# Pages keep their places in the tree, so that their links work in both.
printf '<meta http-equiv="refresh" content="0; url=docs/index.html"><a href="docs/index.html">polyscan</a>\n' >"$output/html/index.html"
quietly "drawing the records" "$output/report.log" \
    "$python" tools/report/report.py --output "$output/html/report" docs/results/*.json
"$python" scripts/check-docs.py links "$output/html"
say "the site begins at $output/html/index.html"
