# SPDX-License-Identifier: Apache-2.0
# How a backend joins the build. A backend `x` is the folder backends/x, whose CMakeLists.txt defines
#   polyscan_x            INTERFACE library (alias polyscan::x), headers in backends/x/include; its property
#                         POLYSCAN_FIND_PACKAGE holds the arguments of the find_package that a user of x needs, too
#   polyscan_x_registry   OBJECT library made with polyscan_add_registry(x SOURCES ...)
# Whoever links polyscan::registered_backends gets every enabled backend, registered, without naming one.

define_property(GLOBAL PROPERTY POLYSCAN_BACKENDS BRIEF_DOCS "Names of the enabled backends")
set_property(GLOBAL PROPERTY POLYSCAN_BACKENDS "")

# polyscan_add_backend(<name>): the option POLYSCAN_<NAME> and, where it is on, the folder backends/<name>.
function(polyscan_add_backend name)
    string(TOUPPER "${name}" upper)
    option(POLYSCAN_${upper} "Build the ${name} backend" OFF)
    if(NOT POLYSCAN_${upper})
        return()
    endif()
    add_subdirectory("${name}")
    foreach(target IN ITEMS polyscan_${name} polyscan_${name}_registry)
        if(NOT TARGET ${target})
            message(FATAL_ERROR "backends/${name}/CMakeLists.txt must define the target ${target}")
        endif()
    endforeach()
    set_property(GLOBAL APPEND PROPERTY POLYSCAN_BACKENDS "${name}")
    # The object files themselves, so that the linker cannot drop a registrar that nobody calls;
    # link-only, because whoever uses the registry needs none of the backend's compile flags.
    target_sources(polyscan_registered_backends INTERFACE $<TARGET_OBJECTS:polyscan_${name}_registry>)
    target_link_libraries(polyscan_registered_backends INTERFACE $<LINK_ONLY:polyscan_${name}>)
    polyscan_install_component(${name} TARGETS polyscan_${name})
    message(STATUS "polyscan: backend ${name}")
endfunction()

# The element types of the run-time face (polyscan/dtype.hpp), a translation unit for each group: most of the time goes
# into those with four and eight bytes, and reading the headers once for several small types saves some.
set(polyscan_element_groups bytes words longs unsigned_words unsigned_longs float double complex)
set(polyscan_elements_bytes std::int8_t std::uint8_t std::int16_t std::uint16_t)
set(polyscan_elements_words std::int32_t)
set(polyscan_elements_longs std::int64_t)
set(polyscan_elements_unsigned_words std::uint32_t)
set(polyscan_elements_unsigned_longs std::uint64_t)
set(polyscan_elements_float float)
set(polyscan_elements_double double)
set(polyscan_elements_complex std::complex<float> std::complex<double>)

# polyscan_host_kernels(<out> <template|extern template> <element>...): lines that make the kernels of
# backends/host_kernels.hpp for these elements, or leave them to another target.
function(polyscan_host_kernels out how)
    set(lines "\n#include \"host_kernels.hpp\"\n\nnamespace polyscan::host {\n")
    foreach(element IN LISTS ARGN)
        if(element MATCHES "^std::int")
            set(kind SIGNED)
        elseif(element MATCHES "^std::uint")
            set(kind UNSIGNED)
        elseif(element MATCHES "^(float|double)$")
            set(kind FLOATING)
        else()
            continue()
        endif()
        string(APPEND lines "POLYSCAN_HOST_KERNELS_${kind}(${how}, ${element})\n")
    endforeach()
    set(${out} "${lines}} // namespace polyscan::host\n" PARENT_SCOPE)
endfunction()

# polyscan_add_registry(<name> SOURCES <file>... [EXTENSION <extension>] [HOST_KERNELS <template|extern template>])
# The backend's registrar, and the explicit instantiations of what src/compiled_set.hpp says. That header defines
# polyscan::<name>::compiled_set and polyscan::<name>::registry_backend.
#   EXTENSION     of the instantiations' sources, cpp when left out
#   HOST_KERNELS  makes the kernels that two registries share, or leaves them to the other one
function(polyscan_add_registry name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "EXTENSION;HOST_KERNELS" "SOURCES")
    if(NOT arg_EXTENSION)
        set(arg_EXTENSION cpp)
    endif()
    # Beside the definitions it would instantiate them for every element type.
    set_source_files_properties(${arg_SOURCES} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    foreach(group IN LISTS polyscan_element_groups)
        list(JOIN polyscan_elements_${group} ", " elements)
        set(kernels "")
        if(arg_HOST_KERNELS)
            polyscan_host_kernels(kernels "${arg_HOST_KERNELS}" ${polyscan_elements_${group}})
        endif()
        list(TRANSFORM polyscan_elements_${group} REPLACE "(.+)" "POLYSCAN_INSTANTIATE(\\1)" OUTPUT_VARIABLE instantiations)
        list(JOIN instantiations "\n" instantiations)
        set(source "${CMAKE_CURRENT_BINARY_DIR}/scan_${group}.${arg_EXTENSION}")
        configure_file("${PROJECT_SOURCE_DIR}/backends/scan_elements.in" "${source}" @ONLY)
        list(APPEND arg_SOURCES "${source}")
    endforeach()
    # Built where it is linked: a twin that runs only the library's own tests is spared the instantiations.
    add_library(polyscan_${name}_registry OBJECT EXCLUDE_FROM_ALL ${arg_SOURCES})
    polyscan_instantiations(polyscan_${name}_registry)
    target_include_directories(polyscan_${name}_registry PRIVATE src "${PROJECT_SOURCE_DIR}/backends")
    target_link_libraries(polyscan_${name}_registry PUBLIC polyscan_${name} polyscan_runtime PRIVATE polyscan_own)
    set_target_properties(polyscan_${name}_registry PROPERTIES POSITION_INDEPENDENT_CODE ON)
endfunction()

# polyscan_add_to_program(<name> <file>...): what the program alone needs of a backend and what registers itself there:
# the verbs beside scan (tools/verbs/verb.hpp), other libraries' scans on its device (tools/peers/peer.hpp). The program
# is defined later than the backends.
function(polyscan_add_to_program name)
    if(NOT POLYSCAN_TOOLS)
        return()
    endif()
    add_library(polyscan_${name}_program OBJECT EXCLUDE_FROM_ALL ${ARGN})
    target_include_directories(polyscan_${name}_program PRIVATE src "${PROJECT_SOURCE_DIR}/tools")
    target_link_libraries(polyscan_${name}_program PRIVATE polyscan_${name} polyscan_runtime polyscan_own)
    # EVAL: the arguments of a deferred call are expanded when it runs, and name is gone then.
    cmake_language(EVAL CODE "cmake_language(DEFER DIRECTORY [[${PROJECT_SOURCE_DIR}]]
        CALL target_sources polyscan_tool PRIVATE [[$<TARGET_OBJECTS:polyscan_${name}_program>]])")
endfunction()
