// What tests tell and ask the fake cuBLASLt. tests/support/fake_cublaslt.hpp has a class over these.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda.hpp"

/// How often a function of the library was called by its name.
WEIR_FAKE_EXPORT unsigned long long weir_fake_cublaslt_calls(const char* name);
/// The nth call from now (1: the next) of the function returns the status and does nothing else.
WEIR_FAKE_EXPORT void weir_fake_cublaslt_fail(const char* name, unsigned long long nth, int status);
/// Descriptions and preferences that were created and not destroyed.
WEIR_FAKE_EXPORT std::size_t weir_fake_cublaslt_objects();
/// Algorithms that are suggested from now on need so many bytes of workspace, and are suggested where that much may be had.
WEIR_FAKE_EXPORT void weir_fake_cublaslt_set_workspace(std::size_t bytes);
/// Products by any algorithm but this one take a few milliseconds; none do if it is negative.
WEIR_FAKE_EXPORT void weir_fake_cublaslt_set_fastest(int algorithm);
/// The algorithm and the epilogue of the product that was put into a stream last.
WEIR_FAKE_EXPORT int weir_fake_cublaslt_last_algorithm();
WEIR_FAKE_EXPORT unsigned weir_fake_cublaslt_last_epilogue();
/// How often a program did what it must not: had two products use one workspace at the same time, or gave addresses that are less
/// aligned than it had said when it asked for the algorithm. Such results are no numbers.
WEIR_FAKE_EXPORT unsigned long long weir_fake_cublaslt_mistakes();
