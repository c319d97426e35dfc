// kernel::launch: arguments that are known at run time only are checked against the signature, converted to what it declares, and
// ordered by it (rule K1).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <concepts>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "unit/kernel_support.hpp"
#include "weir/error.hpp"
#include "weir/kernel_argument.hpp"

namespace weir::test {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

template <class T>
concept taken_as_in = requires(T&& x) {
    kernel_argument::in(std::forward<T>(x));
};
template <class T>
concept taken_as_out = requires(T&& x) {
    kernel_argument::out(std::forward<T>(x));
};
template <class T>
concept taken_as_inout = requires(T&& x) {
    kernel_argument::inout(std::forward<T>(x));
};
template <class T>
concept taken_as_declared = requires(T&& x) {
    kernel_argument::as_declared(std::forward<T>(x));
};
static_assert(taken_as_in<array&> && taken_as_in<const array&>);
static_assert(!taken_as_in<array>, "a temporary array must not compile: the argument refers to it");
static_assert(taken_as_out<array&> && !taken_as_out<const array&> && !taken_as_out<array>, "const says read");
static_assert(taken_as_inout<array&> && !taken_as_inout<const array&> && !taken_as_inout<array>, "const says read");
static_assert(taken_as_declared<array&> && !taken_as_declared<const array&> && !taken_as_declared<array>);
static_assert(std::convertible_to<double, kernel_argument> && std::convertible_to<bool, kernel_argument>);
static_assert(!std::convertible_to<const char*, kernel_argument> && !std::convertible_to<int*, kernel_argument>,
              "a pointer is no number");

kernel declared_axpy() {
    return kernel::from_source(kernel_source, "axpy").with_signature("in float* x, inout float* y, float a, int64 n");
}

/// The error with which a launch of `what` with these arguments is refused, without the line.
template <class Error>
std::string refusal(const kernel& what, const stream& on, const std::vector<kernel_argument>& arguments) {
    return without_place(message_of<Error>([&] { what.launch(on, {1, 32}, arguments); }));
}

TEST(KernelRunTimeArguments, ALaunchComputesWhatTheTypedOneDoes) {
    axpy_arrays of(cuda());
    const kernel axpy = declared_axpy();
    launch(of.on, axpy, {4, 256}, in(of.x.view<float>()), inout(of.y.view<float>()), 3.0F, 1000LL);
    axpy.launch(of.on, {4, 256}, {kernel_argument::in(of.x), kernel_argument::inout(of.y), 3, 1000});
    const std::vector<kernel_argument> all = {kernel_argument::as_declared(of.x), kernel_argument::as_declared(of.y),
                                              scalar(3.0), scalar(1000)};
    axpy.launch(of.on, {4, 256}, all);
    EXPECT_THAT(values_of<float>(of.y), Each(1.0F + 3 * 6.0F));
}

/// The value that a kernel gets for `number` if its parameter has the type of T.
template <class T>
T passed(const std::string& type, const kernel_argument& number) {
    const stream on(cuda());
    array y = empty({1}, dtype_of<T>, on);
    const kernel store = kernel::from_source("extern \"C\" __global__ void store(" + type + "* y, char before, " +
                                                 type + " value) { y[0] = before == 'b' ? value : (" + type + ")0; }",
                                             "store")
                             .with_signature("out " + type + "* y, int8 before, " + type + " value");
    store.launch(on, {1, 1}, {kernel_argument::out(y), std::int8_t{'b'}, number});
    return values_of<T>(y).front();
}

TEST(KernelRunTimeArguments, NumbersAreConvertedAsTheSignatureSays) {
    EXPECT_TRUE(passed<bool>("bool", 7));
    EXPECT_EQ(passed<std::int8_t>("signed char", -128), -128);
    EXPECT_EQ(passed<std::uint8_t>("unsigned char", true), 1);
    EXPECT_EQ(passed<std::int16_t>("short", -30000LL), -30000);
    EXPECT_EQ(passed<std::uint32_t>("unsigned", 4000000000LL), 4000000000U);
    EXPECT_EQ(passed<std::int64_t>("long long", std::numeric_limits<std::int64_t>::min()),
              std::numeric_limits<std::int64_t>::min());
    EXPECT_EQ(passed<std::uint64_t>("unsigned long long", std::numeric_limits<std::uint64_t>::max()),
              std::numeric_limits<std::uint64_t>::max());
    EXPECT_EQ(passed<float>("float", 2), 2.0F);
    EXPECT_EQ(passed<float>("float", 0.1), 0.1F);
    EXPECT_EQ(passed<double>("double", 0.1), 0.1);
    EXPECT_EQ(passed<float>("float", std::numeric_limits<double>::infinity()), std::numeric_limits<float>::infinity())
        << "an infinite number stays one";
    EXPECT_EQ(passed<float>("float", kernel_argument(0.5, dtype::float32)), 0.5F);
}

TEST(KernelRunTimeArguments, WhatTheSignatureDoesNotTakeIsRefusedWithKernelParameterAndMend) {
    axpy_arrays of(cuda());
    array other = empty({1000}, dtype::float64, of.on);
    array apart = of.x[slice{{}, {}, 2}];
    const kernel axpy = declared_axpy();
    const kernel_argument x = kernel_argument::in(of.x);
    const kernel_argument y = kernel_argument::inout(of.y);

    EXPECT_EQ(refusal<argument_error>(axpy, of.on, {x, y, 1}),
              "the kernel " + axpy.to_string() +
                  " has 4 parameters, and got 3 arguments: pass one for each parameter, in their order");
    EXPECT_THAT(refusal<argument_error>(axpy, of.on, {x, y, 1, 1, 1}), HasSubstr("got 5 arguments"));
    EXPECT_EQ(refusal<argument_type_error>(axpy, of.on, {x, y, 1, 1.5}),
              "argument 4 of the kernel axpy is \"int64 n\", and got 1.5: pass an integer of int64");
    EXPECT_EQ(refusal<argument_type_error>(axpy, of.on, {x, y, scalar(1, 2), 1}),
              "argument 3 of the kernel axpy is \"float32 a\", and got (1+2j): pass a number of float32");
    EXPECT_THAT(refusal<argument_type_error>(axpy, of.on, {x, y, kernel_argument(1.0, dtype::float64), 1}),
                HasSubstr("of float64: pass a number of float32"));
    EXPECT_THAT(refusal<argument_error>(axpy, of.on, {x, y, 1e39, 1}),
                AllOf(HasSubstr("argument 3 of the kernel axpy"), HasSubstr("out of range")));
    EXPECT_THAT(refusal<argument_error>(axpy, of.on, {x, y, 1, std::numeric_limits<std::uint64_t>::max()}),
                AllOf(HasSubstr("argument 4 of the kernel axpy"), HasSubstr("out of range")));
    EXPECT_EQ(refusal<argument_type_error>(axpy, of.on, {1, y, 1, 1}),
              "argument 1 of the kernel axpy is \"in float32* x\", and got 1: pass a weir::array of float32, "
              "astype(on, x, dtype) converts one");
    EXPECT_THAT(refusal<argument_type_error>(axpy, of.on, {x, y, x, 1}),
                HasSubstr("is \"float32 a\", and got an array of float32: pass a number of float32"));
    EXPECT_THAT(refusal<argument_type_error>(axpy, of.on, {kernel_argument::in(other), y, 1, 1}),
                HasSubstr("got an array of float64: pass a weir::array of float32"));
    EXPECT_THAT(refusal<argument_error>(axpy, of.on, {kernel_argument::out(of.x), y, 1, 1}),
                HasSubstr("got an array as out: pass it as weir::in(x), or change the signature"));
    EXPECT_THAT(refusal<argument_error>(axpy, of.on, {x, kernel_argument::in(of.y), 1, 1}),
                HasSubstr("got an array as in: pass it as weir::inout(x)"));
    EXPECT_THAT(refusal<argument_error>(axpy, of.on, {kernel_argument::in(apart), y, 1, 1}),
                AllOf(HasSubstr("argument 1 of the kernel axpy"), HasSubstr("pass contiguous(on, x)")));
    EXPECT_EQ(refusal<error>(axpy, of.on, {x, y, 1, 0}), "nothing was thrown") << "control";
    EXPECT_THAT(values_of<float>(of.y), Each(1.0F)) << "nothing else was enqueued";
}

TEST(KernelRunTimeArguments, ALaunchNeedsASignatureAndTheKernelsDevice) {
    axpy_arrays of(cuda());
    const kernel bare = kernel::from_source(kernel_source, "nothing");
    EXPECT_THAT(message_of<state_error>([&] {
                    bare.launch(of.on, {1, 1}, {});
                }),
                AllOf(HasSubstr("kernel nothing"), HasSubstr("kernel::with_signature")));
    EXPECT_EQ(refusal<error>(bare.with_signature(""), of.on, {}), "nothing was thrown");
    const stream elsewhere(cpu());
    EXPECT_THAT(refusal<argument_error>(declared_axpy(), elsewhere,
                                        {kernel_argument::in(of.x), kernel_argument::inout(of.y), 1, 1}),
                HasSubstr("the kernel axpy is for cuda:0"));
    EXPECT_THAT(message_of<argument_error>([&] {
                    bare.with_signature("").launch(of.on, {0, 1}, {});
                }),
                HasSubstr("at least 1"));
}

TEST(KernelRunTimeArguments, LaunchesOnSeveralStreamsAreOrderedByTheSignature) {
    axpy_arrays of(cuda());
    const stream other(cuda());
    const kernel axpy = declared_axpy();
    for (int round = 0; round < 10; ++round) {
        const stream& on = round % 2 == 0 ? of.on : other;
        axpy.launch(on, {4, 256}, {kernel_argument::as_declared(of.x), kernel_argument::as_declared(of.y), 1, 1000});
    }
    EXPECT_THAT(values_of<float>(of.y), Each(21.0F));
}

TEST(KernelRunTimeArguments, ManyArgumentsArriveInTheirOrder) {
    constexpr int count = 40;
    std::string source = "extern \"C\" __global__ void store(long long* y";
    std::string signature = "out int64* y";
    std::string body;
    for (int i = 0; i < count; ++i) {
        const std::string name = "a" + std::to_string(i);
        source += ", int " + name;
        signature += ", int " + name;
        body += " y[" + std::to_string(i) + "] = " + name + ";";
    }
    const kernel store = kernel::from_source(source + ") {" + body + " }", "store").with_signature(signature);
    const stream on(cuda());
    array y = empty({count}, dtype::int64, on);
    std::vector<kernel_argument> arguments = {kernel_argument::out(y)};
    std::vector<std::int64_t> wanted;
    for (int i = 0; i < count; ++i) {
        arguments.emplace_back(100 + i);
        wanted.push_back(100 + i);
    }
    store.launch(on, {1, 1}, arguments);
    EXPECT_EQ(values_of<std::int64_t>(y), wanted);
}

}  // namespace
}  // namespace weir::test
