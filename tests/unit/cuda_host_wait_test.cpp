// The price of a host's wait for a CUDA device.
#include <gtest/gtest.h>

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "unit/cuda_support.hpp"

namespace {
/// How often the calling thread has yielded the processor.
thread_local unsigned long long yields = 0;
}  // namespace

/// Takes the place of the system's, for std::this_thread::yield().
// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name)
extern "C" __attribute__((visibility("default"))) int sched_yield() noexcept {
    ++yields;
    return static_cast<int>(::syscall(SYS_sched_yield));
}

namespace weir::test {
namespace {

unsigned long long own_questions() {
    return fake_cuda::own_calls("cuEventQuery") + fake_cuda::own_calls("cuStreamQuery");
}
unsigned long long questions() { return fake_cuda::calls("cuEventQuery") + fake_cuda::calls("cuStreamQuery"); }

TEST(CudaHostWait, ALongOneAsksTheDriverLessAndLessOften) {
    WEIR_NEEDS_FAKE();
    using namespace std::chrono_literals;
    const stream s(cuda());
    array x = make(s, 1);
    s.synchronize();
    fake_gate held(handle_of(s));
    step_in_place(s, x);
    std::thread waits([&] { s.synchronize(); });
    // The wait polls without rest at first, and often after that.
    std::this_thread::sleep_for(250ms);
    const unsigned long long before = questions();
    const auto begin = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(400ms);
    const unsigned long long asked = questions() - before;
    const auto passed = std::chrono::steady_clock::now() - begin;
    held.open();
    waits.join();
    // Each poll is two queries at most, and there is one poll in each millisecond.
    EXPECT_LE(asked, static_cast<unsigned long long>(3 * (passed / 1ms)));
    EXPECT_GE(asked, 10U) << "and it does look";
}

// Another thread may have to use the processor for the work to go on: after its first polls a thread yields before each further one.
TEST(CudaHostWait, AThreadThatPollsLetsOthersRun) {
    WEIR_NEEDS_FAKE();
    const stream s(cuda());
    array x = make(s, 1);
    s.synchronize();
    const fake_gate held(handle_of(s));
    const completion one = step_in_place(s, x);
    const backend::point end{one.timeline(detail::key), one.epoch(detail::key)};
    const unsigned long long asked_before = own_questions();
    const unsigned long long yielded_before = yields;
    EXPECT_FALSE(cuda().state(detail::key).driver().await(end)) << "until the calling thread is to sleep";
    constexpr unsigned long long at_full_speed = 256;
    EXPECT_GE(own_questions() - asked_before, 1U) << "it polls";
    EXPECT_LE(own_questions() - asked_before, at_full_speed + (yields - yielded_before));
}

}  // namespace
}  // namespace weir::test
