# SPDX-License-Identifier: Apache-2.0
# An overlay port that builds the source tree it lies in: vcpkg install polyscan --overlay-ports=packaging/vcpkg
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)

vcpkg_check_features(OUT_FEATURE_OPTIONS FEATURE_OPTIONS
    FEATURES
        openmp POLYSCAN_OPENMP
        kokkos POLYSCAN_KOKKOS
        cuda POLYSCAN_CUDA)

vcpkg_cmake_configure(
    SOURCE_PATH "${SOURCE_PATH}"
    OPTIONS
        ${FEATURE_OPTIONS}
        -DPOLYSCAN_TOOLS=OFF
        -DPOLYSCAN_TESTS=OFF
        -DPOLYSCAN_BENCHMARKS=OFF
        -DPOLYSCAN_EXAMPLES=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/polyscan)
vcpkg_fixup_pkgconfig()

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
