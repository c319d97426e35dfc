#include "backend/cpu/queue.hpp"

#include <utility>

#include "weir/detail/site.hpp"

namespace weir::backend::cpu {

void cpu_queue::run() noexcept {
    for (int left = turn;;) {
        if (!sees_records() && !find_more()) {
            if (rest()) {
                return;
            }
            // New work came after this worker looked for some; that look may have ended because of another stream's work.
            workers::instance().leave_to_others();
            continue;
        }
        const ahead found = look(*this);
        if (found == ahead::waiting) {
            return;
        }
        if (found == ahead::nothing) {
            continue;
        }
        workers::offer();
        if (kind_ahead() == runtime::work_kind::host_task && task_threads::instance().schedule(*this)) {
            return;
        }
        execute();
        ++brought_;
        if (--left == 0) {
            schedule();
            workers::offer();
            return;
        }
    }
}

/// If operations come fast, a worker that takes each one as it comes slows down the enqueuing thread: both work on the
/// same memory, and the queue, and those that wait for it, run empty again and again. So the worker lets the host get ahead, as long
/// as that brings several operations at once and no host thread waits.
bool cpu_queue::find_more() noexcept {
    if (std::exchange(has_paused_, false) && brought_ < worth_a_pause) {
        looks_at_once_ = most_looks_at_once;
    }
    brought_ = 0;
    if (workers::has_other_work()) {
        return has_records();
    }
    if (looks_at_once_ > 0) {
        --looks_at_once_;
    } else {
        const auto now = std::chrono::steady_clock::now();
        has_paused_ = now < looked_at_ + pause;
        looked_at_ = has_paused_ ? looked_at_ + pause : now;
        if (has_paused_) {
            return workers::instance().linger(*this, looked_at_);
        }
    }
    return has_records() || workers::instance().linger(*this, {});
}

void cpu_queue::run_blocking() noexcept {
    execute();
    schedule();
}

}  // namespace weir::backend::cpu
