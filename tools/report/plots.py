# SPDX-License-Identifier: Apache-2.0
"""The pictures of a report. Each function yields (name, title, figure); nothing is yielded where there are no data.

Grid algorithms are told apart by line style, block algorithms and other libraries by marker, bars by hatching; colour only
repeats it, so that a page printed in black and white says the same.
"""

import collections
import textwrap

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # noqa: E402

from records import BACKENDS, BLOCKS, CLASSICS, DEFAULT, GRIDS  # noqa: E402

plt.rcParams.update({
    "font.family": "DejaVu Sans", "font.size": 9, "axes.titlesize": 10, "axes.grid": True, "grid.color": "#dddddd",
    "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True, "legend.frameon": False,
    "hatch.linewidth": 0.7, "svg.fonttype": "none", "svg.hashsalt": "polyscan", "figure.dpi": 100, "savefig.dpi": 150,
})

# Okabe and Ito's colours, in an order of falling lightness.
COLOURS = ("#e69f00", "#56b4e9", "#009e73", "#d55e00", "#0072b2", "#cc79a7", "#000000")
GRID_LINES = dict(zip(GRIDS, (":", "--", "-.", (0, (5, 1, 1, 1, 1, 1)), "-")))
GRID_COLOURS = dict(zip(GRIDS, COLOURS))
BLOCK_MARKERS = dict(zip(BLOCKS, "os^D"))
PEER_MARKERS = ("x", "+", "v", "P", "*", "<", ">", "1", "2", "3")
SERIES_LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (3, 1, 1, 1)))
SERIES_MARKERS = "osD^vP*X<>"
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "+++", "ooo", "|||", "---", "OO")
GREYS = ("#ffffff", "#c8c8c8", "#8f8f8f", "#e4e4e4", "#5f5f5f", "#b0b0b0", "#d6d6d6", "#787878")


def power_of_two(value, _=None):
    exponent = round(np.log2(value)) if value > 0 else 0
    return f"$2^{{{exponent}}}$" if value == 2.0**exponent else f"{value:g}"


def microseconds(value, _=None):
    for limit, unit, scale in ((1e3, "µs", 1), (1e6, "ms", 1e-3), (float("inf"), "s", 1e-6)):
        if value < limit:
            return f"{value * scale:g} {unit}"
    return ""


def size_text(n):
    return f"$2^{{{n.bit_length() - 1}}}$" if n & (n - 1) == 0 else f"{n:,}"


def size_axis(axes, sizes):
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(FuncFormatter(power_of_two))
    axes.xaxis.set_minor_formatter(NullFormatter())
    exponents = np.log2([min(sizes), max(sizes)])
    step = max(1, int(np.ceil((exponents[1] - exponents[0]) / 6)))
    axes.set_xticks([2.0**e for e in range(int(np.ceil(exponents[0])), int(exponents[1]) + 1, step)])
    axes.set_xlabel("n (elements)")


def time_axis(axes):
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(base=10))
    axes.yaxis.set_major_formatter(FuncFormatter(microseconds))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_ylabel("time (median)")


# Ratios above this are cut: in a run that was disturbed one of them would flatten all others.
RATIO_CUT = 1.6


def ratio_axis(axes, values):
    axes.axhline(1, color="black", linewidth=0.8)
    highest = max(values, default=1)
    axes.set_ylim(0, min(RATIO_CUT, 1.08 * max(1, highest)))
    axes.set_ylabel("copy ratio (1 = as fast as a copy)" + (f"\ncut above {RATIO_CUT}" if highest > RATIO_CUT else ""))


def finish(figure, title, records, handles=(), columns=5):
    """Heading, legend, and where the numbers come from: on every picture, because pictures get cut out of pages."""
    sources = list(dict.fromkeys(record.provenance for record in records))
    width, height = figure.get_size_inches()
    lines = -(-len(handles) // columns)
    title = textwrap.fill(title, int(width * 11))
    head = 0.1 + 0.22 * (title.count("\n") + 1)
    foot = 0.16 * len(sources)
    # Room for both is added to what the panels were given.
    extra = head + 0.2 * lines + foot
    figure.set_size_inches(width, height + extra)
    height += extra
    figure.text(0.01, 1 - 0.08 / height, title, fontsize=12, fontweight="bold", va="top")
    if handles:
        figure.legend(handles=handles, loc="upper left", bbox_to_anchor=(0.0, 1 - head / height), ncol=columns, fontsize=8)
    figure.text(0.01, 0.04 / height, "\n".join(sources), fontsize=7.5, color="#333333", va="bottom")
    figure.tight_layout(rect=(0, foot / height, 1, 1 - (head + 0.2 * lines) / height))
    return figure


def unique(values):
    return list(dict.fromkeys(values))


def cases_of(records):
    cases = collections.Counter(row.case for record in records for row in record.rows if row.median_us)
    return sorted(cases, key=lambda case: (case.verb != "scan", str(case)))


def rows_of(records, case):
    return [row for record in records for row in record.rows if row.case == case and row.median_us]


def curve(rows, value):
    """Points in order of n; of several measurements of one n the last."""
    points = {row.n: getattr(row, value) for row in rows if getattr(row, value)}
    return sorted(points), [points[n] for n in sorted(points)]


def backends_of(rows):
    found = unique(row.backend for row in rows if not row.peer)
    return sorted(found, key=lambda b: (BACKENDS.index(b) if b in BACKENDS else len(BACKENDS), b))


# What a backend is compared with: its own peers and, on a processor, those of the host.
def peers_of(rows, backend):
    own = [row for row in rows if row.peer and not row.is_copy]
    gpu = ("cub", "thrust", "empty kernel")
    if backend == "cuda":
        return [row for row in own if row.backend in gpu or row.backend == "cuda"]
    return [row for row in own if row.backend not in gpu and (row.backend not in BACKENDS or row.backend == backend)]


def against_n(records):
    """Time and copy ratio against n: a row of panels per backend, a column per block algorithm, the last one for peers."""
    for record in records:
        for case in cases_of([record]):
            rows = rows_of([record], case)
            sizes = {row.n for row in rows}
            if len(sizes) < 2:
                continue
            for value, what in (("median_us", "time"), ("copy_ratio", "copy ratio")):
                if not backends_of(rows):
                    continue
                title = f"{what.capitalize()} against n · {case} · {record.label}"
                yield f"{what.replace(' ', '-')}-{case.slug}-{record.path.stem}", title, _against_n(record, title, rows, sizes, value)


def _against_n(record, title, rows, sizes, value):
    backends = backends_of(rows)
    blocks = [block for block in BLOCKS if any(not row.peer and row.policy.endswith("/" + block) for row in rows)]
    # One policy alone needs no panel beside the one that compares it with peers.
    policies = {row.policy for row in rows if not row.peer}
    columns = (blocks if len(policies) > 1 else []) + ["peers"]
    figure, grid = plt.subplots(len(backends), len(columns), squeeze=False, sharey=True, sharex=True,
                                figsize=(1.2 + 2.9 * max(2, len(columns)), 0.9 + 2.6 * len(backends)))
    for line, backend in enumerate(backends):
        for axes, column in zip(grid[line], columns):
            if column == "peers":
                _draw_peers(axes, rows, backend, value)
                axes.set_title(f"{backend}: default and peers")
            else:
                _draw_block(axes, rows, backend, column, value)
                axes.set_title(f"{backend}: …/{column}")
            if value == "median_us":
                time_axis(axes)
            else:
                ratio_axis(axes, [v for row in rows for v in [row.copy_ratio] if v and row.backend != "empty kernel"])
            size_axis(axes, sizes)
            axes.label_outer()
            if column == "peers":
                # Outside, so that it hides no point.
                axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.02))
    handles = [plt.Line2D([], [], color=GRID_COLOURS[g], linestyle=GRID_LINES[g], linewidth=1.6, label=g + "/…") for g in GRIDS]
    return finish(figure, title, [record], handles if len(columns) > 1 else ())


def _draw_block(axes, rows, backend, block, value):
    for grid in GRIDS:
        n, y = curve([r for r in rows if r.backend == backend and not r.peer and r.policy == f"{grid}/{block}"], value)
        if n:
            axes.plot(n, y, linestyle=GRID_LINES[grid], color=GRID_COLOURS[grid], marker=BLOCK_MARKERS[block], markersize=4,
                      linewidth=1.6)


def _draw_peers(axes, rows, backend, value):
    n, y = curve([r for r in rows if r.backend == backend and not r.peer and r.policy == DEFAULT], value)
    if n:
        axes.plot(n, y, "-", color=GRID_COLOURS["prefix_server"], marker=BLOCK_MARKERS["warp_shuffle"], markersize=4,
                  linewidth=2, label=f"{backend} default")
    copies = [r for r in rows if r.is_copy and r.policy in (backend, "copy")]
    if value == "median_us":
        n, y = curve(copies, value)
        if n:
            axes.plot(n, y, ":", color="black", linewidth=1.2, label="copy")
    peers = peers_of(rows, backend)
    names = unique(row.policy for row in peers)
    for name, marker, style in zip(names, PEER_MARKERS, SERIES_LINES[1:] * 2):
        n, y = curve([r for r in peers if r.policy == name], value)
        if n and not (value == "copy_ratio" and name == "empty kernel"):
            axes.plot(n, y, linestyle=style, color="#666666", marker=marker, markersize=5, linewidth=1,
                      label=name.replace("Kokkos::Experimental::", "Kokkos::Exp.::"))


def classics(records):
    """The five classic algorithms beside the default policy: bars, at the largest n that has them."""
    for case in cases_of(records):
        rows = [row for row in rows_of(records, case) if not row.peer]
        series = collections.OrderedDict()
        for row in rows:
            series.setdefault((row.record.label, row.backend), []).append(row)
        for small in (True, False):
            chosen = {}
            for key, own in series.items():
                complete = [n for n in unique(r.n for r in own)
                            if sum(r.n == n and r.policy in CLASSICS.values() for r in own) >= 2]
                if complete:
                    n = min(complete) if small else max(complete)
                    chosen[key] = (n, [r for r in own if r.n == n])
            if not chosen or (small and all(len({r.n for r in own}) < 2 for own in series.values())):
                continue
            title = f"The five classic algorithms side by side, {'smallest' if small else 'largest'} n · {case}"
            yield (f"classics-{'small' if small else 'large'}-{case.slug}", title,
                   _classic_bars(chosen, title, [r for r in records if any(k[0] == r.label for k in chosen)]))


def _classic_bars(chosen, title, records):
    bars = list(CLASSICS) + ["default"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.8))
    width = 0.8 / len(chosen)
    for s, ((label, backend), (n, rows)) in enumerate(chosen.items()):
        by_policy = {row.policy: row for row in rows}
        for axes, value in ((left, "median_us"), (right, "copy_ratio")):
            present = [(i, getattr(by_policy[p], value)) for i, p in enumerate([*CLASSICS.values(), DEFAULT])
                       if p in by_policy and getattr(by_policy[p], value)]
            axes.bar([i + (s - (len(chosen) - 1) / 2) * width for i, _ in present], [v for _, v in present], width,
                     color=GREYS[s % len(GREYS)], hatch=HATCHES[s % len(HATCHES)], edgecolor="black", linewidth=0.8,
                     label=f"{backend}, {label}, n = {size_text(n)}" if value == "median_us" else None)
    for axes in (left, right):
        axes.set_xticks(range(len(bars)), bars, rotation=25, ha="right")
        axes.grid(axis="x", visible=False)
    time_axis(left)
    right.set_ylabel("copy ratio (1 = as fast as a copy)")
    right.axhline(1, color="black", linewidth=0.8)
    left.set_title("time (lower is better, logarithmic)")
    right.set_title("copy ratio (higher is better)")
    handles, _ = left.get_legend_handles_labels()
    return finish(figure, title, records, handles, 2)


def machines(records):
    """The default policy on every backend and machine: processors against GPUs."""
    for case in cases_of(records):
        rows = [row for row in rows_of(records, case) if row.policy == DEFAULT and not row.peer]
        series = collections.OrderedDict()
        for row in rows:
            series.setdefault((row.record.label, row.backend), []).append(row)
        if len(series) < 2:
            continue
        figure, grid = plt.subplots(1, 3, figsize=(13, 3.9))
        sizes = {row.n for row in rows}
        for s, ((label, backend), own) in enumerate(series.items()):
            for axes, value in zip(grid, ("median_us", "gbps", "copy_ratio")):
                n, y = curve(own, value)
                axes.plot(n, y, linestyle=SERIES_LINES[s % len(SERIES_LINES)], marker=SERIES_MARKERS[s % len(SERIES_MARKERS)],
                          markersize=5, linewidth=1.6, color=COLOURS[(s * 3 + 4) % len(COLOURS)],
                          label=f"{backend}, {label}" if value == "median_us" else None)
        time_axis(grid[0])
        grid[1].set_yscale("log")
        grid[1].yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
        grid[1].set_ylabel("GB/s (read once, written once)")
        ratio_axis(grid[2], [row.copy_ratio for row in rows if row.copy_ratio])
        for axes in grid:
            size_axis(axes, sizes)
        used = [r for r in records if any(key[0] == r.label for key in series)]
        title = f"The default policy on every backend and machine · {case}"
        handles, _ = grid[0].get_legend_handles_labels()
        finish(figure, title, used, handles, 3)
        yield f"machines-{case.slug}", title, figure


def threads(records):
    """Speed-up over the fewest threads, at the largest n that was measured with several numbers of threads."""
    for case in cases_of(records):
        found = collections.defaultdict(dict)
        for row in rows_of(records, case):
            if row.threads and row.backend in BACKENDS and not row.peer:
                found[(row.record.machine, row.backend, row.policy, row.n)][row.threads] = row
        scaling = {key: rows for key, rows in found.items() if len(rows) > 1}
        if not scaling:
            continue
        backends = backends_of([row for rows in scaling.values() for row in rows.values()])
        figure, grid = plt.subplots(1, len(backends), squeeze=False, sharey=True, figsize=(2.6 + 3.9 * len(backends), 3.9))
        for axes, backend in zip(grid[0], backends):
            own = {key: rows for key, rows in scaling.items() if key[1] == backend}
            n = max(key[3] for key in own)
            counts = set()
            for (machine, _, policy, size), rows in own.items():
                if size != n or policy not in [DEFAULT, *CLASSICS.values(), "look_back/kogge_stone"]:
                    continue
                grid_name, _, block = policy.partition("/")
                x = sorted(rows)
                counts |= set(x)
                axes.plot(x, [rows[x[0]].median_us / rows[t].median_us * x[0] for t in x], marker=BLOCK_MARKERS.get(block, "o"),
                          linestyle=GRID_LINES.get(grid_name, "-"), color=GRID_COLOURS.get(grid_name, "black"), label=policy)
            axes.plot([min(counts), max(counts)], [min(counts), max(counts)], color="black", linewidth=0.8, label="ideal")
            axes.set_xticks(sorted(counts))
            axes.set_xlabel("threads")
            axes.set_title(f"{backend}, n = {size_text(n)}")
        grid[0][0].set_ylabel("speed-up")
        grid[0][-1].legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        used = [r for r in records if any(row.record is r for rows in scaling.values() for row in rows.values())]
        title = f"Scaling with threads · {case}"
        yield f"threads-{case.slug}", title, finish(figure, title, used)


def others(records):
    """Verbs beside scan, and other rows of benchmark programs: the share of what is possible, at the largest n of each."""
    for record in records:
        names = unique(o.name for o in record.others if o.share)
        if not names:
            continue
        makers = unique(o.who for o in record.others if o.share)
        figure, axes = plt.subplots(figsize=(9.5, 0.9 + 0.14 * len(names) + 0.17 * sum(
            len({o.who for o in record.others if o.name == name and o.share}) for name in names)))
        y, places = 0.0, []
        for name in names:
            own = [o for o in record.others if o.name == name and o.share]
            n = max(o.n for o in own)
            start = y
            for o in [o for o in own if o.n == n]:
                m = makers.index(o.who)
                axes.barh(y, o.share, 0.9, color=GREYS[m % len(GREYS)], hatch=HATCHES[m % len(HATCHES)], edgecolor="black", linewidth=0.8)
                axes.text(o.share, y, f" {microseconds(float(f'{o.us:.3g}'))}", va="center", fontsize=7)
                y += 1
            places.append(((start + y - 1) / 2, f"{name}, n = {size_text(n)}"))
            y += 0.8
        axes.axvline(1, color="black", linewidth=0.8)
        axes.set_ylim(y - 0.3, -0.8)
        axes.set_yticks([place for place, _ in places], [text for _, text in places], fontsize=8)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("speed over that of the same run (a copy or a read-only pass; for sorts CUB, for short scans std)")
        handles = [plt.Rectangle((0, 0), 1, 1, facecolor=GREYS[m % len(GREYS)], hatch=HATCHES[m % len(HATCHES)], edgecolor="black", label=who)
                   for m, who in enumerate(makers)]
        title = f"Other verbs and rows · {record.label}"
        yield f"others-{record.path.stem}", title, finish(figure, title, [record], handles)


# From good to bad; the letter is what a black-and-white print shows.
VERDICTS = (("exact", "E", "#ffffff", ""), ("same bits", "B", "#dbe9f6", ""), ("within bound", "~", "#fdf0cf", "..."),
            ("not recorded", "?", "#eeeeee", ""), ("skipped", "–", "#cfcfcf", "///"), ("mismatch", "X", "#d55e00", "xxx"))


def verdict_class(verdict):
    return next((i for i, (name, *_) in enumerate(VERDICTS) if verdict.startswith(name)), 3)


def verdicts(records):
    """Heat map of verdicts: each cell the worst of all sizes, types and operators of a backend and policy."""
    rows = [row for record in records for row in record.rows if not row.peer]
    columns = unique((row.record.label, row.backend) for row in rows)
    policies = [f"{grid}/{block}" for grid in GRIDS for block in BLOCKS if any(r.policy == f"{grid}/{block}" for r in rows)]
    policies += unique(row.policy for row in rows if row.policy not in policies)
    if not rows:
        return
    figure, axes = plt.subplots(figsize=(3.8 + 1.7 * max(2, len(columns)), 1.6 + 0.27 * len(policies)))
    for x, key in enumerate(columns):
        for y, policy in enumerate(policies):
            own = [r for r in rows if (r.record.label, r.backend) == key and r.policy == policy]
            if not own:
                continue
            worst = max(verdict_class(r.verdict) for r in own)
            _, letter, colour, hatch = VERDICTS[worst]
            axes.add_patch(plt.Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colour, hatch=hatch, edgecolor="#777777"))
            axes.text(x, y, f"{letter} {len(own)}", ha="center", va="center", fontsize=8,
                      bbox={"facecolor": "white", "edgecolor": "none", "pad": 1} if hatch else None)
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(len(policies) - 0.5, -0.5)
    axes.grid(visible=False)
    axes.set_xticks(range(len(columns)), ["\n".join([b, *textwrap.wrap(label, 20)]) for label, b in columns], fontsize=8)
    axes.set_yticks(range(len(policies)), policies)
    used = {verdict_class(row.verdict) for row in rows}
    handles = [plt.Rectangle((0, 0), 1, 1, facecolor=c, hatch=h, edgecolor="#777777", label=f"{letter}  {name}")
               for i, (name, letter, c, h) in enumerate(VERDICTS) if i in used]
    axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1), fontsize=8)
    title = "Verdicts by backend and policy"
    yield "verdicts", title, finish(figure, title + " (worst of all rows, and their number)", records)


ALL = (("Time and copy ratio against n", against_n), ("The five classic algorithms", classics),
       ("Backends and machines, CPU against GPU", machines), ("Scaling with threads", threads), ("Other verbs and rows", others),
       ("Verdicts", verdicts))
