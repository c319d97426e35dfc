// Thread A's call waits for the host, as it must in a stream that others use too. Thread B enqueues into another stream, which only
// Weir uses: its call returns (rule O9).
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <thread>

#include "unit/cuda_two_threads.hpp"
#include "weir/detail/interruption.hpp"

namespace weir::test::two_threads {
namespace {

TEST(CudaTwoThreadsShared, O9ACallForAStreamOfWeirsOwnDoesNotWaitForACallThatWaitsForTheHost) {
    const time_limit limit(sanitized ? 240 : 60, "A waits for the host and B does not");
    static_cast<void>(digit_kernels::instance());
    const stream host(cpu());
    const stream s(cuda());
    const stream other(cuda());
    array x = make(s, 0);
    array u = make(other, 0);
    cuda().synchronize();
    static_cast<void>(s.handle());
    testing::gate late;
    late.hold(host);
    const completion opened = host_task(host, [] {});
    const frontiers::epoch before = s.state(detail::key).tail().at.at;
    beside first([&] { append(on(s).after({opened}), x, 1); });
    ASSERT_TRUE(first.comes_to([&] { return s.state(detail::key).tail().at.at > before; }))
        << "A does not wait for the host";
    completion done;
    beside second([&] { done = take(other, u, x, 5); });
    EXPECT_TRUE(second.returns_within(std::chrono::seconds(5))) << "if B were to open the gate, neither would go on";
    EXPECT_FALSE(first.is_over());
    late.open();
    first.join();
    second.join();
    done.synchronize();
    EXPECT_EQ(values_of<double>(u), all_of(15));
    EXPECT_EQ(values_of<double>(x), all_of(1));
}

/// Thread A's operation is about to enter its stream, behind work that goes on for long. Thread B enqueues an operation behind it into a
/// stream that others use, too: B's call waits until A's operation has entered, and not until it is complete.
class CudaTwoThreadsEntry : public ::testing::TestWithParam<bool> {};

TEST_P(CudaTwoThreadsEntry, O9ACallForASharedStreamWaitsUntilWhatItDependsOnHasEnteredAndNoLonger) {
    WEIR_NEEDS_FAKE();
    const time_limit limit(sanitized ? 240 : 60, "A is inside a launch and B waits for it");
    static_cast<void>(digit_kernels::instance());
    const stream shared(cuda());
    const stream other(cuda());
    array u = make(shared, 0);
    const array z = make(other, 0);
    device_flag goes_on;
    cuda().synchronize();
    static_cast<void>(shared.handle());
    if (GetParam()) {
        static_cast<void>(other.handle());
    }
    hold(other, goes_on, z);
    beside first([&] {
        fake_cuda::stop("cuLaunchKernelEx");
        append(other, z, 1);
    });
    ASSERT_TRUE(first.comes_to(fake_cuda::is_stopped)) << "A does not launch";
    completion done;
    beside second([&] { done = take(shared, u, z, 5); });
    EXPECT_TRUE(second.waits()) << "what B depends on is in no stream yet";
    fake_cuda::go_on();
    const bool returned = second.returns_within(std::chrono::seconds(5));
    EXPECT_TRUE(returned) << "B waits until A's operation is complete";
    EXPECT_FALSE(returned && done.done());
    goes_on.raise();
    first.join();
    second.join();
    done.synchronize();
    EXPECT_EQ(values_of<double>(u), all_of(15));
}

struct enough {};
void interrupt() { throw enough(); }

TEST(CudaTwoThreadsShared, O9ACallThatWaitsUntilWhatItDependsOnHasEnteredCanBeInterrupted) {
    WEIR_NEEDS_FAKE();
    const time_limit limit(sanitized ? 240 : 60, "A is inside a launch and B is interrupted");
    static_cast<void>(digit_kernels::instance());
    const stream shared(cuda());
    const stream other(cuda());
    array u = make(shared, 0);
    const array z = make(other, 0);
    cuda().synchronize();
    static_cast<void>(shared.handle());
    beside first([&] {
        fake_cuda::stop("cuLaunchKernelEx");
        append(other, z, 1);
    });
    ASSERT_TRUE(first.comes_to(fake_cuda::is_stopped)) << "A does not launch";
    bool was_ended = false;
    completion done;
    beside second([&] {
        const detail::interruptible answers(interrupt);
        done = take(shared, u, z, 5);
        was_ended = answers.has_ended();
    });
    EXPECT_TRUE(second.returns_within(std::chrono::seconds(10)));
    fake_cuda::go_on();
    first.join();
    second.join();
    EXPECT_TRUE(was_ended);
    done.synchronize();
    EXPECT_EQ(values_of<double>(u), all_of(15)) << "the operation is enqueued all the same";
}

INSTANTIATE_TEST_SUITE_P(TheOtherStreamIs, CudaTwoThreadsEntry, ::testing::Bool(),
                         [](const ::testing::TestParamInfo<bool>& one) {
                             return one.param ? "SharedToo" : "WeirsOwn";
                         });

}  // namespace
}  // namespace weir::test::two_threads
