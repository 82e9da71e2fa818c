# SPDX-License-Identifier: Apache-2.0
# The target `headers_alone` compiles every public header by itself: each must include all it needs.

if(PROJECT_IS_TOP_LEVEL)
    add_custom_target(headers_alone)
endif()

# polyscan_headers_alone(<name> INCLUDE_DIR <folder> LIBS <target>...)
# One generated source per header below the folder; the header comes twice, which tests its include guard too.
function(polyscan_headers_alone name)
    if(NOT PROJECT_IS_TOP_LEVEL)
        return() # a check of this project, not of a user's
    endif()
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "INCLUDE_DIR" "LIBS")
    # A check of whatever is there, not a list of what to build: the one place where a glob is right.
    file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE "${arg_INCLUDE_DIR}"
        "${arg_INCLUDE_DIR}/*.hpp" "${arg_INCLUDE_DIR}/*.cuh")
    set(sources "")
    foreach(header IN LISTS headers)
        if(header MATCHES "\\.cuh$")
            set(extension cu)
        else()
            set(extension cpp)
        endif()
        string(MAKE_C_IDENTIFIER "${header}" stem)
        set(source "${PROJECT_BINARY_DIR}/generated/headers_alone/${name}/${stem}.${extension}")
        file(CONFIGURE OUTPUT "${source}" CONTENT "#include <${header}>\n#include <${header}>\n" @ONLY)
        list(APPEND sources "${source}")
    endforeach()
    if(sources)
        add_library(headers_alone_${name} OBJECT EXCLUDE_FROM_ALL ${sources})
        # One of nvcc's three readings: the host's compiler reads what nvcc has already read.
        if(CMAKE_CUDA_COMPILER)
            set_target_properties(headers_alone_${name} PROPERTIES CUDA_PTX_COMPILATION ON)
        endif()
        target_link_libraries(headers_alone_${name} PRIVATE ${arg_LIBS} polyscan_own)
        target_compile_options(headers_alone_${name} PRIVATE "$<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O0>")
        add_dependencies(headers_alone headers_alone_${name})
    endif()
endfunction()
