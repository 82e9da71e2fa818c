# SPDX-License-Identifier: Apache-2.0
"""NumPy as the judge: arrays that it wrote, scanned by the program, compared with its own accumulations.

    numpy_judge_test.py --program build/openmp/bin/polyscan --faulty build/openmp/tools/polyscan_tool_faulty

Runs on every available backend; where the program has none, on the reference backend of the faulty program.
Zeros are compared by value and NaNs as equal, as NumPy does; sums and products of floating-point numbers within the
error bound of their order-free sum.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

try:
    import numpy as np
except ImportError:
    print("skipped: NumPy is not installed for", sys.executable)
    sys.exit(77)

PROGRAM = None
BACKENDS = []

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float32", "float64"]
COMPLEX = ["complex64", "complex128"]
DTYPES = INTEGERS + FLOATS + COMPLEX
UFUNCS = {
    "plus": np.add,
    "multiplies": np.multiply,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "bit_and": np.bitwise_and,
    "bit_or": np.bitwise_or,
    "bit_xor": np.bitwise_xor,
}
# Nothing; one; around a row; around the tiles of 1024, 4096 and 8192 elements; several tiles and a part.
SIZES = [0, 1, 2, 127, 129, 1023, 1024, 1025, 4095, 4097, 8191, 8192, 8193, 3 * 8192 + 5]


def chosen(backend, values, few):
    """On a host, Kokkos runs the kernels of the OpenMP backend, and takes long to start: a few of the values."""
    return few if backend == "kokkos" and "openmp" in BACKENDS else values


def operators_of(dtype):
    if dtype in INTEGERS:
        return list(UFUNCS)
    return ["plus", "multiplies"] + (["minimum", "maximum"] if dtype in FLOATS else [])


def identity_of(op, dtype):
    kind = np.dtype(dtype)
    if op in ("minimum", "maximum"):
        if dtype in FLOATS:
            return kind.type(np.inf if op == "minimum" else -np.inf)
        limits = np.iinfo(kind)
        return kind.type(limits.max if op == "minimum" else limits.min)
    if op == "bit_and":
        return np.invert(kind.type(0))
    return kind.type(1 if op == "multiplies" else 0)


def make(dtype, op, n, seed=0):
    random = np.random.default_rng([seed, n])
    if dtype in INTEGERS:
        limits = np.iinfo(dtype)
        return random.integers(limits.min, limits.max, n, dtype=dtype, endpoint=True)
    real = {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
    if op == "multiplies":
        x = 1 + random.normal(0, 1e-3, n)
        return (x + 1e-3j * random.normal(0, 1, n)).astype(dtype) if dtype in COMPLEX else x.astype(dtype)
    x = random.normal(0, 1, n).astype(real)
    if dtype in COMPLEX:
        return (x + 1j * random.normal(0, 1, n).astype(real)).astype(dtype)
    if op in ("minimum", "maximum") and n > 100:
        x[n // 4] = 0.0
        x[n // 4 + 1] = -0.0
        x[n // 2] = np.inf if op == "maximum" else -np.inf
        x[3 * n // 4] = np.nan
    return x


def accumulate(op, x, dtype, kind, init):
    """What NumPy says, in a type with more digits where there is rounding."""
    if dtype in INTEGERS or op in ("minimum", "maximum"):
        wide = np.dtype(dtype)
    else:
        wide = np.dtype("longdouble" if dtype in FLOATS else "clongdouble")
    first = None if init is None else np.array([init]).astype(dtype).astype(wide)
    values = x.astype(dtype).astype(wide)
    if kind == "exclusive":
        first = np.array([identity_of(op, dtype)]).astype(wide) if first is None else first
        values = np.concatenate([first, values[:-1]]) if len(x) else values
        return UFUNCS[op].accumulate(values, dtype=wide)
    if first is None or not len(x):
        return UFUNCS[op].accumulate(values, dtype=wide)
    return UFUNCS[op].accumulate(np.concatenate([first, values]), dtype=wide)[1:]


class Judge(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def scan(self, x, *arguments, backend, version=None):
        source, target = self.folder / "in.npy", self.folder / "out.npy"
        with source.open("wb") as file:
            np.lib.format.write_array(file, x, version=version)
        result = subprocess.run(
            [PROGRAM, "scan", "--backend", backend, "--input", source, "--output", target, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=120,
        )
        if result.returncode == 2 and "is not in the set that this backend was compiled for" in result.stderr:
            self.skipTest(result.stderr.strip())  # of this subtest; unittest's closing line counts them
        self.assertEqual(result.returncode, 0, result.stderr)
        return np.load(target)

    def judge(self, x, y, op, dtype, kind, init=None):
        expected = accumulate(op, x, dtype, kind, init)
        self.assertEqual(y.dtype, np.dtype(dtype))
        self.assertEqual(y.shape, x.shape)
        if dtype in INTEGERS or op in ("minimum", "maximum"):
            np.testing.assert_array_equal(y, expected)
            return
        unit = np.finfo(dtype).eps
        steps = np.arange(2, len(x) + 2)
        if op == "plus":
            values = np.abs(x.astype(expected.dtype))
            before = np.array([abs(init or 0)], dtype=values.dtype)
            sums = np.concatenate([before, values]).cumsum()
            scale = sums[:-1] if kind == "exclusive" else sums[1:]
        else:
            scale = np.abs(expected)
            steps = steps * 2  # a complex product rounds more than once
        self.assertTrue(np.all(np.abs(y - expected) <= steps * unit * scale), (op, dtype, kind, len(x)))

    def test_all_types_and_operators(self):
        for backend in BACKENDS:
            for dtype in DTYPES:
                for op in operators_of(dtype):
                    sizes = SIZES if op == "plus" else [1, 1025, 8193, 3 * 8192 + 5]
                    for n in chosen(backend, sizes, [1025, 3 * 8192 + 5]):
                        for kind in ["inclusive", "exclusive"]:
                            with self.subTest(backend=backend, dtype=dtype, op=op, n=n, kind=kind):
                                x = make(dtype, op, n)
                                self.judge(
                                    x, self.scan(x, "--op", op, "--kind", kind, backend=backend), op, dtype, kind
                                )

    def test_all_policies(self):
        policies = json.loads(subprocess.run([PROGRAM, "info", "--json"], capture_output=True, check=True).stdout)[
            "policies"
        ]
        for backend in BACKENDS:
            for policy in policies:
                for dtype in ["int32", "float64"]:
                    for n in chosen(backend, [1023, 8193, 50001], [50001]):
                        for kind in ["inclusive", "exclusive"]:
                            with self.subTest(backend=backend, policy=policy, dtype=dtype, n=n, kind=kind):
                                x = make(dtype, "plus", n)
                                y = self.scan(x, "--policy", policy, "--kind", kind, backend=backend)
                                self.judge(x, y, "plus", dtype, kind)

    def test_chunks_keep_the_bits(self):
        for backend in BACKENDS:
            for policy in ["default", "domino", "single_block/brent_kung", "look_back/coarse"]:
                for dtype in chosen(backend, ["int16", "float32", "float64", "complex128"], ["float32"]):
                    tile = {"int16": 8192, "float32": 8192, "float64": 4096, "complex128": 2048}[dtype]
                    for n in [tile - 1, tile, tile + 1, 5 * tile + 7]:
                        for kind in ["inclusive", "exclusive"]:
                            with self.subTest(backend=backend, policy=policy, dtype=dtype, n=n, kind=kind):
                                x = make(dtype, "plus", n)
                                arguments = ["--policy", policy, "--kind", kind]
                                whole = self.scan(x, *arguments, "--chunk", "64M", backend=backend)
                                self.judge(x, whole, "plus", dtype, kind)
                                for chunk in [1, 32768, 100000]:
                                    parts = self.scan(x, *arguments, "--chunk", chunk, backend=backend)
                                    self.assertEqual(whole.tobytes(), parts.tobytes())

    def test_init(self):
        for backend in BACKENDS:
            for dtype in DTYPES:
                for op in operators_of(dtype):
                    for kind in ["inclusive", "exclusive"]:
                        for n in chosen(backend, [0, 1, 9000], [9000]):
                            with self.subTest(backend=backend, dtype=dtype, op=op, kind=kind, n=n):
                                x = make(dtype, op, n)
                                y = self.scan(x, "--op", op, "--kind", kind, "--init", 3, backend=backend)
                                self.judge(x, y, op, dtype, kind, init=3)

    def test_accumulator_and_output_types(self):
        for backend in BACKENDS:
            for source, accumulator in [
                ("int8", "int64"),
                ("uint8", "uint64"),
                ("uint16", "int32"),
                ("float32", "float64"),
                ("int32", "float64"),
                ("float32", "complex64"),
                ("int64", "int8"),
                ("uint8", "float32"),
            ]:
                for chunk in ["64M", "8192"]:
                    with self.subTest(backend=backend, source=source, accumulator=accumulator, chunk=chunk):
                        x = make(source, "plus", 20001)
                        y = self.scan(x, "--accumulate", accumulator, "--chunk", chunk, backend=backend)
                        self.judge(x.astype(accumulator), y, "plus", accumulator, "inclusive")
            x = make("int8", "plus", 20001)
            y = self.scan(x, "--accumulate", "int64", "--output-dtype", "float32", backend=backend)
            np.testing.assert_array_equal(y, np.cumsum(x, dtype="int64").astype("float32"))
            y = self.scan(x, "--output-dtype", "int16", "--accumulate", "int16", backend=backend)
            np.testing.assert_array_equal(y, np.cumsum(x, dtype="int16"))
            y = self.scan(x, "--output-dtype", "int64", backend=backend)  # the accumulator holds input and output
            np.testing.assert_array_equal(y, np.cumsum(x, dtype="int64"))

    def test_versions_and_orders(self):
        x = np.arange(1000, dtype="int32")
        for version in [(1, 0), (2, 0), (3, 0)]:
            np.testing.assert_array_equal(
                self.scan(x, backend=BACKENDS[0], version=version), np.cumsum(x, dtype="int32")
            )
        np.testing.assert_array_equal(self.scan(np.asfortranarray(x), backend=BACKENDS[0]), np.cumsum(x, dtype="int32"))

    def test_refused_arrays(self):
        for x, part in [
            (np.zeros((2, 2)), "rank 2"),
            (np.array(1.0), "rank 0"),
            (np.zeros(3, bool), "bool"),
            (np.zeros(3, "f2"), "float16"),
            (np.zeros(3, ">f4"), "big-endian"),
            (np.zeros(3, "U4"), ""),
            (np.zeros(3, "i4,f4"), "structured"),
            (np.zeros(3, "M8[s]"), ""),
        ]:
            np.save(self.folder / "in.npy", x)
            result = subprocess.run(
                [
                    PROGRAM,
                    "scan",
                    "--backend",
                    BACKENDS[0],
                    "--input",
                    self.folder / "in.npy",
                    "--output",
                    self.folder / "out.npy",
                ],
                capture_output=True,
                text=True,
            )
            self.assertEqual(result.returncode, 2)
            self.assertIn(part, result.stderr)
            self.assertEqual(result.stderr.count("\n"), 1)
            self.assertFalse((self.folder / "out.npy").exists())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--faulty", required=True)
    given, rest = parser.parse_known_args()
    PROGRAM = os.path.abspath(given.program)
    info = json.loads(subprocess.run([PROGRAM, "info", "--json"], capture_output=True, check=True).stdout)
    BACKENDS = [backend["name"] for backend in info["backends"] if backend["available"]]
    if not BACKENDS:
        PROGRAM, BACKENDS = os.path.abspath(given.faulty), ["right"]
    print("judged:", PROGRAM, BACKENDS, flush=True)
    unittest.main(argv=[sys.argv[0], *rest])
