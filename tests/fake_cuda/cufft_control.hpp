// The controls and queries of the fake cuFFT for tests. tests/support/fake_cufft.hpp has a class over these.
#pragma once

#include <cstddef>

#include "cuda.hpp"

/// How often a function of the library was called by its name.
WEIR_FAKE_EXPORT unsigned long long weir_fake_cufft_calls(const char* name);
/// The nth call from now (1: the next) of the function returns the status and does nothing else.
WEIR_FAKE_EXPORT void weir_fake_cufft_fail(const char* name, unsigned long long nth, int status);
/// Plans that were created and not destroyed.
WEIR_FAKE_EXPORT std::size_t weir_fake_cufft_plans();
/// The size of the workspace that each plan made from now on needs; 0 at first.
WEIR_FAKE_EXPORT void weir_fake_cufft_set_workspace(std::size_t bytes);
/// How often a program did what is not allowed: destroyed a plan whose work was pending, executed one in another stream than the
/// one that the thread had set for it, or let other work write to a workspace while it was in use. The results are then NaN.
WEIR_FAKE_EXPORT unsigned long long weir_fake_cufft_mistakes();
