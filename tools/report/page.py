# SPDX-License-Identifier: Apache-2.0
"""The page of a report: one HTML file that needs no other, and each picture beside it."""

import base64
import collections
import html
import io

import matplotlib.pyplot as plt

import plots
import records

STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, "DejaVu Sans", sans-serif; color: #111; background: #fff; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2 { line-height: 1.2; } h2 { margin-top: 2.5rem; border-bottom: 1px solid #bbb; }
figure { margin: 1.5rem 0; } figure img { max-width: 100%; height: auto; } figcaption { color: #333; font-size: .9rem; }
table { border-collapse: collapse; font-size: .85rem; } .wide { overflow-x: auto; }
th, td { padding: .2rem .6rem; border-bottom: 1px solid #ddd; text-align: left; white-space: nowrap; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
.bad { font-weight: bold; text-decoration: underline; } nav a { margin-right: 1rem; }
summary { cursor: pointer; } @media print { details { display: none; } figure { break-inside: avoid; } }
"""


def cell(value, number=False):
    return f'<td class="number">{value}</td>' if number else f"<td>{html.escape(str(value))}</td>"


def table(heads, lines):
    """heads: names, a trailing # marks numbers; lines: lists of texts."""
    text = ['<div class="wide"><table><thead><tr>']
    numeric = [head.endswith("#") for head in heads]
    text += [f'<th{" class=number" if n else ""}>{html.escape(head.rstrip("#"))}</th>' for head, n in zip(heads, numeric)]
    text.append("</tr></thead><tbody>")
    for line in lines:
        text.append("<tr>" + "".join(cell(html.escape(str(v)) if n else v, n) for v, n in zip(line, numeric)) + "</tr>")
    text.append("</tbody></table></div>")
    return "".join(text)


def machines_table(found):
    lines = []
    for record in found:
        own = collections.Counter(plots.VERDICTS[plots.verdict_class(row.verdict)][0] for row in record.rows)
        lines.append([record.label, record.machine, record.compiler, record.date, record.path.name, len(record.rows) + len(record.others),
                      own["exact"] + own["same bits"] + own["within bound"], own["mismatch"], own["skipped"]])
    return table(["label", "machine", "compiler", "date", "file", "rows#", "checked and right#", "mismatches#", "skipped#"], lines)


def best_table(found):
    """Per case, machine and n at its largest: the default policy, the best policy, the best peer."""
    lines = []
    for case in plots.cases_of(found):
        for record in found:
            rows = plots.rows_of([record], case)
            for backend in plots.backends_of(rows):
                own = [r for r in rows if r.backend == backend and not r.peer]
                n = max(r.n for r in own)
                own = [r for r in own if r.n == n]
                peers = [r for r in plots.peers_of(rows, backend) if r.n == n and r.backend != "empty kernel"]
                default = next((r for r in own if r.policy == records.DEFAULT), None)
                best = min(own, key=lambda r: r.median_us)
                peer = min(peers, key=lambda r: r.median_us, default=None)
                lines.append([str(case), record.label, backend, f"{n:,}", shown(default), ratio(default), best.policy,
                              shown(best), ratio(best), peer.policy if peer else "–", shown(peer), ratio(peer)])
    return table(["case", "machine", "backend", "n#", "default#", "copy ratio#", "fastest policy", "time#", "copy ratio#",
                  "fastest peer", "time#", "copy ratio#"], lines)


def shown(row):
    if row is None:
        return "–"
    us = row.median_us
    return f"{us:.3g} µs" if us < 1e3 else f"{us / 1e3:.3g} ms" if us < 1e6 else f"{us / 1e6:.3g} s"


def ratio(row):
    return f"{row.copy_ratio:.2f}" if row is not None and row.copy_ratio else "–"


def all_rows(record):
    lines = [[str(r.case), r.backend, r.policy, "yes" if r.peer else "", f"{r.n:,}", r.threads or "–",
              shown(r) if r.median_us else "–", f"{r.gbps:.2f}" if r.gbps else "–", ratio(r), r.verdict, r.reason]
             for r in record.rows]
    return table(["case", "backend", "policy", "peer", "n#", "threads#", "time#", "GB/s#", "copy ratio#", "verdict", "reason"], lines)


def mismatches(found):
    bad = [r for record in found for r in record.rows if r.verdict.startswith("mismatch")]
    if not bad:
        return ""
    lines = [[r.record.label, str(r.case), r.backend, r.policy, f"{r.n:,}", r.verdict, r.reason] for r in bad]
    return '<h2 class="bad">Mismatches</h2>' + table(["machine", "case", "backend", "policy", "n#", "verdict", "reason"], lines)


def save(figure, output, name):
    """Writes NAME.png and NAME.svg; returns the SVG as a data URI."""
    figure.savefig(output / f"{name}.png", bbox_inches="tight", metadata={"Software": None})
    svg = io.BytesIO()
    figure.savefig(svg, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None})
    plt.close(figure)
    (output / f"{name}.svg").write_bytes(svg.getvalue())
    return "data:image/svg+xml;base64," + base64.b64encode(svg.getvalue()).decode("ascii")


def write(found, output):
    """Writes index.html and the pictures; returns the number of pictures."""
    sections, count = [], 0
    for heading, draw in plots.ALL:
        figures = []
        for name, title, figure in draw(found):
            name = "".join(c if c.isalnum() or c in "-._" else "-" for c in name)
            source = save(figure, output, name)
            figures.append(f'<figure><img alt="{html.escape(title)}" src="{source}"><figcaption>{html.escape(title)} '
                           f'(<a href="{name}.png">PNG</a>, <a href="{name}.svg">SVG</a>)</figcaption></figure>')
        count += len(figures)
        if figures:
            sections.append((heading, "".join(figures)))
    anchors = [heading.lower().replace(" ", "-").replace(",", "") for heading, _ in sections]
    body = ["<h1>polyscan: comparison of backends</h1>",
            "<p>Time is the median over the repetitions of a run; all rows of a run are measured in random order. GB/s counts every "
            "element read once and written once. The copy ratio is the time of a copy of the same bytes over the time of the scan, in "
            "the same run. Verdicts: <em>exact</em> equals the left fold; <em>same bits</em> equals the order of operations that the "
            "policy fixes, bit for bit; <em>within bound</em> (peers only) lies within the error bound of a sum.</p>",
            "<nav>", *(f'<a href="#{a}">{html.escape(h)}</a>' for a, (h, _) in zip(anchors, sections)),
            '<a href="#rows">All rows</a></nav>', mismatches(found), "<h2>Machines</h2>", machines_table(found),
            "<h2>At the largest n</h2>", best_table(found)]
    for anchor, (heading, content) in zip(anchors, sections):
        body.append(f'<h2 id="{anchor}">{html.escape(heading)}</h2>{content}')
    body.append('<h2 id="rows">All rows</h2>')
    for record in found:
        body.append(f"<details><summary>{html.escape(record.label)}: {len(record.rows)} rows</summary>{all_rows(record)}</details>")
    page = (f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
            f"<title>polyscan: comparison</title><style>{STYLE}</style></head><body>{''.join(body)}</body></html>\n")
    (output / "index.html").write_text(page, encoding="utf-8")
    return count
