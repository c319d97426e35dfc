// Streams whose driver handle the program has: what the program puts into such a stream comes behind Weir's own work and events.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "support/fake_cuda.hpp"
#include "support/stream_capture.hpp"
#include "support/time_limit.hpp"
#include "unit/cuda_support.hpp"
#include "weir/detail/interruption.hpp"
#include "weir/watchdog.hpp"

namespace weir::test {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Runs `call` on a thread of its own, and stops it inside the driver's function `name`.
class stopped_call {
public:
    template <class Call>
    stopped_call(const char* name, Call call)
        : thread_([this, name, call] {
              fake_cuda::stop(name);
              call();
              is_over_.store(true);
          }) {
        while (!fake_cuda::is_stopped() && !is_over_.load()) {
            std::this_thread::yield();
        }
    }
    ~stopped_call() { end(); }
    stopped_call(const stopped_call&) = delete;
    stopped_call& operator=(const stopped_call&) = delete;

    [[nodiscard]] bool is_over() const noexcept { return is_over_.load(); }
    void end() {
        if (thread_.joinable()) {
            fake_cuda::go_on();
            thread_.join();
        }
    }

private:
    std::atomic<bool> is_over_{false};
    std::thread thread_;
};

/// Runs `call` on another thread while `stopped` is stopped. Lets `stopped` go on once `call` has returned or has had ample time to
/// return. Returns whether `call` returned before that.
template <class Call>
bool returns_before(stopped_call& stopped, Call call) {
    std::atomic<bool> has_begun{false};
    std::atomic<bool> has_returned{false};
    std::thread other([&] {
        has_begun = true;
        call();
        has_returned = true;
    });
    constexpr int often = 20000;
    for (int i = 0; !has_begun || (i < often && !has_returned); ++i) {
        std::this_thread::yield();
    }
    const bool is_first = has_returned;
    stopped.end();
    other.join();
    return is_first;
}

class CudaHandedOut : public ::testing::Test {
protected:
    void SetUp() override { WEIR_NEEDS_FAKE(); }
    static gpu::stream_handle native(const stream& s) { return static_cast<gpu::stream_handle>(s.handle()); }

    /// `b` waits for work of `s` whose event is being recorded while another thread calls `overtake`, which puts a device-side wait
    /// for `later` into `s`. `rounds`: how often `b` has waited for `s` before.
    template <class Overtake>
    void expect_event_before(int rounds, Overtake overtake);

    const stream s{cuda()};
    const stream b{cuda()};
    array x = make(s, 1);
    array y = make(b, 0);
    array z = make(s, 1);
};

template <class Overtake>
void CudaHandedOut::expect_event_before(int rounds, Overtake overtake) {
    for (int i = 0; i < rounds; ++i) {
        step_in_place(s, x);
        step(b, y, x);
        cuda().synchronize();
    }
    cuda().synchronize();
    device_flag later;
    fake_gate held(handle_of(s));
    step_in_place(s, z);
    std::optional<completion> done;
    stopped_call waits("cuEventRecord", [&] { done = step(b, y, z); });
    ASSERT_FALSE(waits.is_over()) << "no event was recorded";
    EXPECT_FALSE(returns_before(waits, [&] { overtake(later); })) << "it enters before the event does";
    held.open();
    EXPECT_TRUE(gets_over(*done)) << "waits for what was put behind the operation";
    later.raise();
    cuda().synchronize();
    EXPECT_THAT(values_of<double>(y), Each(111));
}

TEST_F(CudaHandedOut, O2TheHandleIsGivenOutWhenALaunchInFlightIsInTheStream) {
    cuda().synchronize();
    const gpu::context& in = cuda_context();
    stopped_call launches("cuLaunchKernelEx", [&] { step_in_place(s, x); });
    ASSERT_FALSE(launches.is_over());
    EXPECT_FALSE(returns_before(launches, [&] {
        auto* const raw = native(s);
        const gpu::in_context here(in);
        in.expect(in.api().fill8_async(reinterpret_cast<gpu::device_pointer>(x.device_data()), 0, x.nbytes(), raw),
                  "cuMemsetD8Async");
    }));
    s.synchronize();
    EXPECT_THAT(values_of<double>(x), Each(0)) << "the program's fill came before the launch";
}

TEST_F(CudaHandedOut, O2ASecondThreadGetsTheHandleWhenALaunchInFlightIsInTheStream) {
    cuda().synchronize();
    stopped_call launches("cuLaunchKernelEx", [&] { step_in_place(s, x); });
    ASSERT_FALSE(launches.is_over());
    std::thread first([&] { static_cast<void>(s.handle()); });
    while (!s.state(detail::key).is_shared()) {
        std::this_thread::yield();
    }
    EXPECT_FALSE(returns_before(launches, [&] { static_cast<void>(s.handle()); }));
    first.join();
    s.synchronize();
    EXPECT_THAT(values_of<double>(x), Each(11));
}

TEST_F(CudaHandedOut, O7TheHandleIsGivenOutWhenTheFirstEventForAnotherStreamIsRecorded) {
    expect_event_before(0, [&](device_flag& later) { later.hold(native(s)); });
}

TEST_F(CudaHandedOut, O7TheHandleIsGivenOutWhenAnEventThatIsUsedAgainIsRecorded) {
    expect_event_before(20, [&](device_flag& later) { later.hold(native(s)); });
}

TEST_F(CudaHandedOut, O7WorkOfOthersEntersWhenTheFirstEventForAnotherStreamIsRecorded) {
    expect_event_before(0, [&](device_flag& later) {
        access(
            s, [&](native_stream to, std::span<double>) { later.hold(static_cast<gpu::stream_handle>(to.handle)); },
            inout<double>(x));
    });
}

TEST_F(CudaHandedOut, O7WorkOfOthersEntersWhenAnEventThatIsUsedAgainIsRecorded) {
    expect_event_before(20, [&](device_flag& later) {
        access(
            s, [&](native_stream to, std::span<double>) { later.hold(static_cast<gpu::stream_handle>(to.handle)); },
            inout<double>(x));
    });
}

struct interrupted {};

// The driver's queue is full, perhaps behind what only this thread would let go on.
TEST_F(CudaHandedOut, O7AThreadThatWaitsForTheHandleWhileAnEventIsRecordedCanBeInterrupted) {
    cuda().synchronize();
    fake_gate held(handle_of(s));
    step_in_place(s, z);
    stopped_call waits("cuEventRecord", [&] { step(b, y, z); });
    ASSERT_FALSE(waits.is_over()) << "no event was recorded";
    {
        const time_limit limit(10, "a thread that cannot be interrupted while it waits for a handle");
        const detail::interruptible answers([] { throw interrupted(); });
        EXPECT_THROW(static_cast<void>(s.handle()), interrupted);
    }
    EXPECT_FALSE(waits.is_over());
    waits.end();
    EXPECT_NE(s.handle(), nullptr) << "asked for once more";
    held.open();
    b.synchronize();
    EXPECT_THAT(values_of<double>(y), Each(111));
}

TEST_F(CudaHandedOut, O7AThreadThatWaitsForTheHandleWhileAnEventIsRecordedIsReportedByTheWatchdog) {
    cuda().synchronize();
    fake_gate held(handle_of(s));
    step_in_place(on(s).label("holds"), z);
    stopped_call waits("cuEventRecord", [&] { step(b, y, z); });
    ASSERT_FALSE(waits.is_over()) << "no event was recorded";
    std::vector<std::string> reports;
    set_watchdog(std::chrono::milliseconds(4), [&](const std::string& text) {
        reports.push_back(text);
        fake_cuda::go_on();
    });
    {
        const time_limit limit(10, "a thread that waits for a handle without a report");
        static_cast<void>(s.handle());
    }
    set_watchdog(std::chrono::seconds(60));
    EXPECT_THAT(reports, ElementsAre(AllOf(HasSubstr("for the handle of a stream, for which another thread"),
                                           HasSubstr("\"holds\""))));
    waits.end();
}

// The host task holds up what is behind it in Weir's own queue, which the program's work must not overtake either (rule O9).
TEST_F(CudaHandedOut, O9TheHandleIsGivenOutWhenWhatWasHeldIsInTheStream) {
    cuda().synchronize();
    std::atomic<bool> may_go_on{false};
    host_task(s, [&] { may_go_on.wait(false); });
    step_in_place(s, x);
    std::atomic<bool> has_handle{false};
    std::thread asks([&] {
        static_cast<void>(s.handle());
        has_handle = true;
    });
    while (!s.state(detail::key).is_shared()) {
        std::this_thread::yield();
    }
    constexpr int often = 20000;
    for (int i = 0; i < often && !has_handle; ++i) {
        std::this_thread::yield();
    }
    EXPECT_FALSE(has_handle) << "what the program puts into the stream overtakes the launch";
    may_go_on = true;
    may_go_on.notify_all();
    asks.join();
    EXPECT_THAT(values_of<double>(x), Each(11));
}

// Whether the stream goes on may depend on the body's return: there, handle() does not wait.
TEST_F(CudaHandedOut, O9AHostTaskThatAsksForTheHandleOfItsOwnStreamDoesNotWaitForItself) {
    cuda().synchronize();
    std::atomic<bool> is_behind{false};
    const completion done = host_task(s, [&] {
        is_behind.wait(false);
        static_cast<void>(s.handle());
    });
    step_in_place(s, x);
    is_behind = true;
    is_behind.notify_all();
    EXPECT_TRUE(gets_over(done));
    EXPECT_THAT(values_of<double>(x), Each(11));
}

// The driver refused the event when the operation entered. A later event would stand behind the program's work, or in its capture.
TEST_F(CudaHandedOut, G1NoEventIsMadeUpForInACapture) {
    stream_capture once(cuda_context(), handle_of(s));
    once.end();
    cuda().synchronize();
    auto* const raw = native(s);
    fake_cuda::fail("cuEventRecord", 1, 1, true);
    step_in_place(s, x);
    fake_cuda::fail_no_more();
    {
        stream_capture theirs(cuda_context(), raw);
        step(b, y, x);
        EXPECT_TRUE(theirs.goes_on());
        EXPECT_TRUE(theirs.end());
    }
    b.synchronize();
    EXPECT_THAT(values_of<double>(y), Each(111));
}

TEST(CudaShared, S5AStreamIsSharedFromWhenItsHandleIsGivenOutAndAnAdoptedOneAtOnce) {
    const stream s(cuda());
    static_cast<void>(s.record());
    EXPECT_FALSE(s.shared());
    void* const handle = s.handle();
    EXPECT_TRUE(s.shared());
    EXPECT_TRUE(stream::adopt(native_stream{handle}, cuda()).shared());
    const stream without_handle(cpu());
    EXPECT_EQ(without_handle.handle(), nullptr);
    EXPECT_FALSE(without_handle.shared());
}

// A claim that was given up keeps no stream: that stream would be destroyed under the locks of the next claim.
TEST(CudaClaim, S4AStreamThatWasWaitedForGoesThoughTheNextClaimIsCancelled) {
    WEIR_NEEDS_FAKE();
    const stream second(cuda());
    const stream held(cuda());
    const stream waits(cuda());
    array x = make(second, 1);
    array y = make(held, 0);
    array u = make(waits, 0);
    std::size_t before = 0;
    {
        const stream first(cuda());
        array v = make(first, 1);
        cuda().synchronize();
        before = fake_cuda::live(fake_thing::streams);
        fake_gate closed(handle_of(first));
        step_in_place(first, v);
        step(waits, u, v);
        closed.open();
        cuda().synchronize();
    }
    std::atomic<bool> may_go_on{false};
    {
        const fake_gate closed(handle_of(second));
        step_in_place(second, x);
        host_task(
            held, [&](auto...) { may_go_on.wait(false); }, inout<double>(y));
        step(waits, y,
             x);  // claims the wait for `second`, and cancels it, since the host task is in no stream of the driver's
        EXPECT_TRUE(streams_get_down_to(before - 1)) << "the cancelled claim keeps the first stream";
        may_go_on = true;
        may_go_on.notify_all();
    }
    cuda().synchronize();
    EXPECT_THAT(values_of<double>(y), Each(111));
}

}  // namespace
}  // namespace weir::test
