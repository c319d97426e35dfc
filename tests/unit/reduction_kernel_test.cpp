// Reductions of a program along axes, on every device (rules K2, K3, O1).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
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
using doubles = std::vector<double>;
using integers = std::vector<std::int64_t>;

class ReductionKernel {
protected:
    stream s1{here()};
    stream s2{here()};
    const reduction_kernel norm{
        "T x", "T y", {.map = "x * x", .reduce = "a + b", .post = "y = sqrt(a)", .identity = "0", .name = "norm"}};
    const reduction_kernel total{"T x", "T y", {.map = "x", .identity = "0"}};
    // How many elements have another number than `at`, or are reduced together with others than `count`.
    const reduction_kernel misnumbered{"int64 at, int64 count", "int64 y", {.map = "i != at || n != count"}};
    const reduction_kernel first_of_largest{
        "T x",
        "T most, int64 where",
        {.map = "{x, i}",
         .reduce = "a.value > b.value || (a.value == b.value && a.index < b.index) ? a : b",
         .post = "most = a.value; where = a.index",
         .type = "T value, int64 index",
         .name = "argmax"}};
    array grid = reshape(s1, arange(0, 24, 1, dtype::int64, s1), {2, 3, 4});
};

WEIR_CONFORMANCE_F(ReductionKernel, K3AllAxes) {
    const array x = astype(s1, arange(0, 5, 1, dtype::int64, s1), dtype::float64);
    const array y = norm(s1, {x});
    EXPECT_EQ(y.shape(), shape{});
    EXPECT_EQ(values_of<double>(y), doubles{std::sqrt(30.0)});
}

WEIR_CONFORMANCE_F(ReductionKernel, K3SomeAxes) {
    EXPECT_EQ(values_of<std::int64_t>(total(s1, {grid}, 0)),
              (integers{12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34}));
    EXPECT_EQ(values_of<std::int64_t>(total(s1, {grid}, -1)), (integers{6, 22, 38, 54, 70, 86}));
    EXPECT_EQ(values_of<std::int64_t>(total(s1, {grid}, {0, 2})), (integers{60, 92, 124}));
    EXPECT_EQ(values_of<std::int64_t>(total(s1, {grid}, along(std::vector<std::int64_t>{}))),
              values_of<std::int64_t>(grid))
        << "no axes: each element is a result";
    along kept(1);
    kept.keep = true;
    const array y = total(s1, {grid}, kept);
    EXPECT_EQ(y.shape(), shape({2, 1, 4}));
    EXPECT_EQ(values_of<std::int64_t>(y), (integers{12, 15, 18, 21, 48, 51, 54, 57}));
}

WEIR_CONFORMANCE_F(ReductionKernel, SeveralInputsAreBroadcast) {
    const reduction_kernel dot("T x, T y, T scale", "T z", {.map = "scale * x * y", .identity = "0", .name = "dot"});
    const array row = arange(0, 4, 1, dtype::int64, s1);
    EXPECT_EQ(values_of<std::int64_t>(dot(s1, {grid, row, 10}, 2)), (integers{140, 380, 620, 860, 1100, 1340}));
    EXPECT_EQ(values_of<std::int64_t>(dot(s1, {3, 4, 10})), integers{120}) << "numbers are one element";
    EXPECT_EQ(values_of<std::int64_t>(dot(s1, {row, 2, 1})), integers{12});
}

WEIR_CONFORMANCE_F(ReductionKernel, AnyStrides) {
    const array turned = grid.transpose({2, 0, 1});
    EXPECT_EQ(values_of<std::int64_t>(total(s1, {turned}, 0)), (integers{6, 22, 38, 54, 70, 86}));
    EXPECT_EQ(values_of<std::int64_t>(total(s1, {turned}, {1, 2})), (integers{60, 66, 72, 78}));
    const array some = grid[{ellipsis, slice{{}, {}, -2}}];
    EXPECT_EQ(values_of<std::int64_t>(total(s1, {some}, -1)), (integers{4, 12, 20, 28, 36, 44}));
    array into = zeros({6, 2}, dtype::int64, s1);
    array column = into[{slice{}, 1}];
    total.launch(s1, {reshape(s1, grid, {6, 4})}, {&column}, 1);
    EXPECT_EQ(values_of<std::int64_t>(into), (integers{0, 6, 0, 22, 0, 38, 0, 54, 0, 70, 0, 86}));
}

WEIR_CONFORMANCE_F(ReductionKernel, SeveralOutputs) {
    const reduction_kernel moments("float32 x", "float64 mean, float32 root",
                                   {.map = "double(x) * x",
                                    .reduce = "a + b",
                                    .post = "const double m = a / 4; mean = m; root = sqrt(m)",
                                    .identity = "0",
                                    .type = "float64"});
    const array x = full({3, 4}, 3, dtype::float32, s1);
    const std::vector<array> both = moments.compute(s1, std::vector<operand>{x}, 1);
    EXPECT_EQ(values_of<double>(both[0]), (doubles{9, 9, 9}));
    EXPECT_EQ(values_of<float>(both[1]), (std::vector<float>{3, 3, 3}));
}

WEIR_CONFORMANCE_F(ReductionKernel, ValuesHaveTheTypeThatIsGiven) {
    const array x = full({4096}, 200, dtype::uint8, s1);
    const reduction_kernel wide("uint8 x", "int64 y", {.map = "x"});
    EXPECT_EQ(values_of<std::int64_t>(wide(s1, {x})), integers{819200});
    const reduction_kernel narrow("uint8 x", "int64 y", {.map = "x", .type = "uint8"});
    EXPECT_EQ(values_of<std::int64_t>(narrow(s1, {x})), integers{819200 % 256});
    const reduction_kernel of_inputs("T x, U w", "float64 y", {.map = "x * w", .type = "U"});
    EXPECT_EQ(values_of<double>(of_inputs(s1, {x, full({4096}, 0.5, dtype::float32, s1)})), doubles{409600});
    const reduction_kernel complex_sum("complex128 z", "complex128 y", {.map = "z * conj(z)"});
    EXPECT_EQ(values_of<std::complex<double>>(
                  complex_sum(s1, {full({3}, std::complex<double>(3, 4), dtype::complex128, s1)})),
              (std::vector<std::complex<double>>{{75, 0}}));
    const reduction_kernel any("T x", "bool y", {.map = "x == 201", .reduce = "a || b", .identity = "false"});
    EXPECT_EQ(values_of<bool>(any(s1, {x})), std::vector<bool>{false});
}

WEIR_CONFORMANCE_F(ReductionKernel, ShortFloatsAreComputedInFloat32) {
    const array x = full({5000}, 0.1, dtype::float16, s1);
    const array y = astype(s1, total(s1, {x}), dtype::float64);
    EXPECT_NEAR(values_of<double>(y)[0], 5000 * 0.0999755859375, 0.25) << "one rounding to float16";
}

WEIR_CONFORMANCE_F(ReductionKernel, ExtremesNeedNoIdentity) {
    const reduction_kernel largest("T x", "T y", {.map = "x", .reduce = "max(a, b)", .name = "largest"});
    EXPECT_EQ(values_of<std::int64_t>(largest(s1, {grid}, 1)), (integers{8, 9, 10, 11, 20, 21, 22, 23}));
    const array none = zeros({0, 3}, dtype::int64, s1);
    EXPECT_THAT(message_of<argument_error>([&] { static_cast<void>(largest(s1, {none}, 0)); }),
                AllOf(HasSubstr("largest"), HasSubstr("no identity"), HasSubstr("(0, 3)")));
    EXPECT_EQ(largest(s1, {none}, 1).shape(), shape({0})) << "no results";
    const reduction_kernel both("T x", "T y, T z", {.map = "x", .post = "y = a; z = -a"});
    EXPECT_THAT(both.compute(s1, std::vector<operand>{none}, 1),
                Each(ResultOf([](const array& x) { return x.shape(); }, shape({0}))));
}

WEIR_CONFORMANCE_F(ReductionKernel, NoElementsAreTheIdentity) {
    const reduction_kernel product("T x", "T y", {.map = "x", .reduce = "a * b", .post = "y = a + 1", .identity = "1"});
    EXPECT_EQ(values_of<std::int64_t>(product(s1, {zeros({3, 0}, dtype::int64, s1)}, 1)), (integers{2, 2, 2}));
    EXPECT_EQ(values_of<std::int64_t>(product(s1, {zeros({0}, dtype::int64, s1)})), integers{2});
}

WEIR_CONFORMANCE_F(ReductionKernel, LongReductionsAreAccurate) {
    const std::int64_t n = 1'000'003;
    const array x = full({n}, 0.1, dtype::float32, s1);
    const float tenth = 0.1F;
    const double exact = static_cast<double>(n) * static_cast<double>(tenth);
    // At most 64 values are added one after the other, then 16 lanes and 977 chunks in pairs.
    const double bound = exact * (64 + 4 + 10) * std::ldexp(1.0, -24);
    EXPECT_NEAR(static_cast<double>(values_of<float>(total(s1, {x}))[0]), exact, bound);
    float one_by_one = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        one_by_one += tenth;
    }
    EXPECT_GT(std::abs(static_cast<double>(one_by_one) - exact), 100 * bound) << "the negative control";
}

WEIR_CONFORMANCE_F(ReductionKernel, ResultsAreTheSameBitsForAnyLayout) {
    // Numbers whose sum depends on the order.
    const array x = random({300, 1000}, 7, dtype::float32, s1);
    const array turned = copy(s1, x.transpose({1, 0})).transpose({1, 0});
    ASSERT_FALSE(turned.is_contiguous());
    const auto bits = [&](const array& from, const along& axes) {
        std::vector<std::uint32_t> all;
        for (const float one : values_of<float>(total(s1, {from}, axes))) {
            all.push_back(std::bit_cast<std::uint32_t>(one));
        }
        return all;
    };
    EXPECT_EQ(bits(x, 0), bits(turned, 0));
    EXPECT_EQ(bits(x, 1), bits(turned, 1));
    EXPECT_EQ(bits(x, {}), bits(turned, {}));
    EXPECT_EQ(bits(x[{slice{}, slice{0, 1}}], 0)[0], bits(x, 0)[0]) << "alone, and beside others";
}

WEIR_CONFORMANCE_F(ReductionKernel, IndicesCountTheElementsOfAResultInCOrder) {
    const auto along_axis = [&](std::int64_t extent, std::int64_t step, const shape& as) {
        return reshape(s1, arange(0, extent * step, step, dtype::int64, s1), as);
    };
    const auto expect_numbers = [&](const array& at, std::int64_t count, const along& axes) {
        const array wrong = total(s1, {misnumbered(s1, {at, count}, axes)});
        EXPECT_EQ(values_of<std::int64_t>(wrong), integers{0}) << at.shape().to_string();
    };
    const array sum = compute(s1, binary_operation::add, along_axis(2, 4, {2, 1, 1}), along_axis(4, 1, {1, 1, 4}));
    const array at = copy(s1, sum.broadcast_to({2, 3, 4}));
    expect_numbers(at, 8, {0, 2});
    expect_numbers(at, 8, {2, 0});
    expect_numbers(copy(s1, at.transpose({2, 1, 0})).transpose({2, 1, 0}), 8, {0, 2});
    expect_numbers(sum.broadcast_to({2, 3, 4}), 8, {0, 2});
    expect_numbers(grid, 24, {});
    expect_numbers(zeros({3, 4}, dtype::int64, s1), 1, along(std::vector<std::int64_t>{}));
    const array falling = along_axis(24, 1, {24})[{slice{{}, {}, -1}}];
    EXPECT_EQ(values_of<std::int64_t>(misnumbered(s1, {falling, 24})), integers{24}) << "the order is that of indices";
    // Many chunks, shared among threads; results side by side, and one after the other.
    expect_numbers(along_axis(200'003, 1, {200'003}), 200'003, {});
    expect_numbers(along_axis(5000, 1, {5000, 1}).broadcast_to({5000, 40}), 5000, 0);
    expect_numbers(copy(s1, along_axis(5000, 1, {5000, 1}).broadcast_to({5000, 40})), 5000, 0);
    expect_numbers(copy(s1, along_axis(5000, 1, {1, 5000}).broadcast_to({40, 5000})), 5000, 1);
    EXPECT_EQ(values_of<std::int64_t>(misnumbered(s1, {along_axis(5000, 2, {5000}), 5000})), integers{4999})
        << "the negative control";
}

WEIR_CONFORMANCE_F(ReductionKernel, TheNumberOfElementsIsKnownInPost) {
    const reduction_kernel mean("T x", "float64 y", {.map = "x", .post = "y = n > 0 ? a / n : -1", .identity = "0"});
    EXPECT_EQ(values_of<double>(mean(s1, {grid}, {0, 2})), (doubles{7.5, 11.5, 15.5}));
    EXPECT_EQ(values_of<double>(mean(s1, {full({70'000}, 3, dtype::int32, s1)})), doubles{3});
    EXPECT_EQ(values_of<double>(mean(s1, {zeros({2, 0}, dtype::int64, s1)}, 1)), (doubles{-1, -1}));
    const reduction_kernel own("T i, T n", "T y", {.map = "i * n", .post = "const T n = a + 1; y = n"});
    EXPECT_EQ(values_of<std::int64_t>(own(s1, {grid, 10}, 2))[0], 61) << "operands and variables hide them";
}

WEIR_CONFORMANCE_F(ReductionKernel, ValuesMayHaveFields) {
    const array x = reshape(s1, arange(0, 120, 1, dtype::int64, s1), {4, 30});
    const array turns = compute(s1, binary_operation::bitwise_and, compute(s1, binary_operation::multiply, x, 7), 15);
    const auto pair = first_of_largest.compute(s1, std::vector<operand>{turns}, 1);
    const integers all = values_of<std::int64_t>(turns);
    for (std::size_t row = 0; row < 4; ++row) {
        const auto from = all.begin() + static_cast<std::ptrdiff_t>(30 * row);
        const auto most = std::max_element(from, from + 30);
        EXPECT_EQ(values_of<std::int64_t>(pair[0])[row], *most);
        EXPECT_EQ(values_of<std::int64_t>(pair[1])[row], most - from) << "the first of those that are equal";
    }
    // Fields of different sizes; what is in braces is converted as C++ does.
    const reduction_kernel mixed(
        "float32 x", "float64 y, int64 z, bool any",
        {.map = "{x > 2, x, 1, i}",
         .reduce = "{a.any || b.any, a.sum + b.sum, a.count + b.count, a.last > b.last ? a.last : b.last}",
         .post = "y = a.sum / a.count; z = a.last; any = a.any",
         .identity = "{false, 0, 1, -1}",
         .type = "bool any, float64 sum, int16 count, int64 last"});
    const auto three = mixed.compute(s1, std::vector<operand>{full({3, 1000}, 1.5, dtype::float32, s1)}, 1);
    EXPECT_EQ(values_of<double>(three[0]), (doubles{1.5, 1.5, 1.5}));
    EXPECT_EQ(values_of<std::int64_t>(three[1]), (integers{999, 999, 999}));
    EXPECT_EQ(values_of<bool>(three[2]), (std::vector<bool>{false, false, false}));
    const auto none = mixed.compute(s1, std::vector<operand>{zeros({0}, dtype::float32, s1)}, {});
    EXPECT_EQ(values_of<std::int64_t>(none[1]), integers{-1});
}

WEIR_CONFORMANCE_F(ReductionKernel, O1WaitsOnTheDevice) {
    array x = full({8}, 1, dtype::int64, s1);
    static_cast<void>(total(s1, {x}));
    s1.synchronize();
    std::optional<array> y;
    if (here().kind() == device_kind::cpu_inline) {
        return;  // operations run when they are enqueued
    }
    {
        testing::gate held;
        held.hold(s1);
        fill(s1, x, 5);
        y = total(s2, {x});
        EXPECT_FALSE(y->ready());
    }
    EXPECT_EQ(values_of<std::int64_t>(*y), integers{40});
}

WEIR_CONFORMANCE_F(ReductionKernel, K5WaitsForTheTokensThatItDeclares) {
    array sum = zeros({}, dtype::int64, s2);
    total.launch(s2, {grid}, {&sum});
    here().synchronize();
    if (here().kind() == device_kind::cpu_inline) {
        return;  // operations run when they are enqueued
    }
    const token slot("slot");
    testing::gate held;
    held.hold(s1);
    host_task(
        s1, [] {}, inout(slot));
    total.launch(s2, {grid}, {&sum}).synchronize();  // the control: without the token nothing is to wait for
    const completion after = total.launch(s2, {grid}, {&sum}, {}, {in(slot)});
    EXPECT_FALSE(after.done());
    held.open();
    EXPECT_EQ(values_of<std::int64_t>(sum), integers{276});
}

WEIR_CONFORMANCE_F(ReductionKernel, OutputsMayBeInputs) {
    array x = arange(0, 4, 1, dtype::int64, s1);
    array first = x[{0}];
    total.launch(s1, {x}, {&first});
    EXPECT_EQ(values_of<std::int64_t>(x), (integers{6, 1, 2, 3}));
    // Each element is a result, and is written where another one is still to be read: more results than are computed together.
    array line = arange(0, 1000, 1, dtype::int64, s1);
    array backwards = line[{slice{{}, {}, -1}}];
    total.launch(s1, {line}, {&backwards}, along(std::vector<std::int64_t>{}));
    const integers seen = values_of<std::int64_t>(line);
    for (std::int64_t i = 0; i < 1000; ++i) {
        ASSERT_EQ(seen[static_cast<std::size_t>(i)], 999 - i);
    }
}

WEIR_CONFORMANCE_F(ReductionKernel, WrongCallsSayWhatToDo) {
    const auto wrong = [&](const auto& call) { return message_of<argument_error>(call); };
    EXPECT_THAT(wrong([&] {
                    static_cast<void>(total(s1, {grid, grid}));
                }),
                AllOf(HasSubstr("the reduction reduction(T x -> T y): it has 1 inputs, and got 2")));
    EXPECT_THAT(wrong([&] { static_cast<void>(total(s1, {grid}, {0, -3})); }), HasSubstr("named twice"));
    EXPECT_THAT(wrong([&] { static_cast<void>(total(s1, {grid}, 3)); }), HasSubstr("3"));
    array small = zeros({2}, dtype::int64, s1);
    EXPECT_THAT(wrong([&] { total.launch(s1, {grid}, {&small}, 0); }),
                AllOf(HasSubstr("the results have the shape (3, 4)"), HasSubstr("(2,)")));
    array real = zeros({3, 4}, dtype::float64, s1);
    EXPECT_THAT(message_of<argument_type_error>([&] { total.launch(s1, {grid}, {&real}, 0); }),
                HasSubstr("T is int64 for one operand and float64 for y"));
    EXPECT_THAT(wrong([&] { total.launch(s1, {grid}, {nullptr}); }), HasSubstr("an output is null"));
}

WEIR_CONFORMANCE_F(ReductionKernel, TextsThatDoNotCompileAreNamed) {
    const auto said = [&](const reduction_texts& texts) {
        const reduction_kernel wrong("T x", "T y", texts);
        return message_of<argument_error>([&] { static_cast<void>(wrong(s1, {grid})); });
    };
    EXPECT_THAT(said({.map = "x + unknown", .name = "k"}),
                HasSubstr("the map of the reduction k(T x -> T y) does not compile"));
    EXPECT_THAT(said({.map = "x", .reduce = "a + c"}), HasSubstr("the reduce of the reduction"));
    EXPECT_THAT(said({.map = "x", .post = "y = z"}), HasSubstr("the post of the reduction"));
    EXPECT_THAT(said({.map = "x", .identity = "none"}), HasSubstr("the identity of the reduction"));
    EXPECT_THAT(said({.map = "x", .post = "y = a; y = y + 1"}),
                HasSubstr("reads the output y, which it can only assign"));
}

WEIR_CONFORMANCE_F(ReductionKernel, TheIdentityMayBeANumberOfTheTypeOfTheValues) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const array none = zeros({0}, dtype::float64, s1);
    const reduction_kernel least("T x", "T y", {.map = "x", .reduce = "min(a, b)", .identity = infinity});
    EXPECT_EQ(values_of<double>(least(s1, {none})), std::vector{infinity});
    const reduction_kernel some("T x", "T y", {.map = "x", .identity = 300});
    EXPECT_EQ(values_of<double>(some(s1, {none})), std::vector{300.0});
    EXPECT_THAT(message_of<argument_error>([&] { static_cast<void>(some(s1, {zeros({0}, dtype::int8, s1)})); }),
                HasSubstr("the identity 300 is no value of int8"));
    EXPECT_THAT(message_of<argument_error>([&] { static_cast<void>(least(s1, {grid})); }),
                HasSubstr("the identity inf is no value of int64"));
}

WEIR_CONFORMANCE_F(ReductionKernel, IsPreparedBeforeItsFirstUse) {
    total.prepare(s1, {grid}, 0);
    EXPECT_EQ(values_of<std::int64_t>(total(s1, {grid}, {0, 1, 2})), integers{276});
    const reduction_kernel wrong("T x", "T y", {.map = "x + unknown"});
    EXPECT_THAT(message_of<argument_error>([&] { wrong.prepare(s1, {grid}); }), HasSubstr("does not compile"));
}

std::string refusal(std::string_view inputs, std::string_view outputs, const reduction_texts& texts) {
    return message_of<argument_error>([&] { static_cast<void>(reduction_kernel(inputs, outputs, texts)); });
}

TEST(ReductionKernelTexts, AreChecked) {
    EXPECT_THAT(refusal("T x", "T y", {.map = " "}), HasSubstr("the map is empty"));
    EXPECT_THAT(refusal("T x", "T y", {.map = "x", .reduce = ""}), HasSubstr("reduce is empty"));
    EXPECT_THAT(refusal("T x", "T y", {.map = "x;"}), AllOf(HasSubstr("ends with a semicolon"), HasSubstr("post")));
    EXPECT_THAT(refusal("T x", "T y, T z", {.map = "x"}), HasSubstr("several outputs and no post"));
    EXPECT_THAT(refusal("T x", "inout T y", {.map = "x"}), HasSubstr("a reduction writes its outputs"));
    EXPECT_THAT(refusal("T x", "T a", {.map = "x"}), HasSubstr("take another name"));
    EXPECT_THAT(refusal("T x", "T y", {.map = "x", .type = "U"}), HasSubstr("the type \"U\" of the reduced values"));
    EXPECT_THAT(refusal("T x", "T y", {.map = "{x, i}", .type = "T value, int64 index"}),
                AllOf(HasSubstr("no post"), HasSubstr("y = a.index")));
    EXPECT_THAT(refusal("T x", "T y", {.map = "{x, i}", .post = "y = a.x", .type = "T x, U index"}),
                HasSubstr("the type \"U\" of the reduced values"));
    EXPECT_THAT(refusal("T x", "T y", {.map = "{x, i}", .post = "y = a.x", .type = "T x, int64 x"}),
                AllOf(HasSubstr("\"int64 x\" of a reduction"), HasSubstr("another one has")));
    EXPECT_THAT(refusal("T x", "T y", {.map = "{x, i}", .post = "y = a.x", .type = "T x, int64"}),
                HasSubstr("\"int64\" of a reduction has no name"));
    EXPECT_THAT(refusal("T x", "T y",
                        {.map = "{x}",
                         .post = "y = a.f0",
                         .type = "T f0, T f1, T f2, T f3, T f4, T f5, T f6, T f7, T f8, T f9, T g0, T g1, T g2"}),
                HasSubstr("13 fields, of at most 12"));
    EXPECT_THAT(refusal("T x", "T* y", {.map = "x"}), AllOf(HasSubstr("of a reduction"), HasSubstr("leave out the *")));
    EXPECT_EQ(reduction_kernel("T x", "T y", {.map = "x", .name = "sum"}).to_string(),
              "<weir.reduction sum(T x -> T y)>");
}

}  // namespace
}  // namespace weir
