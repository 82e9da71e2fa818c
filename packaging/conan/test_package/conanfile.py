# SPDX-License-Identifier: Apache-2.0
"""Builds and runs tests/consumers/find_package with the package."""

import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, cmake_layout


class PolyscanTest(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeToolchain", "CMakeDeps"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def build(self):
        cmake = CMake(self)
        cmake.configure(build_script_folder=os.path.join("..", "..", "..", "tests", "consumers", "find_package"))
        cmake.build()

    def test(self):
        if can_run(self):
            for program in ("consumer", "consumer_runtime"):
                self.run(os.path.join(self.cpp.build.bindir, program), env="conanrun")
