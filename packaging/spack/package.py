# SPDX-License-Identifier: Apache-2.0
"""Spack recipe. There is no archive to fetch yet, so it builds a source tree:

    spack repo create my_repo && mkdir -p my_repo/packages/polyscan && cp packaging/spack/package.py my_repo/packages/polyscan/
    spack repo add my_repo && spack dev-build -d <source tree> polyscan@0.1.0 +openmp
"""

from spack.package import *


class Polyscan(CMakePackage, CudaPackage):
    """Parallel scans (prefix sums) of any type with any associative operator: one policy, several backends, the same
    bits."""

    license("Apache-2.0")

    version("0.1.0")

    variant("openmp", default=True, description="OpenMP backend")
    variant("kokkos", default=False, description="Kokkos backend")
    variant("tools", default=False, description="The program polyscan")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.26:", type="build")
    depends_on("ninja", type="build")
    depends_on("kokkos@4.3:", when="+kokkos")
    depends_on("cuda@12:", when="+cuda")
    with when("+tools"):
        depends_on("cli11")
        depends_on("fmt")
        depends_on("nlohmann-json@3:")
        depends_on("benchmark")

    conflicts("%gcc@:11", msg="polyscan is C++20")
    conflicts("%clang@:15", msg="polyscan is C++20")
    conflicts("cuda_arch=none", when="+cuda", msg="name the GPU architectures: cuda_arch=89")

    generator("ninja")

    def cmake_args(self):
        args = [
            self.define_from_variant("POLYSCAN_OPENMP", "openmp"),
            self.define_from_variant("POLYSCAN_KOKKOS", "kokkos"),
            self.define_from_variant("POLYSCAN_CUDA", "cuda"),
            self.define_from_variant("POLYSCAN_TOOLS", "tools"),
            self.define("POLYSCAN_TESTS", False),
            self.define("POLYSCAN_BENCHMARKS", False),
            self.define("POLYSCAN_EXAMPLES", False),
        ]
        if "+cuda" in self.spec:
            args.append(self.define("CMAKE_CUDA_ARCHITECTURES", self.spec.variants["cuda_arch"].value))
        return args
