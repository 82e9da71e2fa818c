#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the figures that pages quote with the records in docs/results: scripts/check-docs.sh calls it.

    check-figures.py            says which differ
    check-figures.py --write    brings the pages up to date, each figure with as many decimals as it has

Of a kind of record the latest counts. What a page says of development runs has no record, and is not looked at.
"""

import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "results"
DEFAULT = "prefix_server/warp_shuffle"
# Not a part of a name (float32) or of a power (2^20); 1.7x is a number.
NUMBER = re.compile(r"(?<![\w.^])\d+(?:\.\d+)?(?![\w^.]*\^)(?!\.\d)(?!\d)(?![a-wyzA-Z_])")


def record(pattern):
    found = sorted(RESULTS.glob(pattern))
    if not found:
        sys.exit(f"there is no record {pattern}")
    return json.loads(found[-1].read_text(encoding="utf-8"))


def where(rows, **wanted):
    """The only row, or the last one, that has all of this; keys that are None must be absent."""
    found = [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]
    if not found:
        raise LookupError(", ".join(f"{key} {value}" for key, value in wanted.items()))
    return found[-1]


# ---- pages ----------------------------------------------------------------------------------------------------------


class Page:
    """A page, and what is to be changed of it."""

    def __init__(self, name):
        self.name = name
        self.path = ROOT / name
        self.text = self.path.read_text(encoding="utf-8")
        self.problems, self.changes, self.count = [], [], 0

    def compare(self, span, value, what):
        """`value` may be several, which must all be what stands there."""
        quoted = self.text[slice(*span)]
        decimals = len(quoted.partition(".")[2])
        values = value if isinstance(value, list) else [value]
        self.count += 1
        if all(abs(float(quoted) - v) <= 0.5 * 10**-decimals + 1e-9 for v in values):
            return
        fresh = {f"{v:.{decimals}f}" for v in values}
        self.problems.append(f"{self.name}: {what}: {quoted}, in the record {', '.join(sorted(fresh))}")
        if len(fresh) == 1:
            self.changes.append((span, fresh.pop()))

    def numbers(self, begin, end, values, what):
        """The numbers between two places in the text are these values."""
        spans = [match.span() for match in NUMBER.finditer(self.text, begin, end)]
        if len(spans) != len(values):
            self.problems.append(f"{self.name}: {what}: {len(spans)} figures, {len(values)} in the record: "
                                 f"{self.text[begin:end].strip()}")
            return
        for span, value in zip(spans, values):
            self.compare(span, value, what)

    def sentence(self, pattern, *values):
        """Text with # where figures stand."""
        words = r"\s+".join(re.escape(word).replace(r"\#", r"(\d+(?:\.\d+)?)") for word in pattern.split())
        match = re.search(words, self.text)
        if match is None:
            self.problems.append(f"{self.name}: there is no such text: {pattern}")
            return
        for group, value in enumerate(values, 1):
            self.compare(match.span(group), value, pattern)

    def table(self, heading, row_values):
        """The first table behind `heading`: row_values(label, column titles) has a list of values for each cell that
        quotes, by column number, or is None."""
        begin = self.text.find(heading)
        begin = self.text.rfind("\n", 0, begin) + 1 if heading.startswith("|") else self.text.find("\n|", begin) + 1
        if begin <= 0 or heading not in self.text:
            self.problems.append(f"{self.name}: there is no such table: {heading}")
            return
        titles = None
        for line in re.finditer(r"(?m)^(?:(\|.*)|.*)\n", self.text[begin:]):
            if line[1] is None:
                break
            cells = [(begin + match.start(1), begin + match.end(1))
                     for match in re.compile(r"\| *(.*?) *(?=\|)").finditer(self.text[begin:], line.start(1), line.end(1))]
            label = self.text[slice(*cells[0])]
            if titles is None:
                titles = [self.text[slice(*cell)] for cell in cells]
            elif not label.startswith(("--", "|--", ":--")) and set(label) != {"-", ":"}:
                try:
                    values = row_values(label, titles)
                except LookupError as error:
                    self.problems.append(f"{self.name}: {label}: no record has {error}")
                    continue
                for column, expected in (values or {}).items():
                    self.numbers(*cells[column], expected, f"{label}, {titles[column]}" if titles[column] else label)

    def write(self):
        for (begin, end), fresh in sorted(self.changes, reverse=True):
            self.text = self.text[:begin] + fresh + self.text[end:]
        self.path.write_text(self.text, encoding="utf-8")


# ---- records --------------------------------------------------------------------------------------------------------

TYPES = {"float": "float32", "double": "float64"}
VARIANTS = ("exclusive", "init", "transform", "in place")
MISALIGNED = ("input off by one", "output off by one", "both off by one")


class Gpu:
    def __init__(self, pattern):
        self.rows = record(pattern)["sweep"]
        self.plain = [row for row in self.rows if "variant" not in row and "policy" in row]

    def by_length(self, dtype, log2n, backend="cuda", policy=DEFAULT):
        return where(self.plain, backend=backend, policy=policy if backend == "cuda" else "", dtype=TYPES.get(dtype, dtype),
                     op="plus", log2n=log2n)

    def by_type(self, dtype, op="plus", backend="cuda"):
        return where(self.plain, backend=backend, policy=DEFAULT if backend == "cuda" else "", dtype=dtype, op=op)

    def variant(self, dtype, policy):
        return where(self.rows, variant="variants", backend="cuda", dtype=dtype, policy=policy)

    def graph(self, dtype, log2n, backend="cuda"):
        return where(self.rows, variant="graph", backend=backend, dtype=dtype, log2n=log2n)

    def verb(self, verb, by="polyscan"):
        return where(self.rows, verb=verb, by=by)

    def sorted(self, verb, dtype, log2n):
        return where(self.rows, verb=verb, backend="cuda", dtype=dtype, data="random", log2n=log2n)


def ratio(row):
    return row["copy_ratio"]


def microseconds(row):
    return row["median_us"]


def power(text):
    return int(re.search(r"2\^(\d+)", text)[1])


def check_gpu(readme, results, performance):
    gpu, ptx = Gpu("nvidia-h200-????-??-??.json"), Gpu("nvidia-h200-sm89-ptx-*.json")

    def lengths(label, titles, dtype):
        backend = "cub" if label.startswith("CUB") else "cuda"
        return {column: [ratio(gpu.by_length(dtype, power(title), "cub" if title.startswith("CUB") else backend))]
                for column, title in enumerate(titles) if "2^" in title}

    readme.table("| copy ratio, inclusive sum", lambda label, titles: lengths(label, titles, label))
    readme.sentence("Segmented scans reach # of the copy of their bytes, scans by key # (CUB #), and `radix_sort`, `copy_if` and "
                    "`reduce_by_key` run at #, # and # of CUB's speed", gpu.verb("segmented_scan")["of_roof"],
                    gpu.verb("scan_by_key")["of_roof"], gpu.verb("scan_by_key", "cub")["of_roof"],
                    gpu.sorted("radix_sort", "uint32", 26)["speed_of_cub"], gpu.verb("copy_if")["cub_us_over_us"],
                    gpu.verb("reduce_by_key")["cub_us_over_us"])
    speeds = [microseconds(gpu.by_length(dtype, 28, "cub")) / microseconds(gpu.by_length(dtype, 28))
              for dtype in ("int32", "float", "double")]
    sums = [ratio(gpu.by_length(dtype, 28)) for dtype in ("int32", "float", "double")]
    readme.sentence("run at # to # of the speed of a device copy, # to # times as fast as CUB's", min(sums), max(sums),
                    min(speeds), max(speeds))
    results.sentence("At 2^28 the default policy is # (int32), # (float32) and # times (float64) as fast as CUB", *speeds)

    results.table("## What the H200 record says", lambda label, titles: lengths(label, titles, label.rpartition(" ")[2]))
    cub = {row: ratio(gpu.by_type(*row, backend="cub")) for row in
           (("int64", "plus"), ("affine float64", "compose_affine"), ("int8", "plus"), ("int8", "maximum"))}
    gib = {
        "int64; affine maps of doubles": ([("int64", "plus"), ("affine float64", "compose_affine")],
                                          [cub["int64", "plus"], cub["affine float64", "compose_affine"]]),
        "int8 sum; uint8 into uint64": ([("int8", "plus"), ("uint8 to uint64", "plus"), ("half to float32", "plus"),
                                         ("bfloat16 to float32", "plus")], [cub["int8", "plus"]]),
        "int8 maximum, uint8 maximum": ([("int8", "maximum"), ("uint8", "maximum")], [cub["int8", "maximum"]]),
        "affine maps of uint64": ([("affine uint64", "compose_affine")], []),
        "structs of 12, 24, 40 bytes": ([(f"struct of {n} bytes", "lambda") for n in (12, 24, 40)], []),
    }

    def one_gib(label, _):
        for start, (rows, note) in gib.items():
            if label.startswith(start):
                return {1: [ratio(gpu.by_type(*row)) for row in rows], 2: note}
        dtype = label.partition(":")[0]
        if "off by one" in label:
            return {1: [ratio(gpu.variant(dtype, policy)) for policy in MISALIGNED]}
        variants = [ratio(gpu.variant(dtype, policy)) for policy in VARIANTS]
        return {1: variants, 2: [ratio(gpu.variant(dtype, "plain"))]}

    results.table("| 1 GiB, default policy", one_gib)
    results.sentence("1,024 elements in # us (a copy #, CUB #), 65,536 in # us (copy #, CUB #)",
                     *(microseconds(gpu.by_length("int32", n, backend)) for n in (10, 16) for backend in ("cuda", "copy", "cub")))
    results.sentence("In a graph, float32, # us for 1,024, # for 65,536, where a copy takes # and #.",
                     *(microseconds(gpu.graph("float32", n, backend)) for backend in ("cuda", "copy") for n in (10, 16)))
    blocks = ("kogge_stone", "brent_kung", "coarse", "warp_shuffle")
    results.sentence("`three_pass` over kogge_stone, brent_kung, coarse and warp_shuffle #, #, # and #; `domino` #, #, # and #; "
                     "`look_back/warp_shuffle` #.",
                     *(ratio(gpu.by_length("float", 28, policy=f"{grid}/{block}")) for grid in ("three_pass", "domino")
                       for block in blocks), ratio(gpu.by_length("float", 28, policy="look_back/warp_shuffle")))
    results.sentence("Through PTX of sm_89: int32 and float32 # and # at 2^28, # and # at 2^30; float64 #, int64 #.",
                     *(ratio(ptx.by_length(dtype, n)) for n in (28, 30) for dtype in ("int32", "float")),
                     ratio(ptx.by_length("double", 28)), ratio(ptx.by_type("int64")))

    def verbs(label, _):
        names = re.findall(r"`(\w+)`", label)
        if label.startswith("`reduce`"):
            rows = [gpu.verb(verb) for verb in ("reduce", "reduce int32", "reduce double")]
        elif label.startswith("segmented"):
            return {1: [gpu.verb("segmented_scan")["of_roof"], gpu.verb("scan_by_key")["of_roof"]],
                    2: [gpu.verb("scan_by_key")["cub_us_over_us"]]}
        elif names == ["radix_sort"]:
            return {2: [gpu.sorted(verb, dtype, n)["speed_of_cub"] for verb, dtype in
                        (("radix_sort", "uint32"), ("radix_sort_by_key", "uint32, uint32")) for n in (26, 28)]}
        elif names == ["histogram"]:
            return {2: [gpu.sorted("histogram", dtype, 28)["speed_of_cub"] for dtype in ("uint8", "uint32", "float")]}
        else:
            rows = [gpu.verb(verb) for verb in names]
        return {1: [row["of_roof"] for row in rows], 2: [row["cub_us_over_us"] for row in rows]}

    results.table("| verbs beside scan, 2^26", verbs)

    one = {"affine map of doubles": ("affine float64", "compose_affine"), "affine map of uint64": ("affine uint64", "compose_affine"),
           "half to float": ("half to float32", "plus"), "uint8 to uint64": ("uint8 to uint64", "plus"), "int64": ("int64", "plus")}

    def one_gib_in_detail(label, _):
        if "one element off" in label:
            rows = [gpu.variant("int8" if label.startswith("int8") else "float32", policy) for policy in MISALIGNED]
        elif label == "int8 with a transform":
            rows = [gpu.variant("int8", "transform")]
        elif label in ("float", "int32", "double"):
            rows = [gpu.by_length(label, 28)]
        elif label.startswith("struct"):
            rows = [gpu.by_type(label, "lambda")]
        else:
            rows = [gpu.by_type(*next(row for start, row in one.items() if label.startswith(start)))]
        return {2: [microseconds(row) for row in rows], 3: [ratio(row) for row in rows]}

    # Sums and maxima of int8 have the same label.
    int8 = iter(("plus", "maximum"))

    def one_gib_of_all(label, titles):
        if label != "int8":
            return one_gib_in_detail(label, titles)
        row = gpu.by_type("int8", next(int8))
        return {2: [microseconds(row)], 3: [ratio(row)]}

    performance.table("Inclusive scans of 1 GiB of output", one_gib_of_all)
    performance.table("By length, launches back to back", lambda label, titles: {
        column: [ratio(row), microseconds(row)] for column in (1, 2, 3)
        for row in [gpu.by_length(titles[column], power(label))]})
    performance.table("Few elements, launched in a graph", lambda label, titles: {
        column: [microseconds(gpu.graph("float32", power(titles[column]), "cuda" if label == "scan" else "copy"))]
        for column in range(1, len(titles))})
    times = [microseconds(gpu.graph(dtype, n)) / microseconds(gpu.graph(dtype, n, "copy"))
             for dtype in ("float32", "int32", "float64") for n in range(10, 17)]
    performance.sentence("floats take #, #, #, #, #, # and # times as long, int32 #, #, #, #, #, # and #, "
                         "doubles #, #, #, #, #, # and #.", *times)
    performance.sentence("int32 takes # (2^10), # (2^13) and # (2^16)", *(microseconds(gpu.graph("int32", n)) for n in (10, 13, 16)))
    performance.table("Float sums, copy ratio (microseconds)", lambda label, titles: {
        column: [ratio(row), microseconds(row)] for column in range(1, len(titles))
        for row in [gpu.by_length("float", power(titles[column]), policy=label.strip("`"))]})
    performance.table("run through PTX on", lambda label, titles: {
        column: [microseconds(row), ratio(row)] for column, title in enumerate(titles) if column > 0
        for row in [ptx.by_type("int64") if title.startswith("int64") else ptx.by_length(title.partition(",")[0], power(title))]}
        if label.startswith("the record") else None)

    return {backend: [ratio(gpu.by_length("int32", 28, backend)), ratio(gpu.by_type("int64", backend=backend)),
                      ratio(gpu.by_length("float", 28, backend)), ratio(gpu.by_length("double", 28, backend))]
            for backend in ("cuda", "cub")}


HOST_ROWS = {
    "sum of int32, int64, float, double": ("int32 plus", "int64 plus", "float plus", "double plus"),
    "exclusive: int32, float, double": ("int32 exclusive", "float exclusive", "double exclusive"),
    "float with init; with a transform": ("float init", "float transform"),
    "float, output at 16 mod 64; input too": ("float output at 16 mod 64", "float both at 16 mod 64"),
    "int8, int16 to int64": ("int8 to int64", "int16 to int64"),
    "int8, int16 to float": ("int8 to float", "int16 to float"),
    "float to double; float to float, accumulated in double": ("float to double", "float by double"),
    "int32 maximum; uint32 or": ("int32 maximum", "uint32 bit_or"),
    "float minimum; double maximum": ("float minimum", "double maximum"),
    "maximum as a lambda: int32; float": ("int32 lambda max", "float lambda max"),
    "affine maps over double, 16 bytes": ("affine double",),
    "struct of an int32 and a float, by a lambda": ("struct 8 bytes",),
    "float in place, against a pass in place": ("float plus in place",),
    "`copy_if`, half selected: int32, float, int64": ("int32 copy_if", "float copy_if", "int64 copy_if"),
    "`copy_if` of uint8": ("uint8 copy_if",),
    "int32 in segments; by key; float likewise": ("int32 segmented", "int32 by key", "float segmented", "float by key"),
    "`partition`, half selected; `unique`, all different: int32": ("int32 partition", "int32 unique"),
    "float: kogge_stone, brent_kung, coarse": ("float kogge_stone", "float brent_kung", "float coarse"),
    "float: three_pass, domino, look_back over warp_shuffle":
        ("float three_pass/warp_shuffle", "float domino/warp_shuffle", "float look_back/warp_shuffle"),
}


def check_host(readme, results, performance, gpu_sums):
    near, far, long, xeon = (record(pattern)["rows"] for pattern in ("host-bench-near-*.json", "host-bench-far-*.json",
                                                                     "host-bench-long-*.json", "xeon-host-*.json"))

    def sums(rows, n, types):
        return [where(rows, row=f"{dtype} plus", n=n)["ratio"] for dtype in types]

    def host_row(label, _):
        rows = HOST_ROWS.get(label)
        if rows is None:
            raise LookupError("such a row")
        return {column: [where(state, row=row)["ratio"] for row in rows] for column, state in ((1, near), (2, far))}

    performance.table("2^24 elements ([NEAR]", host_row)
    long_near = [row for row in long if row["empty_region_us"] < 0.8]
    long_far = [row for row in long if row["empty_region_us"] >= 0.8]
    order = ("int32", "float", "int64", "double")
    performance.sentence("int32, float, int64 and double have #, #, # and # of a copy of # GB/s at 2^27 in FAR, #, #, # and # of one of "
                         "# at 2^28 there, and #, #, # and # of one of # at 2^28 in NEAR",
                         *(value for rows, n in ((long_far, 2**27), (long_far, 2**28), (long_near, 2**28))
                           for value in (*sums(rows, n, order), where(rows, row="move 4 to 4 bytes", n=n)["gbps"])))
    in_order = ("int32", "int64", "float", "double")
    short = {"NVIDIA H200": gpu_sums["cuda"], "16 cores": sums(xeon, 2**27, in_order), "2 cores": sums(near, 2**24, in_order),
             "the same": sums(far, 2**24, in_order)}

    def in_short(label, _):
        values = next(values for start, values in short.items() if label.startswith(start))
        cells = {column: [value] for column, value in enumerate(values, 1)}
        return cells | ({5: gpu_sums["cub"]} if label.startswith("NVIDIA") else {})

    performance.table("| inclusive sum, default policy", in_short)

    both = [[where(xeon, row=row, n=2**n)["ratio"] for n in (27, 28)]
            for row in ("int32 plus", "float plus", "int64 plus", "double plus", "float plus in place")]
    fastest = max(row["gbps"] for row in xeon if row["row"].endswith(" plus"))
    results.sentence("int32 # and #, float32 # and #, int64 # and #, float64 # and # at 2^27 and 2^28, up to # GB/s; float32 in place "
                     "# and # of a pass in place", *sum(both[:4], []), fastest, *both[4])
    ratios = sum(both[:4], [])
    readme.sentence("openmp scans at # to # of the parallel copy past the caches, up to # GB/s", min(ratios), max(ratios), fastest)
    readme.sentence("cores of a Xeon server at # to # of a parallel copy", min(ratios), max(ratios))


def check_comparison(readme, results):
    states = {state: record(f"amd-epyc-*-{state.lower()}-*.json")["rows"] for state in ("NEAR", "FAR")}
    # The last run in NEAR repeats float32 at 2^24, with more policies.
    rows = states["NEAR"]
    last = max(i for i, row in enumerate(rows) if row["backend"] == "copy" and row["policy"] == "openmp")
    states["NEAR"], last_run = rows[:last], rows[last:]

    def default(state, dtype, n, backend):
        return where(states[state], backend=backend, policy=DEFAULT, dtype=dtype, n=n)

    def speed_up(state, dtype, n):
        peers = [row["median_us"] for row in states[state]
                 if row["peer"] and row["backend"] != "copy" and row["dtype"] == dtype and row["n"] == n]
        return min(peers) / default(state, dtype, n, "openmp")["median_us"]

    def lengths(label, titles):
        state, n = label.partition(",")[0], 2**power(label)
        return {column: [ratio(default(state, dtype, n, "openmp")), ratio(default(state, dtype, n, "kokkos")),
                         speed_up(state, dtype, n)] for column, dtype in enumerate(titles) if column > 0}

    for page in (readme, results):
        page.table("| openmp / kokkos", lengths)
    kokkos = [where(states["NEAR"], backend="kokkos", policy="Kokkos::parallel_scan", dtype=dtype, n=2**27)["median_us"] /
              default("NEAR", dtype, 2**27, "kokkos")["median_us"] for dtype in ("int32", "float32")]
    results.sentence("the kokkos backend is # times as fast for int32 at 2^27 and # times for float32", *kokkos)

    printed = re.compile(r"(?m)^(\S+) +(\S.*?) {2,}(\d+\.\d+) ms +(\d+\.\d+)% +(\d+\.\d+) +(\d+\.\d+) ")
    lines = list(printed.finditer(readme.text))
    if not lines:
        readme.problems.append(f"{readme.name}: the printed comparison is not there")
    for line in lines:
        row = where(last_run, backend=line[1], policy=line[2])
        for group, value in ((3, row["median_us"] / 1000), (5, row["gbps"]), (6, row["copy_ratio"])):
            readme.compare(line.span(group), value, f"comparison, {line[2]}")


def main():
    if sys.argv[1:] not in ([], ["--write"]):
        print(__doc__, file=sys.stderr)
        return 2
    pages = [Page(name) for name in ("README.md", "docs/results/README.md", "docs/performance.md")]
    readme, results, performance = pages
    check_host(readme, results, performance, check_gpu(readme, results, performance))
    check_comparison(readme, results)
    problems = [problem for page in pages for problem in page.problems]
    for problem in problems:
        print(problem, file=sys.stderr)
    if sys.argv[1:]:
        for page in pages:
            page.write()
        changed = sum(len(page.changes) for page in pages)
        print(f"documentation, figures: {changed} changed, {len(problems) - changed} left to you")
        return 1 if len(problems) > changed else 0
    count = sum(page.count for page in pages)
    print(f"documentation, figures: {f'{len(problems)} problems' if problems else f'{count} figures are those of the records'}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
