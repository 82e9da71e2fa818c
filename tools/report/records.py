# SPDX-License-Identifier: Apache-2.0
"""Reads what `polyscan compare --json` wrote, and the records in docs/results, into rows of one shape."""

import dataclasses
import json
import pathlib
import re

CLASSICS = {  # the five algorithms of the textbooks, by their short names
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
class Other:
    """A row of a benchmark program that is no row of a comparison: a verb beside scan, a row by name."""

    record: "Record"
    name: str
    who: str  # whose implementation
    n: int
    us: float
    share: float | None  # of the fastest that the memory allows, or of a peer's speed


@dataclasses.dataclass
class Record:
    path: pathlib.Path
    machine: str
    compiler: str
    date: str
    rows: list
    others: list
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
    if not minimum <= value < 2**63:  # nor is it NaN
        raise BadRecord(f"{where}: '{key}' is {value}, and must be finite, at least {minimum:g} and below 2^63")
    return value


def _text(row, key, where, default=None):
    value = row.get(key, default)
    if not isinstance(value, str):
        raise BadRecord(f"{where}: '{key}' is {json.dumps(value)}, not a text")
    return value


def _count(row, where):
    if "n" in row:
        return int(_number(row, "n", where, minimum=1, required=True))
    power = _number(row, "log2n", where, required=True)
    if power > 62:
        raise BadRecord(f"{where}: 'log2n' is {power}, and must be at most 62")
    return 2 ** int(power)


def _other(record, row, where):
    """Nothing for rows that are no measurements."""
    us = _number(row, "median_us", where) or _number(row, "us", where)
    ns, std_ns = _number(row, "median_ns", where), _number(row, "std_ns", where)
    us = ns / 1000 if us is None and ns else us
    if us is None or not ("n" in row or "log2n" in row):
        return None
    name = " ".join(str(row[key]) for key in ("verb", "row", "dtype", "data") if key in row)
    shares = [_number(row, key, where) for key in ("of_roof", "ratio", "speed_of_cub") if key in row]
    if ns and std_ns:
        shares.append(std_ns / ns)
    return Other(record, name, str(row.get("by", row.get("backend", "polyscan"))), _count(row, where), us, shares[0] if shares else None)


def _is_other(row):
    return isinstance(row, dict) and "policy" not in row and ("verb" in row or "row" in row)


def _row(record, row, where):
    if not isinstance(row, dict):
        raise BadRecord(f"{where}: is not an object")
    missing = [key for key in ("backend", "policy", "dtype", "op", "median_us") if key not in row]
    if "n" not in row and "log2n" not in row:
        missing.append("n")
    if missing:
        raise BadRecord(f"{where}: lacks {', '.join(missing)}")
    backend = _text(row, "backend", where)
    n = _count(row, where)
    op = " ".join([_text(row, "op", where), *([_text(row, "variant", where)] if "variant" in row else [])])
    case = Case(_text(row, "verb", where, "scan"), _text(row, "dtype", where), op, _text(row, "kind", where, "inclusive"))
    peer = row.get("peer", backend not in BACKENDS)
    if not isinstance(peer, bool):
        raise BadRecord(f"{where}: 'peer' is {json.dumps(peer)}, not true or false")
    median = _number(row, "median_us", where)
    return Row(record, case, backend, _text(row, "policy", where) or backend, peer, n,
               int(_number(row, "threads", where) or 0), median or None, _number(row, "gbps", where) or None,
               _number(row, "copy_ratio", where) or None, _text(row, "verdict", where, "not recorded"),
               _text(row, "reason", where, ""))


def _compiler(content):
    text = str(content.get("machine", {}).get("compiler") or content.get("compiler") or "compiler not recorded")
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
    machine = content.get("machine", {})
    if not isinstance(machine, dict):
        raise BadRecord(f"{path}: 'machine' is not an object")
    name = str(machine.get("device") or machine.get("processor") or "machine not recorded")
    if "driver" in machine:
        name += f" (driver {machine['driver']})"
    elif "processors" in machine:
        name += f" ({machine['processors']} processors)"
    record = Record(path, name, _compiler(content), str(machine.get("date") or content.get("date") or "date not recorded"), [], [])
    for i, row in enumerate(rows):
        where = f"{path}: row {i}"
        if _is_other(row):
            other = _other(record, row, where)
            record.others += [other] if other else []
        else:
            record.rows.append(_row(record, row, where))
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
