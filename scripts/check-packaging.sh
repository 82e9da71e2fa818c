#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs polyscan (headers and the run-time library, OpenMP backend only) and uses it in every way that a project can:
# find_package, add_subdirectory, FetchContent, pkg-config, a Debian package. Needs a C++ compiler, CMake, and for single
# steps make, pkg-config and dpkg.
#
#   scripts/check-packaging.sh [PROGRAM]...     PROGRAM is ignored: what is checked is built from the sources
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
consumers="$root/tests/consumers"
polyscan_cmake=${CMAKE:-}
# Two at least, so that a hand-over takes place.
export OMP_NUM_THREADS=2
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

say() { printf '%s\n' "packaging: $*"; }
fail() {
    printf '%s\n' "packaging: FAILED: $*" >&2
    exit 1
}

# step TITLE COMMAND...: quiet unless it fails.
step() {
    local title=$1 start=$SECONDS
    shift
    if ! "$@" >"$work/log" 2>&1; then
        cat "$work/log" >&2
        fail "$title"
    fi
    say "$title: good, $((SECONDS - start)) s"
}

find_cmake() {
    if [ -z "$polyscan_cmake" ] && [ -e "$root/build/setup.env" ]; then
        # shellcheck source=/dev/null
        . "$root/build/setup.env"
    fi
    polyscan_cmake=${polyscan_cmake:-cmake}
    [ -x "$(command -v "$polyscan_cmake")" ] || fail "no CMake; run scripts/setup.sh first"
}

# configure NAME SOURCE ARGUMENT...
configure() {
    local name=$1 source=$2
    shift 2
    "$polyscan_cmake" -S "$source" -B "$work/$name" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release "$@"
}

# consume NAME ARGUMENT...: configures, builds and tests tests/consumers/NAME.
consume() {
    local name=$1
    shift
    configure "$name" "$consumers/$name" "$@" &&
        "$polyscan_cmake" --build "$work/$name" &&
        "$(dirname -- "$(command -v "$polyscan_cmake")")/ctest" --test-dir "$work/$name" --output-on-failure --no-tests=error
}

install_polyscan() {
    configure polyscan "$root" -DPOLYSCAN_OPENMP=ON -DPOLYSCAN_TOOLS=OFF -DPOLYSCAN_TESTS=OFF -DPOLYSCAN_BENCHMARKS=OFF \
        -DPOLYSCAN_EXAMPLES=OFF -DCMAKE_INSTALL_LIBDIR=lib &&
        "$polyscan_cmake" --build "$work/polyscan" &&
        "$polyscan_cmake" --install "$work/polyscan" --prefix "$work/elsewhere" &&
        mv -- "$work/elsewhere" "$work/prefix" # an installed tree may be moved
}

# Every installed text file names neither the source tree nor the build tree.
check_relocatable() {
    ! grep -rIl -e "$root" -e "$work" "$work/prefix"
}

check_missing_component() {
    local log="$work/missing.log" sentence
    if configure missing_component "$consumers/missing_component" "-DCMAKE_PREFIX_PATH=$work/prefix" >"$log" 2>&1; then
        printf 'a missing component was found\n'
        return 1
    fi
    sentence="This polyscan was installed without the component 'teapot'; it has core, runtime, openmp."
    # CMake wraps lines.
    tr -s ' \n' ' ' <"$log" | grep -F -- "$sentence" >/dev/null || { cat "$log" && return 1; }
    say "a missing component: \"$sentence\""
}

use_pkg_config() {
    mkdir -p "$work/pkg_config"
    PKG_CONFIG_PATH="$work/prefix/lib/pkgconfig" make -C "$work/pkg_config" -f "$consumers/pkg_config/Makefile" check
}

# What was fetched and installed as part of another project is a polyscan like any other.
use_fetched() {
    consume fetch_content "-DPOLYSCAN_SOURCE_DIR=$root" &&
        "$polyscan_cmake" --install "$work/fetch_content" --prefix "$work/users" &&
        consume second_hand "-DCMAKE_PREFIX_PATH=$work/users"
}

make_debian_package() {
    (cd "$work/polyscan" && "$(dirname -- "$(command -v "$polyscan_cmake")")/cpack" -G DEB -B "$work/packages") || return 1
    local package file files
    package=$(find "$work/packages" -maxdepth 1 -name 'libpolyscan-dev_*.deb')
    [ -n "$package" ] || return 1
    dpkg-deb --info "$package"
    files=$(dpkg-deb --contents "$package" | awk '{ print $6 }')
    printf '%s\n' "$files"
    for file in include/polyscan/scan.hpp include/polyscan/version.hpp include/polyscan/openmp.hpp \
        include/polyscan/openmp/grid/prefix_server.hpp lib/libpolyscan_runtime.a lib/pkgconfig/polyscan.pc \
        lib/cmake/polyscan/polyscanConfig.cmake lib/cmake/polyscan/polyscan-openmp-targets.cmake share/doc/polyscan/LICENSE; do
        grep -x -F -- "./usr/$file" <<<"$files" >/dev/null || { printf 'missing: %s\n' "$file" && return 1; }
    done
    # Nothing but headers, the library and its descriptions.
    if grep -v -E '/$|^\./usr/(include/polyscan/.*\.(hpp|cuh|inl)|lib/(libpolyscan_runtime\.a|pkgconfig/.*\.pc|cmake/polyscan/.*\.cmake)|share/doc/.*)$' <<<"$files"; then
        printf 'the above should not be in the package\n'
        return 1
    fi
    # And it works when unpacked.
    dpkg-deb --extract "$package" "$work/unpacked"
    rm -rf -- "$work/find_package"
    consume find_package "-DCMAKE_PREFIX_PATH=$work/unpacked/usr"
}

# fenced LANGUAGE NUMBER: that block of the tutorial.
fenced() {
    awk -v first="\`\`\`$1" -v number="$2" \
        '/^```/ { inside = $0 == first && ++count == number; next } inside' "$root/docs/tutorial.md"
}

# The tutorial's commands and its CMakeLists.txt, as a reader follows them.
use_tutorial() (
    mkdir -p "$work/tutorial" && cd -- "$work/tutorial" || return 1
    ln -s -- "$root" polyscan
    cp -- "$root/examples/first_scan/main.cpp" .
    fenced cmake 1 >CMakeLists.txt
    PATH="$(dirname -- "$(command -v "$polyscan_cmake")"):$PATH"
    for number in 1 2; do
        fenced sh "$number" | bash -e | tee printed
        grep -F "3 4 8 9 14 10 13 14 18 19" printed >/dev/null || return 1
    done
)

check_recipes() {
    local python=python3
    [ ! -x "$root/.venv/bin/python" ] || python="$root/.venv/bin/python"
    "$python" - "$root/packaging/spack/package.py" "$root/packaging/conan/conanfile.py" \
        "$root/packaging/conan/test_package/conanfile.py" "$root/packaging/vcpkg/vcpkg.json" \
        "$(sed -n 's/^project(polyscan VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")" <<'PYTHON'
import ast, json, re, sys
*recipes, manifest, version = sys.argv[1:]
for recipe in recipes:
    ast.parse(open(recipe).read(), recipe)
for recipe in recipes[:2]:
    assert re.search(r'version\W+' + re.escape(version), open(recipe).read()), f"{recipe}: not version {version}"
assert json.load(open(manifest))["version"] == version, f"{manifest}: not version {version}"
PYTHON
    # In script mode the vcpkg functions do not exist; reading the file finds what is not CMake.
    printf 'function(read_only)\n%s\nendfunction()\n' "$(cat "$root/packaging/vcpkg/portfile.cmake")" >"$work/portfile.cmake"
    "$polyscan_cmake" -P "$work/portfile.cmake"
}

main() {
    find_cmake
    generator=()
    ! command -v ninja >/dev/null || generator=(-G Ninja)
    step "build and install" install_polyscan
    step "the installed tree names no other folder" check_relocatable
    step "find_package, twice, nested, with the run-time library" consume find_package "-DCMAKE_PREFIX_PATH=$work/prefix"
    check_missing_component || fail "a missing component"
    step "add_subdirectory changes nothing of the user's" consume add_subdirectory "-DPOLYSCAN_SOURCE_DIR=$root"
    step "FetchContent, installed as part of another project, used from there" use_fetched
    if command -v g++ >/dev/null; then
        step "the tutorial's commands" use_tutorial
    else
        say "the tutorial's commands: SKIPPED, g++ is not installed"
    fi
    if command -v pkg-config >/dev/null && command -v make >/dev/null; then
        step "pkg-config" use_pkg_config
    else
        say "pkg-config: SKIPPED, pkg-config or make is not installed"
    fi
    if command -v dpkg-deb >/dev/null; then
        step "Debian package" make_debian_package
    else
        say "Debian package: SKIPPED, dpkg-deb is not installed"
    fi
    step "recipes: syntax and version" check_recipes
}

main
