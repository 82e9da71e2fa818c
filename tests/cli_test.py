# SPDX-License-Identifier: Apache-2.0
"""The program from outside: exit codes, messages, untouched outputs, JSON.

    cli_test.py --program build/openmp/bin/polyscan --faulty build/openmp/tools/polyscan_tool_faulty

--faulty is the same program with the backends `right`, `turns`, `wrong`, `failing` and `absent` instead of the real
ones.
"""

import argparse
import json
import os
import pty
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

GOOD, MISMATCH, BAD_INPUT, BACKEND_FAILED = 0, 1, 2, 3
ROW_FIELDS = [
    "backend",
    "policy",
    "peer",
    "verb",
    "dtype",
    "op",
    "kind",
    "n",
    "threads",
    "median_us",
    "gbps",
    "copy_ratio",
    "matches",
    "verdict",
    "reason",
]
VERBS = ["reduce", "copy_if", "segmented_scan", "scan_by_key", "reduce_by_key", "radix_sort", "histogram"]
PROGRAM = FAULTY = None


def npy(descr="<i4", shape="(3,)", data=b"", order="False", version=(1, 0), header=None, magic=b"\x93NUMPY"):
    """A .npy file by hand, right or wrong."""
    text = header if header is not None else f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}"
    width = 2 if version[0] == 1 else 4
    start = len(magic) + 2 + width
    text += " " * (-(start + len(text) + 1) % 64) + "\n"
    length = struct.pack("<H" if width == 2 else "<I", len(text))
    return magic + bytes(version) + length + text.encode() + data


def ints(*values):
    return struct.pack(f"<{len(values)}i", *values)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def file(self, name, content):
        path = self.folder / name
        path.write_bytes(content)
        return path

    def run_program(self, *arguments, program=None, **options):
        return subprocess.run([program or FAULTY, *map(str, arguments)], capture_output=True, timeout=300, **options)

    def scan(self, *arguments, **options):
        return self.run_program("scan", "--backend", "right", *arguments, **options)

    def assert_fails(self, result, code, *parts):
        """The exit code, and one line on standard error that has the parts."""
        message = result.stderr.decode()
        self.assertEqual(result.returncode, code, message)
        self.assertEqual(message.count("\n"), 1, message)
        for part in parts:
            self.assertIn(str(part), message)

    def assert_good(self, result):
        self.assertEqual(result.returncode, GOOD, result.stderr.decode())
        self.assertEqual(result.stderr, b"")

    def left_over(self):
        return [name for name in os.listdir(self.folder) if name.startswith(".polyscan")]


class Arguments(Case):
    def test_bad_arguments(self):
        a = self.file("a.npy", npy(data=ints(1, 2, 3)))
        out = self.folder / "out.npy"
        base = ["--input", a, "--output", out]
        for arguments, parts in [
            (["frobnicate"], ["unknown command 'frobnicate'"]),
            ([], ["subcommand is required"]),
            (["scan", "--input", a], ["--output"]),
            (["scan", *base, "--frobnicate"], ["--frobnicate"]),
            (["scan", *base, "--policy", "fast"], ["--policy", "fast"]),
            (["scan", *base, "--op", "minus"], ["--op", "minus", "plus, multiplies"]),
            (["scan", *base, "--kind", "half"], ["--kind", "half"]),
            (["scan", *base, "--backend", "abacus"], ["--backend", "abacus"]),
            (["scan", *base, "--backend", "absent"], ["--backend", "absent", "no such device"]),
            (["scan", *base, "--init", "1.5"], ["--init", "1.5", "int32"]),
            (["scan", *base, "--init", "2147483648"], ["--init", "int32"]),
            (["scan", *base, "--init", "1 "], ["--init"]),
            (["scan", *base, "--init", ""], ["--init", "empty"]),
            (["scan", *base, "--output-dtype", ""], ["--output-dtype", "empty"]),
            (["scan", *base, "--accumulate", "float32", "--init", "1e39"], ["--init", "float32"]),
            (["scan", *base, "--accumulate", "float16"], ["--accumulate", "float16"]),
            (["scan", *base, "--accumulate", "float32", "--op", "bit_or"], ["--op", "bit_or", "float32"]),
            (["scan", *base, "--accumulate", "complex64", "--op", "minimum"], ["--op", "minimum", "complex64"]),
            (
                ["scan", *base, "--accumulate", "complex64", "--output-dtype", "float32"],
                ["--output-dtype", "imaginary"],
            ),
            (["scan", *base, "--threads", "-1"], ["--threads"]),
            (["scan", *base, "--threads", "many"], ["--threads"]),
            (["scan", *base, "--chunk", "1T"], ["--chunk", "1T"]),
            (["scan", *base, "--chunk", "2^64"], ["--chunk", "too large"]),
            (["scan", *base, "--output-format", "csv"], ["--output-format", "csv"]),
            (["compare", "--size", "0"], ["--size:"]),
            (["compare", "--sizes", "4,0"], ["--sizes:"]),
            (["compare", "--size", ""], ["--size:", "empty"]),
            (["compare", "--size", "8", "--seed", "-1"], ["--seed:"]),
            (["compare", "--size", "8", "--seed", "18446744073709551616"], ["--seed:", "too large"]),
            (["compare", "--size", "2^50"], ["--size", "memory"]),
            (["compare", "--size", "99999999999999999999"], ["--size", "too large"]),
            (["compare", "--size", "8", "--sizes", "8"], ["--size"]),
            (["compare", "--sizes", "2^9..2^3"], ["--sizes"]),
            (["compare", "--size", "8", "--input", a], ["--size"]),
            (["compare", "--size", "8", "--dtype", "float16"], ["--dtype"]),
            (["compare", "--size", "8", "--policies", "default,fast"], ["--policies", "fast"]),
            (["compare", "--size", "8", "--backends", "absent"], ["--backends", "absent", "no such device"]),
            (["compare", "--size", "8", "--verb", "sort"], ["--verb", "sort", "radix_sort"]),
            (["compare", "--size", "8", "--verb", "reduce", "--op", "maximum"], ["--verb", "plus"]),
            (["compare", "--size", "8", "--verb", "reduce", "--dtype", "int8"], ["--verb", "int32"]),
            (["compare", "--input", "a.npy", "--verb", "reduce"], ["--verb", "--input"]),
            (["compare", "--size", "8", "--verb", "reduce", "--kind", "exclusive"], ["--kind"]),
            (["compare", "--size", "8", "--verb", "reduce", "--policies", "domino"], ["--policies"]),
            (["compare", "--input", a, "--json", a], [a, "input"]),
            (["compare", "--size", "8", "--json", self.folder / "no" / "x.json"], ["x.json"]),
            (["compare", "--size", "8", "--json", self.folder], [self.folder]),
            (["compare", "--size", "8", "--repetitions", "0"], ["--repetitions"]),
            (["compare", "--input", self.file("none.npy", npy(shape="(0,)"))], ["none.npy", "no elements"]),
            (["verify", "--backends", "abacus"], ["abacus"]),
            (["completion", "--shell", "tcsh"], ["--shell"]),
        ]:
            with self.subTest(arguments=arguments):
                self.assert_fails(self.run_program(*arguments), BAD_INPUT, *parts)
                self.assertFalse(out.exists())
                self.assertEqual(self.left_over(), [])
        self.assertEqual(a.read_bytes()[-12:], ints(1, 2, 3))

    def test_standard_streams_that_cannot_be_written(self):
        a = self.file("a.npy", npy(data=ints(1, 2, 3)))

        def with_stream(number):
            for spoil in [lambda: os.dup2(os.open("/dev/full", os.O_WRONLY), number), lambda: os.close(number)]:
                yield {"preexec_fn": spoil}

        for command in [["--version"], ["--help"], ["man"], ["info"], ["scan", "--input", a, "--output", "-"]]:
            for state in with_stream(1):
                with self.subTest(command=command):
                    self.assert_fails(self.run_program(*command, **state), BAD_INPUT, "standard output")
        for state in with_stream(2):
            self.assertEqual(self.run_program("frobnicate", **state).returncode, BAD_INPUT)

    def test_help_shows_an_example(self):
        for command in ["compare", "scan", "verify", "info", "completion", "man"]:
            result = self.run_program(command, "--help")
            self.assert_good(result)
            self.assertIn(f"polyscan {command}", result.stdout.decode().split("Example:")[1])

    def test_version_man_and_completion(self):
        self.assert_good(self.run_program("--version"))
        man = self.run_program("man")
        self.assert_good(man)
        self.assertIn(b'.SS "polyscan compare"', man.stdout)
        completion = self.run_program("completion")
        self.assert_good(completion)
        script = (
            completion.stdout.decode()
            + '\nCOMP_WORDS=(polyscan scan --kind ex); COMP_CWORD=3; _polyscan; echo "${COMPREPLY[@]}"'
        )
        shell = subprocess.run(["bash", "-c", script], capture_output=True, check=True)
        self.assertEqual(shell.stdout.strip(), b"exclusive")

    def test_info(self):
        for program in [PROGRAM, FAULTY]:
            info = json.loads(self.run_program("info", "--json", program=program).stdout)
            self.assertEqual(len(info["policies"]), 20)
            self.assertEqual(len(info["operators"]), 7)
            self.assertEqual(len(info["dtypes"]), 12)
        self.assertEqual([b["name"] for b in info["backends"] if not b["available"]], ["absent"])
        text = self.run_program("info").stdout.decode()
        self.assertIn("no such device", text)


class Files(Case):
    def test_bad_files(self):
        good = ints(1, 2, 3)
        for name, content, part in [
            ("truncated", npy(data=good[:-1]), "truncated"),
            ("cut_header", npy(data=good)[:40], "truncated"),
            ("empty", b"", "empty"),
            ("trailing", npy(data=good + b"x"), "trailing"),
            ("magic", npy(data=good, magic=b"\x93NUMPX"), "npy"),
            ("version", npy(data=good, version=(4, 0)), "version"),
            ("overflow", npy(shape="(4611686018427387904,)", data=good), "overflow"),
            ("huge", npy(shape="(99999999999999999999999999,)", data=good), ""),
            ("claims_more", npy(shape="(1000000000000,)", data=good), "truncated"),
            ("negative", npy(shape="(-3,)", data=good), ""),
            ("rank_0", npy(shape="()", data=good[:4]), "rank 0"),
            ("rank_2", npy(shape="(1, 3)", data=good), "rank 2"),
            ("bool", npy(descr="|b1", data=b"\1\0\1"), "bool"),
            ("float16", npy(descr="<f2", data=b"123456"), "float16"),
            ("object", npy(descr="|O", data=good), "object"),
            ("big_endian", npy(descr=">i4", data=good), "big-endian"),
            ("garbage", npy(header="{'descr': __import__('os').system('true')}", data=good), ""),
        ]:
            with self.subTest(name=name):
                path = self.file(f"{name}.npy", content)
                out = self.file("out.npy", b"as it was")
                self.assert_fails(self.scan("--input", path, "--output", out), BAD_INPUT, path, part)
                self.assertEqual(out.read_bytes(), b"as it was")
                self.assertEqual(self.left_over(), [])

    def test_bad_outputs(self):
        a = self.file("a.npy", npy(data=ints(1, 2, 3)))
        link = self.folder / "link.npy"
        link.symlink_to(a)
        for out in [a, link, self.folder, self.folder / "no" / "out.npy", "/dev/full"]:
            with self.subTest(out=out):
                self.assert_fails(self.scan("--input", a, "--output", out), BAD_INPUT, out)
                self.assertEqual(a.read_bytes(), npy(data=ints(1, 2, 3)))
        self.assert_fails(
            self.scan("--input", self.folder / "missing.npy", "--output", "x.npy"), BAD_INPUT, "missing.npy"
        )

    def test_value_that_does_not_fit(self):
        a = self.file("a.npy", npy(descr="<f8", data=struct.pack("<3d", 1, float("nan"), 2)))
        out = self.file("out.npy", b"as it was")
        self.assert_fails(
            self.scan("--input", a, "--output", out, "--accumulate", "int32"), BAD_INPUT, a, "element 1", "NaN"
        )
        self.assertEqual(out.read_bytes(), b"as it was")

    def test_backend_failure_leaves_the_output(self):
        a = self.file("a.npy", npy(data=ints(1, 2, 3)))
        out = self.file("out.npy", b"as it was")
        result = self.run_program("scan", "--backend", "failing", "--input", a, "--output", out)
        self.assert_fails(result, BACKEND_FAILED, "failing", "out of order")
        self.assertEqual(out.read_bytes(), b"as it was")
        self.assertEqual(self.left_over(), [])

    def test_three_pass_with_floats_in_chunks_is_refused(self):
        raw = self.file("a.bin", bytes(4 * 20000))
        out = self.file("out.npy", b"as it was")
        arguments = ["--dtype", "float32", "--output", out, "--policy", "three_pass", "--chunk", "4096"]
        self.assert_fails(self.scan("--input", raw, *arguments), BAD_INPUT, "--policy", "--chunk 81920")
        with raw.open("rb") as pipe_like:  # a pipe, whose length is not known
            cat = subprocess.Popen(["cat"], stdin=pipe_like, stdout=subprocess.PIPE)
            self.assert_fails(self.scan("--input", "-", *arguments, stdin=cat.stdout), BAD_INPUT, "--policy")
            cat.stdout.close()
            cat.wait()
        self.assertEqual(out.read_bytes(), b"as it was")
        self.assert_good(self.scan("--input", raw, *arguments[:-1], "81920"))
        self.assert_good(self.scan("--input", raw, *arguments, "--accumulate", "int32"))

    def test_chunks_pass_through_a_device(self):
        numbers = [(i * 7919) % 1000 for i in range(50000)]
        raw = self.file("a.bin", ints(*numbers))
        expected, total = [], 5
        for number in numbers:
            expected.append(total)
            total += number
        # `right` copies while it scans, `turns` does not; the real backends reach the host's memory, or copy, too.
        for program, backend in [(FAULTY, ["--backend", "right"]), (FAULTY, ["--backend", "turns"]), (PROGRAM, [])]:
            out = self.folder / "out.bin"
            for chunk in ["8K", "32K", "1M"]:
                result = self.run_program(
                    "scan", *backend, "--input", raw, "--dtype", "int32", "--output", out, "--kind", "exclusive",
                    "--init", "5", "--chunk", chunk, program=program,
                )  # fmt: skip
                self.assert_good(result)
                self.assertEqual(out.read_bytes(), ints(*expected), (backend, chunk))

    def test_pipes(self):
        data = npy(data=ints(1, 2, 3))
        result = self.scan("--input", "-", "--output", "-", input=data)
        self.assert_good(result)
        self.assertEqual(result.stdout[-12:], ints(1, 3, 6))
        result = self.scan("--input", "-", "--output", "-", "--dtype", "int32", input=ints(4, 5))
        self.assert_good(result)
        self.assertEqual(result.stdout, ints(4, 9))
        self.assert_fails(self.scan("--input", "-", "--output", "-", input=data[:-1]), BAD_INPUT, "truncated")

    def test_formats(self):
        raw = self.file("a.bin", ints(1, 2, 3))
        self.assert_good(self.scan("--input", raw, "--dtype", "int32", "--output", self.folder / "out.npy"))
        self.assertTrue((self.folder / "out.npy").read_bytes().startswith(b"\x93NUMPY"))
        self.assert_good(self.scan("--input", raw, "--dtype", "int32", "--output", self.folder / "out.bin"))
        self.assertEqual((self.folder / "out.bin").read_bytes(), ints(1, 3, 6))
        self.assert_good(
            self.scan("--input", self.folder / "out.npy", "--output", self.folder / "out.raw", "--output-format", "raw")
        )
        self.assertEqual((self.folder / "out.raw").read_bytes(), ints(1, 4, 10))
        self.assert_fails(
            self.scan("--input", self.file("odd.bin", b"12345"), "--dtype", "int32", "--output", "x"),
            BAD_INPUT,
            "odd.bin",
        )

    def test_interrupt_leaves_nothing(self):
        out = self.file("out.npy", b"as it was")
        for number in [signal.SIGINT, signal.SIGTERM, signal.SIGQUIT]:
            child = subprocess.Popen(
                [
                    FAULTY,
                    "scan",
                    "--backend",
                    "right",
                    "--input",
                    "-",
                    "--dtype",
                    "int32",
                    "--chunk",
                    "1M",
                    "--output",
                    out,
                ],
                stdin=subprocess.PIPE,
                stderr=subprocess.PIPE,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)),
            )
            child.stdin.write(bytes(1 << 22))
            child.stdin.flush()
            for _ in range(200):
                if self.left_over():
                    break
                time.sleep(0.02)
            self.assertNotEqual(self.left_over(), [])
            child.send_signal(number)
            child.wait(timeout=20)
            child.stdin.close()
            child.stderr.close()
            self.assertEqual(child.returncode, -number)
            self.assertEqual(self.left_over(), [])
            self.assertEqual(out.read_bytes(), b"as it was")

    def test_progress_bar_on_a_terminal(self):
        raw = self.file("a.bin", bytes(1 << 22))
        try:
            master, terminal = pty.openpty()
        except OSError as error:
            self.skipTest(f"no pseudo-terminal here: {error}")
        child = subprocess.Popen(
            [
                FAULTY,
                "scan",
                "--backend",
                "right",
                "--input",
                raw,
                "--dtype",
                "uint8",
                "--chunk",
                "4096",
                "--output",
                "/dev/null",
            ],
            stderr=terminal,
        )
        self.assertEqual(child.wait(timeout=60), 0)
        os.close(terminal)
        shown = os.read(master, 1 << 16)
        os.close(master)
        self.assertIn(b"scanning [", shown)
        self.assertTrue(shown.endswith(b"\x1b[K"), shown)  # and is cleared at the end

    def test_no_progress_bar_in_a_pipe(self):
        raw = self.file("a.bin", bytes(1 << 22))
        result = self.scan("--input", raw, "--dtype", "uint8", "--chunk", "4096", "--output", "/dev/null")
        self.assert_good(result)

    def test_bounded_memory(self):
        # 256 MiB of file in chunks of 1 MiB: the program's own pages are most of what it takes.
        raw = self.folder / "a.bin"
        with raw.open("wb") as file:
            file.truncate(1 << 28)
        child = subprocess.Popen(
            [
                FAULTY,
                "scan",
                "--backend",
                "right",
                "--input",
                raw,
                "--dtype",
                "int64",
                "--chunk",
                "1M",
                "--output",
                "/dev/null",
            ]
        )
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(child.returncode, 0)
        self.assertLess(usage.ru_maxrss, 64 * 1024)


class Comparison(Case):
    def compare(self, *arguments, program=None):
        path = self.folder / "run.json"
        result = self.run_program("compare", "--repetitions", 2, "--json", path, *arguments, program=program)
        self.assertEqual(self.left_over(), [])
        return result, json.loads(path.read_text()) if path.exists() else None

    def test_right(self):
        result, record = self.compare("--size", 20000, "--backends", "right", "--peers")
        self.assert_good(result)
        self.assertEqual(record["schema"], 1)
        self.assertEqual(list(record), ["schema", "machine", "rows"])
        policies = [row for row in record["rows"] if not row["peer"]]
        self.assertEqual(len(policies), 20)
        for row in record["rows"]:
            self.assertEqual(list(row), ROW_FIELDS)
            self.assertEqual((row["n"], row["dtype"], row["op"], row["kind"]), (20000, "float32", "plus", "inclusive"))
            self.assertTrue(row["matches"], row)
            self.assertGreater(row["median_us"], 0)
            self.assertAlmostEqual(row["gbps"], 2 * 4 * 20000 / row["median_us"] * 1e-3, places=3)
        self.assertEqual({row["verdict"] for row in policies}, {"same bits"})
        copies = [row for row in record["rows"] if row["backend"] == "copy"]
        self.assertEqual([(row["peer"], row["copy_ratio"], row["verdict"]) for row in copies], [(True, 1.0, "exact")])
        for row in record["rows"]:
            if row["peer"]:
                self.assertIn(row["verdict"], ["exact", "within bound"])
        self.assertTrue(all(us > 0 for us in record["machine"]["parallel_region_us"]), record["machine"])
        for line in result.stdout.decode().splitlines():
            self.assertLessEqual(len(line), 108, line)

    def test_bits_side_by_side(self):
        result, _ = self.compare("--size", 5000, "--backends", "right,turns", "--policies", "default,domino")
        self.assertIn("2 of 2 policies that ran on more than one backend gave the same bits", result.stdout.decode())
        result, _ = self.compare("--size", 5000, "--backends", "right,wrong", "--policies", "default,domino")
        self.assertIn("0 of 2 policies that ran on more than one backend gave the same bits", result.stdout.decode())

    def test_verbs(self):
        for verb in VERBS:
            for dtype in ["int32", "float32"]:
                result, record = self.compare(
                    "--verb", verb, "--dtype", dtype, "--sizes", "1,20011", "--peers", program=PROGRAM
                )
                self.assert_good(result)
                rows = record["rows"]
                self.assertEqual({(row["verb"], row["dtype"], row["op"]) for row in rows}, {(verb, dtype, "plus")})
                checked = [row for row in rows if row["verdict"] != "skipped"]
                self.assertTrue(all(row["matches"] for row in checked), checked)
                self.assertEqual({row["n"] for row in checked if not row["peer"]}, {1, 20011})
                sequential = [row for row in checked if row["policy"] == "std sequential"]
                self.assertEqual([row["verdict"] for row in sequential], ["exact"] * 2)
                if dtype == "int32" or verb in ["copy_if", "radix_sort", "histogram"]:
                    self.assertEqual({row["verdict"] for row in checked}, {"exact"})

    def test_exact_operators(self):
        for op, dtype, kind in [
            ("plus", "int8", "exclusive"),
            ("maximum", "float64", "inclusive"),
            ("bit_xor", "uint16", "exclusive"),
        ]:
            result, record = self.compare(
                "--size", 9000, "--backends", "right", "--op", op, "--dtype", dtype, "--kind", kind
            )
            self.assert_good(result)
            self.assertEqual({row["verdict"] for row in record["rows"]}, {"exact"})

    def test_inexact_without_bound(self):
        result, record = self.compare(
            "--size",
            9000,
            "--backends",
            "right",
            "--op",
            "multiplies",
            "--dtype",
            "complex64",
            "--policies",
            "default",
            "--peers",
        )
        self.assert_good(result)
        skipped = [row for row in record["rows"] if row["verdict"] == "skipped"]
        self.assertTrue(
            all(
                row["peer"] and row["matches"] is None and row["median_us"] is None and row["reason"] for row in skipped
            )
        )

    def test_mismatch(self):
        result, record = self.compare("--size", 5000, "--backends", "right,wrong", "--policies", "default,domino")
        self.assertEqual(result.returncode, MISMATCH)
        for row in record["rows"]:
            if row["backend"] == "wrong":
                self.assertEqual((row["verdict"], row["matches"]), ("mismatch at 4999", False))
            else:
                self.assertTrue(row["matches"])

    def test_failure(self):
        result, record = self.compare("--size", 5000, "--backends", "failing,right", "--policies", "default")
        self.assertEqual(result.returncode, BACKEND_FAILED)
        self.assertIn("out of order", result.stderr.decode())
        failed = [row for row in record["rows"] if row["backend"] == "failing"]
        self.assertEqual([(row["verdict"], row["matches"]) for row in failed], [("skipped", None)])
        self.assertIn("out of order", failed[0]["reason"])

    def test_absent_by_default_is_skipped(self):
        _, record = self.compare("--size", 100, "--policies", "default,domino")
        absent = [row for row in record["rows"] if row["backend"] == "absent"]
        self.assertEqual([(row["verdict"], row["reason"]) for row in absent], [("skipped", "no such device")] * 2)

    def test_sweep_and_standard_output(self):
        result = self.run_program(
            "compare",
            "--repetitions",
            1,
            "--sizes",
            "2^3..2^5,100",
            "--backends",
            "right",
            "--policies",
            "default",
            "--json",
            "-",
        )
        self.assert_good(result)
        rows = json.loads(result.stdout)["rows"]
        self.assertEqual(sorted({row["n"] for row in rows}), [8, 16, 32, 100])

    def test_json_goes_where_links_lead_and_never_into_the_input(self):
        base = ["compare", "--repetitions", 1, "--backends", "right", "--policies", "default"]
        link = self.folder / "link.json"
        link.symlink_to("record.json")  # which is not there yet
        self.assert_good(self.run_program(*base, "--size", 8, "--json", link))
        self.assertTrue(link.is_symlink())
        self.assertEqual(json.loads((self.folder / "record.json").read_text())["schema"], 1)
        content = npy(data=ints(1, 2, 3))
        path = self.file("a.npy", content)
        with path.open("ab") as output:
            result = subprocess.run(
                [FAULTY, *map(str, base), "--input", path, "--json", "-"],
                stdout=output,
                stderr=subprocess.PIPE,
                timeout=300,
            )
        self.assertEqual(result.returncode, BAD_INPUT)
        self.assertIn("the output is the input", result.stderr.decode())
        self.assertEqual(path.read_bytes(), content)

    def test_input_file(self):
        path = self.file("a.npy", npy(shape="(5,)", data=ints(1, 2, 3, 4, 5)))
        result, record = self.compare("--input", path, "--backends", "right", "--policies", "default")
        self.assert_good(result)
        self.assertEqual({(row["n"], row["dtype"]) for row in record["rows"]}, {(5, "int32")})
        result, record = self.compare(
            "--input",
            self.file("a.bin", ints(1, 2, 3)),
            "--dtype",
            "uint8",
            "--backends",
            "right",
            "--policies",
            "default",
        )
        self.assert_good(result)
        self.assertEqual({(row["n"], row["dtype"]) for row in record["rows"]}, {(12, "uint8")})

    def test_real_backends(self):
        backends = [
            b["name"]
            for b in json.loads(self.run_program("info", "--json", program=PROGRAM).stdout)["backends"]
            if b["available"]
        ]
        if not backends:
            self.skipTest("no backend is available")
        result, record = self.compare("--size", 100003, "--backends", ",".join(backends), "--peers", program=PROGRAM)
        self.assert_good(result)
        self.assertEqual(sum(not row["peer"] for row in record["rows"]), 20 * len(backends))
        self.assertTrue(all(row["matches"] for row in record["rows"] if row["verdict"] != "skipped"))


class Verification(Case):
    def test_right_and_wrong(self):
        result = self.run_program("verify", "--backends", "right", "--policies", "default,three_pass")
        self.assert_good(result)
        self.assertIn("6528 scans compared with the reference, 0 mismatches", result.stdout.decode())
        result = self.run_program("verify", "--backends", "right,wrong", "--policies", "default")
        self.assertEqual(result.returncode, MISMATCH)
        self.assertIn("mismatch at", result.stdout.decode())
        self.assert_fails(self.run_program("verify", "--backends", "failing"), BACKEND_FAILED, "out of order")

    def test_real_backends(self):
        result = self.run_program("verify", "--threads", 3, program=PROGRAM)
        self.assert_good(result)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--faulty", required=True)
    given, rest = parser.parse_known_args()
    PROGRAM, FAULTY = map(os.path.abspath, (given.program, given.faulty))
    unittest.main(argv=[sys.argv[0], *rest])
