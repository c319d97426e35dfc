// For programs that are linked with weir_test_fake_cuda: they open the fake cuFFT of tests/fake_cuda as well (fake_cuda.hpp),
// and control and query it through the class below.
#pragma once

#include <cstddef>

namespace weir::test {

/// The controls of the fake. Every function throws std::runtime_error if WEIR_CUFFT_LIBRARY names something else.
/// tests/fake_cuda/cufft_control.hpp says more about each.
class fake_cufft {
public:
    [[nodiscard]] static unsigned long long calls(const char* name);
    static void fail(const char* name, unsigned long long nth, int status);
    [[nodiscard]] static std::size_t plans();
    static void set_workspace(std::size_t bytes);
    [[nodiscard]] static unsigned long long mistakes();
};

}  // namespace weir::test
