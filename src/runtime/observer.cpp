#include "runtime/observer.hpp"

#include <algorithm>

#include "runtime/attention.hpp"
#include "runtime/device_state.hpp"
#include "runtime/fork.hpp"
#include "weir/error.hpp"

namespace weir::runtime {

void observers::add(observer& one) {
    enter(one);
    // From here on it hears of every stream that is made: between that and what follows, none is missed.
    try {
        for (device_state* const each : devices_in_use()) {
            each->tell_streams(one);
        }
    } catch (...) {
        remove(one);
        throw;
    }
}

void observers::enter(observer& one) {
    const std::lock_guard lock(mutex_);
    auto* const free = std::find(std::begin(list_), std::end(list_), nullptr);
    if (free == std::end(list_)) {
        throw state_error("too many check and trace scopes are active at once (" + std::to_string(most) +
                          "): end one of them first");
    }
    *free = &one;
    count_.fetch_add(1, std::memory_order_relaxed);
    attention::begin(attention::observer);
    safety_.fetch_add(one.wants_safety() ? 1 : 0, std::memory_order_relaxed);
    times_.fetch_add(one.wants_times() ? 1 : 0, std::memory_order_relaxed);
}

void observers::remove(observer& one) noexcept {
    if (fork_guard::is_refused()) {
        return;  // nothing is observed here any more, and a thread that is gone may hold the lock
    }
    const std::lock_guard lock(mutex_);
    auto* const slot = std::find(std::begin(list_), std::end(list_), &one);
    if (slot == std::end(list_)) {
        return;
    }
    *slot = nullptr;
    if (count_.fetch_sub(1, std::memory_order_relaxed) == 1) {
        attention::end(attention::observer);
    }
    safety_.fetch_sub(one.wants_safety() ? 1 : 0, std::memory_order_relaxed);
    times_.fetch_sub(one.wants_times() ? 1 : 0, std::memory_order_relaxed);
}

}  // namespace weir::runtime
