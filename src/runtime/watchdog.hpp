#pragma once

#include <utility>

#include "weir/source_location.hpp"

namespace weir::runtime {

/// The watchdog as the rest of the runtime sees it (weir/watchdog.hpp).
class watchdog {
public:
    /// Reads the environment. Idempotent; called before anybody can wait.
    static void arm();

    /// Says, while it lives, which call of the program the calling thread waits in.
    class waits_in {
    public:
        explicit waits_in(const source_location& where) noexcept : before_(std::exchange(current(), where)) {}
        ~waits_in() { current() = before_; }
        waits_in(const waits_in&) = delete;
        waits_in& operator=(const waits_in&) = delete;

    private:
        source_location before_;
    };
    [[nodiscard]] static source_location& current() noexcept {
        thread_local source_location where;
        return where;
    }
};

}  // namespace weir::runtime
