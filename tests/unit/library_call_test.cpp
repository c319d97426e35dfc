// The contract of library calls (rules P1 to P3), checked for a call of the test's own on every device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

#include "calls/execution.hpp"
#include "library_call_support.hpp"
#include "support/arrays.hpp"
#include "support/devices.hpp"
#include "support/messages.hpp"
#include "weir/testing.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::handle;
using test::here;
using test::join;
using test::join_call;
using test::joiner;
using test::last_handle;
using test::message_of;
using test::values_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using numbers = std::vector<double>;

class LibraryCall {
protected:
    stream s1{here()};
    stream s2{here()};
    std::array<array, 2> operands{full(2, 1.0, dtype::float64, s1), full(3, 2.0, dtype::float64, s1)};
    const numbers joined{1, 1, 2, 2, 2};

    /// A kind of device that does not reach the operands' memory.
    [[nodiscard]] static device_kind elsewhere() {
        return here().kind() == device_kind::cpu ? device_kind::sim : device_kind::cpu;
    }
};

WEIR_CONFORMANCE_F(LibraryCall, P2ReturnsOnceEnqueuedAndIsOrdered) {
    testing::gate held;
    held.hold(s1);
    fill(s1, operands[0], 5.0);
    const array result = join(s2, operands);
    fill(s1, operands[1], 7.0);  // after the read of the call
    operands = {};
    EXPECT_FALSE(result.ready());
    held.open();
    EXPECT_EQ(values_of<double>(result), (numbers{5, 5, 2, 2, 2}));
}

WEIR_CONFORMANCE_F(LibraryCall, ControlWithoutOrderingItReadsTooEarly) {
    s1.synchronize();
    static_cast<void>(values_of<double>(join(s2, operands)));
    const ordering_scope careless(ordering_mode::manual);
    testing::gate held;
    held.hold(s1);
    fill(s1, operands[0], 5.0);
    const array result = join(s2, operands);
    s2.synchronize();
    held.open();
    EXPECT_EQ(values_of<double>(result), joined);
}

WEIR_CONFORMANCE_F(LibraryCall, P2BlocksIfTheTermsSaySo) {
    const array result = join(s2, operands, {.blocking = call_blocking::always});
    EXPECT_TRUE(result.ready());
    EXPECT_EQ(values_of<double>(result), joined);
}

WEIR_CONFORMANCE_F(LibraryCall, P2ComputesElsewhereAndIsCompleteThen) {
    const stream there = current_stream(calls::computing_device(elsewhere(), operands[0]));
    const array result = join(there, operands, {.execution = elsewhere()});
    EXPECT_EQ(result.device(), here());
    EXPECT_TRUE(result.ready());
    EXPECT_EQ(values_of<double>(result), joined);
}

WEIR_CONFORMANCE_F(LibraryCall, P1AMemoryLimitCountsTheWorkspaceAndCopies) {
    EXPECT_EQ(values_of<double>(join(s1, operands, {.limit = 40})), joined);
    EXPECT_THAT(message_of<out_of_memory>([&] { static_cast<void>(join(s1, operands, {.limit = 39})); }),
                HasSubstr("join needs 40 bytes"));
    const stream there = current_stream(calls::computing_device(elsewhere(), operands[0]));
    EXPECT_EQ(values_of<double>(join(there, operands, {.execution = elsewhere(), .limit = 120})), joined);
    EXPECT_THAT(message_of<out_of_memory>(
                    [&] { static_cast<void>(join(there, operands, {.execution = elsewhere(), .limit = 119})); }),
                HasSubstr("join needs 120 bytes"));
}

WEIR_CONFORMANCE_F(LibraryCall, WhatItRefuses) {
    const array wrong_type = zeros(5, dtype::float32, s1);
    EXPECT_THAT(message_of<argument_type_error>([&] { join(s1, operands, wrong_type); }),
                HasSubstr("join: the result's elements"));
    const array wrong_shape = zeros(4, dtype::float64, s1);
    EXPECT_THAT(message_of<argument_error>([&] { join(s1, operands, wrong_shape); }), HasSubstr("has shape (5,)"));
    const array both = zeros(7, dtype::float64, s1);
    const std::array<array, 2> parts{both.slice(0, 2), both.slice(2, 5)};
    EXPECT_THAT(message_of<argument_error>([&] { join(s1, parts, both.slice(0, 5)); }),
                HasSubstr("overlaps an operand"));
    const stream other(calls::computing_device(elsewhere(), operands[0]));
    EXPECT_THAT(message_of<argument_error>([&] { static_cast<void>(join(other, operands)); }),
                AllOf(HasSubstr("join: the stream"), HasSubstr("as execution")));
    const std::array<array, 2> apart{operands[0], full(3, 2.0, dtype::float64, other)};
    other.synchronize();  // the tests of that device begin with an idle one
    EXPECT_THAT(message_of<argument_error>([&] { static_cast<void>(join(s1, apart)); }),
                HasSubstr("the operand lies on"));
}

WEIR_CONFORMANCE_F(LibraryCall, ADeviceThatNoLibraryServesIsRefusedByName) {
    const join_call call(operands);
    const calls::call_layout layout{here(), {}, {}};
    struct serves_none {
        [[nodiscard]] bool serves(const device&) const { return false; }
        [[nodiscard]] std::unique_ptr<const calls::call_plan> plan(const join_call&, const calls::call_layout&) const {
            return nullptr;
        }
    };
    EXPECT_THAT(
        message_of<missing_library>([&] { static_cast<void>(calls::plan_by_first(call, layout, serves_none{})); }),
        AllOf(HasSubstr("join: no library does it on " + here().name()), HasSubstr("execution on the CPU")));
}

WEIR_CONFORMANCE_F(LibraryCall, P3ExecutionsOfOnePlanShareItsWorkspaceInOrderInEveryMode) {
    joiner f(operands);
    f.plan(s1);
    const array x = zeros(5, dtype::float64, s1);
    const array y = zeros(5, dtype::float64, s2);
    here().synchronize();
    const ordering_scope careless(ordering_mode::manual);
    testing::gate held;
    held.hold(s1);
    f.execute(s1, x);
    const completion second = f.execute(s2, y);
    // Control: an execution with a workspace of its own is not held back.
    const stream apart(here());
    const array own = join(apart, operands);
    apart.synchronize();
    EXPECT_EQ(values_of<double>(own), joined);
    EXPECT_FALSE(second.done()) << "it would use the workspace beside the execution on s1";
    held.open();
    second.synchronize();
    EXPECT_EQ(values_of<double>(y), joined);
}

WEIR_CONFORMANCE_F(LibraryCall, P3WhatALibraryMadeLivesUntilTheWorkIsComplete) {
    joiner f(operands);
    f.plan(s1);
    here().synchronize();
    testing::gate held;
    held.hold(s1);
    const array result = f.execute(s1);
    f.free();
    operands = {};
    EXPECT_FALSE(last_handle.expired());
    held.open();
    EXPECT_EQ(values_of<double>(result), joined);
}

WEIR_CONFORMANCE_F(LibraryCall, AnExecutionBetweenTheSameArraysPreparesNothing) {
    joiner f(operands);
    f.plan(s1);
    const array x = zeros(5, dtype::float64, s1);
    const array y = zeros(5, dtype::float64, s1);
    f.execute(s1, x);
    const int made = handle::made;
    f.execute(s1, x);
    f.execute(s2, x);
    EXPECT_EQ(handle::made, made);
    f.execute(s1, y);
    EXPECT_EQ(handle::made, made + 1);
    EXPECT_EQ(values_of<double>(x), joined);
    EXPECT_EQ(values_of<double>(y), joined);
}

WEIR_CONFORMANCE_F(LibraryCall, P3PhasesInTheWrongOrderAreStateErrors) {
    const auto execute = [&](joiner& f) { static_cast<void>(f.execute(s1)); };
    joiner f(operands);
    EXPECT_THAT(message_of<state_error>([&] { execute(f); }), HasSubstr("joiner: call plan before execute"));
    f.plan(s1);
    f.release_operands();
    f.release_operands();
    EXPECT_THAT(message_of<state_error>([&] { execute(f); }), HasSubstr("call reset_operands before execute"));
    EXPECT_THAT(message_of<state_error>([&] { f.plan(s1); }), HasSubstr("call reset_operands before plan"));
    f.reset_operands({full(2, 8.0, dtype::float64, s2), operands[1]});
    EXPECT_EQ(values_of<double>(f.execute(s1)), (numbers{8, 8, 2, 2, 2}));
    EXPECT_THAT(message_of<argument_error>([&] {
                    f.reset_operands({operands[1], operands[0]});
                }),
                HasSubstr("the plan is for float64 (2,), the new operand is float64 (3,)"));
    EXPECT_EQ(values_of<double>(f.execute(s1)), (numbers{8, 8, 2, 2, 2})) << "what was refused changed nothing";
    f.free();
    f.free();
    EXPECT_THAT(message_of<state_error>([&] { execute(f); }), HasSubstr("joiner: it was freed"));
    EXPECT_THAT(message_of<state_error>([&] { f.reset_operands(operands); }), HasSubstr("joiner: it was freed"));
}

}  // namespace
}  // namespace weir
