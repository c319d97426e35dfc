// Gates: how late an event may be recorded (rule O7).
#include "order/gates.hpp"

#include <gtest/gtest.h>

namespace weir::order::test {
namespace {

TEST(O7, WithoutGatesAnEventMayBeRecordedAtTheTail) {
    const gate_log gates;
    EXPECT_EQ(gates.latest_record(3, 8), 8U);
    EXPECT_EQ(gates.latest_record(8, 8), 8U);
}

TEST(O7, NeverBehindAGate) {
    gate_log gates;
    gates.note(5);
    gates.note(7);
    EXPECT_EQ(gates.latest_record(3, 8), 4U);
    EXPECT_EQ(gates.latest_record(4, 8), 4U);
}

TEST(O7, AnEventForTheGateItselfComesBehindIt) {
    gate_log gates;
    gates.note(5);
    gates.note(7);
    EXPECT_EQ(gates.latest_record(5, 8), 6U);
    EXPECT_EQ(gates.latest_record(6, 8), 6U);
    EXPECT_EQ(gates.latest_record(7, 8), 8U);
}

TEST(O7, NotBeyondTheTail) {
    gate_log gates;
    gates.note(9);
    EXPECT_EQ(gates.latest_record(3, 6), 6U) << "the gate's epoch is reserved, its operation not yet enqueued";
}

TEST(O7, AGateThatIsOverHoldsNothingBack) {
    gate_log gates;
    gates.note(5);
    gates.note(7);
    gates.prune(6);
    EXPECT_EQ(gates.latest_record(3, 8), 6U);
    gates.prune(7);
    EXPECT_EQ(gates.latest_record(3, 8), 8U);
}

TEST(O7, NotingAGateTwiceChangesNothing) {
    gate_log gates;
    gates.note(5);
    gates.note(5);
    EXPECT_EQ(gates.latest_record(4, 8), 4U);
    EXPECT_EQ(gates.latest_record(5, 8), 8U);
}

TEST(O7, WhatStandsBehindAGateIsHeldBack) {
    gate_log gates;
    EXPECT_FALSE(gates.holds_back(1));
    gates.note(5);
    EXPECT_FALSE(gates.holds_back(4));
    EXPECT_TRUE(gates.holds_back(5));
    EXPECT_TRUE(gates.holds_back(6));
    gates.prune(5);
    EXPECT_FALSE(gates.holds_back(6));
}

}  // namespace
}  // namespace weir::order::test
