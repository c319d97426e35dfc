#include "backend/host_driven.hpp"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "backend/fork_part.hpp"
#include "weir/detail/fork_section.hpp"

namespace weir::backend {

driving_hosts& driving_hosts::instance() {
    static auto* const all = new driving_hosts;  // NOLINT(cppcoreguidelines-owning-memory): never destroyed
    return *all;
}

void driving_hosts::add(host_driven& device) noexcept {
    const std::lock_guard held(mutex_);
    if (std::find(devices_.begin(), devices_.end(), &device) == devices_.end()) {
        *std::find(devices_.begin(), devices_.end(), nullptr) = &device;  // there are never more devices than entries
        next_ = 0;  // the next choice must not depend on what was before
        ++count_;
    }
}

void driving_hosts::remove(host_driven& device) noexcept {
    const std::lock_guard held(mutex_);
    const auto found = std::find(devices_.begin(), devices_.end(), &device);
    if (found != devices_.end()) {
        *found = nullptr;
        --count_;
    }
}

void driving_hosts::news() noexcept {
    const std::lock_guard held(mutex_);
    ++news_;
    changed_.notify_all();
}

void driving_hosts::begin_child() noexcept {
    ::new (&mutex_) detail::mutex;  // constructed anew, not destroyed: a thread of the parent may have held it
    ::new (&changed_) detail::condition_variable;
    devices_.fill(nullptr);
    count_ = 0;
    next_ = 0;
    driver_ = {};
}

bool driving_hosts::step(lock& held) noexcept {
    driver_ = std::this_thread::get_id();
    bool ran = false;
    for (std::size_t tried = 0; tried < most && !ran; ++tried) {
        host_driven* const device = devices_[next_];
        next_ = (next_ + 1) % most;
        if (device != nullptr) {
            held.unlock();
            ran = device->step();
            held.lock();
        }
    }
    driver_ = {};
    return ran;
}

/// A thread that waits while it drives. It may end its wait before it is notified.
struct driving_hosts::waiting final : waiter {
    driving_hosts* of = nullptr;
    bool over = false;
    /// Keeps this alive for the notifying thread until that is done; null if the wait cannot end before.
    std::shared_ptr<waiting> notifying_owner;
    void reached() noexcept override {
        const std::shared_ptr<waiting> self = std::move(notifying_owner);
        // Notifies under the lock: once the lock is free, the waiting thread may end, and this object with it.
        const std::lock_guard held(of->mutex_);
        over = true;
        of->changed_.notify_all();
    }
};

void driving_hosts::wait(timeline& line, point target, detail::interruptible* answers) {
    const detail::fork_section whole;
    const std::thread::id me = std::this_thread::get_id();
    const std::thread::id no_thread;
    waiting staying;
    std::shared_ptr<waiting> leaving;
    if (answers != nullptr) {
        try {
            leaving = std::make_shared<waiting>();
            leaving->notifying_owner = leaving;
        } catch (const std::bad_alloc&) {
            answers = nullptr;
        }
    }
    waiting& self = leaving ? *leaving : staying;
    self.of = this;
    if (!line.wait(self, target.at)) {
        self.notifying_owner.reset();
        return;
    }
    lock held(mutex_);
    watched_sleep sleep(target);
    // An operation that this thread runs while it drives may itself wait: then the thread drives from here.
    const bool within_a_step = driver_ == me;
    if (within_a_step) {
        answers = nullptr;
    }
    while (!self.over) {
        if (answers != nullptr) {
            held.unlock();
            if (!answers->may_go_on()) {
                news();  // wakes threads that slept because this one drove
                answers->expect_not_ended();
            }
            held.lock();
        }
        if (driver_ != no_thread && driver_ != me) {
            sleep.until(
                held, changed_, [&] { return self.over || driver_ == no_thread; }, answers);
            continue;
        }
        const std::uint64_t seen = news_;
        if (!step(held) && !self.over && news_ == seen) {
            changed_.notify_all();  // wakes threads that slept because this one drove
            sleep.until(
                held, changed_, [&] { return self.over || news_ != seen; }, answers);
        }
    }
    if (within_a_step) {
        changed_.wait(held, [&] { return driver_ == no_thread; });
        driver_ = me;
    } else {
        changed_.notify_all();
    }
}

void driving_hosts::step_once() noexcept {
    const detail::fork_section whole;
    lock held(mutex_);
    const std::thread::id before = driver_;
    if (before != std::thread::id() && before != std::this_thread::get_id()) {
        return;
    }
    static_cast<void>(step(held));
    if (before == std::thread::id()) {
        changed_.notify_all();
    } else {
        changed_.wait(held, [&] { return driver_ == std::thread::id(); });
        driver_ = before;
    }
}

namespace {

class driving_hosts_part final : public fork_part {
    void begin_child() noexcept override { driving_hosts::instance().begin_child(); }
};
driving_hosts_part hosts_at_fork;

// Constructs the instance at start, so that no fork finds it half constructed.
[[maybe_unused]] const driving_hosts& hosts_at_start = driving_hosts::instance();

}  // namespace

}  // namespace weir::backend
