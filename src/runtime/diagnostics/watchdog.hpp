#pragma once

#include <utility>

#include "weir/source_location.hpp"

namespace weir::runtime {

/// The watchdog as the rest of the runtime sees it (weir/watchdog.hpp).
class watchdog {
public:
    /// Reads the environment. Idempotent; called before any thread can wait.
    static void arm();

    /// What the calling thread waits for.
    struct wait {
        source_location where;       ///< the program's call
        const char* what = nullptr;  ///< what the call obtains by waiting; null: only that work is complete
    };
    /// Sets `current` while it lives.
    class waits_in {
    public:
        explicit waits_in(const source_location& where, const char* what = nullptr) noexcept
            : before_(std::exchange(current(), wait{where, what})) {}
        ~waits_in() { current() = before_; }
        waits_in(const waits_in&) = delete;
        waits_in& operator=(const waits_in&) = delete;

    private:
        wait before_;
    };
    [[nodiscard]] static wait& current() noexcept {
        thread_local wait now;
        return now;
    }
};

}  // namespace weir::runtime
