// The controls and queries of the fake NVRTC for tests.
#pragma once

#include "cuda.hpp"

/// How often nvrtcCompileProgram was called.
WEIR_FAKE_EXPORT unsigned long long weir_fake_nvrtc_compilations();
/// The next nvrtcCompileProgram returns this error and does nothing else.
WEIR_FAKE_EXPORT void weir_fake_nvrtc_fail(int error);
