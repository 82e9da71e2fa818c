#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Formats the project's C++ sources, with the one version of clang-format that continuous integration uses too.
#
#   scripts/format.sh            formats in place
#   scripts/format.sh --check    changes nothing; fails where something would change
set -euo pipefail

version=19.1.7
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
tool="$root/.venv/bin/clang-format"

has_version() { "$1" --version 2>/dev/null | grep -qF "version $version"; }

find_tool() {
    has_version "$tool" && return
    if [ ! -x "$root/.venv/bin/python" ]; then
        /usr/bin/python3 -m venv "$root/.venv" || true
    fi
    "$root/.venv/bin/python" -m pip install -q --disable-pip-version-check "clang-format==$version" </dev/null || true
    has_version "$tool" && return
    tool=$(command -v clang-format-19 || true)
    if [ -z "$tool" ] || ! has_version "$tool"; then
        printf 'clang-format %s is needed: pip install clang-format==%s\n' "$version" "$version" >&2
        exit 2
    fi
}

main() {
    local arguments=(-i)
    [ "${1:-}" != --check ] || arguments=(--dry-run --Werror)
    find_tool
    cd -- "$root"
    git ls-files -z --cached --others --exclude-standard -- '*.cpp' '*.hpp' '*.inl' '*.cu' '*.cuh' |
        while IFS= read -r -d '' file; do
            [ ! -e "$file" ] || printf '%s\0' "$file"
        done | xargs -0 -r "$tool" "${arguments[@]}"
}

main "$@"
