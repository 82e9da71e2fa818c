# SPDX-License-Identifier: Apache-2.0
# polyscan_own: what every target of this project, and no target of a user, is compiled with:
# warnings, sanitizers, and the flags that keep floating-point results bit-exact. Link it PRIVATE.

add_library(polyscan_own INTERFACE)

set(polyscan_warnings -Wall -Wextra -Wpedantic -Wconversion -Wshadow)
# nvcc's generated host code is not pedantic, so -Wpedantic stays with plain C++.
set(polyscan_cuda_warnings -Wall,-Wextra,-Wshadow)
if(POLYSCAN_WERROR)
    list(APPEND polyscan_warnings -Werror)
endif()
target_compile_options(polyscan_own INTERFACE
    "$<$<COMPILE_LANG_AND_ID:CXX,GNU,Clang,AppleClang>:${polyscan_warnings}>"
    "$<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:-Xcompiler=${polyscan_cuda_warnings}>")
# g++ 12 warns about overlaps of 2^63 bytes in its own std::string (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(polyscan_own INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>")
endif()
# clang warns where a loop that may be vectorised cannot be: with operators on std::string, for one.
# And where libstdc++'s own std::stable_sort takes a buffer by a function that C++17 deprecates; g++ looks for the others.
target_compile_options(polyscan_own INTERFACE
    "$<$<COMPILE_LANG_AND_ID:CXX,Clang,AppleClang>:-Wno-pass-failed;-Wno-deprecated-declarations>")
if(POLYSCAN_WERROR)
    target_compile_options(polyscan_own INTERFACE "$<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:-Werror=all-warnings>")
endif()

if(POLYSCAN_SANITIZE)
    # Lines are all that a report needs of debugging information. Instrumented templates take four times as long to
    # compile with -O1 as without, and run eight times as fast: a target of many templates and few iterations has the
    # property POLYSCAN_UNOPTIMISED.
    target_compile_options(polyscan_own INTERFACE
        "$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${POLYSCAN_SANITIZE};-fno-sanitize-recover=all;-fno-omit-frame-pointer;-g1>"
        "$<$<COMPILE_LANGUAGE:CXX>:$<IF:$<BOOL:$<TARGET_PROPERTY:POLYSCAN_UNOPTIMISED>>,-O0,-O1>>"
        "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Xcompiler=\"-fsanitize=${POLYSCAN_SANITIZE}\" -Xcompiler=-fno-omit-frame-pointer>")
    target_link_options(polyscan_own INTERFACE "-fsanitize=${POLYSCAN_SANITIZE}")
    # One instruction set instead of three: the kernels are the same source, and instrumented they compile for minutes.
    target_compile_definitions(polyscan_own INTERFACE POLYSCAN_HOST_AS_COMPILED)
endif()
target_link_libraries(polyscan_own INTERFACE polyscan_bit_exact)

# g++ spends a tenth of its time on collecting garbage when it does so from 128 MB on.
if(POLYSCAN_JOIN_INSTANTIATIONS AND polyscan_memory GREATER 12000) # MB
    set(polyscan_heap --param=ggc-min-heapsize=1048576) # kB
    target_compile_options(polyscan_own INTERFACE
        "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:${polyscan_heap}>"
        "$<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:-Xcompiler=${polyscan_heap}>")
endif()
