# SPDX-License-Identifier: Apache-2.0
"""Conan 2 recipe, for a source tree: conan create packaging/conan [-o polyscan/*:kokkos=True]"""

import os

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, rmdir


class PolyscanConan(ConanFile):
    name = "polyscan"
    version = "0.1.0"
    license = "Apache-2.0"
    description = "Parallel scans (prefix sums): one policy, several backends, the same bits"
    topics = ("scan", "prefix-sum", "openmp", "cuda", "kokkos")
    package_type = "static-library"  # the run-time face; all else is headers
    settings = "os", "arch", "compiler", "build_type"
    options = {"openmp": [True, False], "kokkos": [True, False], "cuda": [True, False]}
    default_options = {"openmp": True, "kokkos": False, "cuda": False}

    def export_sources(self):
        source = os.path.join(self.recipe_folder, "..", "..")
        copy(self, "CMakeLists.txt", source, self.export_sources_folder)
        copy(self, "LICENSE", source, self.export_sources_folder)
        for folder in ("cmake", "core", "backends"):
            copy(self, f"{folder}/*", source, self.export_sources_folder)

    def validate(self):
        check_min_cppstd(self, 20)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for backend in ("openmp", "kokkos", "cuda"):
            toolchain.cache_variables[f"POLYSCAN_{backend.upper()}"] = bool(getattr(self.options, backend))
        for part in ("TOOLS", "TESTS", "BENCHMARKS", "EXAMPLES"):
            toolchain.cache_variables[f"POLYSCAN_{part}"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        rmdir(self, os.path.join(self.package_folder, "share"))
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        # polyscan's own CMake package is the interface: find_package(polyscan CONFIG COMPONENTS openmp).
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs.append(os.path.join("lib", "cmake", "polyscan"))
        self.cpp_info.libs = ["polyscan_runtime"]
