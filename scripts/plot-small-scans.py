#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the time of short scans beside the standard library's.

    bench/host_bench --small --json docs/results/short-scans-<machine>-<date>.json
    scripts/plot-small-scans.py docs/results/short-scans-<machine>-<date>.json     writes the same name with .svg
"""

import json
import pathlib
import sys

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "polyscan"  # the same picture for the same figures
matplotlib.rcParams["svg.fonttype"] = "none"
import matplotlib.pyplot as plt  # noqa: E402


def main():
    source = pathlib.Path(sys.argv[1])
    rows = json.loads(source.read_text(encoding="utf-8"))["rows"]
    types = list(dict.fromkeys(r["row"].removeprefix("small ") for r in rows if r["row"].startswith("small ")))
    figure, panels = plt.subplots(1, len(types), figsize=(3.2 * len(types), 3.4), sharey=True, layout="constrained")
    for panel, name in zip(panels, types):
        mine = [r for r in rows if r["row"] == "small " + name and r["n"] >= 4]
        sizes = [r["n"] for r in mine]
        panel.plot(sizes, [r["std_ns"] / r["n"] for r in mine], color="0.45", label="std::inclusive_scan")
        panel.plot(sizes, [r["median_ns"] / r["n"] for r in mine], color="C0", label="polyscan, default policy")
        panel.set(xscale="log", yscale="log", title=name, xlabel="elements")
        panel.grid(True, which="major", color="0.9")
    panels[0].set_ylabel("ns per element")
    panels[0].legend(frameon=False)
    target = source.with_suffix(".svg")
    figure.savefig(target, metadata={"Date": None})
    print(target)


if __name__ == "__main__":
    main()
