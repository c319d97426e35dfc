// What tests ask the fake cuSOLVER.
#pragma once

#include "cuda.hpp"

/// How often a function of the library was called by its name.
WEIR_FAKE_EXPORT unsigned long long weir_fake_cusolver_calls(const char* name);
