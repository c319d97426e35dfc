// The fake CUDA driver follows the driver's manual where tests of the CUDA backend rely on it: contexts and the
// controls. Streams, memory and kernels have files of their own.
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "unit/fake_cuda_support.hpp"

namespace weir::test {
namespace {

TEST_F(fake_cuda_test, what_needs_a_context_fails_without_one) {
    ASSERT_EQ(api.context_set_current(nullptr), success);
    stream_handle stream = nullptr;
    EXPECT_EQ(api.stream_create(&stream, 0, 0), error_invalid_context);
    EXPECT_EQ(api.stream_synchronize(nullptr), error_invalid_context);
    device_pointer memory = 0;
    EXPECT_EQ(api.memory_alloc(&memory, 8), error_invalid_context);
    ASSERT_EQ(api.context_set_current(on_device(0).handle()), success);
    EXPECT_EQ(api.stream_create(&stream, 0, 0), success);
    EXPECT_EQ(api.stream_destroy(stream), success);
}

TEST_F(fake_cuda_test, the_current_context_is_of_the_thread) {
    context_handle there = on_device(0).handle();
    std::thread([&] { EXPECT_EQ(api.context_get_current(&there), success); }).join();
    EXPECT_EQ(there, nullptr);
    EXPECT_EQ(api.context_get_current(&there), success);
    EXPECT_EQ(there, on_device(0).handle());
}

TEST(fake_cuda_death, the_environment_says_how_many_devices_there_are) {
    // In processes of their own, which have not opened the driver before.
    ::testing::FLAGS_gtest_death_test_style = "threadsafe";
    const auto devices = [](const char* count) {
        ::setenv("WEIR_FAKE_CUDA_DEVICES", count, 1);
        return machine_driver().api != nullptr ? machine_driver().devices : 100;
    };
    EXPECT_EXIT(std::exit(devices("3")), ::testing::ExitedWithCode(3), "");
    EXPECT_EXIT(std::exit(devices("0")), ::testing::ExitedWithCode(100), "");
}

TEST_F(fake_cuda_test, calls_are_counted_and_fail_on_purpose) {
    EXPECT_EQ(fake_cuda::calls(), 0U);
    EXPECT_EQ(api.stream_query(nullptr), success);
    int mode = capture_mode_relaxed;
    EXPECT_EQ(api.exchange_capture_mode(&mode), success);
    EXPECT_EQ(api.exchange_capture_mode(&mode), success);
    EXPECT_EQ(mode, capture_mode_relaxed);
    EXPECT_EQ(fake_cuda::calls("cuStreamQuery"), 1U);
    EXPECT_EQ(fake_cuda::calls("cuThreadExchangeStreamCaptureMode"), 2U);
    EXPECT_EQ(fake_cuda::calls(), 3U);

    constexpr result chosen = 999;
    fake_cuda::fail("cuStreamQuery", 2, chosen);
    EXPECT_EQ(api.stream_query(nullptr), success);
    EXPECT_EQ(api.stream_query(nullptr), chosen);
    EXPECT_EQ(api.stream_query(nullptr), success) << "once";

    fake_cuda::fail(nullptr, 2, chosen, true);
    EXPECT_EQ(api.stream_query(nullptr), success);
    context_handle current = nullptr;
    EXPECT_EQ(api.context_get_current(&current), success) << "it never fails, and does not count";
    EXPECT_EQ(api.context_synchronize(), chosen);
    EXPECT_EQ(api.stream_query(nullptr), chosen) << "for good";
    fake_cuda::fail_no_more();
    EXPECT_EQ(api.stream_query(nullptr), success);
}

TEST_F(fake_cuda_test, calls_of_one_thread_are_counted_and_fail_on_purpose) {
    constexpr result chosen = 999;
    fake_cuda::fail_own("cuDriverGetVersion", chosen);
    int version = 0;
    std::thread other([&] {
        EXPECT_EQ(api.driver_version(&version), success) << "the fault is for another thread";
        EXPECT_EQ(fake_cuda::own_calls("cuDriverGetVersion"), 1U);
    });
    other.join();
    EXPECT_EQ(fake_cuda::own_calls("cuDriverGetVersion"), 0U);
    EXPECT_EQ(api.driver_version(&version), chosen);
    EXPECT_EQ(api.driver_version(&version), success) << "once";
    EXPECT_EQ(fake_cuda::own_calls("cuDriverGetVersion"), 2U);
    EXPECT_EQ(fake_cuda::calls("cuDriverGetVersion"), 3U);
    fake_cuda::forget_calls();
    EXPECT_EQ(fake_cuda::own_calls("cuDriverGetVersion"), 0U);
}

TEST_F(fake_cuda_test, what_is_alive_is_counted) {
    const auto live = [] {
        std::vector<std::size_t> counts;
        for (const fake_thing each : {fake_thing::streams, fake_thing::events, fake_thing::allocations,
                                      fake_thing::pinned_allocations, fake_thing::contexts}) {
            counts.push_back(fake_cuda::live(each));
        }
        return counts;
    };
    on_device(0);
    const auto before = live();
    const stream_handle stream = make_stream();
    const event_handle event = make_event();
    const device_pointer memory = allocate(100);
    auto* const pinned = allocate_pinned<int>(10);
    auto expected = before;
    for (std::size_t i = 0; i < 4; ++i) {
        ++expected[i];
    }
    EXPECT_EQ(live(), expected);
    EXPECT_EQ(api.stream_destroy(stream), success);
    EXPECT_EQ(api.event_destroy(event), success);
    EXPECT_EQ(api.memory_free(memory), success);
    EXPECT_EQ(api.host_free(pinned), success);
    EXPECT_EQ(live(), before);
}

}  // namespace
}  // namespace weir::test
