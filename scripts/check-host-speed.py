#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Says which of the host's scans got slower, by ratios to their roofs.

    scripts/check-host-speed.py --bench build/openmp/bench/host_bench            compare with bench/host_baseline.json
    scripts/check-host-speed.py --bench build/openmp/bench/host_bench --record   make what was measured the baseline

A ratio is the time of a parallel pass that reads and writes the same bytes over the time of the scan, both of one run.
It is compared with the stored ratio of the same row, size and state of the machine (docs/benchmarks.md: an empty
parallel region tells the states apart). A row is slower when its ratio fell by more than the noise: the quartile
distances of both measurements together, and never less than 8 %. Exit: 0 nothing is slower, 1 something is, 2 nothing
could be compared.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEAST_NOISE = 0.08
# Between the two states of the machine that the baseline is from: 0.5 and 1.1 us were seen.
REGION_LIMIT_US = 0.8


def state(row):
    return "near" if row["empty_region_us"] < REGION_LIMIT_US else "far"


def key(row):
    return f'{row["row"]} {row["n"]} {row.get("state") or state(row)}'


def measure(bench, options):
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder) / "result.json"
        subprocess.run([bench, "--json", str(result), *options], check=True, stdout=sys.stderr)
        return json.loads(result.read_text(encoding="utf-8"))


def noise_of(row, roofs):
    return row["spread"] + roofs.get((row["roof"], row["n"]), 0.0)


def rows_with_noise(found):
    roofs = {(r["row"], r["n"]): r["spread"] for r in found["rows"]}
    return [
        {"row": r["row"], "n": r["n"], "state": state(r), "ratio": r["ratio"], "noise": round(noise_of(r, roofs), 4)}
        for r in found["rows"]
        if r["roof"]
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", help="the program host_bench")
    parser.add_argument("--result", type=pathlib.Path, help="what host_bench --json wrote, instead of running it")
    parser.add_argument("--baseline", type=pathlib.Path, default=ROOT / "bench" / "host_baseline.json")
    parser.add_argument("--record", action="store_true", help="store what was measured")
    parser.add_argument("options", nargs="*", help="for host_bench, after --")
    arguments = parser.parse_args()
    if arguments.result:
        found = json.loads(arguments.result.read_text(encoding="utf-8"))
    elif arguments.bench:
        found = measure(arguments.bench, arguments.options)
    else:
        parser.error("--bench or --result is needed")
    rows = rows_with_noise(found)

    stored = {}
    if arguments.baseline.exists():
        stored = {key(r): r for r in json.loads(arguments.baseline.read_text(encoding="utf-8"))["rows"]}
    if arguments.record:
        stored.update({key(r): r for r in rows})
        lines = ",\n".join(json.dumps(stored[k]) for k in sorted(stored))
        text = f'{{"schema": 1, "threads": {found["threads"]}, "rows": [\n{lines}\n]}}\n'
        arguments.baseline.write_text(text, encoding="utf-8")
        print(f"{len(rows)} ratios stored, {len(stored)} in all, in {arguments.baseline}")
        return 0

    compared, slower = 0, 0
    for row in rows:
        before = stored.get(key(row))
        if before is None:
            print(f"no baseline  {key(row)}: {row['ratio']:.3f}")
            continue
        compared += 1
        change = row["ratio"] / before["ratio"] - 1
        noise = max(LEAST_NOISE, row["noise"] + before["noise"])
        if change < -noise:
            slower += 1
            print(f"SLOWER       {key(row)}: {before['ratio']:.3f} to {row['ratio']:.3f}, {change:+.1%}, noise {noise:.1%}")
        elif change > noise:
            print(f"faster       {key(row)}: {before['ratio']:.3f} to {row['ratio']:.3f}, {change:+.1%}, noise {noise:.1%}")
    print(f"{compared} rows compared, {slower} slower")
    if compared == 0:
        return 2
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
