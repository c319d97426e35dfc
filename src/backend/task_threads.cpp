#include "backend/task_threads.hpp"

#include <chrono>
#include <exception>
#include <new>
#include <thread>

#include "backend/fork_part.hpp"

namespace weir::backend {

namespace {

/// How long an idle thread stays before it ends.
constexpr std::chrono::seconds patience_of_threads{2};

}  // namespace

task_threads& task_threads::instance() {
    // Never destroyed, in static memory, so that access cannot fail.
    alignas(task_threads) static std::byte room[sizeof(task_threads)];
    static auto* const all = ::new (room) task_threads;
    return *all;
}

/// Whether there is an idle thread for one more task; starts one if necessary. Under the lock.
bool task_threads::have_one_idle() noexcept {
    if (waiting_.size() >= idle_) {
        try {
            std::thread([this] { work(false); }).detach();
            ++idle_;
        } catch (const std::exception&) {
            return false;  // no thread can be started, or there is no memory for one
        }
    }
    return true;
}

void task_threads::push(blocking_work& one) noexcept {
    waiting_.push(one);
    wake_.notify_one();
}

bool task_threads::schedule(blocking_work& one) noexcept {
    const std::lock_guard lock(mutex_);
    if (!have_one_idle()) {
        return false;
    }
    push(one);
    return true;
}

void task_threads::keep_one() {
    const std::lock_guard lock(mutex_);
    if (!one_stays_) {
        std::thread([this] { work(true); }).detach();
        ++idle_;
        one_stays_ = true;
    }
}

void task_threads::schedule_surely(blocking_work& one) noexcept {
    const std::lock_guard lock(mutex_);
    static_cast<void>(have_one_idle());
    push(one);
}

void task_threads::begin_child() noexcept {
    // Constructed anew, not destroyed: a thread of the parent may have held the lock at the fork, or waited at the condition.
    ::new (&mutex_) detail::mutex;
    ::new (&wake_) detail::condition_variable;
    idle_ = 0;
    stayed_before_fork_ = stayed_before_fork_ || one_stays_;
    one_stays_ = false;
}

void task_threads::resume() {
    if (stayed_before_fork_) {
        keep_one();
    }
}

void task_threads::work(bool stays) noexcept {
    std::unique_lock lock(mutex_);
    for (;;) {
        const auto found = [&] { return !waiting_.empty(); };
        if (stays) {
            wake_.sleep(lock, found);
        } else if (!wake_.sleep_for(lock, patience_of_threads, found)) {
            --idle_;
            return;
        }
        blocking_work* const one = waiting_.pop();
        --idle_;
        const detail::fork_section awake;
        lock.unlock();
        one->run_blocking();
        lock.lock();
        ++idle_;
    }
}

namespace {

class task_threads_part final : public fork_part {
    void begin_child() noexcept override { task_threads::instance().begin_child(); }
    void resume() override { task_threads::instance().resume(); }
};
task_threads_part threads_at_fork;

// Constructs the instance at start, so that no fork finds it half constructed.
[[maybe_unused]] const task_threads& threads_at_start = task_threads::instance();

}  // namespace

}  // namespace weir::backend
