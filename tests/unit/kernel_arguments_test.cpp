// A launch gives a kernel its arguments as they were at the call, each of its own type (rule K1), and refuses wrong ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "unit/kernel_support.hpp"
#include "weir/error.hpp"
#include "weir/testing.hpp"

namespace weir::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using weir::testing::gate;

/// A kernel that writes its argument to an array.
template <class T>
void expect_passed(const std::string& type, T value) {
    SCOPED_TRACE(type);
    const stream on(cuda());
    array y = empty({1}, dtype_of<T>, on);
    const kernel store = kernel::from_source(
        "extern \"C\" __global__ void store(" + type + "* y, char before, " + type + " value, char behind) {\n" +
            "    y[0] = before == 'b' && behind == 'c' ? value : (" + type + ")0;\n}\n",
        "store");
    launch(on, store, {1, 1}, out(y.view<T>()), 'b', value, 'c');
    EXPECT_EQ(values_of<T>(y).front(), value);
    const kernel declared = store.with_signature("out " + type + "* y, int8 before, " + type + " value, int8 behind");
    launch(on, declared, {1, 1}, out(y.view<T>()), std::int8_t{'b'}, value, std::int8_t{'c'});
    EXPECT_EQ(values_of<T>(y).front(), value);
}

TEST(KernelArguments, NumbersOfEveryTypeArrive) {
    expect_passed<bool>("bool", true);
    expect_passed<std::int8_t>("signed char", -7);
    expect_passed<std::uint8_t>("unsigned char", 250);
    expect_passed<std::int16_t>("short", -30000);
    expect_passed<std::uint16_t>("unsigned short", 60000);
    expect_passed<std::int32_t>("int", std::numeric_limits<std::int32_t>::min());
    expect_passed<std::uint32_t>("unsigned", 4000000000U);
    expect_passed<std::int64_t>("long long", std::numeric_limits<std::int64_t>::min());
    expect_passed<std::uint64_t>("unsigned long long", std::numeric_limits<std::uint64_t>::max());
    expect_passed<float>("float", 0.1F);
    expect_passed<double>("double", 0.1);
}

struct point {
    double x;
    float weight;
    std::int16_t tag[3];
};
struct alignas(16) lanes {
    float of[4];
};
struct large {
    std::int32_t of[200];
};

TEST(KernelArguments, StructuresArriveByValue) {
    const stream on(cuda());
    array y = empty({4}, dtype::float64, on);
    const kernel sum = kernel::from_source(R"(
struct point { double x; float weight; short tag[3]; };
struct __align__(16) lanes { float of[4]; };
struct large { int of[200]; };
extern "C" __global__ void sum(double* y, point p, int i, lanes l, large all) {
    y[0] = p.x * p.weight + p.tag[2];
    y[1] = i;
    y[2] = l.of[0] + l.of[3];
    y[3] = all.of[0] + all.of[199];
}
)",
                                           "sum");
    large all{};
    all.of[0] = 3;
    all.of[199] = 4;
    launch(on, sum, {1, 1}, out(y.view<double>()), point{1.5, 2, {1, 2, 3}}, 9, lanes{{1, 2, 3, 4}}, all);
    EXPECT_THAT(values_of<double>(y), ::testing::ElementsAre(6, 9, 5, 7));
}

TEST(KernelArguments, ArraysArriveAsTheAddressOfTheirFirstElement) {
    const stream on(cuda());
    array x = make_array<std::int32_t>(on, {3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
    array y = empty({4}, dtype::int32, on);
    const kernel pick = kernel::from_source(
        "extern \"C\" __global__ void pick(int* y, const int* row, const int* column, const int* bytes) {\n"
        "    y[0] = row[0]; y[1] = column[4]; y[2] = bytes[5]; y[3] = 0;\n}\n",
        "pick");
    launch(on, pick, {1, 1}, out(y.view<std::int32_t>()), in(x[2].view<std::int32_t>()),
           in(x[{ellipsis, 3}].strided<std::int32_t, 1>()), in(x));
    EXPECT_THAT(values_of<std::int32_t>(y), ::testing::ElementsAre(8, 7, 5, 0));
}

TEST(KernelArguments, AreCopiedAtTheCall) {
    if (!fake_cuda::in_use()) {
        GTEST_SKIP() << "needs a gate of the fake driver";
    }
    const stream on(cuda());
    array y = empty({1}, dtype::int32, on);
    array z = empty({1}, dtype::int32, on);
    const kernel fill = kernel::from_source(kernel_source, "fill");
    {
        const fake_gate gate;
        int value = 5;
        launch(on, fill, {1, 1}, out(y.view<std::int32_t>()), value, 1);
        value = 6;  // scenario C4: another launch, with arguments of its own
        launch(on, fill, {1, 1}, out(z.view<std::int32_t>()), value, 1);
        value = 7;
    }
    EXPECT_EQ(values_of<std::int32_t>(y).front(), 5);
    EXPECT_EQ(values_of<std::int32_t>(z).front(), 6);
}

// Until the host opens the gate, the launches wait in Weir, which cannot hand them to the driver yet: each with a buffer of its own.
TEST(KernelArguments, C4LaunchesThatWaitForTheHostShareNoBuffer) {
    const stream on(cuda());
    const stream host(cpu());
    const kernel fill = kernel::from_source(kernel_source, "fill").with_signature("out int32* y, int32 value, int32 n");
    gate held;
    held.hold(host);
    const event opened = host.record();
    std::vector<array> all;
    for (int i = 0; i < 20; ++i) {
        all.push_back(empty({1}, dtype::int32, on));
        if (i % 2 == 0) {
            launch(weir::on(on).after(opened), fill, {1, 1}, out(all.back().view<std::int32_t>()), i, 1);
        } else {
            const std::vector<kernel_argument> known_when_it_runs = {kernel_argument::out(all.back()), i, 1};
            fill.launch(weir::on(on).after(opened), {1, 1}, known_when_it_runs);
        }
    }
    EXPECT_FALSE(on.done()) << "no launch has run";
    held.open();
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(values_of<std::int32_t>(all[static_cast<std::size_t>(i)]).front(), i);
    }
}

/// The error with which a launch of axpy with these arguments is refused.
template <class Error, class... Arguments>
std::string refusal(const kernel& what, const stream& on, Arguments... arguments) {
    return without_place(message_of<Error>([&] { launch(on, what, {1, 1}, std::move(arguments)...); }));
}

TEST(KernelArguments, TheirNumberAndSizesAreThoseOfTheKernel) {
    axpy_arrays of(cuda());
    const kernel axpy = kernel::from_source(kernel_source, "axpy");
    auto x = in(of.x.view<float>());
    auto y = inout(of.y.view<float>());
    EXPECT_THAT(refusal<argument_error>(axpy, of.on, x, y, 1.0F),
                HasSubstr("<weir.kernel axpy on cuda:0> has 4 parameters, and got 3 arguments"));
    EXPECT_THAT(refusal<argument_error>(axpy, of.on, x, y, 1.0F, 10LL, 0), HasSubstr("got 5 arguments"));
    EXPECT_THAT(refusal<argument_error>(axpy, of.on, x, y, 1.0, 10LL),
                AllOf(HasSubstr("argument 3 of the kernel"), HasSubstr("is float64, which has 8 bytes"),
                      HasSubstr("the parameter has 4")));
    EXPECT_THAT(refusal<argument_error>(axpy, of.on, x, y, 1.0F, 10), HasSubstr("argument 4 of the kernel"));
    EXPECT_THAT(refusal<argument_error>(axpy, of.on, x, y, large{}, 10LL),
                HasSubstr("is a structure of 800 bytes, which has 800 bytes"));
    EXPECT_EQ(refusal<error>(axpy, of.on, x, y, 1.0F, 10LL), "nothing was thrown");
}

TEST(KernelArguments, ASignatureIsChecked) {
    axpy_arrays of(cuda());
    const kernel axpy =
        kernel::from_source(kernel_source, "axpy").with_signature("in float* x, inout float* y, float a, int64 n");
    EXPECT_EQ(axpy.to_string(), "<weir.kernel axpy(in float32* x, inout float32* y, float32 a, int64 n) on cuda:0>");
    auto x = in(of.x.view<float>());
    auto y = inout(of.y.view<float>());
    array other = empty({1000}, dtype::int32, of.on);
    EXPECT_EQ(refusal<error>(axpy, of.on, x, y, 1.0F, 10LL), "nothing was thrown");
    EXPECT_EQ(refusal<error>(axpy, of.on, in(of.x), inout(of.y), 1.0F, 10L), "nothing was thrown")
        << "arrays without a type, and long for long long";

    EXPECT_EQ(refusal<argument_type_error>(axpy, of.on, in(other.view<std::int32_t>()), y, 1.0F, 10LL),
              "argument 1 of the kernel axpy is \"in float32* x\", and got an array of int32: pass a weir::array of "
              "float32, astype(on, x, dtype) converts one");
    EXPECT_EQ(refusal<argument_type_error>(axpy, of.on, x, y, 1, 10LL),
              "argument 3 of the kernel axpy is \"float32 a\", and got int32: pass a number of float32");
    EXPECT_EQ(refusal<argument_type_error>(axpy, of.on, x, y, 1.0F, 10ULL),
              "argument 4 of the kernel axpy is \"int64 n\", and got uint64: pass an integer of int64");
    EXPECT_EQ(refusal<argument_type_error>(axpy, of.on, x, y, x, 10LL),
              "argument 3 of the kernel axpy is \"float32 a\", and got an array of float32: pass a number of float32");
    EXPECT_EQ(refusal<argument_type_error>(axpy, of.on, 1.0F, y, 1.0F, 10LL),
              "argument 1 of the kernel axpy is \"in float32* x\", and got float32: pass a weir::array of float32, "
              "astype(on, x, dtype) converts one");
    EXPECT_THAT(refusal<argument_error>(axpy, of.on, inout(of.x.view<float>()), y, 1.0F, 10LL),
                HasSubstr("is \"in float32* x\", and got an array as inout: pass it as weir::in(x)"));
    EXPECT_THAT(refusal<argument_error>(axpy, of.on, x, out(of.y.view<float>()), 1.0F, 10LL),
                HasSubstr("is \"inout float32* y\", and got an array as out"));
    EXPECT_THAT(refusal<argument_error>(axpy, of.on, x, y, 1.0F), HasSubstr("has 4 parameters, and got 3"));
    EXPECT_THAT(message_of<argument_error>([&] { static_cast<void>(axpy.with_signature("in float* x")); }),
                HasSubstr("has 1 parameters, and the kernel axpy has 4"));
    const auto declared_as = [&](const char* text) {
        return message_of<argument_error>([&] { static_cast<void>(axpy.with_signature(text)); });
    };
    EXPECT_THAT(
        declared_as("in float* x, inout float* y, double a, int64 n"),
        HasSubstr("parameter 3 of the signature is \"float64 a\", which has 8 bytes, and that of the kernel axpy "
                  "has 4"));
    EXPECT_THAT(declared_as("in float* x, int y, float a, int64 n"), HasSubstr("parameter 2 of the signature"));
    EXPECT_EQ(declared_as("in float* x, inout float* y, float a, inout void* n"), "nothing was thrown")
        << "control: of the right size";
    of.on.synchronize();
}

}  // namespace
}  // namespace weir::test
