// Thread A's call waits for the host, as it must in a stream that others use too. Thread B enqueues into another stream, which only
// Weir uses: its call returns (rule O9).
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <thread>

#include "unit/cuda_two_threads.hpp"

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

}  // namespace
}  // namespace weir::test::two_threads
