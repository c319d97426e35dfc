#pragma once

#include <chrono>
#include <memory>

#include "backend/timeline.hpp"
#include "weir/detail/interruption.hpp"

namespace weir::backend {

/// For a thread that polls until another thread has done something for `target`: between two polls, calls the thread's interruptible, and
/// reports to the watch of long waits. A thread that sleeps uses watched_sleep.
class watched_poll {
public:
    explicit watched_poll(point target) noexcept : target_(target) {}

    /// Whether the wait may continue. Under no lock.
    [[nodiscard]] bool may_go_on() noexcept {
        if (answers_ != nullptr && !answers_->may_go_on()) {
            return false;
        }
        const auto now = std::chrono::steady_clock::now();
        if (watch_.every.count() != 0 && now - last_report_ >= watch_.every) {
            last_report_ = now;
            if (long_) {
                long_->still_waiting();
            } else {
                long_ = watch_.make(target_);
            }
        }
        return true;
    }

private:
    point target_;
    detail::interruptible* answers_ = detail::interruptible::current();
    wait_watch watch_ = timeline_table::instance().watch();
    std::chrono::steady_clock::time_point last_report_ = std::chrono::steady_clock::now();
    std::unique_ptr<long_wait> long_;
};

}  // namespace weir::backend
