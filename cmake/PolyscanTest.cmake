# SPDX-License-Identifier: Apache-2.0
# polyscan_add_test(<name> SOURCES <file>... [LIBS <target>...] [LABELS <label>...] [TIMEOUT <seconds>] [SERIAL])
#
# One doctest executable and one ctest entry of the same name.
#   TIMEOUT    seconds, 120 when left out; a hang is a failure, and sanitizers get four times as long
#   SERIAL     nothing else runs meanwhile: for tests whose code uses all cores
# doctest's main() comes from a library, so a source that defines its own simply wins.
function(polyscan_add_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "SERIAL" "TIMEOUT" "SOURCES;LIBS;LABELS")
    if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
        message(FATAL_ERROR "polyscan_add_test(${name}): SOURCES missing, or not understood: ${arg_UNPARSED_ARGUMENTS}")
    endif()
    if(NOT arg_TIMEOUT)
        set(arg_TIMEOUT 120)
    endif()
    if(POLYSCAN_SANITIZE)
        math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * 4")
    endif()

    polyscan_test_main()
    add_executable(${name} ${arg_SOURCES})
    target_link_libraries(${name} PRIVATE ${arg_LIBS} polyscan_test_main doctest::doctest polyscan_core polyscan_own)
    target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")

    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}")
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "${polyscan_test_environment}")
    if(arg_SERIAL)
        set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
    endif()
    if("cuda" IN_LIST arg_LABELS)
        # Without a device nothing is compared: ctest shall say skipped, not passed.
        set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "0 cells passed, 0 failed, [1-9];skipped: no CUDA device")
    endif()
endfunction()

# doctest's main(), compiled once.
function(polyscan_test_main)
    if(TARGET polyscan_test_main)
        return()
    endif()
    set(source "${PROJECT_BINARY_DIR}/generated/doctest_main.cpp")
    file(CONFIGURE OUTPUT "${source}" CONTENT
        "#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN\n#include <doctest/doctest.h>\n" @ONLY)
    add_library(polyscan_test_main STATIC "${source}")
    target_compile_features(polyscan_test_main PRIVATE cxx_std_20)
    # Sanitizers, but no warnings: the code is doctest's.
    target_link_libraries(polyscan_test_main PRIVATE doctest::doctest polyscan_own)
    target_compile_options(polyscan_test_main PRIVATE -w "$<$<CONFIG:Release>:-O0>")
    set_target_properties(polyscan_test_main PROPERTIES POLYSCAN_UNOPTIMISED ON)
endfunction()

# The thread sanitizer must be told of OpenMP's own barriers: clang's run-time does so through a tool library.
set(polyscan_test_environment "")
if(NOT POLYSCAN_SANITIZE)
    # Cells take and return the same arrays many thousand times: giving their pages back in between cost half of the time.
    list(APPEND polyscan_test_environment MALLOC_TRIM_THRESHOLD_=1073741824 MALLOC_MMAP_THRESHOLD_=1073741824)
endif()
if(POLYSCAN_SANITIZE MATCHES "thread")
    set(polyscan_test_environment "TSAN_OPTIONS=ignore_noninstrumented_modules=1 halt_on_error=1")
    execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -print-file-name=libarcher.so
        OUTPUT_VARIABLE polyscan_archer OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(IS_ABSOLUTE "${polyscan_archer}")
        list(APPEND polyscan_test_environment "OMP_TOOL_LIBRARIES=${polyscan_archer}")
    else()
        message(WARNING "polyscan: no libarcher.so beside ${CMAKE_CXX_COMPILER}: "
            "the thread sanitizer will report OpenMP's own barriers as races")
    endif()
endif()
# clang's OpenMP run-time keeps some memory to the end, which the address sanitizer takes for lost.
if(POLYSCAN_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/generated/lsan.supp" CONTENT "leak:libomp.so\n" @ONLY)
    list(APPEND polyscan_test_environment
        "LSAN_OPTIONS=suppressions=${PROJECT_BINARY_DIR}/generated/lsan.supp:print_suppressions=0")
endif()
