// How much a wait of one CUDA stream for another covers (rule O7): work that is enqueued behind the access delays the reader at most the
// first time. Needs no gate of the fake driver, and runs on a GPU as well.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <tuple>

#include "backend/cuda/streams/queue.hpp"
#include "backend/cuda/streams/submission_queues.hpp"
#include "unit/cuda_support.hpp"
#include "weir/stats.hpp"

namespace weir::test {
namespace {

/// A stream that writes arrays, and has more to do; another one that reads them.
class CudaLateWaits : public ::testing::Test {
protected:
    ~CudaLateWaits() override = default;

    /// A write, what `behind` enqueues, and an operation that is not complete; then a read of what was written. Returns whether the read
    /// completes while the operation before it in the other stream has not.
    template <class Behind>
    [[nodiscard]] bool reads_meanwhile(const array& written, const Behind& behind, bool is_expected = true) {
        device_flag before;
        device_flag until;
        if (is_behind_another) {
            hold(writer, before, other);
        }
        step_in_place(writer, written);
        behind();
        hold(writer, until, other);
        for (int i = 0; i < more; ++i) {
            nothing(writer, other);
        }
        const completion read = step(reader, result, written);
        before.raise();
        const bool is_over = is_expected ? gets_over(read) : is_over_at_last(read);
        EXPECT_FALSE(writer.done());
        until.raise();
        cuda().synchronize();
        return is_over;
    }
    [[nodiscard]] bool reads_meanwhile(const array& written) {
        return reads_meanwhile(written, [] {});
    }
    /// The first wait for a stream may be late.
    void wait_once() {
        EXPECT_FALSE(reads_meanwhile(
            x, [] {}, false))
            << "else the tests that follow prove nothing";
    }

    stream writer{cuda()};
    stream reader{cuda()};
    array x = make(writer, 1);
    array other = make(writer, 1);
    array result = make(reader, 0);
    bool is_behind_another = false;  ///< an event of another operation that is not complete before the read is enqueued
    int more = 0;                    ///< operations behind the one that is held

private:
    [[nodiscard]] bool is_over_at_last(const completion& read) const {
        if (fake_cuda::in_use()) {
            fake_cuda::settle(handle_of(reader));
        } else {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
        }
        return read.done();
    }
};

class CudaLateWaitsAfterOthers : public CudaLateWaits, public ::testing::WithParamInterface<std::tuple<int, bool>> {};

TEST_P(CudaLateWaitsAfterOthers, O7AWaitCoversNothingLaterInAnyRoundButTheFirst) {
    const auto [launches, is_new] = GetParam();
    wait_once();
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < launches; ++i) {
            nothing(writer, other);
        }
        array written = is_new ? make(writer, 1) : x;
        EXPECT_TRUE(reads_meanwhile(written)) << "round " << round;
    }
}

INSTANTIATE_TEST_SUITE_P(Launches, CudaLateWaitsAfterOthers,
                         ::testing::Combine(::testing::Values(0, 100, 10'000), ::testing::Bool()), [](const auto& of) {
                             return std::to_string(std::get<0>(of.param)) +
                                    (std::get<1>(of.param) ? "AndANewArray" : "AndTheSameArray");
                         });

TEST_F(CudaLateWaits, O7AnEventOfTheProgramServesInTheFirstRound) {
    event known;
    EXPECT_TRUE(reads_meanwhile(x, [&] { known.record(writer); }));
}

TEST_F(CudaLateWaits, O7SoDoesATimedOne) {
    event known({.timing = true});
    EXPECT_TRUE(reads_meanwhile(x, [&] { known.record(writer); }));
}

TEST_F(CudaLateWaits, O7AnEventOfTheProgramServesWhereItIsRecordedBehindHeldWork) {
    event first;
    event second;
    array y = make(writer, 1);
    device_flag until;
    testing::gate held;
    held.hold(writer);
    step_in_place(writer, x);
    first.record(writer);
    hold(writer, until, other);
    const completion last = step_in_place(writer, y);
    second.record(writer);
    held.open();
    const auto driver_stream = gpu::submission_queues::find(writer.state(detail::key).timeline())->of();
    while (driver_stream->submitted() < last.epoch(detail::key)) {
        std::this_thread::yield();
    }
    EXPECT_TRUE(gets_over(step(reader, result, x)));
    EXPECT_FALSE(writer.done());
    until.raise();
    cuda().synchronize();
}

TEST_F(CudaLateWaits, O7EachOfManyThatAreInFlightHasAnEvent) {
    wait_once();
    is_behind_another = true;  // the very first event is kept in any case
    more = 300;                // more would not fit into the queue of a GPU's driver, with an event for each
    EXPECT_TRUE(reads_meanwhile(x));
}

TEST_F(CudaLateWaits, O4InTheSteadyStateNoEventIsMade) {
    WEIR_NEEDS_FAKE();
    const auto round = [&] {
        {
            const fake_gate held;  // all of them are in flight at once
            for (int i = 0; i < 150; ++i) {
                nothing(writer, other);
                step(reader, result, other);
            }
        }
        cuda().synchronize();
    };
    for (int i = 0; i < 6; ++i) {
        round();
    }
    const std::uint64_t before = stats().driver_events;
    for (int i = 0; i < 6; ++i) {
        round();
    }
    EXPECT_EQ(stats().driver_events, before);
}

TEST_F(CudaLateWaits, O7LateWaitsAreCounted) {
    const std::uint64_t before = stats().late_waits;
    wait_once();
    EXPECT_EQ(stats().late_waits, before + 1);
    EXPECT_TRUE(reads_meanwhile(x));
    EXPECT_EQ(stats().late_waits, before + 1);
}

TEST_F(CudaLateWaits, O4OneStreamRecordsNone) {
    WEIR_NEEDS_FAKE();
    const fake_gate held;
    fake_cuda::forget_calls();
    for (int i = 0; i < 200; ++i) {
        nothing(writer, other);
    }
    EXPECT_EQ(fake_cuda::own_calls("cuEventRecord"), 0U);
}

}  // namespace
}  // namespace weir::test
