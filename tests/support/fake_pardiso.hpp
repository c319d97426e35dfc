// For programs that are linked with weir_test_fake_pardiso: they can have the fake PARDISO of tests/fake_mkl solve sparse systems on the
// CPU, and control and query it.
#pragma once

namespace weir::test {

/// While it lives, WEIR_PARDISO_LIBRARY names the fake, unless it names another library. Make it before threads read the environment.
class fake_pardiso {
public:
    fake_pardiso();
    ~fake_pardiso();
    fake_pardiso(const fake_pardiso&) = delete;
    fake_pardiso& operator=(const fake_pardiso&) = delete;

    /// Whether the variable names the fake, and not another library.
    [[nodiscard]] static bool in_use();

    /// tests/fake_mkl/pardiso_control.hpp says more about each. They throw std::runtime_error where the fake is not in use.
    [[nodiscard]] static unsigned long long phases(int phase);
    static void fail(int phase, unsigned long long nth, int error);
    [[nodiscard]] static unsigned long long systems();
    [[nodiscard]] static unsigned long long mistakes();

private:
    bool has_set_it_ = false;
};

}  // namespace weir::test
