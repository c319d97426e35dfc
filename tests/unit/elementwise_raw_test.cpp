// Element-wise kernels with raw inputs, which the body indexes, on every device (rules K3, O1).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>
#include <cstdint>
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
using ::testing::HasSubstr;
using numbers = std::vector<float>;

class ElementwiseRaw {
protected:
    stream s1{here()};
    stream s2{here()};
    const elementwise_kernel reversed{"raw T x", "T y", "y = x[n - 1 - i]", "reversed"};
};

WEIR_CONFORMANCE_F(ElementwiseRaw, K3ReadsAnyElement) {
    const elementwise_kernel blur("raw float x", "float y",
                                  "y = (x[i > 0 ? i - 1 : 0] + x[i] + x[i + 1 < n ? i + 1 : n - 1]) / 3");
    const array x = make_array<float>(s1, {5}, {3, 6, 9, 0, 3});
    array y = empty({5}, dtype::float32, s1);
    blur.launch(s1, {x}, {&y});
    EXPECT_EQ(values_of<float>(y), (numbers{4, 6, 5, 4, 2}));
}

WEIR_CONFORMANCE_F(ElementwiseRaw, DoesNotTakePartInTheShape) {
    const elementwise_kernel gather("raw T table, int32 at", "T y, int64 size", "y = table[at]; size = table.size()");
    const array table = make_array<double>(s1, {2, 3}, {1, 2, 3, 4, 5, 6});
    const array at = make_array<std::int32_t>(s1, {4}, {5, 0, 0, 3});
    const std::vector<array> made = gather.compute(s1, {table, at});
    EXPECT_EQ(values_of<double>(made[0]), (std::vector<double>{6, 1, 1, 4}));
    EXPECT_EQ(values_of<std::int64_t>(made[1]), (std::vector<std::int64_t>(4, 6)));
}

WEIR_CONFORMANCE_F(ElementwiseRaw, IsIndexedInCOrderWhateverItsStrides) {
    const array grid = make_array<std::int32_t>(s1, {2, 3}, {1, 2, 3, 4, 5, 6});
    array y = empty({3, 2}, dtype::int32, s1);
    reversed.launch(s1, {grid.transpose({1, 0})}, {&y});
    EXPECT_EQ(values_of<std::int32_t>(y), (std::vector<std::int32_t>{6, 3, 5, 2, 4, 1}));
    array part = empty({3}, dtype::int32, s1);
    reversed.launch(s1, {grid[1]}, {&part});
    EXPECT_EQ(values_of<std::int32_t>(part), (std::vector<std::int32_t>{6, 5, 4}));
    array column = empty({2}, dtype::int32, s1);
    reversed.launch(s1, {grid[{ellipsis, 1}]}, {&column});
    EXPECT_EQ(values_of<std::int32_t>(column), (std::vector<std::int32_t>{5, 2}));
}

WEIR_CONFORMANCE_F(ElementwiseRaw, MayBeTheOutput) {
    constexpr std::int64_t count = 1000;  // more than a processor reads at once
    array many = arange(0, count, 1, dtype::float32, s1);
    reversed.launch(s1, {many}, {&many});
    EXPECT_EQ(values_of<float>(many), values_of<float>(arange(count - 1, -1, -1, dtype::float32, s1)))
        << "as if all had been read first";
    array x = make_array<float>(s1, {4}, {4, 3, 2, 1});
    const elementwise_kernel pass("T value, raw T old", "T y", "y = old[0] * 10 + value");
    pass.launch(s1, {x, x}, {&x});
    EXPECT_EQ(values_of<float>(x), (numbers{44, 43, 42, 41}));
}

WEIR_CONFORMANCE_F(ElementwiseRaw, OfManyElementsAndOtherTypes) {
    constexpr std::int64_t count = 300'000;  // several threads on the CPU
    const array x = arange(0, count, 1, dtype::int64, s1);
    array y = empty({count}, dtype::int64, s1);
    reversed.launch(s1, {x}, {&y});
    const auto seen = values_of<std::int64_t>(y);
    for (std::int64_t i = 0; i < count; ++i) {
        ASSERT_EQ(seen[static_cast<std::size_t>(i)], count - 1 - i);
    }
    const elementwise_kernel halves("raw float16 x", "float32 y", "y = x[i] + x[0]");
    array h = empty({3}, dtype::float32, s1);
    halves.launch(s1, {full(3, 1.5, dtype::float16, s1)}, {&h});
    EXPECT_EQ(values_of<float>(h), (numbers{3, 3, 3})) << "elements of float16 are float in the body";
    array z = empty({2}, dtype::complex64, s1);
    using complex = std::complex<float>;
    reversed.launch(s1, {make_array<complex>(s1, {2}, {{1, 2}, {3, 4}})}, {&z});
    EXPECT_EQ(values_of<complex>(z), (std::vector<complex>{{3, 4}, {1, 2}}));
}

WEIR_CONFORMANCE_F(ElementwiseRaw, O1WaitsForWhatWritesIt) {
    if (here().kind() == device_kind::cpu_inline) {
        return;  // operations run when they are enqueued
    }
    array x = zeros({3}, dtype::float32, s1);
    array y = zeros({3}, dtype::float32, s2);
    reversed.launch(s2, {x}, {&y});
    here().synchronize();
    testing::gate held;
    held.hold(s1);
    fill(s1, x, 7.0F);
    const completion read = reversed.launch(s2, {x}, {&y});
    EXPECT_FALSE(read.done());
    held.open();
    EXPECT_EQ(values_of<float>(y), (numbers{7, 7, 7}));
}

WEIR_CONFORMANCE_F(ElementwiseRaw, WhatCannotBeIsRefused) {
    const array x = full(4, 2.0, dtype::float32, s1);
    EXPECT_THAT(
        message_of<argument_error>([&] { static_cast<void>(reversed(s1, x)); }),
        AllOf(HasSubstr("the element-wise kernel reversed(raw T x -> T y)"), HasSubstr("pass arrays for the outputs")));
    array y = empty({4}, dtype::float32, s1);
    EXPECT_THAT(message_of<argument_type_error>([&] { reversed.launch(s1, {2.0F}, {&y}); }),
                HasSubstr("the input \"raw T x\" got the number 2.0: pass an array, which the body indexes"));
    array other = empty({4}, dtype::float64, s1);
    EXPECT_THAT(message_of<argument_type_error>([&] { reversed.launch(s1, {x}, {&other}); }),
                HasSubstr("T is float32"));
    const auto refused = [](const char* inputs, const char* outputs) {
        return message_of<argument_error>([&] { const elementwise_kernel made(inputs, outputs, "y = x[i]"); });
    };
    EXPECT_THAT(refused("float x", "raw float y"), HasSubstr("is an output, and raw"));
    EXPECT_THAT(message_of<argument_error>(
                    [&] { const reduction_kernel made("raw float x", "float y", {.map = "x[i]", .reduce = "a + b"}); }),
                HasSubstr("is raw: a reduction sees one element of each input"));
    const elementwise_kernel wrong("raw float x", "float y", "y = x");
    EXPECT_THAT(message_of<argument_error>([&] { wrong.launch(s1, {x}, {&y}); }), HasSubstr("line 1, \"y = x\""));
    here().synchronize();
}

}  // namespace
}  // namespace weir
