#include "observe/observers.hpp"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <string>

#include "observe/slow_path_reasons.hpp"
#include "weir/detail/observed.hpp"
#include "weir/error.hpp"

namespace weir::observe {

void observers::add(observer& one) {
    enter(one);
    // From here on the observer receives every new stream; the call below reports those that exist. So none is missed.
    try {
        if (auto* const tell_living = tell_living_.load(std::memory_order_acquire)) {
            tell_living(one);
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
    slow_path_reasons::begin(slow_path_reasons::observer);
    safety_.fetch_add(one.wants_safety() ? 1 : 0, std::memory_order_relaxed);
    times_.fetch_add(one.wants_times() ? 1 : 0, std::memory_order_relaxed);
}

void observers::remove(observer& one) noexcept {
    if (slow_path_reasons::is_needed_for(slow_path_reasons::lost)) {
        return;  // nothing is observed in this process any more, and a thread that is gone may hold the lock
    }
    const std::lock_guard lock(mutex_);
    auto* const slot = std::find(std::begin(list_), std::end(list_), &one);
    if (slot == std::end(list_)) {
        return;
    }
    *slot = nullptr;
    if (count_.fetch_sub(1, std::memory_order_relaxed) == 1) {
        slow_path_reasons::end(slow_path_reasons::observer);
    }
    safety_.fetch_sub(one.wants_safety() ? 1 : 0, std::memory_order_relaxed);
    times_.fetch_sub(one.wants_times() ? 1 : 0, std::memory_order_relaxed);
}

}  // namespace weir::observe

namespace weir::detail {

bool is_observed() noexcept { return observe::observers::any(); }

}  // namespace weir::detail
