// Arithmetic is ordered like any operation, by exactly what it touches, and blocks no thread.
#include <gtest/gtest.h>

#include "support/messages.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using testing::gate;

TEST(O1, ArithmeticWaitsForItsOperandsAndTheHostDoesNot) {
    const stream first;
    const stream second;
    array x = zeros(1000, dtype::float64, first);
    first.synchronize();
    gate held;
    held.hold(first);
    fill(first, x, 2);
    array y = add(second, x, 1);
    array total = sum(second, y);
    EXPECT_FALSE(y.ready());
    EXPECT_FALSE(total.ready());
    held.open();
    EXPECT_EQ(total.read<double>()[0], 3000.0);
}

TEST(O1, ControlWithoutOrderingTheSumComesTooEarly) {
    const stream first;
    const stream second;
    array x = zeros(1000, dtype::float64, first);
    first.synchronize();
    gate held;
    const ordering_scope manual(ordering_mode::manual);
    held.hold(first);
    fill(first, x, 2);
    array total = sum(second, add(second, x, 1));
    second.synchronize();
    EXPECT_EQ(total.read<double>()[0], 1000.0);
    held.open();
    first.synchronize();
}

TEST(O3, ArithmeticOnAColumnLeavesTheOthersAlone) {
    const stream first;
    const stream second;
    array x = zeros({100, 4}, dtype::int32, first);
    first.synchronize();
    gate held;
    held.hold(first);
    compute(first, binary_operation::add, x[{ellipsis, 0}], 5, x[{ellipsis, 1}]);
    array other = sum(second, x[{ellipsis, slice{2, 4}}]);
    EXPECT_EQ(other.read<std::int64_t>()[0], 0) << "columns 2 and 3 are not touched";
    array read_too = add(second, x[{ellipsis, 0}], 1);
    EXPECT_EQ(read_too.read<std::int32_t>()[0], 1) << "reads do not order reads";
    array written = add(second, x[{ellipsis, 1}], 1);
    EXPECT_FALSE(written.ready());
    held.open();
    EXPECT_EQ(written.read<std::int32_t>()[0], 6);
}

TEST(S7, OperatorsWorkOnTheCurrentStream) {
    const stream mine;
    array x = zeros(8, dtype::float64, mine);
    mine.synchronize();
    gate held;
    held.hold(mine);
    array y;
    {
        const use current(mine);
        y = x + 1;
        y *= 2;
    }
    EXPECT_FALSE(y.ready());
    held.open();
    EXPECT_EQ(y.read<double>()[0], 2.0);
}

TEST(L1, OperandsAndTemporariesMayGoAtOnce) {
    const stream s;
    gate held;
    held.hold(s);
    const use current(s);
    array result;
    {
        array x = arange(0, 1000);
        x[slice{1, {}}] += x[slice{0, 999}];  // through a temporary array, which is dropped with x
        result = (x + 1) * (x - 1) + x;
        x = {};
    }
    array noise = full(1000, 77, dtype::int64, s);
    held.open();
    const auto seen = result.read<std::int64_t>();
    for (std::int64_t i = 0; i < 1000; ++i) {
        const std::int64_t x = i == 0 ? 0 : 2 * i - 1;
        ASSERT_EQ(seen[static_cast<std::size_t>(i)], x * x - 1 + x);
    }
}

TEST(K4, WhatIsComputedFromAFailedOperandFailsAndInPlaceDoesNotMend) {
    const stream s;
    array x = ones(8, dtype::float64, s);
    parallel_for(
        on(s).label("broken"), 1, [](auto, auto) { throw std::runtime_error("no"); }, inout(x.view<double>()));
    array y = add(s, x, 1);
    compute(s, binary_operation::add, x, 1, x);
    EXPECT_EQ(test::message_of<operation_error>([&] { (void)y.read<double>(); }).find("nothing was thrown"),
              std::string::npos);
    EXPECT_THROW((void)x.read<double>(), operation_error);
    fill(s, x, 3);
    EXPECT_EQ(x.read<double>()[0], 3.0) << "what writes all and reads nothing does";
}

}  // namespace
}  // namespace weir
