// Queues of other libraries: Weir does not own them and never sees what their owners put there.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "weir/native_queue.hpp"

namespace weir::test {

/// An in-order queue run by a thread of its own, which a task may block.
class thread_queue final : public native_queue {
public:
    explicit thread_queue(weir::device on = cpu())
        : device_(on), body_(std::make_shared<body>()), thread_([body = body_] { body->work(); }) {}
    /// What is in the queue still runs.
    ~thread_queue() override {
        body_->stop();
        if (std::this_thread::get_id() == thread_.get_id()) {
            thread_.detach();  // one of its own tasks has released the queue
        } else {
            thread_.join();
        }
    }

    [[nodiscard]] weir::device device() const noexcept override { return device_; }
    void submit(std::function<void()> task) override {
        if (refusals.load() > 0 && spared.fetch_sub(1) <= 0) {
            --refusals;
            spared = 0;
            throw std::runtime_error("the queue is full");
        }
        ++submitted;
        body_->add(std::move(task));
    }
    [[nodiscard]] bool idle() const noexcept override { return body_->idle(); }

    /// The owner's own work: Weir does not see it.
    void put(std::function<void()> work) { body_->add(std::move(work)); }
    /// Blocks until everything that is in the queue now has ended.
    void drain() {
        latch over;
        put([&] { over.open(); });
        over.wait();
    }

    /// A latch that tasks and threads wait for.
    class latch {
    public:
        void open() {
            const std::lock_guard lock(mutex_);
            is_open_ = true;
            opened_.notify_all();
        }
        void wait() {
            std::unique_lock lock(mutex_);
            opened_.wait(lock, [&] { return is_open_; });
        }

    private:
        std::mutex mutex_;
        std::condition_variable opened_;
        bool is_open_ = false;
    };
    /// What is put into the queue from now on starts once the latch is open.
    void hold(const std::shared_ptr<latch>& until) {
        put([until] { until->wait(); });
    }

    std::atomic<int> refusals{0};   ///< how many more submissions are refused,
    std::atomic<int> spared{0};     ///< after how many that are not
    std::atomic<int> submitted{0};  ///< tasks that did not come from `put`

private:
    struct body {
        std::mutex mutex;
        std::condition_variable changed;
        std::deque<std::function<void()>> tasks;
        bool is_running = false;
        bool is_over = false;

        void add(std::function<void()> task) {
            const std::lock_guard lock(mutex);
            tasks.push_back(std::move(task));
            changed.notify_one();
        }
        void stop() {
            const std::lock_guard lock(mutex);
            is_over = true;
            changed.notify_one();
        }
        bool idle() {
            const std::lock_guard lock(mutex);
            return tasks.empty() && !is_running;
        }
        void work() {
            std::unique_lock lock(mutex);
            for (;;) {
                changed.wait(lock, [&] { return is_over || !tasks.empty(); });
                if (tasks.empty()) {
                    return;
                }
                std::function<void()> task = std::move(tasks.front());
                tasks.pop_front();
                is_running = true;
                lock.unlock();
                task();
                task = {};
                lock.lock();
                is_running = false;
            }
        }
    };

    /// The number of queues. Weir drops the last reference at any time: a program must end after all of them.
    struct counted {
        static inline std::atomic<int> live{0};
        counted() { ++live; }
        counted(const counted&) = delete;
        counted& operator=(const counted&) = delete;
        ~counted() {
            --live;
            live.notify_all();
        }
        struct until_none : ::testing::Environment {
            void TearDown() override {
                for (int now = live; now > 0; now = live) {
                    live.wait(now);
                }
            }
        };
        static inline ::testing::Environment* const at_the_end = ::testing::AddGlobalTestEnvironment(new until_none);
    };

    counted count_;  // destroyed last, when the thread is joined
    weir::device device_;
    std::shared_ptr<body> body_;
    std::thread thread_;
};

/// Queues that share one thread: a task that blocked it would block all of them, so they pause without blocking.
class shared_thread_queue final : public native_queue {
public:
    explicit shared_thread_queue(std::shared_ptr<thread_queue> runner) : runner_(std::move(runner)) {}
    /// Blocks until the thread has left its last task, which goes on for a moment after what the task completes.
    ~shared_thread_queue() override {
        std::unique_lock lock(mutex_);
        rested_.wait(lock, [&] { return !is_running_; });
    }
    shared_thread_queue(const shared_thread_queue&) = delete;
    shared_thread_queue& operator=(const shared_thread_queue&) = delete;

    [[nodiscard]] weir::device device() const noexcept override { return cpu(); }
    void submit(std::function<void()> task) override {
        const std::lock_guard lock(mutex_);
        tasks_.push_back([this, task = std::move(task)] {
            task();
            go_on();
        });
        start();
    }
    void pause(std::function<void(std::function<void()>)> begin) override {
        const std::lock_guard lock(mutex_);
        tasks_.push_back([this, begin = std::move(begin)] { begin([this] { go_on(); }); });
        start();
    }
    [[nodiscard]] bool idle() const noexcept override {
        const std::lock_guard lock(mutex_);
        return !is_running_;
    }

private:
    void start() {
        if (!is_running_) {
            is_running_ = true;
            next();
        }
    }
    void next() {
        runner_->put(std::move(tasks_.front()));
        tasks_.pop_front();
    }
    void go_on() {
        const std::lock_guard lock(mutex_);
        if (tasks_.empty()) {
            is_running_ = false;
            rested_.notify_all();
        } else {
            next();
        }
    }

    std::shared_ptr<thread_queue> runner_;
    mutable std::mutex mutex_;
    std::condition_variable rested_;
    std::deque<std::function<void()>> tasks_;
    bool is_running_ = false;
};

}  // namespace weir::test
