// Element-wise kernels of a program on every device (rules K1 to K4, O1, L1, L5).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/arrays.hpp"
#include "support/devices.hpp"
#include "support/messages.hpp"
#include "weir/testing.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::here;
using test::make_array;
using test::message_of;
using test::values_of;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::ResultOf;
using numbers = std::vector<float>;

class ElementwiseKernel {
protected:
    stream s1{here()};
    stream s2{here()};
    const elementwise_kernel axpy{"float x, float a", "float y", "y = a * x + 1", "axpy"};
    array x = full(4, 2.0, dtype::float32, s1);

    /// An operation before may have failed to be enqueued: the arrays of the test are settled.
    void settle() { here().synchronize(); }
};

WEIR_CONFORMANCE_F(ElementwiseKernel, K3ComputesANewArray) {
    const array y = axpy(s1, x, 3.0F);
    EXPECT_EQ(y.dtype(), dtype::float32);
    EXPECT_EQ(y.shape(), shape({4}));
    EXPECT_EQ(values_of<float>(y), (numbers{7, 7, 7, 7}));
    EXPECT_EQ(values_of<float>(axpy(s1, x, x)), (numbers{5, 5, 5, 5})) << "an array where there was a number";
}

WEIR_CONFORMANCE_F(ElementwiseKernel, WritesArraysThatThereAre) {
    array y = zeros({4}, dtype::float32, s1);
    axpy.launch(s1, {x, 3}, {&y});
    EXPECT_EQ(values_of<float>(y), (numbers{7, 7, 7, 7}));
    axpy.launch(s1, {y, 2}, {&y});
    EXPECT_EQ(values_of<float>(y), (numbers{15, 15, 15, 15})) << "in place";
}

WEIR_CONFORMANCE_F(ElementwiseKernel, K5WaitsForTheTokensThatItDeclares) {
    if (here().kind() == device_kind::cpu_inline) {
        return;  // operations run when they are enqueued
    }
    array y = zeros({4}, dtype::float32, s2);
    axpy.launch(s2, {x, 3}, {&y});
    here().synchronize();
    const token slot("slot");
    testing::gate held;
    held.hold(s1);
    host_task(
        s1, [] {}, inout(slot));
    const completion beside = axpy.launch(s2, {x, 4}, {&y});
    beside.synchronize();  // the control: without the token nothing is to wait for
    const completion after = axpy.launch(s2, {x, 5}, {&y}, {in(slot)});
    EXPECT_FALSE(after.done());
    held.open();
    EXPECT_EQ(values_of<float>(y), (numbers{11, 11, 11, 11}));
}

WEIR_CONFORMANCE_F(ElementwiseKernel, SeveralOutputsOneOfThemReadAndWritten) {
    const elementwise_kernel both("T x", "T square, inout T total", "T s = x * x; square = s; total += s");
    array total = full(4, 10.0, dtype::float32, s1);
    std::vector<std::optional<array>> outputs = {std::nullopt, total};
    const std::vector<operand> inputs = {x};
    both.run(s1, inputs, outputs);
    EXPECT_EQ(values_of<float>(*outputs[0]), (numbers{4, 4, 4, 4}));
    EXPECT_EQ(values_of<float>(total), (numbers{14, 14, 14, 14}));
    const elementwise_kernel two("T x", "T a, T b", "a = x + 1; b = x - 1");
    const std::vector<array> made = two.compute(s1, {x});
    EXPECT_EQ(values_of<float>(made.at(0)), (numbers{3, 3, 3, 3}));
    EXPECT_EQ(values_of<float>(made.at(1)), (numbers{1, 1, 1, 1}));
}

WEIR_CONFORMANCE_F(ElementwiseKernel, ViewsAndBroadcasting) {
    const elementwise_kernel sum("T a, T b", "T c", "c = a * 10 + b");
    const array grid = make_array<std::int32_t>(s1, {2, 3}, {1, 2, 3, 4, 5, 6});
    const array column = make_array<std::int32_t>(s1, {2, 1}, {7, 8});
    using integers = std::vector<std::int32_t>;
    EXPECT_EQ(values_of<std::int32_t>(sum(s1, grid, column)), (integers{17, 27, 37, 48, 58, 68}));
    const array mirrored = grid[{ellipsis, slice{{}, {}, -1}}];
    EXPECT_EQ(values_of<std::int32_t>(sum(s1, mirrored, column)), (integers{37, 27, 17, 68, 58, 48}));
    EXPECT_EQ(values_of<std::int32_t>(sum(s1, grid.transpose({1, 0}), 0)), (integers{10, 40, 20, 50, 30, 60}));
}

WEIR_CONFORMANCE_F(ElementwiseKernel, TheIndexIsInCOrderWhateverTheStrides) {
    const elementwise_kernel index("T x", "int64 at, int64 count", "at = i; count = n");
    const array grid = make_array<double>(s1, {2, 3}, {1, 2, 3, 4, 5, 6});
    const std::vector<array> made = index.compute(s1, {grid.transpose({1, 0})});
    EXPECT_EQ(values_of<std::int64_t>(made[0]), (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(values_of<std::int64_t>(made[1]), (std::vector<std::int64_t>(6, 6)));
    array into = zeros({3, 2}, dtype::int64, s1);
    array count = zeros({3, 2}, dtype::int64, s1);
    array mirrored = into[{slice{{}, {}, -1}}];
    index.launch(s1, {grid.transpose({1, 0})}, {&mirrored, &count});
    EXPECT_EQ(values_of<std::int64_t>(into), (std::vector<std::int64_t>{4, 5, 2, 3, 0, 1}));
}

WEIR_CONFORMANCE_F(ElementwiseKernel, ResultsAreAsIfAllHadBeenComputedFirst) {
    array line = make_array<float>(s1, {5}, {1, 2, 3, 4, 5});
    array later = line[{slice{1, {}}}];
    axpy.launch(s1, {line[{slice{0, 4}}], 1}, {&later});
    EXPECT_EQ(values_of<float>(line), (numbers{1, 2, 3, 4, 5})) << "each is the one before it, plus 1";
    axpy.launch(s1, {line[{slice{{}, {}, -1}}], 1}, {&line});
    EXPECT_EQ(values_of<float>(line), (numbers{6, 5, 4, 3, 2}));
}

WEIR_CONFORMANCE_F(ElementwiseKernel, AnOutputThatTheBodyDoesNotAssignIsZero) {
    const elementwise_kernel some("T x", "T y", "if (x > 2) { y = x; }");
    EXPECT_EQ(values_of<float>(some(s1, make_array<float>(s1, {3}, {1, 5, 2}))), (numbers{0, 5, 0}));
}

WEIR_CONFORMANCE_F(ElementwiseKernel, ShortFloatingPointNumbersAreComputedAsFloat) {
    const elementwise_kernel twice("T x", "T y", "T half = x / 2; y = half + x");
    const array x16 = full(3, 3.0, dtype::float16, s1);
    const array y16 = twice(s1, x16);
    EXPECT_EQ(y16.dtype(), dtype::float16);
    EXPECT_EQ(values_of<float>(astype(s1, y16, dtype::float32)), (numbers{4.5, 4.5, 4.5}));
}

WEIR_CONFORMANCE_F(ElementwiseKernel, ComplexNumbers) {
    const elementwise_kernel product("complex128 a, complex128 b", "complex128 c, double size",
                                     "c = a * conj(b) / 2 + 1; size = abs(a)");
    const array a = full(2, std::complex<double>(3, 4), dtype::complex128, s1);
    const std::vector<array> made = product.compute(s1, {a, std::complex<double>(0, 2)});
    using complex = std::complex<double>;
    EXPECT_EQ(values_of<complex>(made[0]), (std::vector<complex>(2, complex(5, -3))));
    EXPECT_EQ(values_of<double>(made[1]), (std::vector<double>(2, 5)));
}

WEIR_CONFORMANCE_F(ElementwiseKernel, NoElementsAndNoDimensions) {
    const array none = zeros({0, 3}, dtype::float32, s1);
    EXPECT_EQ(axpy(s1, none, 1).shape(), shape({0, 3}));
    const elementwise_kernel both("T x", "T y, T z", "y = x; z = 2 * x");
    EXPECT_THAT(both.compute(s1, {none}),
                Each(ResultOf([](const array& made) { return made.shape(); }, shape({0, 3}))));
    EXPECT_EQ(values_of<float>(axpy(s1, 2, 3)), (numbers{7})) << "numbers alone";
    const elementwise_kernel constant("", "int64 y", "y = i + 5");
    array y = zeros({3}, dtype::int64, s1);
    constant.launch(s1, {}, {&y});
    EXPECT_EQ(values_of<std::int64_t>(y), (std::vector<std::int64_t>{5, 6, 7}));
}

WEIR_CONFORMANCE_F(ElementwiseKernel, ManyElementsInSeveralThreads) {
    const std::int64_t many = 300'007;
    const elementwise_kernel index("int64 x", "int64 y", "y = 3 * i + x");
    const array x64 = arange(0, many, 1, dtype::int64, s1);
    const auto seen = values_of<std::int64_t>(index(s1, x64));
    for (std::int64_t i = 0; i < many; ++i) {
        ASSERT_EQ(seen[static_cast<std::size_t>(i)], 4 * i);
    }
    // In three dimensions that are not merged.
    const elementwise_kernel twice("int64 x", "int64 y", "y = 2 * x");
    const array cube = reshape(s1, arange(0, 64 * 128 * 64, 1, dtype::int64, s1), {64, 128, 64});
    const array part = cube[{ellipsis, slice{0, 50}}];
    const auto whole = values_of<std::int64_t>(twice(s1, part.transpose({2, 1, 0})));
    for (std::size_t i = 0; i < whole.size(); ++i) {
        const std::size_t first = i / (128 * 64);
        const std::size_t second = i / 64 % 128;
        const std::size_t third = i % 64;
        ASSERT_EQ(whole[i], static_cast<std::int64_t>(2 * (third * 8192 + second * 64 + first)));
    }
}

WEIR_CONFORMANCE_F(ElementwiseKernel, O1IsOrderedAfterWhatItReadsAndTheHostDoesNotWait) {
    static_cast<void>(values_of<float>(axpy(s2, x, 3)));  // compiles the kernel
    testing::gate held;
    held.hold(s1);
    fill(s1, x, 5.0);
    const array y = axpy(s2, x, 3);
    fill(s1, x, 7.0);  // after the read
    EXPECT_FALSE(y.ready());
    held.open();
    EXPECT_EQ(values_of<float>(y), (numbers{16, 16, 16, 16}));
    EXPECT_EQ(values_of<float>(x), (numbers{7, 7, 7, 7}));
}

WEIR_CONFORMANCE_F(ElementwiseKernel, ControlWithoutOrderingItReadsTooEarly) {
    static_cast<void>(values_of<float>(axpy(s2, x, 3)));
    const ordering_scope careless(ordering_mode::manual);
    testing::gate held;
    held.hold(s1);
    fill(s1, x, 5.0);
    const array y = axpy(s2, x, 3);
    s2.synchronize();
    EXPECT_EQ(values_of<float>(y), (numbers{7, 7, 7, 7}));
    held.open();
    settle();
}

WEIR_CONFORMANCE_F(ElementwiseKernel, O2WhatItWritesIsOrderedAndReadersAreNot) {
    array y = zeros({4}, dtype::float32, s1);
    static_cast<void>(values_of<float>(axpy(s2, x, 3)));
    settle();
    testing::gate held;
    held.hold(s1);
    axpy.launch(s1, {x, 3}, {&y});
    const array other = axpy(s2, x, 1);
    EXPECT_EQ(values_of<float>(other), (numbers{3, 3, 3, 3})) << "two readers are not ordered";
    const array after = axpy(s2, y, 1);
    EXPECT_FALSE(after.ready());
    held.open();
    EXPECT_EQ(values_of<float>(after), (numbers{8, 8, 8, 8}));
}

WEIR_CONFORMANCE_F(ElementwiseKernel, L1OperandsAndTheKernelMayGoAtOnce) {
    std::optional kernel = elementwise_kernel("float x, float a", "float y", "y = a * x + 1");
    static_cast<void>(values_of<float>((*kernel)(s1, x, 3)));
    testing::gate held;
    held.hold(s1);
    array y = (*kernel)(s1, full(4, 4.0, dtype::float32, s1), 2);
    kernel.reset();
    x = {};
    const array noise = full(4, 77.0, dtype::float32, s1);
    held.open();
    EXPECT_EQ(values_of<float>(y), (numbers{9, 9, 9, 9}));
}

WEIR_CONFORMANCE_F(ElementwiseKernel, K4WhatFailedBeforeItFailsItAndInoutDoesNotMend) {
    const elementwise_kernel add_one("", "inout float y", "y += 1");
    const elementwise_kernel set("float a", "float y", "y = a");
    array y = full(4, 1.0, dtype::float32, s1);
    parallel_for(
        on(s1).label("broken"), 1, [](auto, auto) { throw std::runtime_error("no"); }, inout(y.view<float>()));
    const array z = axpy(s1, y, 1);
    add_one.launch(s1, {}, {&y});
    EXPECT_THROW(static_cast<void>(values_of<float>(z)), operation_error);
    EXPECT_THROW(static_cast<void>(values_of<float>(y)), operation_error);
    set.launch(s1, {3}, {&y});
    EXPECT_EQ(values_of<float>(y), (numbers{3, 3, 3, 3})) << "what writes all and reads nothing mends";
}

WEIR_CONFORMANCE_F(ElementwiseKernel, O5After) {
    static_cast<void>(values_of<float>(axpy(s2, x, 3)));
    array other = zeros({4}, dtype::float32, s1);
    settle();
    testing::gate held;
    held.hold(s1);
    const completion end = fill(s1, other, 1.0);
    const array y = axpy(on(s2).after(end), x, 3);
    EXPECT_FALSE(y.ready());
    held.open();
    EXPECT_EQ(values_of<float>(y), (numbers{7, 7, 7, 7}));
}

WEIR_CONFORMANCE_F(ElementwiseKernel, K1ABodyThatReadsAnOutputIsRefused) {
    const elementwise_kernel reads("float x", "float y", "float z = x;\ny = z + y");
    EXPECT_THAT(message_of<argument_error>([&] { static_cast<void>(reads(s1, x)); }),
                AllOf(HasSubstr("reads the output y in line 2, \"y = z + y\""), HasSubstr("\"inout float32 y\"")));
}

WEIR_CONFORMANCE_F(ElementwiseKernel, ABodyThatDoesNotCompileIsRefusedWithItsLine) {
    const elementwise_kernel wrong("float x", "float y", "// a comment\n\n  y = x + unknown;", "wrong");
    EXPECT_THAT(message_of<argument_error>([&] { static_cast<void>(wrong(s1, x)); }),
                AllOf(HasSubstr("wrong(float32 x -> float32 y)"), HasSubstr("line 3, \"y = x + unknown;\": "),
                      HasSubstr("unknown")));
    EXPECT_EQ(values_of<float>(axpy(s1, x, 3)), (numbers{7, 7, 7, 7})) << "nothing was enqueued";
}

WEIR_CONFORMANCE_F(ElementwiseKernel, WrongOperandsAreRefusedInWords) {
    const auto argument = [&](const auto& call) { return message_of<argument_error>(call); };
    const auto type = [&](const auto& call) { return message_of<argument_type_error>(call); };
    EXPECT_THAT(argument([&] { static_cast<void>(axpy(s1, x)); }), HasSubstr("it has 2 inputs, and got 1"));
    EXPECT_THAT(
        argument([&] { static_cast<void>(axpy(s1, x, zeros({3}, dtype::float32, s1))); }),
        AllOf(HasSubstr("the input \"float32 a\" got the shape (3,)"), HasSubstr("does not broadcast with (4,)")));
    EXPECT_THAT(type([&] { static_cast<void>(axpy(s1, zeros({4}, dtype::float64, s1), 1)); }),
                HasSubstr("the input \"float32 x\" got an array of float64: convert it with astype"));
    EXPECT_THAT(type([&] { static_cast<void>(axpy(s1, x, std::complex<double>(1, 2))); }),
                HasSubstr("the input \"float32 a\" got the number (1+2j)"));
    array y = zeros({3}, dtype::float32, s1);
    EXPECT_THAT(argument([&] {
                    axpy.launch(s1, {x, 1}, {&y});
                }),
                HasSubstr("the results have the shape (4,), the arrays for them (3,)"));
    array z = zeros({4}, dtype::float64, s1);
    EXPECT_THAT(type([&] {
                    axpy.launch(s1, {x, 1}, {&z});
                }),
                HasSubstr("the output \"float32 y\" got an array of float64"));
    EXPECT_THAT(argument([&] {
                    axpy.launch(s1, {x, 1}, {&x, &z});
                }),
                HasSubstr("it has 1 outputs, and got arrays for 2"));
    EXPECT_THAT(argument([&] { axpy.launch(s1, {x, 1}, {nullptr}); }), HasSubstr("an output is null"));
    const elementwise_kernel same("T x, T y", "T z", "z = x + y");
    EXPECT_THAT(type([&] { static_cast<void>(same(s1, x, z)); }),
                HasSubstr("T is float32 for one operand and float64 for y"));
    const elementwise_kernel free("", "T z", "z = 1");
    EXPECT_THAT(type([&] { static_cast<void>(free(s1)); }), HasSubstr("the type T of \"T z\" is not known"));
    const elementwise_kernel bytes("uint8 x", "uint8 y", "y = x");
    EXPECT_THAT(argument([&] { static_cast<void>(bytes(s1, 300)); }), HasSubstr("300"));
    const elementwise_kernel add("", "inout float y", "y += 1");
    EXPECT_THAT(argument([&] { static_cast<void>(add(s1)); }), HasSubstr("\"inout float32 y\" is read as well"));
    array w = zeros({4}, dtype::float32, s1);
    const elementwise_kernel two("T x", "T a, T b", "a = x; b = x");
    EXPECT_THAT(argument([&] { two.launch(s1, {x}, {&w, &w}); }), HasSubstr("share memory"));
    EXPECT_THAT(argument([&] { static_cast<void>(two(s1, x)); }), HasSubstr("has 2 outputs: call compute"));
}

TEST(ElementwiseKernelSignature, WhatIsWrongIsQuoted) {
    const auto refused = [](const char* inputs, const char* outputs, const char* body = "y = x") {
        return message_of<argument_error>([&] { const elementwise_kernel made(inputs, outputs, body); });
    };
    EXPECT_THAT(refused("float", "float y"), HasSubstr("\"float\" of an element-wise kernel has no name, or no type"));
    EXPECT_THAT(refused("float* x", "float y"), HasSubstr("is a pointer"));
    EXPECT_THAT(refused("float *x", "float y"), HasSubstr("is a pointer"));
    EXPECT_THAT(refused("quad x", "float y"), HasSubstr("a type that is not known, \"quad\""));
    EXPECT_THAT(refused("float x,", "float y"), HasSubstr("a comma too many"));
    EXPECT_THAT(refused("float x", ""), HasSubstr("at least one output"));
    EXPECT_THAT(refused("float x", "float x"), HasSubstr("a name that another one has"));
    EXPECT_THAT(refused("out float x", "float y"), HasSubstr("list what is written with the outputs"));
    EXPECT_THAT(refused("float x", "in float y"), HasSubstr("\"inout\""));
    EXPECT_THAT(refused("float for", "float y"), HasSubstr("is a word of C++"));
    EXPECT_THAT(refused("float _x", "float y"), HasSubstr("names start with a letter"));
    EXPECT_THAT(refused("float x", "const float y"), HasSubstr("written and const at once"));
    EXPECT_THAT(refused("float x", "float y", "  \n"), HasSubstr("is empty"));
    EXPECT_THAT(refused("T a, T b, T c, T d, T e, T f, T g, T h, T j, T k, T l, T m", "T y"),
                HasSubstr("12 parameters at most"));
    EXPECT_EQ(
        elementwise_kernel("const unsigned long long x, std::complex<float> z, T a", "inout T y, T w", "y = a", "k")
            .to_string(),
        "<weir.elementwise k(uint64 x, complex64 z, T a -> inout T y, T w)>");
}

}  // namespace
}  // namespace weir
