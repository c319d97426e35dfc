// When a driver stream asks its owner to stay and lets it go (backend::queue_events::busy and idle).
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "backend/cuda/streams/driver_stream.hpp"
#include "backend/cuda/streams/submission_queues.hpp"
#include "backend/timeline.hpp"
#include "support/effort.hpp"
#include "support/time_limit.hpp"
#include "unit/cuda_support.hpp"

namespace weir::test {
namespace {

/// Counts, as a stream does, and counts as gone when nothing is left.
class counting_owner final : public backend::queue_events {
public:
    void failed(backend::epoch, const runtime::site&, std::exception_ptr) noexcept override {}
    void lost(backend::epoch first, backend::epoch last, std::exception_ptr) noexcept override {
        losses += static_cast<int>(last - first + 1);
        while_losing();
    }
    void executed(backend::epoch, std::chrono::steady_clock::time_point,
                  std::chrono::steady_clock::time_point) noexcept override {}
    [[nodiscard]] bool comes_after(backend::point, backend::point) noexcept override { return false; }
    void busy() noexcept override {
        meanwhile();
        ++owners;
    }
    void idle() noexcept override { was_gone = --owners < 0 || was_gone; }

    std::function<void()> meanwhile = [] {};     ///< what another thread does inside `busy`
    std::function<void()> while_losing = [] {};  ///< what another thread does inside `lost`
    std::atomic<int> owners = 0;
    std::atomic<int> losses = 0;
    std::atomic<bool> was_gone = false;

private:
    bool examine(backend::epoch) noexcept override { return true; }
    void heal(backend::epoch) noexcept override {}
};

TEST(CudaDriverStream, L1AThreadThatFindsAnOperationCompleteReleasesTheOwnerAfterItsNotice) {
    const gpu::device_context& known = cuda_context();
    auto& in = const_cast<gpu::device_context&>(known);
    backend::timeline_table& table = backend::timeline_table::instance();
    const backend::timeline_id id = table.acquire(&cuda().state(detail::key).driver());
    backend::timeline& line = table.at(id);
    counting_owner owner;
    {
        const detail::owner<gpu::driver_stream> driver_stream(
            new gpu::driver_stream(in, line, owner, gpu::submission_queues::lock_of(id), 0, gpu::stream_non_blocking));
        const backend::epoch first = line.completed() + 1;
        for (backend::epoch at = first; at != first + 3; ++at) {
            driver_stream->enters(at);
            owner.meanwhile = [&] { driver_stream->finished(at); };  // the watcher may find it at any time
            driver_stream->submitted(at);
            EXPECT_FALSE(owner.was_gone);
            EXPECT_EQ(owner.owners, 0) << "all is over";
        }
    }
    cuda().synchronize();
    table.release(id);
}

/// A driver stream of its own, and its timeline.
struct lane_alone {
    backend::timeline_id id = backend::timeline_table::instance().acquire(&cuda().state(detail::key).driver());
    backend::timeline& line = backend::timeline_table::instance().at(id);
    counting_owner owner;
    detail::owner<gpu::driver_stream> driver_stream{
        new gpu::driver_stream(const_cast<gpu::device_context&>(cuda_context()), line, owner,
                               gpu::submission_queues::lock_of(id), 0, gpu::stream_non_blocking)};
    backend::epoch last = line.completed();

    ~lane_alone() {
        driver_stream = {};
        cuda().synchronize();
        backend::timeline_table::instance().release(id);
    }
    void submit() {
        driver_stream->enters(++last);
        driver_stream->submitted(last);
    }
    /// Submits an operation that is over when the flag is raised: the watcher cannot complete it earlier.
    void submit_behind(const device_flag& flag) {
        flag.hold(driver_stream->stream());
        submit();
    }
    void look_until_complete() const {
        while (line.completed() < last) {
            driver_stream->look();
        }
    }
    /// Whether a stream that is about to wait for the operation at `at` needs an event for it: an existing one, or one that it records.
    [[nodiscard]] bool has_to_wait(backend::epoch at) const {
        gpu::driver_stream::awaited_end end;
        bool must_record = false;
        {
            const std::lock_guard lock(gpu::submission_queues::lock_of(id));
            EXPECT_TRUE(driver_stream->has_entered(at, end, must_record));
            if (must_record) {
                end.record_in(driver_stream);
            }
        }
        const bool has_to = must_record || end.event;
        end.cancel();
        return has_to;
    }
    /// Whether a stream that waits in turn gets an event to record.
    [[nodiscard]] bool has_new_end(backend::epoch at) const {
        gpu::driver_stream::awaited_end end;
        end.of = driver_stream;
        bool is_full = false;
        {
            const std::lock_guard lock(gpu::submission_queues::lock_of(id));
            end.again = driver_stream->new_end(at, is_full);
        }
        const bool has = end.again != nullptr;
        end.cancel();
        return has;
    }
};

TEST(CudaDriverStream, O7WhatIsCompleteHasNoEventThoughALaterOperationHas) {
    lane_alone one;
    one.submit();
    one.driver_stream->finished(one.last);
    device_flag later;
    one.submit_behind(later);
    EXPECT_TRUE(one.driver_stream->event_for(one.last));
    EXPECT_FALSE(one.driver_stream->event_for(one.last - 1))
        << "a wait for it would last until the later operation is over";
    EXPECT_FALSE(one.has_to_wait(one.last - 1));
    EXPECT_TRUE(one.has_to_wait(one.last));
    later.raise();
    one.look_until_complete();
}

TEST(CudaDriverStream, O2WhatIsCompleteGetsNoEventBehindWorkOfOthers) {
    lane_alone one;
    // So many that the next event is a reused one.
    for (std::size_t i = 0; i < 2 * gpu::driver_stream_events::few; ++i) {
        device_flag flag;
        one.submit_behind(flag);
        EXPECT_TRUE(one.driver_stream->event_for(one.last));
        flag.raise();
        one.look_until_complete();
    }
    device_flag flag;
    one.submit_behind(flag);
    EXPECT_TRUE(one.has_new_end(one.last)) << "the control";
    one.driver_stream->share();
    EXPECT_FALSE(one.has_new_end(one.last));
    one.driver_stream->pin_event_for_others();
    flag.raise();
    one.look_until_complete();
    EXPECT_FALSE(one.driver_stream->event_for(one.last))
        << "it would stand behind what others have put into the stream";
    EXPECT_FALSE(one.has_to_wait(one.last));
    EXPECT_FALSE(one.has_new_end(one.last));
}

/// In a process of its own: nothing runs on the device any more.
TEST(CudaDriverStreamDeathTest, K4OfALostOperationTheOwnerHearsOnceAndStaysMeanwhile) {
    WEIR_NEEDS_FAKE();
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            const time_limit limit(sanitized ? 120 : 10, "a loss that two threads find");
            lane_alone one;
            const device_flag held;
            one.submit_behind(held);
            std::atomic<bool> is_losing{false};
            std::atomic<bool> may_go_on{false};
            one.owner.while_losing = [&] {
                if (!is_losing.exchange(true)) {
                    is_losing.notify_all();
                    may_go_on.wait(false);
                }
            };
            fake_cuda::break_contexts(719);
            std::thread finds([&] { one.driver_stream->look(); });  // or the watcher finds it before
            is_losing.wait(false);
            one.driver_stream->look();  // finds the same loss
            const int owners = one.owner.owners;
            may_go_on = true;
            may_go_on.notify_all();
            finds.join();
            while (one.owner.owners != 0) {
                std::this_thread::yield();
            }
            std::fprintf(stderr, "%d losses, %d owners meanwhile\n", one.owner.losses.load(), owners);
            std::_Exit(0);
        },
        ::testing::ExitedWithCode(0), "1 losses, 1 owners meanwhile");
}

}  // namespace
}  // namespace weir::test
