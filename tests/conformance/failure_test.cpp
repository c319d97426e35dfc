// Temporaries outlive the functions that made them (scenario D3), and operations that fail (rule K4).
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "runtime/lifetime/reaper.hpp"
#include "support/devices.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::here;

using testing::gate;

/// An object that an operation reads and that Weir does not track. Its contents are destroyed with it; the memory stays, so
/// that a control may read it.
class temporary {
public:
    explicit temporary(double& in) : value_(&in) { *value_ = 7; }
    ~temporary() { *value_ = -1; }
    temporary(const temporary&) = delete;
    temporary& operator=(const temporary&) = delete;
    [[nodiscard]] const double* value() const noexcept { return value_; }

private:
    double* value_;
};

completion use_it(const stream& s, array& result, const double* value) {
    return parallel_for(
        s, 1, [value](auto, auto x) { x[0] = *value; }, out(result.view<double>()));
}

class D3 {
protected:
    ~D3() { held.open(); }

    /// The value that the operation saw.
    double seen() {
        held.open();
        const double value = result.read<double>()[0];
        // Kept objects are released once the operation is over, on a thread of their own: after this wait no thread touches the place.
        runtime::reaper::wait_until_empty();
        return value;
    }

    stream s{here()};
    array result = zeros(1, dtype::float64, s);
    double place = 0;
    gate held;
};

WEIR_CONFORMANCE_F(D3, ATemporarySurvivesIfTheFunctionWaits) {
    const auto function = [&] {
        const temporary made(place);
        use_it(s, result, made.value()).synchronize();
    };
    function();
    EXPECT_EQ(seen(), 7);
}

WEIR_CONFORMANCE_F(D3, ATemporarySurvivesIfTheOperationOwnsIt) {
    held.hold(s);
    const auto function = [&] {
        const auto made = std::make_shared<temporary>(place);
        parallel_for(
            s, 1, [made](auto, auto x) { x[0] = *made->value(); }, out(result.view<double>()));
    };
    function();
    EXPECT_EQ(seen(), 7);
}

WEIR_CONFORMANCE_F(D3, ATemporarySurvivesIfItIsKeptAliveAfterTheEvent) {
    held.hold(s);
    const auto function = [&] {
        auto made = std::make_unique<temporary>(place);
        const event used = use_it(s, result, made->value());
        keep_alive(used, std::move(made));
    };
    function();
    EXPECT_EQ(seen(), 7);
    EXPECT_EQ(place, -1);
}

WEIR_CONFORMANCE_F(D3, ControlATemporaryThatNobodyKeepsIsGone) {
    held.hold(s);
    const auto function = [&] {
        const temporary made(place);
        use_it(s, result, made.value());
    };
    function();
    EXPECT_EQ(seen(), -1);
}

WEIR_CONFORMANCE_F(D3, ATemporaryArrayNeedsNothing) {
    held.hold(s);
    const auto function = [&] {
        array made = full(1, 7, dtype::float64, s);
        copy(s, result, made);
    };
    function();
    const stream next{here()};
    array other = full(1, 9, dtype::float64, next);
    next.synchronize();
    EXPECT_EQ(seen(), 7);
}

// --- K4 -----------------------------------------------------------------------------------------------------------

constexpr std::int64_t count = 64;

/// An operation that throws at its element 3. Sets `line` to where it was enqueued.
completion enqueue_a_failure(const stream& s, array& x, unsigned& line) {
    const auto body = [](auto i, auto elements) {
        if (i == 3) {
            throw std::runtime_error("no such number");
        }
        elements[i] = 1;
    };
    line = __LINE__ + 1;
    return parallel_for(on(s).label("divide"), x.size(), body, out(x.view<double>()));
}

void expect_told(const operation_error& told, unsigned line) {
    EXPECT_EQ(told.label(), "divide");
    EXPECT_EQ(told.where().line, line);
    const std::string message = told.what();
    EXPECT_NE(message.find("no such number"), std::string::npos) << message;
    EXPECT_NE(message.find("failure_test.cpp:" + std::to_string(line)), std::string::npos) << message;
}

WEIR_CONFORMANCE(K4, SynchronizeTellsOfAFailedOperationWithItsLabelAndLine) {
    const stream s{here()};
    array x = zeros(count, dtype::float64, s);
    unsigned line = 0;
    enqueue_a_failure(s, x, line);
    try {
        s.synchronize();
        FAIL() << "the failure was swallowed";
    } catch (const operation_error& told) {
        expect_told(told, line);
    }
    s.synchronize();  // reported once
}

WEIR_CONFORMANCE(K4, WhatAFailedOperationShouldHaveWrittenIsRefusedUntilItIsWrittenAgain) {
    const stream s{here()};
    array x = zeros(count, dtype::float64, s);
    unsigned line = 0;
    enqueue_a_failure(s, x, line);
    try {
        static_cast<void>(x.read<double>());
        FAIL() << "half a result was handed out";
    } catch (const operation_error& told) {
        expect_told(told, line);
    }
    fill(s, x, 5);
    EXPECT_EQ(x.read<double>()[count - 1], 5);
}

WEIR_CONFORMANCE(K4, LaterWorkGoesOnAndNothingIsLost) {
    const std::size_t before = memory::stats(here()).live;
    {
        const stream s{here()};
        const stream other{here()};
        gate held;
        held.hold(s);
        array x = zeros(count, dtype::float64, s);
        array y = zeros(count, dtype::float64, other);
        const auto kept = std::make_shared<int>(1);
        unsigned line = 0;
        const completion failed = enqueue_a_failure(s, x, line);
        keep_alive(failed, std::shared_ptr<int>(kept));
        fill(s, y, 2);
        // An independent stream does not wait, and reports nothing.
        array z = full(count, 3, dtype::float64, other);
        held.open();
        EXPECT_EQ(y.read<double>()[0], 2);
        EXPECT_EQ(z.read<double>()[0], 3);
        EXPECT_NO_THROW(other.synchronize());
        runtime::reaper::wait_until_empty();
        EXPECT_EQ(kept.use_count(), 1);
        EXPECT_THROW(s.synchronize(), operation_error);
    }
    here().synchronize();
    EXPECT_EQ(memory::stats(here()).live, before);
}

WEIR_CONFORMANCE(K4, AFailingHostTaskIsToldInTheSameWay) {
    const stream s{here()};
    host_task(on(s).label("load"), [] { throw std::runtime_error("disk on fire"); });
    try {
        s.synchronize();
        FAIL() << "the failure was swallowed";
    } catch (const operation_error& told) {
        EXPECT_EQ(told.label(), "load");
    }
}

}  // namespace
}  // namespace weir
