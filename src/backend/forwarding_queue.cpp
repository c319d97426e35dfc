#include "backend/forwarding_queue.hpp"

#include <algorithm>
#include <string>
#include <system_error>

#include "weir/error.hpp"

namespace weir::backend {

forwarding_queue::forwarding_queue(const driver& of, std::unique_ptr<queue> to, timeline& line, queue_events& events)
    : recorded_queue(line, events), of_(&of), to_(std::move(to)) {
    try {
        task_threads::instance().keep_one();
    } catch (const std::system_error& why) {
        throw device_error(std::string("no thread can be started that passes work on to ") + std::string(of.name()) +
                           ": " + why.what());
    }
}

bool forwarding_queue::can_wait_for(point target) const noexcept {
    const timeline& other = timeline_table::instance().at(target.timeline);
    return other.completed() >= target.at || of_->can_wait_for(other.of());
}

void forwarding_queue::reserve(std::size_t waits, const detail::task_ref& work) {
    fast_path_ = !is_pending();
    targets_.reserve(waits);
    // Only the waits, which follow, decide which of the two paths the operation takes.
    recorded_queue::reserve(waits, work);
    if (fast_path_) {
        to_->reserve(waits, work);
    }
}

void forwarding_queue::submit(epoch at, const operation& what) noexcept {
    const bool fast =
        fast_path_ && std::all_of(targets_.begin(), targets_.end(), [&](point target) { return can_wait_for(target); });
    for (const point target : targets_) {
        if (fast) {
            to_->wait(target);
        } else {
            recorded_queue::wait(target);
        }
    }
    targets_.clear();
    if (fast) {
        to_->submit(at, what);
    } else {
        recorded_queue::submit(at, what);
    }
}

/// Whether the device carries out the wait, or it is over. Otherwise reached() is called once it is over.
bool forwarding_queue::pass(point target) noexcept {
    timeline& other = timeline_table::instance().at(target.timeline);
    if (other.completed() >= target.at) {
        return true;
    }
    if (!of_->can_wait_for(other.of())) {
        return !other.wait(*this, target.at);
    }
    try {
        to_->reserve(1, {});
        to_->wait(target);
    } catch (...) {
        failure_ = std::current_exception();
    }
    return true;
}

/// false: the operation at the front fails, and reached() is called once all before it is complete.
bool forwarding_queue::pass_work_on() noexcept {
    if (!failure_) {
        try {
            hand_on([&](epoch at, const operation& what) {
                to_->reserve(0, what.work);
                to_->submit(at, what);
            });
            return true;
        } catch (...) {
            failure_ = std::current_exception();
        }
    }
    const epoch before = epoch_ahead() - 1;
    if (line().completed() < before && line().wait(*this, before)) {
        return false;
    }
    fail_ahead(std::exchange(failure_, nullptr));
    return true;
}

void forwarding_queue::run_blocking() noexcept {
    work_off([&](point target) { return pass(target); }, [&] { return pass_work_on(); });
}

}  // namespace weir::backend
