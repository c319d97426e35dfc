// Shows that a call blocks, independent of timing: what it waits for happens only once it is seen to wait.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <new>
#include <string>
#include <utility>

#include "weir/watchdog.hpp"

namespace weir::test {

/// While it lives, a host thread that waits through Weir and sees no progress calls `then`, which opens what it waits
/// for. A call that does not block returns before anything is opened, however slow the machine is. One at a time.
class stuck_host {
public:
    explicit stuck_host(std::function<void()> then) {
        set_watchdog(std::chrono::milliseconds(4), [this, then = std::move(then)](const std::string&) {
            was_stuck_ = true;
            then();
        });
    }
    ~stuck_host() {
        try {
            set_watchdog(usual);
        } catch (const std::bad_alloc&) {
            set_watchdog(usual);  // a test had one allocation fail
        }
    }
    stuck_host(const stuck_host&) = delete;
    stuck_host& operator=(const stuck_host&) = delete;

    [[nodiscard]] bool was_stuck() const { return was_stuck_; }

private:
    static constexpr std::chrono::seconds usual{60};
    std::atomic<bool> was_stuck_{false};
};

}  // namespace weir::test
