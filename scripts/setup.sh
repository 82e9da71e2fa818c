#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what polyscan needs, as far as it may, and finds out which backends this machine can build.
#
#   scripts/setup.sh [--backends openmp,kokkos,cuda] [--ci]
#
# As root on Debian or Ubuntu the release's own packages are installed without asking. As a normal user nothing is
# installed outside the project; what is missing is printed as one command line. Running it again is cheap.
#
#   POLYSCAN_BACKENDS       the same as --backends
#   POLYSCAN_ALLOW_SUITES   1 or 0: whether root may take Kokkos, and the C library that it needs, from a newer
#                           Debian suite, and CMake from the backports where PyPI does not answer. Unset: yes where
#                           no terminal is there to ask (containers, CI), else asked.
#   POLYSCAN_OFFLINE        1: install nothing, only look
#   Kokkos_ROOT             a Kokkos of your own (4.3 or newer); always preferred
#
# The findings go to build/setup.env, as shell assignments; scripts/test.sh and scripts/compare.sh read them.
if [ "${BASH_SOURCE[0]}" != "$0" ]; then
    # Sourced: do the work in a shell of its own, and bring its findings into this one.
    # shellcheck source=/dev/null
    bash "${BASH_SOURCE[0]}" "$@" && . "$(dirname -- "${BASH_SOURCE[0]}")/../build/setup.env"
    return
fi
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
venv="$root/.venv"
findings="$root/build/setup.env"
log="$root/build/setup.log"
all_backends="openmp kokkos cuda"
wanted=${POLYSCAN_BACKENDS:-}
ci=0
cmake=""
python=""
cudacxx=""
reason="" # why the backend looked at is left out
declare -A left_out=()
usable=()
missing=()

say() { printf '%s\n' "polyscan: $*"; }
fail() {
    printf '%s\n' "polyscan: $*" >&2
    exit 2
}
is_root() { [ "$(id -u)" -eq 0 ]; }
has_apt() { command -v apt-get >/dev/null && command -v dpkg-query >/dev/null; }
may_install() { is_root && has_apt && [ "${POLYSCAN_OFFLINE:-0}" != 1 ]; }
# at_least VERSION MINIMUM
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }
apt_() { DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 "$@" </dev/null; }

# ---- the release's own packages -------------------------------------------------------------------------------------

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

needed_packages() {
    printf '%s\n' g++ ninja-build doctest-dev libcli11-dev libfmt-dev nlohmann-json3-dev libbenchmark-dev libtbb-dev \
        python3-venv ca-certificates
    if [ "$ci" = 1 ]; then
        printf '%s\n' clang-19 libclang-rt-19-dev libomp-19-dev shellcheck git spin pkg-config make doxygen codespell
    fi
}

find_missing() {
    local package
    missing=()
    while read -r package; do
        installed "$package" || missing+=("$package")
    done < <(needed_packages)
}

install_packages() {
    if ! has_apt; then
        say "not Debian or Ubuntu: expecting a C++20 compiler, Ninja, doctest, CLI11, fmt, nlohmann-json, Google" \
            "benchmark and oneTBB to be installed already"
        return
    fi
    find_missing
    [ "${#missing[@]}" -gt 0 ] || return 0
    if may_install; then
        say "installing ${missing[*]}"
        # The package lists are fetched anew only where the ones at hand do not do.
        if ! apt_ install --no-install-recommends "${missing[@]}" >>"$log" 2>&1; then
            apt_ update >>"$log" 2>&1 || say "the package lists could not be updated; going on with those at hand"
            apt_ install --no-install-recommends "${missing[@]}" >>"$log" 2>&1 || true
        fi
        find_missing
        # One name that a release does not have must not cost the others.
        for package in "${missing[@]}"; do
            apt_ install --no-install-recommends "$package" >>"$log" 2>&1 || true
        done
        find_missing
    fi
    [ "${#missing[@]}" -gt 0 ] || return 0
    say "missing: ${missing[*]}"
    if ! is_root; then
        say "to install them:  sudo apt-get install ${missing[*]}"
    fi
    explain_missing
}

explain_missing() {
    local package
    for package in "${missing[@]}"; do
        case $package in
        g++) say "  without g++ nothing can be built, unless CXX names another C++20 compiler" ;;
        ninja-build) say "  without ninja-build the presets do not work; with -G 'Unix Makefiles' everything else does" ;;
        doctest-dev) say "  without doctest-dev there are no tests (-DPOLYSCAN_TESTS=OFF); the headers and the program work" ;;
        libcli11-dev | libfmt-dev | nlohmann-json3-dev | libbenchmark-dev)
            say "  without $package there is no polyscan program (-DPOLYSCAN_TOOLS=OFF); the headers and the tests work" ;;
        libtbb-dev) say "  without libtbb-dev the comparison lacks the peers that need it" ;;
        python3-venv) say "  without python3-venv the system's own CMake (3.26 or newer) and NumPy are needed" ;;
        *) say "  $package: for the checks of continuous integration only" ;;
        esac
    done
}

# ---- CMake and NumPy ------------------------------------------------------------------------------------------------

make_venv() {
    [ -x "$venv/bin/python" ] && "$venv/bin/python" -m pip --version >/dev/null 2>&1 && return 0
    [ "${POLYSCAN_OFFLINE:-0}" != 1 ] || return 1
    local candidate
    for candidate in /usr/bin/python3 python3; do
        if "$candidate" -m venv --clear "$venv" >>"$log" 2>&1; then
            return 0
        fi
    done
    return 1
}

# venv_has_or_gets MODULE REQUIREMENT
venv_has_or_gets() {
    make_venv || return 1
    "$venv/bin/python" -I -c "import $1" 2>/dev/null && return 0
    [ "${POLYSCAN_OFFLINE:-0}" != 1 ] || return 1
    say "installing $1 in .venv"
    "$venv/bin/python" -m pip install -q --disable-pip-version-check "$2" >>"$log" 2>&1
}

cmake_version() { "$1" --version 2>/dev/null | sed -n '1s/^cmake version //p'; }

# Sets cmake to a candidate that is new enough.
usable_cmake() {
    local candidate version
    for candidate in "$(command -v cmake || true)" "$venv/bin/cmake"; do
        [ -x "$candidate" ] || continue
        version=$(cmake_version "$candidate")
        if [ -n "$version" ] && at_least "$version" 3.26; then
            cmake=$candidate
            return 0
        fi
    done
    return 1
}

# Where PyPI does not answer: the release's own CMake if that is new enough, else the one of Debian's backports.
install_cmake_package() {
    local version uri="" codename="" folder options
    reason="nothing may be installed here"
    may_install || return 1
    version=$(apt-cache policy cmake 2>/dev/null | sed -n 's/^ *Candidate: //p')
    if [ -n "$version" ] && [ "$version" != "(none)" ] && at_least "$version" 3.26; then
        say "installing cmake"
        apt_ install --no-install-recommends cmake >>"$log" 2>&1
        return
    fi
    read -r uri codename <<<"$(debian_archive)" || true
    reason="neither this release nor its backports are known to have CMake 3.26"
    [ "$codename" = bookworm ] || return 1
    may_take_suites "CMake can be had from $codename-backports." || return 1
    say "installing cmake from $codename-backports; the machine's apt sources stay as they are (POLYSCAN_ALLOW_SUITES=0" \
        "prevents this)"
    reason="apt could not install cmake from $codename-backports ($log)"
    folder=$(mktemp -d)
    mkdir -p "$folder"/{sources,lists/partial}
    cp -- /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list "$folder/sources/" 2>/dev/null || true
    [ ! -e /etc/apt/sources.list ] || cp -- /etc/apt/sources.list "$folder/sources/own.list"
    printf 'Types: deb\nURIs: %s\nSuites: %s-backports\nComponents: main\nSigned-By: %s\n' "$uri" "$codename" \
        /usr/share/keyrings/debian-archive-keyring.gpg >"$folder/sources/backports.sources"
    options=(-o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$folder/sources" -o "Dir::State::Lists=$folder/lists"
        -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=root)
    local good=1
    if apt_ "${options[@]}" update >>"$log" 2>&1 &&
        apt_ "${options[@]}" install --no-remove --no-install-recommends -t "$codename-backports" cmake >>"$log" 2>&1; then
        good=0
    fi
    rm -rf -- "$folder"
    return "$good"
}

find_cmake() {
    usable_cmake && return
    if venv_has_or_gets cmake 'cmake>=3.26' && usable_cmake; then
        return
    fi
    say "the cmake wheel could not be installed in .venv"
    if install_cmake_package && hash -r && usable_cmake; then
        return
    fi
    fail "CMake 3.26 or newer is needed; this machine's is '$(cmake_version cmake || true)', the wheel could not be" \
        "installed in .venv, and from packages: $reason. Put a newer cmake on PATH and run this again."
}

find_numpy() {
    if venv_has_or_gets numpy 'numpy'; then
        python="$venv/bin/python"
        venv_has_or_gets matplotlib 'matplotlib' ||
            say "no matplotlib: reports with pictures are left out (.venv/bin/python -m pip install matplotlib)"
        return
    fi
    if may_install && ! /usr/bin/python3 -c 'import numpy' 2>/dev/null; then
        apt_ install --no-install-recommends python3-numpy >>"$log" 2>&1 || true
    fi
    if /usr/bin/python3 -c 'import numpy' 2>/dev/null; then
        python=/usr/bin/python3
    else
        say "no NumPy: the comparison with NumPy is left out (pip install numpy, or apt-get install python3-numpy)"
    fi
}

# ---- Kokkos ---------------------------------------------------------------------------------------------------------

kokkos_minimum=4.3
# What Kokkos' Debian packages need from the next release.
suite_packages="libc6 libc-bin libc6-dev libstdc++6 libgcc-s1 libgomp1"
# What that release's libc6 and libc6-dev do not tolerate in an older version: upgraded where installed, never removed.
suite_companions="base-files dpkg-dev libdpkg-perl"

# Configures, builds and runs a program of three lines: that a package is there does not mean that it works.
kokkos_works() {
    local work
    work=$(mktemp -d)
    cat >"$work/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.26)
project(probe LANGUAGES CXX)
find_package(Kokkos 4.3 QUIET)
if(NOT Kokkos_FOUND)
    message(FATAL_ERROR "probe: none")
endif()
add_executable(probe probe.cpp)
target_compile_features(probe PRIVATE cxx_std_20)
target_link_libraries(probe PRIVATE Kokkos::kokkos)
END
    cat >"$work/probe.cpp" <<'END'
#include <Kokkos_Core.hpp>
int main() {
    Kokkos::ScopeGuard guard;
    long sum = 0;
    Kokkos::parallel_reduce(Kokkos::RangePolicy<Kokkos::DefaultHostExecutionSpace>(0, 100),
                            KOKKOS_LAMBDA(int i, long& s) { s += i; }, sum);
    return sum == 4950 ? 0 : 1;
}
END
    local good=1 generator=()
    ! command -v ninja >/dev/null || generator=(-G Ninja)
    if "$cmake" -S "$work" -B "$work/build" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release >"$work/log" 2>&1 &&
        "$cmake" --build "$work/build" >>"$work/log" 2>&1 &&
        OMP_PROC_BIND=false "$work/build/probe" >>"$work/log" 2>&1; then
        good=0
    fi
    cat "$work/log" >>"$log"
    # "not found" and "found, but does not work" are different reasons.
    reason="Kokkos $kokkos_minimum or newer was not found (set Kokkos_ROOT to where yours is)"
    if [ "$good" = 1 ] && ! grep -q 'probe: none' "$work/log"; then
        reason="Kokkos was found, but a three-line program does not build or run with it ($log)"
    fi
    rm -rf -- "$work"
    return "$good"
}

# The package forgets two empty archives that its own CMake files name.
mend_kokkos_package() {
    local folder archive
    folder=$(dpkg -L libkokkos-dev 2>/dev/null | sed -n 's,/libkokkoscore\..*$,,p' | head -n 1)
    [ -n "$folder" ] || return 0
    for archive in libkokkosalgorithms.a libkokkossimd.a; do
        [ -e "$folder/$archive" ] || ar rc "$folder/$archive"
    done
}

# may_take_suites SENTENCE: returns 1, with the reason, where packages of another suite may not be taken. The sentence
# is for people who are asked.
may_take_suites() {
    local answer
    case ${POLYSCAN_ALLOW_SUITES:-} in
    0) reason="packages from a newer suite are switched off (POLYSCAN_ALLOW_SUITES=0)" && return 1 ;;
    1) return 0 ;;
    esac
    if [ "${CI:-}" = true ] || { [ ! -t 0 ] && [ ! -t 2 ]; }; then
        return 0
    fi
    say "$1"
    read -r -p "polyscan: change these packages of this system? [y/N] " answer </dev/tty || answer=n
    case $answer in
    y | Y | yes) return 0 ;;
    esac
    reason="packages from a newer suite were declined"
    return 1
}

# The distribution's own version, where the release has one that is new enough.
install_release_kokkos() {
    local version
    version=$(apt-cache policy libkokkos-dev 2>/dev/null | sed -n 's/^ *Candidate: //p')
    if [ -z "$version" ] || [ "$version" = "(none)" ] || ! at_least "$version" "$kokkos_minimum"; then
        return 1
    fi
    say "installing libkokkos-dev"
    apt_ install --no-install-recommends libkokkos-dev >>"$log" 2>&1 || return 1
    mend_kokkos_package
}

# Where this machine's apt takes Debian's main archive from, and for which release: "URI CODENAME".
debian_archive() {
    # shellcheck disable=SC2016 # apt expands these, not the shell
    apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(COMPONENT)|$(REPO_URI)|$(CODENAME)' 'Created-By: Packages' \
        2>/dev/null | awk -F'|' '$1 == "Debian" && $2 == "Debian" && $3 == "main" && $5 !~ /-/ { print $4, $5; exit }'
}

# The temporary apt configuration: own sources, preferences and lists, so that the machine's stay as they are.
# Sets suite_options.
make_suite_options() { # FOLDER URI NEXT PACKAGE...
    local folder=$1 uri=$2 next=$3
    shift 3
    mkdir -p "$folder"/{sources,preferences,lists/partial}
    local keyring=/usr/share/keyrings/debian-archive-keyring.gpg signed=""
    [ ! -e "$keyring" ] || signed="Signed-By: $keyring"
    {
        printf 'Types: deb\nURIs: %s\nSuites: %s sid\nComponents: main\n' "$uri" "$next"
        [ -z "$signed" ] || printf '%s\n' "$signed"
    } >"$folder/sources/suites.sources"
    # From the next release only what is named, from sid only Kokkos; what the former newly depends on may follow.
    cat >"$folder/preferences/suites" <<END
Package: *
Pin: release n=$next
Pin-Priority: 90

Package: $*
Pin: release n=$next
Pin-Priority: 990

Package: *
Pin: release n=sid
Pin-Priority: -10

Package: libkokkos*
Pin: release n=sid
Pin-Priority: 990
END
    suite_options=(-o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$folder/sources"
        -o Dir::Etc::Preferences=/dev/null -o "Dir::Etc::PreferencesParts=$folder/preferences"
        -o "Dir::State::Lists=$folder/lists" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=
        -o APT::Sandbox::User=root)
}

install_suite_kokkos() {
    local archive uri="" codename="" next folder plan package packages
    archive=$(debian_archive)
    if [ -z "$archive" ]; then # no package lists at hand yet
        apt_ update >>"$log" 2>&1 || true
        archive=$(debian_archive)
    fi
    read -r uri codename <<<"$archive" || true
    case $codename in
    bookworm) next=trixie ;;
    trixie) next=trixie ;;
    *)
        reason="neither this release's own packages nor a known newer suite has Kokkos for it"
        return 1
        ;;
    esac
    read -r -a packages <<<"$suite_packages"
    # All of glibc's installed packages move together.
    while read -r package; do
        packages+=("$package")
    done < <(dpkg-query -W -f '${db:Status-Status} ${source:Package} ${Package}\n' | awk '$1 == "installed" && $2 == "glibc" { print $3 }')
    for package in $suite_companions; do
        ! installed "$package" || packages+=("$package")
    done

    folder=$(mktemp -d)
    suite_folder=$folder
    make_suite_options "$folder" "$uri" "$next" "${packages[@]}"
    if ! apt_ "${suite_options[@]}" update >>"$log" 2>&1; then
        reason="the package lists of $next and sid could not be fetched"
        return 1
    fi
    # --no-remove: rather no Kokkos than one package less on this machine.
    local install=("${suite_options[@]}" install --no-remove --no-install-recommends libkokkos-dev)
    mapfile -t packages < <(printf '%s\n' "${packages[@]}" | sort -u)
    if ! plan=$(apt_ --simulate "${install[@]}" "${packages[@]}" 2>>"$log"); then
        printf '%s\n' "$plan" >>"$log"
        reason="apt finds no way to install Kokkos from $next and sid without removing packages ($log)"
        return 1
    fi
    say "Kokkos needs packages from $next and sid:" \
        "$(sed -n 's/^Inst \([^ ]*\) .*/\1/p' <<<"$plan" | tr '\n' ' ')"
    may_take_suites \
        "Kokkos can be had from a newer Debian suite, together with the C library and what belongs to it (listed above)." ||
        return 1
    say "installing them; the machine's apt sources stay as they are (POLYSCAN_ALLOW_SUITES=0 prevents this)"
    if grep -q '^Inst base-files ' <<<"$plan"; then
        say "note: base-files is among them, so this machine will call itself '$next' in /etc/os-release"
    fi
    if ! apt_ "${install[@]}" "${packages[@]}" -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold >>"$log" 2>&1; then
        reason="apt could not install Kokkos from $next and sid ($log)"
        return 1
    fi
    mend_kokkos_package
}

find_kokkos() {
    [ ! -e /var/lib/dpkg/info/libkokkos-dev.list ] || ! is_root || mend_kokkos_package
    kokkos_works && return 0
    # What is there but does not work is the user's to mend, not ours to replace.
    case $reason in
    *"was found, but"*) return 1 ;;
    esac
    [ -z "${Kokkos_ROOT:-}" ] || return 1
    if ! may_install; then
        return 1
    fi
    if ! install_release_kokkos; then
        suite_folder=""
        local installed=0
        install_suite_kokkos || installed=1
        [ -z "$suite_folder" ] || rm -rf -- "$suite_folder"
        [ "$installed" = 0 ] || return 1
    fi
    kokkos_works
}

# ---- which backends -------------------------------------------------------------------------------------------------

find_openmp() {
    local probe
    probe=$(mktemp -d)
    printf '#include <omp.h>\nint main() { return omp_get_max_threads() > 0 ? 0 : 1; }\n' >"$probe/probe.cpp"
    local good=1
    if "${CXX:-c++}" -fopenmp "$probe/probe.cpp" -o "$probe/probe" >>"$log" 2>&1; then
        good=0
    fi
    rm -rf -- "$probe"
    reason="the compiler '${CXX:-c++}' does not build a program with -fopenmp"
    return "$good"
}

find_cuda() {
    reason="no CUDA compiler: nvcc is neither on PATH nor in /usr/local/cuda/bin, and CUDACXX is not set"
    local candidate
    for candidate in "${CUDACXX:-}" "$(command -v nvcc || true)" /usr/local/cuda/bin/nvcc; do
        if [ -n "$candidate" ] && command -v "$candidate" >/dev/null; then
            cudacxx=$(command -v "$candidate")
            return 0
        fi
    done
    return 1
}

is_wanted() { [ -z "$wanted" ] || [[ ",$wanted," == *",$1,"* ]]; }

find_backends() {
    local backend
    for backend in $all_backends; do
        reason=""
        if [ ! -e "$root/backends/$backend/CMakeLists.txt" ]; then
            left_out[$backend]="not in this source tree"
        elif ! is_wanted "$backend"; then
            left_out[$backend]="not asked for"
        elif "find_$backend"; then
            usable+=("$backend")
        else
            left_out[$backend]=$reason
        fi
    done
}

# ---- findings -------------------------------------------------------------------------------------------------------

# What the missing packages switch off; an argument in POLYSCAN_CMAKE_ARGS has the last word.
switches() {
    case " ${missing[*]} " in
    *" libcli11-dev "* | *" libfmt-dev "* | *" nlohmann-json3-dev "* | *" libbenchmark-dev "*)
        printf '%s ' -DPOLYSCAN_TOOLS=OFF -DPOLYSCAN_BENCHMARKS=OFF ;;
    esac
    case " ${missing[*]} " in
    *" doctest-dev "*) printf '%s ' -DPOLYSCAN_TESTS=OFF ;;
    esac
}

write_findings() {
    local backend joined
    joined=$(IFS=,; printf '%s' "${usable[*]}")
    {
        printf '# Written by scripts/setup.sh; do not edit.\n'
        printf 'polyscan_cmake=%q\n' "$cmake"
        printf 'polyscan_python=%q\n' "$python"
        printf 'polyscan_backends=%q\n' "$joined"
        printf 'polyscan_cudacxx=%q\n' "$cudacxx"
        printf 'polyscan_switches=%q\n' "$(switches)"
        for backend in $all_backends; do
            printf 'polyscan_left_out_%s=%q\n' "$backend" "${left_out[$backend]:-}"
        done
    } >"$findings.new"
    mv -- "$findings.new" "$findings"
}

report() {
    local backend
    say "CMake $(cmake_version "$cmake") ($cmake); backends: ${usable[*]:-none}"
    for backend in $all_backends; do
        if [ -n "${left_out[$backend]:-}" ]; then
            say "LEFT OUT: backend $backend: ${left_out[$backend]}"
        fi
    done
}

parse() {
    while [ "$#" -gt 0 ]; do
        case $1 in
        --backends)
            [ "$#" -gt 1 ] || fail "--backends needs a comma-separated list"
            wanted=$2
            shift
            ;;
        --backends=*) wanted=${1#*=} ;;
        --ci) ci=1 ;;
        -h | --help)
            sed -n '3,/^if /{/^if /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
            exit 0
            ;;
        *) fail "setup.sh does not know '$1' (--help)" ;;
        esac
        shift
    done
    wanted=${wanted// /}
    local backend
    for backend in ${wanted//,/ }; do
        [[ " $all_backends " == *" $backend "* ]] || fail "there is no backend '$backend' (there are: $all_backends)"
    done
}

main() {
    parse "$@"
    mkdir -p "$root/build"
    date -u '+---- setup, %Y-%m-%dT%H:%M:%SZ' >>"$log"
    install_packages
    find_cmake
    find_numpy
    find_backends
    write_findings
    report
    [ "${#usable[@]}" -gt 0 ] || fail "no backend can be built on this machine"
}

main "$@"
