// The price of a host's wait for a CUDA device.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "unit/cuda_support.hpp"

namespace weir::test {
namespace {

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

}  // namespace
}  // namespace weir::test
