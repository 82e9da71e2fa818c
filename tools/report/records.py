# SPDX-License-Identifier: Apache-2.0
"""Reads what `polyscan compare --json` wrote, and the records in docs/results, into rows of one shape."""

import dataclasses
import json
import math
import pathlib
import re

SEEDS = {  # the five founding algorithms by the name that the founding documents gave them
    "kogge_stone": "single_block/kogge_stone",
    "brent_kung": "single_block/brent_kung",
    "coarse": "single_block/coarse",
    "three_pass": "three_pass/kogge_stone",
    "domino": "domino/kogge_stone",
}
DEFAULT = "prefix_server/warp_shuffle"
GRIDS = ("single_block", "three_pass", "domino", "look_back", "prefix_server")
BLOCKS = ("kogge_stone", "brent_kung", "coarse", "warp_shuffle")
BACKENDS = ("cuda", "openmp", "kokkos")


class BadRecord(Exception):
    """A file that is not a record; the message is one line for the user."""


@dataclasses.dataclass(frozen=True)
class Case:
    """What was computed: rows of one case may be compared."""

    verb: str
    dtype: str
    op: str
    kind: str

    def __str__(self):
        return f"{self.verb}: {self.kind} {self.op} of {self.dtype}".replace("scan: ", "")

    @property
    def slug(self):
        return f"{self.verb}-{self.kind}-{self.op}-{self.dtype}".replace("scan-", "")


@dataclasses.dataclass
class Row:
    record: "Record"
    case: Case
    backend: str
    policy: str
    peer: bool
    n: int
    threads: int
    median_us: float | None  # None: not timed
    gbps: float | None
    copy_ratio: float | None
    verdict: str
    reason: str

    @property
    def is_copy(self):
        return self.backend == "copy"


@dataclasses.dataclass
class Record:
    path: pathlib.Path
    machine: str
    compiler: str
    date: str
    rows: list
    label: str = ""  # unique among the records of one report

    @property
    def provenance(self):
        return f"{self.machine} · {self.compiler} · {self.date}"


def _number(row, key, where, minimum=0.0, required=False):
    value = row.get(key)
    if value is None and not required:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise BadRecord(f"{where}: '{key}' is {json.dumps(value)}, not a number")
    if not math.isfinite(value) or value < minimum:
        raise BadRecord(f"{where}: '{key}' is {value}, and must be finite and at least {minimum:g}")
    return value


def _text(row, key, where, default=None):
    value = row.get(key, default)
    if not isinstance(value, str):
        raise BadRecord(f"{where}: '{key}' is {json.dumps(value)}, not a text")
    return value


def _row(record, row, where):
    if not isinstance(row, dict):
        raise BadRecord(f"{where}: is not an object")
    missing = [key for key in ("backend", "policy", "dtype", "op", "median_us") if key not in row]
    if "n" not in row and "log2n" not in row:
        missing.append("n")
    if missing:
        raise BadRecord(f"{where}: lacks {', '.join(missing)}")
    backend = _text(row, "backend", where)
    if "n" in row:
        n = int(_number(row, "n", where, required=True))
    else:
        n = 2 ** int(_number(row, "log2n", where, required=True))
    case = Case(_text(row, "verb", where, "scan"), _text(row, "dtype", where), _text(row, "op", where),
                _text(row, "kind", where, "inclusive"))
    peer = row.get("peer", backend not in BACKENDS)
    if not isinstance(peer, bool):
        raise BadRecord(f"{where}: 'peer' is {json.dumps(peer)}, not true or false")
    median = _number(row, "median_us", where)
    return Row(record, case, backend, _text(row, "policy", where) or backend, peer, n,
               int(_number(row, "threads", where) or 0), median or None, _number(row, "gbps", where) or None,
               _number(row, "copy_ratio", where) or None, _text(row, "verdict", where, "not recorded"),
               _text(row, "reason", where, ""))


def _compiler(content):
    text = str(content["machine"].get("compiler") or content.get("compiler") or "compiler not recorded")
    nvcc = re.search(r"cuda_(\d+\.\d+)", text)
    return f"nvcc {nvcc[1]}" if nvcc else text


def read(path):
    """The record in a file. Throws BadRecord."""
    path = pathlib.Path(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadRecord(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise BadRecord(f"{path}: is not JSON: {str(error).splitlines()[0]}") from None
    if not isinstance(content, dict) or content.get("schema") != 1:
        raise BadRecord(f"{path}: is not a record of schema 1 (polyscan compare --json writes them)")
    rows = content.get("rows", content.get("sweep"))
    if not isinstance(rows, list) or not rows:
        raise BadRecord(f"{path}: has no rows")
    machine = content.get("machine")
    if not isinstance(machine, dict):
        raise BadRecord(f"{path}: 'machine' is missing")
    name = str(machine.get("device") or machine.get("processor") or "unknown machine")
    if "driver" in machine:
        name += f" (driver {machine['driver']})"
    elif "processors" in machine:
        name += f" ({machine['processors']} processors)"
    record = Record(path, name, _compiler(content), str(machine.get("date") or content.get("date") or "date not recorded"), [])
    record.rows = [_row(record, row, f"{path}: row {i}") for i, row in enumerate(rows)]
    return record


def read_all(paths):
    """All records, each with a label that tells it from the others."""
    records = [read(path) for path in paths]
    for record in records:
        threads = sorted({row.threads for row in record.rows if row.threads and not row.peer})
        record.label = record.machine.split(" (")[0]
        if len(threads) == 1:
            record.label += f", {threads[0]} thread{'s' if threads[0] != 1 else ''}"
    for more in (lambda record: record.date[:10], lambda record: record.path.stem):
        labels = [record.label for record in records]
        for record in records:
            same = [other for other in records if other is not record and labels[records.index(other)] == labels[records.index(record)]]
            if any(more(other) != more(record) for other in same):
                record.label += f" [{more(record)}]"
    return records
