// SPDX-License-Identifier: Apache-2.0
/// The run-time library: element types by name, and a registry that nobody has registered with.
#include <cstdio>

#include <polyscan/registry.hpp>

int main() {
    const auto type = polyscan::dtype_from_name("float32");
    const bool good = type && polyscan::size_of(*type) == 4 && polyscan::registered_backends().empty();
    std::printf("polyscan::runtime: %s\n", good ? "right" : "wrong");
    return good ? 0 : 1;
}
