#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a report with pictures out of what `polyscan compare --json` wrote.

    report.py [--output DIR] RESULT.json...

Several files are overlaid: other machines, other numbers of threads, other days. DIR (report without it) receives
index.html, which holds all pictures itself, and each picture as PNG and SVG. Exit 2 for a file that is not a record.
Needs matplotlib and NumPy.
"""

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import records  # noqa: E402


def fail(message):
    print(f"report.py: {message}", file=sys.stderr)
    sys.exit(2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0],
                                     epilog="Example: polyscan compare --sizes 2^10..2^24 --json run.json && report.py run.json")
    parser.add_argument("files", nargs="+", metavar="RESULT.json")
    parser.add_argument("-o", "--output", default="report", metavar="DIR", help="where index.html goes (default: report)")
    arguments = parser.parse_args()
    try:
        found = records.read_all(dict.fromkeys(arguments.files))
    except records.BadRecord as error:
        fail(error)
    output = pathlib.Path(arguments.output)
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        fail(f"{output}: cannot be made: {error.strerror}")
    # Late: a bad argument is answered at once, and without matplotlib.
    try:
        import page
    except ImportError as error:
        fail(f"needs {error.name}: pip install matplotlib numpy (scripts/setup.sh puts them in .venv)")
    try:
        count = page.write(found, output)
    except OSError as error:
        fail(f"{output}: cannot be written: {error.strerror}")
    print(f"{output / 'index.html'}: {count} pictures of {sum(len(r.rows) + len(r.others) for r in found)} rows from {len(found)} file(s)")


if __name__ == "__main__":
    main()
