// Arguments that fft refuses, and the messages (rule X10).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <string>

#include "calls/shared_library.hpp"
#include "weir/error.hpp"
#include "weir/fft.hpp"
#include "weir/testing.hpp"

namespace weir {
namespace {

using ::testing::HasSubstr;

/// The message of the `Error` that `call` throws.
template <class Error>
std::string message_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const Error& thrown) {
        return thrown.what();
    } catch (const std::exception& other) {
        return std::string("another exception: ") + other.what();
    }
    return "no exception";
}

class FftErrors : public ::testing::Test {
protected:
    stream on{cpu()};
    array real = zeros({2, 8}, dtype::float64, on);
    array complex = zeros({2, 8}, dtype::complex128, on);
};

TEST_F(FftErrors, LengthsBelowOne) {
    for (const std::int64_t n : {0, -4}) {
        EXPECT_THAT(message_of<argument_error>([&] { static_cast<void>(fft::fft(on, real, {.n = n})); }),
                    HasSubstr("it must be between 1 and"));
    }
    array one = zeros({2, 1}, dtype::complex64, on);
    EXPECT_THAT(message_of<argument_error>([&] { static_cast<void>(fft::irfft(on, one)); }),
                HasSubstr("can be given as n or s"));
    EXPECT_THAT(message_of<argument_error>([&] { static_cast<void>(fft::fft(on, array())); }),
                HasSubstr("for an operand of shape (0,)"));
}

TEST_F(FftErrors, NoAxis) {
    array point = zeros(shape(std::initializer_list<std::int64_t>{}), dtype::float64, on);
    EXPECT_THAT(message_of<argument_error>([&] { static_cast<void>(fft::fft(on, point)); }), HasSubstr("reshape({1})"));
}

TEST_F(FftErrors, Axes) {
    const auto refused = [&](const fft::options& how) {
        return message_of<argument_error>([&] { static_cast<void>(fft::fftn(on, complex, how)); });
    };
    EXPECT_THAT(refused({.axes = {0, 2}}),
                HasSubstr("there is no axis 2 in an operand of shape (2, 8); axes are -2 to 1"));
    EXPECT_THAT(refused({.axis = -3}), HasSubstr("there is no axis -3"));
    EXPECT_THAT(refused({.axes = {1, -1}}), HasSubstr("the axis -1 is named twice"));
    EXPECT_THAT(refused({.axis = 0, .axes = {1}}), HasSubstr("both axis and axes"));
    EXPECT_THAT(refused({.n = 4}), HasSubstr("n is the length of one axis, and 2 are transformed"));
    EXPECT_THAT(refused({.n = 4, .s = {2}, .axis = 0}), HasSubstr("both n and s"));
    EXPECT_THAT(refused({.s = {2}}), HasSubstr("s has the lengths of 1 axes, and 2 are transformed"));
    EXPECT_THAT(refused({.s = {2, 0}}), HasSubstr("along axis 1 is 0"));
    EXPECT_THAT(refused({.s = {-2, 2}}), HasSubstr("along axis 0 is -2"));
    EXPECT_THAT(refused({.s = {std::int64_t{1} << 30, std::int64_t{1} << 30}}), HasSubstr("product of all lengths"));
}

TEST_F(FftErrors, ElementTypes) {
    EXPECT_THAT(message_of<argument_type_error>([&] { static_cast<void>(fft::rfft(on, complex)); }),
                HasSubstr("these are complex128; call fft"));
    EXPECT_THAT(message_of<argument_type_error>([&] { static_cast<void>(fft::irfft(on, real)); }),
                HasSubstr("these are float64; call ifft"));
}

TEST_F(FftErrors, ResultsThatDoNotFit) {
    EXPECT_THAT(message_of<argument_error>([&] { fft::rfft(on, real, complex); }),
                HasSubstr("the result has shape (2, 5), the array for it (2, 8)"));
    EXPECT_THAT(message_of<argument_type_error>([&] { fft::fft(on, complex, real); }),
                HasSubstr("the result's elements are complex128, those of the array for it float64"));
}

TEST_F(FftErrors, SharedMemory) {
    array all = zeros({3, 8}, dtype::complex128, on);
    EXPECT_THAT(message_of<argument_error>([&] { fft::fft(on, all.slice(0, 2), all.slice(1, 3)); }),
                HasSubstr("share memory"));
    EXPECT_NO_THROW(fft::fft(on, all.slice(0, 1), all.slice(1, 2)));
}

TEST_F(FftErrors, AClosedStream) {
    on.synchronize();
    on.close();
    EXPECT_THAT(message_of<state_error>([&] { static_cast<void>(fft::fft(on, real)); }), HasSubstr("closed"));
}

TEST(SharedLibrary, AMissingOneIsNamedWithItsPackage) {
    const std::string message = message_of<missing_library>([] {
        const calls::shared_library none({"libnothing-of-that-name.so.7", "WEIR_SNDFILE_LIBRARY", "libnothing7"});
    });
    EXPECT_THAT(message, HasSubstr("cannot open libnothing-of-that-name.so.7"));
    EXPECT_THAT(message, HasSubstr("install the package libnothing7"));
    EXPECT_THAT(message, HasSubstr("or name a library with the same interface in WEIR_SNDFILE_LIBRARY"));
}

TEST(SharedLibrary, AMissingOneThatTheEnvironmentNamesIsNamedWithTheVariable) {
    ::setenv("WEIR_SNDFILE_LIBRARY", "/nowhere/libthing.so", 1);
    const std::string message = message_of<missing_library>([] {
        const calls::shared_library none({"libc.so.6", "WEIR_SNDFILE_LIBRARY", "libc6"});
    });
    ::unsetenv("WEIR_SNDFILE_LIBRARY");
    EXPECT_THAT(message, HasSubstr("cannot open /nowhere/libthing.so, which WEIR_SNDFILE_LIBRARY names"));
}

TEST(SharedLibrary, AMissingFunctionIsNamed) {
    const calls::shared_library library({"libc.so.6", "WEIR_SNDFILE_LIBRARY", "libc6"});
    void (*function)() = nullptr;
    EXPECT_THAT(message_of<missing_library>([&] { library.find("there_is_no_such_function", function); }),
                HasSubstr("libc.so.6 has no function there_is_no_such_function"));
}

}  // namespace
}  // namespace weir
