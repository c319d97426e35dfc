// The devices of tests of transforms: the host and a simulated device or, compiled with WEIR_TEST_FFT_ON_CUDA, a CUDA device.
#pragma once

#include <vector>

#include "weir/calls.hpp"
#include "weir/device.hpp"

namespace weir::test {

/// Where operands lie, and where transforms compute.
struct fft_place {
    device home;
    execution_target execution;
};

inline std::vector<device> fft_devices() {
#ifdef WEIR_TEST_FFT_ON_CUDA
    return {cuda()};
#else
    return {cpu(), sim(0)};
#endif
}

/// Every device, and from each to another.
inline std::vector<fft_place> fft_places() {
#ifdef WEIR_TEST_FFT_ON_CUDA
    return {{cuda(), {}}, {cpu(), cuda()}, {cuda(), cpu()}, {sim(0), cuda()}};
#else
    return {{cpu(), {}}, {sim(0), {}}, {cpu(), sim(0)}, {sim(0), cpu()}};
#endif
}

}  // namespace weir::test
