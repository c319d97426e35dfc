// The submission queue between backends (rule O9), in front of a queue that records what reaches it.
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "backend/forwarding_queue.hpp"
#include "support/fake_driver.hpp"
#include "support/tracked.hpp"
#include "weir/testing.hpp"

namespace weir {
namespace {

using test::enqueue;

/// A queue that runs nothing by itself, and fails where the test asks for it.
class recorder final : public backend::queue {
public:
    recorder(backend::timeline& line, std::vector<std::string>& log) : line_(&line), log_(&log) {}
    void reserve(std::size_t, const detail::task_ref& work) override {
        if (work.type != nullptr && ++works == fail_at) {
            throw std::bad_alloc();
        }
    }
    void wait(backend::point target) noexcept override { note("wait " + std::to_string(target.at)); }
    void submit(backend::epoch at, const backend::operation&) noexcept override {
        note("submit " + std::to_string(at));
        if (completes) {
            line_->complete(at);
        }
    }
    std::atomic<int> works{0};
    int fail_at = 0;
    std::atomic<bool> completes{true};

private:
    void note(std::string what) {
        const std::lock_guard lock(mutex_);
        log_->push_back(std::move(what));
    }
    backend::timeline* line_;
    std::vector<std::string>* log_;
    std::mutex mutex_;
};

/// Waits natively for its own kind only.
class narrow_driver final : public test::fake_driver {
public:
    [[nodiscard]] bool can_wait_for(const backend::driver* whose) const noexcept override { return whose == this; }
};

class owner final : public backend::queue_events {
public:
    void failed(backend::epoch at, const runtime::site&, std::exception_ptr) noexcept override { failed_at = at; }
    void lost(backend::epoch first, backend::epoch, std::exception_ptr) noexcept override { failed_at = first; }
    void executed(backend::epoch, std::chrono::steady_clock::time_point,
                  std::chrono::steady_clock::time_point) noexcept override {}
    bool comes_after(backend::point, backend::point) noexcept override { return false; }
    void busy() noexcept override { ++owners; }
    void idle() noexcept override {
        --owners;
        owners.notify_all();
    }
    void until_idle() {
        for (int now = owners; now != 0; now = owners) {
            owners.wait(now);
        }
    }
    std::atomic<int> owners{0};
    std::atomic<backend::epoch> failed_at{0};

private:
    bool examine(backend::epoch) noexcept override { return true; }
    void heal(backend::epoch) noexcept override {}
};

class Forwarding : public ::testing::Test {
protected:
    Forwarding() {
        auto made = std::make_unique<recorder>(table.at(mine), log);
        to = made.get();
        queue = std::make_unique<backend::forwarding_queue>(device, std::move(made), table.at(mine), events);
    }
    ~Forwarding() override {
        events.until_idle();
        for (const auto line : {mine, own, foreign}) {
            table.release(line);
        }
    }
    void submit(backend::epoch at, const std::vector<backend::point>& waits) {
        int* const nothing = nullptr;
        detail::with_task([nothing] { static_cast<void>(nothing); },
                          [&](detail::task_ref task) {
                              queue->reserve(waits.size(), task);
                              for (const backend::point one : waits) {
                                  queue->wait(one);
                              }
                              queue->submit(at, {task, {}, runtime::work_kind::device, false});
                          });
    }

    backend::timeline_table& table = backend::timeline_table::instance();
    narrow_driver device;
    test::fake_driver elsewhere;
    backend::timeline_id mine = table.acquire(&device);
    backend::timeline_id own = table.acquire(&device);
    backend::timeline_id foreign = table.acquire(&elsewhere);
    backend::epoch start = table.completed(mine);
    backend::epoch own_start = table.completed(own);
    backend::epoch foreign_start = table.completed(foreign);
    owner events;
    std::vector<std::string> log;
    recorder* to = nullptr;
    std::unique_ptr<backend::forwarding_queue> queue;

    [[nodiscard]] std::string submitted(backend::epoch n) const { return "submit " + std::to_string(start + n); }
    [[nodiscard]] std::string waits(backend::epoch n) const { return "wait " + std::to_string(own_start + n); }
};

TEST_F(Forwarding, GoesStraightThroughWhereTheDeviceCanWaitItself) {
    submit(start + 1, {});
    submit(start + 2, {{own, own_start + 1}});
    submit(start + 3, {{foreign, foreign_start}});
    EXPECT_EQ(log, (std::vector<std::string>{submitted(1), waits(1), submitted(2),
                                             "wait " + std::to_string(foreign_start), submitted(3)}));
    EXPECT_EQ(events.owners, 0);
}

TEST_F(Forwarding, HoldsFromTheFirstForeignWaitOnAndKeepsTheOrder) {
    submit(start + 1, {});
    submit(start + 2, {{foreign, foreign_start + 1}});
    submit(start + 3, {{own, own_start + 1}});
    submit(start + 4, {{foreign, foreign_start + 2}});
    EXPECT_EQ(log, (std::vector<std::string>{submitted(1)}));
    table.at(foreign).complete(foreign_start + 1);
    table.at(foreign).complete(foreign_start + 2);
    events.until_idle();
    EXPECT_EQ(log, (std::vector<std::string>{submitted(1), submitted(2), waits(1), submitted(3), submitted(4)}));
    submit(start + 5, {});
    EXPECT_EQ(log.back(), submitted(5)) << "the way is straight again";
}

TEST_F(Forwarding, WhatCannotBePassedOnFailsInItsTurnAndIsNotLost) {
    to->completes = false;
    submit(start + 1, {});
    submit(start + 2, {{foreign, foreign_start + 1}});
    to->fail_at = to->works + 2;  // the second that is held
    submit(start + 3, {});
    submit(start + 4, {});
    table.at(foreign).complete(foreign_start + 1);
    while (to->works < to->fail_at) {
        std::this_thread::yield();
    }
    EXPECT_EQ(table.completed(mine), start) << "an epoch does not complete before those before it";
    table.at(mine).complete(start + 1);
    to->completes = true;
    table.at(mine).complete(start + 2);
    events.until_idle();
    EXPECT_EQ(events.failed_at, start + 3);
    EXPECT_EQ(log, (std::vector<std::string>{submitted(1), submitted(2), submitted(4)}));
    EXPECT_EQ(table.completed(mine), start + 4);
}

}  // namespace
}  // namespace weir
