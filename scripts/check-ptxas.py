#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads what `ptxas -v` said about each kernel in a build's log, and fails on register spills or too much shared memory.

    cmake --build build/cuda --clean-first 2>&1 | tee log; scripts/check-ptxas.py log [--table]

Dynamic shared memory is not in the log: its size is a constant of the code, which a static_assert holds below the limit.
A stack frame without spills is an array that is indexed at run time by the user's operator; it is counted, not refused.
"""
import argparse
import re
import shutil
import subprocess
import sys

SHARED_LIMIT = 99 * 1024  # of a block on sm_86 and sm_89, the least among the supported architectures


def demangled(names):
    tool = shutil.which("cu++filt") or shutil.which("c++filt")
    if not tool or not names:
        return names
    out = subprocess.run([tool], input="\n".join(names), capture_output=True, text=True, check=False).stdout
    lines = out.splitlines()
    return lines if len(lines) == len(names) else names


def kernels(lines):
    """One dictionary for each kernel that ptxas compiled."""
    found, current, properties_of = [], None, None
    for line in lines:
        if m := re.search(r"Compiling entry function '([^']+)' for '(\w+)'", line):
            current = {"name": m[1], "arch": m[2], "stack": 0, "stores": 0, "loads": 0, "registers": 0, "shared": 0}
            found.append(current)
        elif m := re.search(r"Function properties for (\S+)", line):
            properties_of = m[1]
        elif m := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            # A function that a kernel calls has properties of its own: they count for the kernel.
            if current is not None:
                for key, value in zip(("stack", "stores", "loads"), m.groups()):
                    current[key] += int(value)
                if properties_of not in (None, current["name"]):
                    current.setdefault("calls", []).append(properties_of)
        elif m := re.search(r"Used (\d+) registers", line):
            if current is not None:
                current["registers"] = int(m[1])
                if s := re.search(r"(\d+) bytes smem", line):
                    current["shared"] = int(s[1])
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("log", type=argparse.FileType("r", errors="replace"))
    parser.add_argument("--table", action="store_true", help="print every kernel")
    parser.add_argument("--arch", default="sm_89", help="the architecture to judge (default: sm_89)")
    arguments = parser.parse_args()

    found = [k for k in kernels(arguments.log) if k["arch"] == arguments.arch]
    if not found:
        print(f"check-ptxas: no kernel for {arguments.arch} in the log; was it a clean build with -Xptxas -v?")
        return 1
    bad = [k for k in found if k["stores"] or k["loads"] or k["shared"] > SHARED_LIMIT]
    shown = found if arguments.table else bad
    for k, name in zip(shown, demangled([k["name"] for k in shown])):
        print(f"{k['registers']:4d} registers {k['stack']:5d} stack {k['stores']:5d}/{k['loads']:5d} spilled "
              f"{k['shared']:6d} shared  {name[:240]}")
    stacks = sum(1 for k in found if k["stack"])
    print(f"check-ptxas: {len(found)} kernels for {arguments.arch}, at most {max(k['registers'] for k in found)} registers, "
          f"{stacks} with a stack frame, {len(bad)} refused")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
