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
            // Work came after the look for some, which may have ended for another stream's.
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

/// Where operations come fast, a worker that takes each one as it comes makes each dearer for who enqueues: both work on the
/// same memory, and the queue, and those that wait for it, run dry again and again. So it lets the host get ahead, as long
/// as that brings it several at once and nobody waits.
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
