// A failure is not lost if no memory is left to record it (rule K4): lack of memory is often the reason of the failure.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "support/scarce_memory.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

class K4WithoutMemory : public ::testing::Test {
protected:
    K4WithoutMemory() { test::exempt_this_thread(); }

    /// Enqueues an operation that fails after which Weir's threads can make `left` allocations, and one that depends on
    /// it. Returns whether both are refused.
    bool is_refused(long left) {
        const stream s;
        const stream other;
        array x = zeros(4, dtype::float64, s);
        array y = zeros(4, dtype::float64, other);
        cpu().synchronize();
        bool ran = false;
        const std::runtime_error thrown("overflow");
        const completion failed = access(
            on(s).label("source"),
            [&](auto...) {
                test::allow_allocations(left);
                throw thrown;
            },
            out(x));
        const completion depends = access(
            other, [&](auto...) { ran = true; }, in(x), out(y));
        while (!depends.done()) {
        }
        test::allow_all_allocations();
        const bool told = throws([&] { static_cast<void>(x.read<double>()); }) &&
                          throws([&] { static_cast<void>(y.read<double>()); }) &&
                          throws([&] { failed.synchronize(); }) && throws([&] { depends.synchronize(); });
        return told && !ran;
    }
    template <class Wait>
    bool throws(Wait&& wait) {
        try {
            wait();
            return false;
        } catch (const operation_error& told) {
            if (exact) {
                EXPECT_EQ(told.label(), "source");
            }
            return std::string(told.what()).find("overflow") != std::string::npos;
        }
    }

    bool exact = true;
};

TEST_F(K4WithoutMemory, AFailureIsNotLostWhicheverAllocationFails) {
    for (long left = 0; left < 40; ++left) {
        EXPECT_TRUE(is_refused(left)) << "with " << left << " allocations";
    }
}

TEST_F(K4WithoutMemory, WhatWasNotNotedForWantOfMemoryIsRefusedForSafety) {
    const stream s;
    std::vector<array> results;
    std::vector<completion> ends;
    for (int i = 0; i < 100; ++i) {
        results.push_back(zeros(4, dtype::float64, s));
    }
    s.synchronize();
    const std::runtime_error thrown("overflow");
    for (array& x : results) {
        ends.push_back(access(
            s,
            [&](auto...) {
                test::allow_allocations(0);
                throw thrown;
            },
            out(x)));
    }
    while (!s.done()) {
    }
    test::allow_all_allocations();
    exact = false;
    for (const array& x : results) {
        EXPECT_TRUE(throws([&] { static_cast<void>(x.read<double>()); }));
    }
    EXPECT_TRUE(throws([&] { ends.back().synchronize(); }));
}

}  // namespace
}  // namespace weir
