// For programs that are linked with weir_test_fake_cuda: they open the fake cuBLASLt of tests/fake_cuda as well (fake_cuda.hpp), and
// tell and ask it through the class below.
#pragma once

#include <cstddef>

namespace weir::test {

/// The controls of the fake. Every function throws std::runtime_error if WEIR_CUBLASLT_LIBRARY names something else.
/// tests/fake_cuda/cublaslt_control.hpp says more about each.
class fake_cublaslt {
public:
    [[nodiscard]] static unsigned long long calls(const char* name);
    static void fail(const char* name, unsigned long long nth, int status);
    [[nodiscard]] static std::size_t objects();
    static void set_workspace(std::size_t bytes);
    static void set_fastest(int algorithm);
    [[nodiscard]] static int last_algorithm();
    [[nodiscard]] static unsigned last_epilogue();
    [[nodiscard]] static unsigned long long mistakes();
};

}  // namespace weir::test
