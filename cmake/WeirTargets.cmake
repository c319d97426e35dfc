# What all targets of Weir share, and one function for each kind of target.

# Warnings and sanitizers. Linked privately, so that users of the library are not affected.
add_library(weir_warnings INTERFACE)
target_compile_options(weir_warnings INTERFACE
    -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Wold-style-cast
    -Woverloaded-virtual -Wcast-align -Wcast-qual -Wdouble-promotion -Wextra-semi -Wformat=2 -Wimplicit-fallthrough
    -Wundef -Wunused
    # In a unity build a name of one file may hide one of another file: not a mistake.
    $<$<NOT:$<BOOL:${WEIR_UNITY}>>:-Wshadow>
    # Before GCC 13 string concatenation causes a false warning (GCC bug 105329).
    $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
    $<$<CXX_COMPILER_ID:GNU>:-Wduplicated-branches;-Wduplicated-cond;-Wlogical-op>
    $<$<CXX_COMPILER_ID:Clang,AppleClang>:-Wthread-safety;-Wno-gnu-zero-variadic-macro-arguments>
    $<$<BOOL:${WEIR_WERROR}>:-Werror>
    # Source positions are recorded relative to the repository, wherever it is.
    -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)
if(WEIR_PRECOMPILE AND CMAKE_CXX_COMPILER_LAUNCHER)
    # Required by ccache, which has to see which headers were precompiled.
    target_compile_options(weir_warnings INTERFACE
        $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess> $<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>)
endif()
if(CMAKE_CXX_COMPILER_LAUNCHER)
    # ccache gives paths relative to the build folder to the compiler.
    file(RELATIVE_PATH root ${CMAKE_BINARY_DIR} ${PROJECT_SOURCE_DIR})  # ends with a slash
    target_compile_options(weir_warnings INTERFACE -ffile-prefix-map=${root}=)
endif()
if(WEIR_FUZZ)
    # The fuzzer looks for inputs that reach new code of the library.
    target_compile_options(weir_warnings INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(WEIR_SANITIZE)
    target_compile_options(weir_warnings INTERFACE
        -fsanitize=${WEIR_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
        # Clang 14 reports a call of a driver function if its declaration here has another pointer type.
        $<$<CXX_COMPILER_ID:Clang>:-fno-sanitize=function>
        # Instrumented code causes false warnings in GCC's analysis of initialisation and of bounds.
        $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized;-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>)
    # PUBLIC users of the static library need the run-time library of the sanitizer as well.
    target_link_options(weir_warnings INTERFACE -fsanitize=${WEIR_SANITIZE})
endif()

# What the tests' own sources are compiled with. Linked after weir_warnings, whose options it may take back.
add_library(weir_test_options INTERFACE)
target_compile_options(weir_test_options INTERFACE ${WEIR_TEST_OPTIONS})

# weir_add_test(NAME LABEL [PUBLIC_ONLY] SOURCES... [LIBRARIES...]): a GoogleTest program. Each of its tests becomes a
# test of CTest named LABEL.<suite>.<test>. It may include the library's private headers as "folder/header.hpp", unless it
# is PUBLIC_ONLY: then it links the shared library as users do (except with sanitizers, which test the static one).
# ONE_THREAD or WITHOUT_TSAN "reason": the thread sanitizer does not run it. ONE_THREAD is checked.
# WITHOUT_SANITIZERS "reason": no sanitizer runs it.
# FILTER "PATTERN": only tests that match become tests of CTest, as with --gtest_filter.
function(weir_add_test name label)
    cmake_parse_arguments(PARSE_ARGV 2 arg "PUBLIC_ONLY;ONE_THREAD" "FILTER;WITHOUT_TSAN;WITHOUT_SANITIZERS" "SOURCES;LIBRARIES;DEFINITIONS")
    set(target ${label}-${name})
    if(arg_ONE_THREAD)
        set(arg_WITHOUT_TSAN "it has one thread")
    endif()
    if(arg_WITHOUT_SANITIZERS AND WEIR_SANITIZE)
        message(STATUS "${target} is left out: ${arg_WITHOUT_SANITIZERS}")
        return()
    endif()
    if(arg_WITHOUT_TSAN AND WEIR_SANITIZE MATCHES thread)
        message(STATUS "${target} is left out: ${arg_WITHOUT_TSAN}")
        return()
    endif()
    if(WEIR_ONE_TEST_PROGRAM)
        add_library(${target} OBJECT ${arg_SOURCES})
        target_link_libraries(weir-all-tests PRIVATE ${target})
    else()
        add_executable(${target} ${arg_SOURCES})
    endif()
    set(library weir_internal)
    if(arg_PUBLIC_ONLY AND NOT WEIR_SANITIZE AND NOT WEIR_ONE_TEST_PROGRAM)
        set(library weir::shared)
        set_property(TARGET ${target} PROPERTY WEIR_PUBLIC_ONLY ON)
    endif()
    target_link_libraries(${target} PRIVATE
        ${library} weir_warnings weir_test_options GTest::gmock GTest::gtest_main ${arg_LIBRARIES})
    target_compile_definitions(${target} PRIVATE ${arg_DEFINITIONS})
    if(arg_ONE_THREAD AND NOT WEIR_SANITIZE AND NOT WEIR_ONE_TEST_PROGRAM)
        target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/one_thread.cpp)
    endif()
    # Property tests run as long as they are configured to; other tests fail after five minutes.
    set(properties LABELS ${label})
    if(NOT label STREQUAL "property")
        list(APPEND properties TIMEOUT 300)
    endif()
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    if(WEIR_PRECOMPILE)
        # The first test precompiles the headers for all tests.
        get_property(first GLOBAL PROPERTY WEIR_FIRST_TEST)
        if(first)
            target_precompile_headers(${target} REUSE_FROM ${first})
        else()
            target_precompile_headers(${target} PRIVATE <gmock/gmock.h> <gtest/gtest.h> <weir/weir.hpp>)
            set_property(GLOBAL PROPERTY WEIR_FIRST_TEST ${target})
        endif()
    endif()
    if(WEIR_ONE_TEST_PROGRAM)
        return()
    endif()
    # Disabled tests are programs that other tests start.
    gtest_discover_tests(${target} TEST_FILTER ${arg_FILTER}-*.DISABLED_*
        TEST_PREFIX ${label}. DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 PROPERTIES ${properties})
    add_dependencies(weir-tests ${target})
endfunction()

# weir_add_benchmark(NAME SOURCES... [LIBRARIES...]): a program with Google Benchmark that `./run bench` runs.
function(weir_add_benchmark name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES")
    set(target bench-${name})
    add_executable(${target} ${arg_SOURCES})
    target_link_libraries(${target} PRIVATE
        weir_internal weir_warnings benchmark::benchmark ${arg_LIBRARIES})
    add_dependencies(weir-benchmarks ${target})
    set_property(GLOBAL APPEND_STRING PROPERTY WEIR_BENCHMARK_LIST "$<TARGET_FILE:${target}>\n")
endfunction()

# weir_add_example(NAME SOURCES...): a program that uses the public headers and the shared library only, as users
# do; it is also run as a test.
function(weir_add_example name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES")
    set(target example-${name})
    add_executable(${target} ${arg_SOURCES})
    target_link_libraries(${target} PRIVATE weir::shared weir_warnings ${arg_LIBRARIES})
    add_dependencies(weir-examples ${target})
    if(WEIR_BUILD_TESTS)
        add_test(NAME example.${name} COMMAND ${target})
        set_tests_properties(example.${name} PROPERTIES LABELS example TIMEOUT 300)
        add_dependencies(weir-tests ${target})
    endif()
endfunction()
