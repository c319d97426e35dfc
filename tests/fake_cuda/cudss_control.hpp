// The controls and queries of the fake cuDSS for tests. tests/support/fake_cudss.hpp has a class over these.
#pragma once

#include <cstddef>

#include "cuda.hpp"

/// How often a function of the library was called by its name.
WEIR_FAKE_EXPORT unsigned long long weir_fake_cudss_calls(const char* name);
/// How often cudssExecute was called for a phase.
WEIR_FAKE_EXPORT unsigned long long weir_fake_cudss_phases(int phase);
/// The nth call from now (1: the next) of the function returns the status and does nothing else.
WEIR_FAKE_EXPORT void weir_fake_cudss_fail(const char* name, unsigned long long nth, int status);
/// Handles, configurations, data and matrices that were created and not destroyed.
WEIR_FAKE_EXPORT std::size_t weir_fake_cudss_objects();
/// How often a program did what is not allowed: destroyed objects that pending work refers to, executed in another stream than the one
/// that the thread had set, or ran two phases of one system at the same time. The results are then NaN.
WEIR_FAKE_EXPORT unsigned long long weir_fake_cudss_mistakes();
