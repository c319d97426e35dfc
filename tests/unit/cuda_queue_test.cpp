// The driver's queues are full: a call that adds to one blocks until the device has gone on. Host tasks need locks that the
// calling threads hold, as Python's interpreter has one: there is no cycle of threads that wait for each other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "support/effort.hpp"
#include "support/time_limit.hpp"
#include "unit/cuda_support.hpp"

namespace weir::test {
namespace {

using ::testing::Each;

/// More than the driver takes for a stream (1024), and so does the fake one.
constexpr int launches = 3000;

void add_one_often(const stream& s, array x) {
    static const auto* const add_one = new kernel(kernel::from_source(R"(
extern "C" __global__ void add_one(double* x, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        x[i] += 1;
    }
}
)",
                                                                      "add_one"));
    for (int i = 0; i < launches; ++i) {
        launch(s, *add_one, {1, 32}, inout<double>(x), static_cast<int>(elements));
    }
}

/// Calls `fill`, which fills a held stream, on a thread of its own. The constructor returns once that has begun, and with the fake driver
/// once the queue is full.
class filling {
public:
    template <class Fill>
    filling(const stream& held, Fill fill)
        : thread_([this, fill] {
              has_begun_.store(true);
              fill();
              is_done_.store(true);
          }) {
        while (!has_begun_.load() || (fake_cuda::in_use() && fake_cuda::pending(handle_of(held)) < 1024)) {
            std::this_thread::yield();
        }
    }
    ~filling() { end(); }
    filling(const filling&) = delete;
    filling& operator=(const filling&) = delete;
    void end() {
        if (thread_.joinable()) {
            thread_.join();
        }
    }
    [[nodiscard]] bool is_done() const noexcept { return is_done_.load(); }

private:
    std::atomic<bool> has_begun_{false};
    std::atomic<bool> is_done_{false};
    std::thread thread_;
};

class CudaQueue : public ::testing::Test {
protected:
    const time_limit limit{sanitized || !fake_cuda::in_use() ? 120U : 10U, "a program that fills the driver's queues"};
    std::mutex of_program;
    const stream a{cuda()};
    const stream b{cuda()};
    array x = make(a, 0);
    array y = make(b, 0);
};

TEST_F(CudaQueue, WhatIsBehindAHostTaskThatNeedsTheCallersLockDoesNotFillIt) {
    add_one_often(a, make(a, 0));  // loads the kernel
    bool was_there = false;
    {
        const std::lock_guard held(of_program);
        host_task(
            a,
            [&](auto...) {
                const std::lock_guard mine(of_program);
                was_there = true;
            },
            inout<double>(x));
        add_one_often(a, x);  // with the driver's own host functions the queue would be full, and this would not return
        add_one_often(b, x);  // comes after all that
        EXPECT_FALSE(was_there);
    }
    a.synchronize();
    EXPECT_TRUE(was_there);
    EXPECT_THAT(values_of<double>(x), Each(2 * launches));
}

TEST_F(CudaQueue, AThreadThatWaitsForRoomHasALockThatAHostTaskNeeds) {
    add_one_often(a, x);
    static_cast<void>(make(a, 3));  // loading a kernel may have to wait until nothing is held
    a.synchronize();
    device_flag flag;
    flag.hold(static_cast<gpu::stream_handle>(handle_of(a)));
    std::promise<void> has_lock;
    filling fills(a, [&] {
        const std::lock_guard held(of_program);
        has_lock.set_value();
        add_one_often(a, x);
    });
    has_lock.get_future().wait();
    std::atomic<bool> was_there{false};
    host_task(
        b,
        [&](auto...) {
            const std::lock_guard mine(of_program);
            was_there.store(true);
        },
        inout<double>(y));
    add_one_often(b, y);  // is held for the host task
    const event over = b.record();
    EXPECT_FALSE(over.done());
    if (fake_cuda::in_use()) {
        EXPECT_FALSE(was_there.load()) << "the thread that fills the queue has the lock";
        // Other streams go on.
        const stream c(cuda());
        EXPECT_THAT(values_of<double>(make(c, 3)), Each(3));
    }
    flag.raise();
    fills.end();
    over.synchronize();
    a.synchronize();
    EXPECT_TRUE(was_there.load());
    EXPECT_THAT(values_of<double>(x), Each(2 * launches));
    EXPECT_THAT(values_of<double>(y), Each(launches));
}

TEST_F(CudaQueue, AFullStreamGoesOnByAHostTaskBehindWorkOfAnother) {
    add_one_often(a, x);
    step_in_place(b, y);
    cuda().synchronize();
    device_flag flag;
    flag.hold(static_cast<gpu::stream_handle>(handle_of(a)));
    filling fills(a, [&] { add_one_often(a, x); });
    // No thread waits for `b`: the watcher finds its work complete, and it has polled `a` as well.
    step_in_place(b, y);
    host_task(
        b, [&](auto...) { flag.raise(); }, inout<double>(y));
    fills.end();
    a.synchronize();
    EXPECT_THAT(values_of<double>(x), Each(2 * launches));
    EXPECT_THAT(values_of<double>(y), Each(11));
}

TEST_F(CudaQueue, APollOfWhatIsInAFullOneDoesNotWait) {
    WEIR_NEEDS_FAKE();
    fake_gate held(handle_of(a));
    std::mutex of_latest;
    std::optional<completion> latest;
    filling fills(a, [&] {
        for (int i = 0; i < launches; ++i) {
            const completion one = step_in_place(a, x);
            const std::lock_guard lock(of_latest);
            latest = one;
        }
    });
    const auto is_over = [&] {
        const std::lock_guard lock(of_latest);
        return latest->done();
    };
    EXPECT_FALSE(is_over());
    held.open();
    fills.end();
    a.synchronize();
    EXPECT_TRUE(is_over());
}

/// Fills a stream with a few operations, each of which waits for many events. Asks for one of them, and opens the stream by a host task
/// behind work of another stream: no thread waits for room except the one that fills the stream.
void expect_nobody_waits_for_room(bool is_blocking, const stream& other, array& of_other) {
    constexpr std::size_t width = 64;
    constexpr std::size_t times = 20;
    const stream full(cuda(), {.blocking = is_blocking});
    array z = make(full, 0);
    step_in_place(other, of_other);
    std::vector<stream> many;
    std::vector<array> theirs;
    for (std::size_t i = 0; i < width; ++i) {
        many.emplace_back(cuda());
        theirs.push_back(make(many.back(), 1));
    }
    cuda().synchronize();
    std::deque<fake_gate> held;
    std::vector<std::vector<event>> ends(times);
    for (std::size_t i = 0; i < width; ++i) {
        held.emplace_back(handle_of(many[i]));
        for (auto& some : ends) {
            some.emplace_back(step_in_place(many[i], theirs[i]));
        }
    }
    std::mutex of_latest;
    std::optional<completion> latest;
    filling fills(full, [&] {
        for (const auto& some : ends) {
            on behind_all(full);
            for (const event& one : some) {
                behind_all.after(one);
            }
            const completion end = step_in_place(behind_all, z);
            const std::lock_guard lock(of_latest);
            latest = end;
        }
    });
    {
        const std::lock_guard lock(of_latest);
        EXPECT_FALSE(latest->done());
    }
    step_in_place(other, of_other);
    const event opened = host_task(
        other,
        [&](auto...) {
            for (fake_gate& each : held) {
                each.open();
            }
        },
        inout<double>(of_other));
    fills.end();
    full.synchronize();
    EXPECT_TRUE(latest->done());
    opened.synchronize();  // it may still use the gates
}

TEST_F(CudaQueue, FewOperationsThatWaitForManyFillIt) {
    WEIR_NEEDS_FAKE();
    expect_nobody_waits_for_room(false, b, y);
}

TEST_F(CudaQueue, ABlockingStreamIsFullAsWell) {
    WEIR_NEEDS_FAKE();
    expect_nobody_waits_for_room(true, b, y);
}

TEST_F(CudaQueue, L4MemoryThatTheDriverIsToTakeBackInAFullOneHoldsUpNoOtherRelease) {
    WEIR_NEEDS_FAKE();
    add_one_often(a, x);
    step_in_place(b, y);
    std::optional<array> of_driver;
    {
        const memory::use here(memory::driver_pool());
        of_driver = make(a, 5);
    }
    cuda().synchronize();
    fake_gate held(handle_of(a));
    step(a, x, *of_driver);
    filling fills(a, [&] { add_one_often(a, x); });
    of_driver.reset();
    std::promise<void> is_released;
    keep_alive(event(step_in_place(b, y)),
               std::shared_ptr<void>(&is_released, [&](void* /*unused*/) { is_released.set_value(); }));
    is_released.get_future().wait();
    held.open();
    fills.end();
    a.synchronize();
    EXPECT_THAT(values_of<double>(x), Each(51 + launches));
}

/// Other threads see by these events how far the stream is.
TEST_F(CudaQueue, OneOperationInManyGetsAnEventWhereNothingWaits) {
    WEIR_NEEDS_FAKE();
    add_one_often(a, x);
    a.synchronize();
    fake_cuda::forget_calls();
    add_one_often(a, x);
    EXPECT_GE(fake_cuda::own_calls("cuEventRecord"), 5U);
    EXPECT_LE(fake_cuda::own_calls("cuEventRecord"), 12U);
    EXPECT_EQ(fake_cuda::own_calls("cuStreamWaitEvent"), 0U);
}

/// The control: the queue does become full.
TEST_F(CudaQueue, ControlTheDriverTakesNoMoreUntilTheDeviceGoesOn) {
    WEIR_NEEDS_FAKE();
    add_one_often(a, x);
    a.synchronize();
    fake_gate held(handle_of(a));
    filling fills(a, [&] { add_one_often(a, x); });
    EXPECT_FALSE(fills.is_done());
    held.open();
    fills.end();
    EXPECT_THAT(values_of<double>(x), Each(2 * launches));
}

}  // namespace
}  // namespace weir::test
