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

# polyscan_add_registry(<name> SOURCES <file>...): the backend's explicit instantiations and its registrar.
function(polyscan_add_registry name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES")
    # Built where it is linked: a twin that runs only the library's own tests is spared the instantiations.
    add_library(polyscan_${name}_registry OBJECT EXCLUDE_FROM_ALL ${arg_SOURCES})
    target_link_libraries(polyscan_${name}_registry PUBLIC polyscan_${name} polyscan_runtime PRIVATE polyscan_own)
    set_target_properties(polyscan_${name}_registry PROPERTIES POSITION_INDEPENDENT_CODE ON)
endfunction()
