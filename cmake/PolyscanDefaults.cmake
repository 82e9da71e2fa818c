# SPDX-License-Identifier: Apache-2.0
# Defaults that a user may override; none of them changes CMAKE_<LANG>_FLAGS.

# Directory-scoped: applies to polyscan's own targets, also when polyscan is a sub-project.
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CUDA_EXTENSIONS OFF)

if(POLYSCAN_CUDA AND NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
    set(CMAKE_CUDA_ARCHITECTURES 89) # machine code for 89, and PTX for anything newer
endif()

option(POLYSCAN_LIGHT_CUDA_TESTS "Compile the CUDA tests and examples quickly, to PTX: for machines without a GPU, where they do not run" OFF)
mark_as_advanced(POLYSCAN_LIGHT_CUDA_TESTS)

# polyscan_cuda_tests_here(): to be called in a folder of tests or examples, before its targets are made.
macro(polyscan_cuda_tests_here)
    if(POLYSCAN_LIGHT_CUDA_TESTS AND CMAKE_CUDA_COMPILER_ID STREQUAL "NVIDIA")
        # What is made for a processor stays the registry's and the program's, for scripts/check-ptxas.py to look at.
        if(CMAKE_CUDA_ARCHITECTURES MATCHES "^[0-9]+[af]?")
            set(CMAKE_CUDA_ARCHITECTURES "${CMAKE_MATCH_0}-virtual")
        endif()
        string(REPLACE "-O3" "-O1" CMAKE_CUDA_FLAGS_RELEASE "${CMAKE_CUDA_FLAGS_RELEASE}")
        set(polyscan_joined 8) # quick ones: reading the headers takes longer
        if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
            add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:--Ofast-compile=max>")
        endif()
    endif()
endmacro()

# polyscan_instantiations(<target>...): targets whose sources differ only in what they instantiate.
# Each such compilation may take 2 GB.
cmake_host_system_information(RESULT polyscan_memory QUERY TOTAL_PHYSICAL_MEMORY) # MB
set(polyscan_joined 3)
if(polyscan_memory GREATER 12000)
    set(polyscan_joined 6)
endif()
function(polyscan_instantiations)
    if(POLYSCAN_JOIN_INSTANTIATIONS)
        set_target_properties(${ARGN} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${polyscan_joined})
    endif()
endfunction()

if(NOT PROJECT_IS_TOP_LEVEL)
    return()
endif()

get_property(polyscan_multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
if(NOT polyscan_multi_config AND NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
unset(polyscan_multi_config)

set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# Reading the headers takes as long as a few instantiations do. Off, a machine with many cores waits for less.
option(POLYSCAN_JOIN_INSTANTIATIONS "Compile generated sources several at a time: less work, for machines with few cores" OFF)
mark_as_advanced(POLYSCAN_JOIN_INSTANTIATIONS)

find_program(POLYSCAN_CCACHE ccache DOC "Compiler cache, used when found")
mark_as_advanced(POLYSCAN_CCACHE)
if(POLYSCAN_CCACHE)
    foreach(polyscan_language CXX CUDA)
        if(NOT DEFINED CMAKE_${polyscan_language}_COMPILER_LAUNCHER)
            set(CMAKE_${polyscan_language}_COMPILER_LAUNCHER "${POLYSCAN_CCACHE}")
        endif()
    endforeach()
    unset(polyscan_language)
endif()
