#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests tools/report: what is refused, and what a page and its pictures contain. Skipped (77) without matplotlib."""

import html.parser
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "tools" / "report" / "report.py"
CLASSICS = ("single_block/kogge_stone", "single_block/brent_kung", "single_block/coarse", "three_pass/kogge_stone", "domino/kogge_stone")


def record(threads=2, processor="Test processor", sizes=(1024, 4096), backend="openmp"):
    """A record as `polyscan compare --json` writes it: every classic algorithm, the default, a copy and a peer."""
    rows = []
    for n in sizes:
        for i, policy in enumerate((*CLASSICS, "prefix_server/warp_shuffle")):
            rows.append({"backend": backend, "policy": policy, "peer": False, "median_us": n / 100 * (i + 1) / max(threads, 1),
                         "copy_ratio": 0.9 / (i + 1), "verdict": "same bits"})
        rows.append({"backend": "copy", "policy": backend, "peer": True, "median_us": n / 200, "copy_ratio": 1.0, "verdict": "exact"})
        rows.append({"backend": "host", "policy": "std sequential", "peer": True, "median_us": n / 10, "copy_ratio": 0.05,
                     "verdict": "within bound"})
        for row in rows:
            row.setdefault("n", n)
    for row in rows:
        row.update(dtype="float32", op="plus", kind="inclusive", threads=threads, gbps=1.5, matches=True, reason="")
    return {"schema": 1, "machine": {"processor": processor, "processors": 2, "compiler": "g++ 12.2.0", "date": "2026-11-30T00:00:00Z"},
            "rows": rows}


class Page(html.parser.HTMLParser):
    """The sources of pictures, targets and anchors of links, and the text of a page."""

    def __init__(self, text):
        super().__init__()
        self.images, self.links, self.ids, self.words = [], [], set(), []
        self.feed(text)
        self.text = " ".join(self.words)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if "id" in attrs:
            self.ids.add(attrs["id"])
        if tag == "img":
            self.images.append(attrs["src"])
        if tag == "a":
            self.links.append(attrs["href"])
        assert tag not in ("script", "link"), "the page must need nothing else"

    def handle_data(self, data):
        self.words.append(data)


class ReportTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)

    def file(self, content, name="run.json"):
        path = self.path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def report(self, *files, output="out"):
        return subprocess.run([sys.executable, PROGRAM, "-o", self.path / output, *files], capture_output=True, text=True, timeout=240)

    def refused(self, content, *words):
        done = self.report(self.file(content))
        self.assertEqual(done.returncode, 2, done)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for word in ("run.json", *words):
            self.assertIn(word, done.stderr)
        self.assertFalse((self.path / "out").exists(), "nothing is written for a bad record")

    def test_what_is_no_record_is_refused_in_one_line(self):
        self.refused("{ not json", "is not JSON")
        self.refused("", "is not JSON")
        self.refused("[" * 100000, "is not JSON")
        self.refused("[1, 2]", "schema 1")
        self.refused({"rows": []}, "schema 1")
        self.refused({"schema": 2, "machine": {}, "rows": [{}]}, "schema 1")
        self.refused({"schema": 1, "machine": {}, "rows": []}, "no rows")
        self.refused({"schema": 1, "machine": "mine", "rows": [{}]}, "machine")
        self.refused({"schema": 1, "machine": {}, "rows": ["row"]}, "row 0", "not an object")

    def test_a_missing_or_wrong_column_is_named(self):
        for column in ("backend", "policy", "dtype", "op", "median_us", "n"):
            bad = record()
            del bad["rows"][3][column]
            self.refused(bad, "row 3", column)
        for column, value in (("n", "many"), ("n", True), ("n", None), ("n", 0), ("median_us", "fast"), ("median_us", -1), ("copy_ratio", "1"),
                              ("backend", 7), ("verdict", None), ("peer", "no"), ("threads", [])):
            bad = record()
            bad["rows"][3][column] = value
            self.refused(bad, "row 3", column)
        self.refused(json.dumps(record()).replace("0.9,", "NaN,", 1), "row 0", "finite")
        self.refused(json.dumps(record()).replace("0.9,", f"1{'0' * 400},", 1), "row 0", "finite")

    def test_files_that_are_not_there_and_folders_that_cannot_be_made(self):
        done = self.report(self.path / "absent.json")
        self.assertEqual(done.returncode, 2)
        self.assertIn("absent.json: cannot be read", done.stderr)
        done = self.report(self.file(record()), output="run.json/below")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_one_record(self):
        done = self.report(self.file(record()))
        self.assertEqual(done.returncode, 0, done.stderr)
        page = Page((self.path / "out" / "index.html").read_text())
        # Time and ratio against n, both sizes of the classic algorithms, verdicts.
        self.assertEqual(len(page.images), 5)
        for image in page.images:
            self.assertTrue(image.startswith("data:image/svg+xml;base64,"))
        for link in page.links:
            self.assertTrue(link[1:] in page.ids if link.startswith("#") else (self.path / "out" / link).is_file(), link)
        for words in ("Test processor (2 processors)", "g++ 12.2.0", "domino/kogge_stone", "std sequential", "within bound"):
            self.assertIn(words, page.text)
        for picture in (self.path / "out").glob("*.svg"):
            text = picture.read_text()
            for words in ("Test processor", "g++ 12.2.0", "2026-11-30"):
                self.assertIn(words, text, f"{picture.name} must say where it comes from")
        self.assertEqual(len(list((self.path / "out").glob("*.png"))), 5)

    def test_several_files_are_overlaid(self):
        gpu = record(threads=0, processor="Test GPU", backend="cuda")
        done = self.report(self.file(record(threads=1), "one.json"), self.file(record(threads=2), "two.json"), self.file(gpu, "gpu.json"))
        self.assertEqual(done.returncode, 0, done.stderr)
        names = {path.name for path in (self.path / "out").iterdir()}
        self.assertIn("threads-inclusive-plus-float32.svg", names)
        overlay = (self.path / "out" / "machines-inclusive-plus-float32.svg").read_text()
        for words in ("openmp, Test processor, 1 thread", "openmp, Test processor, 2 threads", "cuda, Test GPU"):
            self.assertIn(words, overlay)

    def test_a_mismatch_comes_first_and_is_marked(self):
        bad = record()
        bad["rows"][2].update(verdict="mismatch at 17", matches=False, reason="bits differ")
        self.assertEqual(self.report(self.file(bad)).returncode, 0)
        page = Page((self.path / "out" / "index.html").read_text())
        self.assertLess(page.text.index("mismatch at 17"), page.text.index("Machines"))
        self.assertIn("X 2", (self.path / "out" / "verdicts.svg").read_text())

    def test_rows_that_were_skipped_and_names_that_are_markup(self):
        odd = record(sizes=(1024,), processor="<b>&")
        for row in odd["rows"]:
            row.update(median_us=None, gbps=None, copy_ratio=None, verdict="skipped", reason="no <device>")
        done = self.report(self.file(odd))
        self.assertEqual(done.returncode, 0, done.stderr)
        text = (self.path / "out" / "index.html").read_text()
        self.assertNotIn("<b>", text)
        self.assertIn("no &lt;device&gt;", text)

    def test_rows_of_benchmark_programs(self):
        mixed = record()
        mixed["sweep"] = mixed.pop("rows") + [
            {"verb": "copy_if 50%", "by": "polyscan", "log2n": 20, "us": 12.5, "gbps": 100, "of_roof": 0.75},
            {"verb": "copy_if 50%", "by": "cub", "log2n": 20, "us": 14.5, "gbps": 90, "of_roof": 0.65},
            {"verb": "radix_sort", "backend": "cuda", "dtype": "uint32", "data": "uniform", "log2n": 24, "median_us": 700, "speed_of_cub": 0.8},
            {"verb": "radix_sort", "n": 5, "different_from_cub": 3},
            {"row": "double inclusive", "n": 1000, "roof": "copy", "median_us": 3, "ratio": 0.9}]
        done = self.report(self.file(mixed))
        self.assertEqual(done.returncode, 0, done.stderr)
        picture = (self.path / "out" / "others-run.svg").read_text()
        for words in ("copy_if 50%", "radix_sort uint32 uniform", "double inclusive", "cub"):
            self.assertIn(words, picture)
        mixed["sweep"][-1]["ratio"] = "fast"
        done = self.report(self.file(mixed, "other.json"))
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done)

    def test_the_same_file_gives_the_same_pictures(self):
        for output in ("first", "second"):
            self.assertEqual(self.report(self.file(record(sizes=(1024,))), output=output).returncode, 0)
        for picture in (self.path / "first").iterdir():
            self.assertEqual(picture.read_bytes(), (self.path / "second" / picture.name).read_bytes(), picture.name)

    def test_the_records_of_this_project_are_read(self):
        sys.path.insert(0, str(PROGRAM.parent))
        import records
        found = [records.read(path) for path in sorted((ROOT / "docs" / "results").glob("*.json"))]
        self.assertTrue(any(row.policy == records.DEFAULT and row.median_us for one in found for row in one.rows))
        for one in found:
            self.assertTrue(one.rows or one.others, one.path)


if __name__ == "__main__":
    if any(importlib.util.find_spec(module) is None for module in ("matplotlib", "numpy")):
        print("skipped: needs matplotlib and NumPy")
        sys.exit(77)
    unittest.main()
