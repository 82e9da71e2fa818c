#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks and measures the CUDA backend on this machine's GPU and records it in docs/results/<device>-<date>.json:
#   1. the whole matrix, the properties, the contract tests, lengths beyond 2^32, the verbs beside scan;
#   2. compute-sanitizer's four tools over every kernel once;
#   3. device copy, polyscan, CUB and Thrust side by side.
#
#   scripts/gpu-check.sh [--build DIR] [--out FILE] [--jobs N] [--short]
#
# --build  a build tree with the target cuda_check built (its programs suffice); without it, one is made for this GPU
# --out    the record; default docs/results/<device>-<date>.json
# --jobs   processes at once in step 1 and 2 (default: the number of processors)
# --short  a sweep of few sizes
# Exit status: 0 all good, 1 something failed (the record says what), 2 no GPU or no programs.
set -uo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
build="" out="" jobs=$(nproc) sweep=()
while [ $# -gt 0 ]; do
    case $1 in
    --build) build=$2 && shift ;;
    --out) out=$2 && shift ;;
    --jobs) jobs=$2 && shift ;;
    --short) sweep=(--short) ;;
    *) sed -n '3,16p' "$0" && exit 2 ;;
    esac
    shift
done

if ! nvidia-smi -L >/dev/null 2>&1; then
    echo "gpu-check: no CUDA device"
    exit 2
fi
if [ -z "$build" ]; then
    build=$root/build/cuda-native
    (cd "$root" && cmake --preset cuda-native -DPOLYSCAN_CUDA_VERBOSE=ON && cmake --build "$build" --target cuda_check) || exit 2
fi
programs=$build/tests/cuda
for program in cuda.matrix cuda.property cuda.contract cuda.primitives cuda.sort cuda.histogram cuda.sort_contract \
    cuda_pipeline_races cuda_bench cuda_primitives_bench cuda_sort_bench; do
    [ -x "$programs/$program" ] || { echo "gpu-check: $programs/$program is missing" && exit 2; }
done

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
say() { printf 'gpu-check: %s\n' "$*"; }

say "matrix"
"$programs/cuda.matrix" --list-test-cases 2>/dev/null | grep 'policy: ' >"$logs/cases"
mkdir "$logs/matrix"
export programs logs
# shellcheck disable=SC2016 # the inner shell expands them
xargs -a "$logs/cases" -d '\n' -P "$jobs" -I{} bash -c '
    log=$logs/matrix/$(echo "$1" | tr -c "a-z0-9\n" _)
    timeout 300 "$programs/cuda.matrix" "--test-case=$1" >"$log" 2>&1; echo "status $?" >>"$log"' _ {}
say "properties, contract, verbs beside scan"
run() { # name, program, arguments
    timeout 300 "$programs/$2" "${@:3}" >"$logs/$1" 2>&1
    echo "status $?" >>"$logs/$1"
}
for name in property contract primitives sort histogram sort_contract; do run "$name" "cuda.$name" & done
wait
# Not beside others: these want much memory, or break the process's device on purpose.
run large cuda.contract '--test-case=large*' --no-skip
run sort_large cuda.sort_contract '--test-case=large*' --no-skip
run earlier_error cuda.contract '--test-case=an error of earlier*' --no-skip

mkdir "$logs/sanitizer"
if command -v compute-sanitizer >/dev/null; then
    say "compute-sanitizer"
    # racecheck follows barriers in shared memory thread by thread (docs/memory_ordering.md): it leaves the pipeline out,
    # but for a program in which every lane arrives at them.
    exclude=--kernel-regex-exclude # older versions' name
    if compute-sanitizer --help | grep -q -e --kernel-name-exclude; then exclude=--kernel-name-exclude; fi
    export exclude
    # shellcheck disable=SC2016 # the inner shell expands them
    for tool in memcheck racecheck synccheck initcheck; do
        if [ $tool = racecheck ]; then
            printf '%s\0' $tool cuda.contract 'each kernel once*'
            printf '%s\0' $tool cuda_pipeline_races ''
        else
            printf '%s\0' $tool cuda.contract 'each kernel once*,the pipeline once*'
        fi
        printf '%s\0' $tool cuda.primitives 'a chain of verbs*'
        printf '%s\0' $tool cuda.sort_contract 'few blocks*,a histogram*'
        printf '%s\0' $tool cuda.histogram 'histogram: more bins*,for_each*'
    done | xargs -0 -n 3 -P "$jobs" bash -c '
        log=$logs/sanitizer/$1.$2 leave_out=()
        [ "$1" != racecheck ] || [ "$2" = cuda_pipeline_races ] || leave_out=("$exclude" kns=scan_prefix_pipeline)
        timeout 300 compute-sanitizer --tool "$1" "${leave_out[@]}" "$programs/$2" "--test-case=$3" >"$log" 2>&1
        echo "status $?" >>"$log"' _
fi

say "sweep"
run sweep cuda_bench --policies --types "${sweep[@]}"
run sweep_primitives cuda_primitives_bench
run sweep_sort cuda_sort_bench

root=$root out=$out logs=$logs build=$build python3 - <<'PY'
import datetime, glob, hashlib, json, os, re, subprocess, sys

root, logs = os.environ["root"], os.environ["logs"]

def text(path):
    return open(path, errors="replace").read()

def status(log):
    found = re.findall(r"^status (\d+)$", log, re.M)
    return int(found[-1]) if found else -1

def first_line(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip().splitlines()[-1]
    except (OSError, IndexError):
        return ""

# The sources that decide what ran: hash of the hashes of the files, in the order of their names.
digest = hashlib.sha256()
folders = ("core", "backends/cuda", "tests/cuda", "bench")
test_sources = ("cases.hpp", "inputs.hpp", "launch.hpp", "launch_impl.hpp", "matrix.hpp", "matrix_impl.hpp",
                "matrix_test.cpp", "property_test.cpp", "primitives.hpp", "primitives_impl.hpp", "primitives_test.cpp",
                "sort.hpp", "sort_impl.hpp", "sort_test.cpp", "histogram_test.cpp", "doctest_tally.hpp",
                "under_test.hpp")
# What is for hosts alone is left out.
sources = [p for folder in folders for p in sorted(glob.glob(f"{root}/{folder}/**/*", recursive=True))
           if os.path.isfile(p) and "/polyscan/host/" not in p and os.path.basename(p).endswith((".hpp", ".cuh", ".cu", ".in"))]
for path in sources + [f"{root}/tests/{name}" for name in test_sources]:
    digest.update(os.path.relpath(path, root).encode() + b"\0" + hashlib.sha256(open(path, "rb").read()).digest())

device, driver = [x.strip() for x in first_line("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").split(",")]
record = {
    "schema": 1,
    "date": datetime.date.today().isoformat(),
    "machine": {"device": device, "driver": driver},
    "compiler": first_line("nvcc", "--version"),
    "architectures": "",
    "source_sha256": digest.hexdigest(),
}
cache = os.path.join(os.environ["build"], "CMakeCache.txt")
if os.path.exists(cache):
    found = re.search(r"^CMAKE_CUDA_ARCHITECTURES:\w+=(.*)$", text(cache), re.M)
    record["architectures"] = found[1] if found else ""

matrix = {"cases": 0, "passed": 0, "failed": 0, "skipped": 0, "crashed": []}
failures = []
for path in sorted(glob.glob(f"{logs}/matrix/*")):
    log = text(path)
    matrix["cases"] += 1
    if counts := re.search(r"(\d+) cells passed, (\d+) failed, (\d+) skipped", log):
        for key, value in zip(("passed", "failed", "skipped"), counts.groups()):
            matrix[key] += int(value)
    if status(log) != 0:
        matrix["crashed" if not counts else "failed_cases"] = matrix.get("crashed" if not counts else "failed_cases", []) + [os.path.basename(path)]
        failures += re.findall(r"ERROR: (.*)", log)[:3]
record["matrix"] = matrix
tests = ("property", "contract", "large", "earlier_error", "primitives", "sort", "histogram", "sort_contract", "sort_large")
for name in tests:
    log = text(f"{logs}/{name}")
    counts = re.search(r"test cases: *(\d+) \| *(\d+) passed \| *(\d+) failed", log)
    record[name] = {"tests": int(counts[1]), "passed": int(counts[2]), "failed": int(counts[3])} if counts else {"failed": -1}
    record[name]["status"] = status(log)
    if status(log) != 0:
        failures += re.findall(r"ERROR: (.*)", log)[:5]
record["sanitizer"] = {}
for tool in ("memcheck", "racecheck", "synccheck", "initcheck"):
    paths = sorted(glob.glob(f"{logs}/sanitizer/{tool}.*"))
    record["sanitizer"][tool] = {} if paths else "not available on this machine"
    for path in paths:
        program = os.path.basename(path)[len(tool) + 1:]
        log = text(path)
        summary = re.findall(r"=+ (?:ERROR|RACECHECK) SUMMARY: (.*)", log)
        record["sanitizer"][tool][program] = summary[-1] if summary else "did not finish"
        if status(log) != 0 or not summary or not re.match(r"0 (errors|hazards)", summary[-1]):
            failures.append(f"{tool} of {program}: " + (summary[-1] if summary else log[-300:]))
record["sweep"] = []
for sweep in ("sweep", "sweep_primitives", "sweep_sort"):
    log = text(f"{logs}/{sweep}")
    for line in log.splitlines():
        if line.startswith("{"):
            record["sweep"].append(json.loads(line))
        elif not line.startswith("status"):
            failures.append(f"{sweep}: {line}")
    if status(log) != 0:
        failures.append(f"{sweep}: did not finish")
good = not failures and matrix["failed"] == 0 and not matrix["crashed"] and matrix["cases"] > 0
record["good"] = good
record["failures"] = failures

out = os.environ["out"] or f"{root}/docs/results/{re.sub('[^a-z0-9]+', '-', device.lower())}-{record['date']}.json"
os.makedirs(os.path.dirname(out) or ".", exist_ok=True)
with open(out, "w") as file:
    # One row of the sweep a line.
    rows = record.pop("sweep")
    head = json.dumps(record, indent=1)
    file.write(head[:-2] + ',\n "sweep": [\n  ' + ",\n  ".join(json.dumps(row) for row in rows) + "\n ]\n}\n")
print(f"gpu-check: {matrix['passed']} cells passed, {matrix['failed']} failed, {matrix['skipped']} skipped; "
      + ", ".join(f"{n} {record[n].get('passed', 0)}/{record[n].get('tests', 0)}" for n in tests)
      + "; " + ", ".join(f"{t}: {'; '.join(sorted(set(v.values()))) if isinstance(v, dict) else v}" for t, v in record["sanitizer"].items()))
for failure in failures[:20]:
    print("gpu-check: FAILED:", failure[:300])
print("gpu-check:", out)
sys.exit(0 if good else 1)
PY
