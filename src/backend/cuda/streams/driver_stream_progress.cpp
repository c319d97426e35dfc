// Progress of a driver stream: finding complete operations, reporting them, and letting the owner go.
#include <algorithm>
#include <chrono>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "backend/cuda/device/context.hpp"
#include "backend/cuda/streams/driver_stream.hpp"
#include "backend/cuda/streams/event_pool.hpp"
#include "backend/timeline.hpp"
#include "observe/acting.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"

namespace weir::backend::cuda {

namespace {

void raise(std::atomic<epoch>& what, epoch to) noexcept {
    epoch known = what.load(std::memory_order_relaxed);
    while (known < to && !what.compare_exchange_weak(known, to, std::memory_order_seq_cst)) {
    }
}

}  // namespace

bool driver_stream::is_over(const event_ref& event) noexcept {
    const result answer = in_->api().event_query(event.handle());
    if (answer != success && answer != error_not_ready) {
        in_->note_error(answer);
    }
    return answer == success;
}

/// Returns the epoch up to which everything is complete if `last` is; 0 if `last` holds no event. In the context.
epoch driver_stream::reached_with(const driver_stream_events::recorded& last) noexcept {
    if (!last.event) {
        return 0;
    }
    // Returns at once. Tools that check the order of operations (compute-sanitizer) do not count a query as a wait.
    in_->api().event_synchronize(last.event.handle());
    return last.at;
}

/// Completes everything up to `reached`, unless that is 0; or everything, if the context is broken. In no context.
void driver_stream::settle(epoch reached) noexcept {
    if (in_->is_broken()) {
        give_up();
    } else if (reached != 0) {
        advance(reached);
        // Drop the events only once the epochs are complete, which another thread may be about to do: a thread that finds an operation
        // incomplete and without an event records one behind all that is in the stream by then.
        const std::lock_guard lock(mutex_);
        events_.drop_until(line_->completed());
    }
}

void driver_stream::look() noexcept {
    epoch reached = 0;
    {
        const in_relaxed_context here(*in_);
        driver_stream_events::recorded last;
        bool is_at_end = false;
        for (;;) {
            // The oldest, then one in the middle: usually nearly all are complete, or none.
            driver_stream_events::recorded first;
            driver_stream_events::recorded middle;
            {
                const std::lock_guard lock(mutex_);
                if (const driver_stream_events::recorded* const found = events_.behind(last.at + 1); found != nullptr) {
                    first = *found;
                }
                middle = events_.middle_of_those_behind(last.at + 1);
            }
            is_at_end = !first.event;
            if (is_at_end || !is_over(first.event)) {
                break;
            }
            const bool is_further = middle.event && middle.at != first.at && is_over(middle.event);
            last = std::move(is_further ? middle : first);
        }
        reached = std::max(reached_with(last), is_at_end ? end_if_idle() : 0);
    }
    settle(reached);
}

/// Returns the epoch up to which everything is complete if the stream has nothing left to do, else 0. In the context.
epoch driver_stream::end_if_idle() noexcept {
    const epoch all = submitted();
    if (all <= line_->completed()) {
        return 0;
    }
    {
        const about_to_call until_asked(*this);
        if (!has_others()) {
            const result answer = in_->api().stream_query(stream_);
            if (answer != success && answer != error_not_ready) {
                in_->note_error(answer);
            }
            return answer == success ? all : 0;
        }
    }
    // A query of the stream would cover the work of other code, too. There is an event, unless one could not be made.
    prepare(all);
    return 0;
}

void driver_stream::prepare(epoch at) noexcept {
    if (!has_others()) {
        ask(at);
        return;
    }
    if (at <= line_->completed() || at > submitted() || !surely_has_room()) {
        return;
    }
    const in_relaxed_context here(*in_);
    try {
        static_cast<void>(recorded_for(at));
    } catch (...) {
        // No memory for an event, or a broken context, which is noted: a later look finds it.
    }
}

void driver_stream::ask(epoch at) noexcept {
    if (at <= line_->completed() || last_event() >= at) {
        return;
    }
    epoch known = asked_for_.load(std::memory_order_relaxed);
    while (known < at && !asked_for_.compare_exchange_weak(known, at, std::memory_order_relaxed)) {
    }
    epoch due = next_due_.load(std::memory_order_relaxed);
    while (due != before_each && !next_due_.compare_exchange_weak(due, before_next, std::memory_order_acq_rel)) {
    }
}

void driver_stream::program_recorded(epoch at) noexcept {
    if (has_others()) {
        return;  // each operation has an event of its own
    }
    const epoch known = asked_for_.load(std::memory_order_relaxed);
    if (submitted() < known && known < at) {
        // Events are needed behind several operations that are held back, and asked_for_ stores one epoch.
        give_events();
    }
    ask(at);
}

void driver_stream::glance() noexcept {
    epoch reached = 0;
    {
        const in_relaxed_context here(*in_);
        driver_stream_events::recorded last;
        driver_stream_events::recorded middle;
        {
            const std::lock_guard lock(mutex_);
            last = events_.last();
            middle = events_.middle_of_those_behind(0);
        }
        const bool is_at_end = !last.event || is_over(last.event);
        if (!is_at_end) {
            const bool is_any_over = middle.event && middle.at != last.at && is_over(middle.event);
            last = is_any_over ? std::move(middle) : driver_stream_events::recorded();
        }
        reached = std::max(reached_with(last), is_at_end ? end_if_idle() : 0);
    }
    settle(reached);
}

void driver_stream::look_for(epoch at) noexcept {
    if (at <= line_->completed()) {
        return;
    }
    prepare(at);
    epoch reached = 0;
    {
        const in_relaxed_context here(*in_);
        driver_stream_events::recorded behind;
        {
            const std::lock_guard lock(mutex_);
            if (const driver_stream_events::recorded* const found = events_.behind(at); found != nullptr) {
                behind = *found;
            }
        }
        if (!behind.event) {
            reached = end_if_idle();
        } else if (is_over(behind.event)) {
            reached = reached_with(behind);
        }
    }
    settle(reached);
}

/// Nothing runs in the context any more: operations in the stream that are not known to be complete have failed.
void driver_stream::give_up() noexcept {
    raise(lost_, submitted());
    complete();
}

void driver_stream::advance(epoch reached) noexcept {
    raise(reached_, reached);
    complete();
}

/// Several threads may find at once that operations are complete, or lost. One of them completes these, up to what the others have found.
/// Only this thread reports a loss, before it completes the operations: so the owner still exists and each loss is reported once.
void driver_stream::complete() noexcept {
    epoch over = 0;
    const auto end = [this] {
        return std::max(reached_.load(std::memory_order_seq_cst), lost_.load(std::memory_order_seq_cst));
    };
    while (line_->completed() < end()) {
        // A thread that is refused here has stored what it found before; the completing thread reads that again afterwards.
        if (completing_.exchange(true, std::memory_order_seq_cst)) {
            break;
        }
        // The bound of the loss first: an operation that was known to be complete when the loss was found is not lost.
        const epoch lost = lost_.load(std::memory_order_seq_cst);
        const epoch sound = std::max(reached_.load(std::memory_order_seq_cst), completed_);
        const epoch upto = std::max(lost, sound);
        if (upto > completed_) {
            if (lost > sound) {
                owner_->lost(sound + 1, lost, std::make_exception_ptr(device_error(in_->why_broken())));
            }
            report_times(upto);
            let_go(upto);
            over = upto;
            completed_ = upto;
            line_->complete(upto);
        }
        completing_.store(false, std::memory_order_seq_cst);
    }
    if (over != 0) {
        leave_if_idle(over);
    }
}

/// Calls busy() first: a thread that finds is_busy_ set may call idle() at once.
void driver_stream::stay() noexcept {
    owner_->busy();
    if (is_busy_.exchange(true, std::memory_order_seq_cst)) {
        owner_->idle();  // busy() was called twice; the first call keeps the owner
    }
}

/// The operation at `at` is in the stream, and its owner was not asked to stay.
void driver_stream::stay_until(epoch at) noexcept {
    stay();
    // A thread that completed the operation before had no owner to let go.
    if (line_->completed() >= at) {
        leave_if_idle(at);
    }
}

/// Everything up to `upto` is complete. The owner may be destroyed in this call.
void driver_stream::leave_if_idle(epoch upto) noexcept {
    if (last_.load(std::memory_order_seq_cst) != upto) {
        return;
    }
    const detail::owner<driver_stream> self(this);  // the owner may hold the last other reference
    // A thread that completes a later operation while is_busy_ is clear here leaves the owner alone. So after setting is_busy_ again,
    // check again whether all is complete.
    for (epoch over = upto; last_.load(std::memory_order_seq_cst) == over; over = line_->completed()) {
        if (!is_busy_.exchange(false, std::memory_order_seq_cst)) {
            return;  // another thread did it
        }
        // A thread that enqueues now has found is_busy_ set, or calls busy() of the owner again.
        const bool is_last =
            last_.load(std::memory_order_seq_cst) == over && submitted_.load(std::memory_order_seq_cst) == over;
        if (is_last || is_busy_.exchange(true, std::memory_order_seq_cst)) {
            owner_->idle();
            return;
        }
    }
}

/// Before the epochs complete: code that knows an operation to be complete may rely on the objects it owned being destroyed.
void driver_stream::let_go(epoch upto) noexcept {
    std::list<kept> over;  // one element, or none
    for (;;) {
        {
            const std::lock_guard lock(mutex_);
            if (spare_.size() < most_spare) {
                spare_.splice(spare_.begin(), over);
            }
            if (kept_.empty() || kept_.front().at > upto) {
                return;
            }
            over.splice(over.begin(), kept_, kept_.begin());
        }
        kept& one = over.front();
        const observe::acting_for self({line_->number(), one.at});
        one.type->destroy(one.place());
        one.storage.reset();
    }
}

void driver_stream::report(const times& one) noexcept {
    if (!one.end) {
        return;
    }
    const auto end = in_->time_of(*one.base, one.end.handle());
    if (one.moment != nullptr) {
        const auto noted = end.value_or(std::chrono::steady_clock::now());
        moment_ = &noted;
        one.moment->run(one.object);  // notes a time: does not throw
        moment_ = nullptr;
    } else if (const auto start = in_->time_of(*one.base, one.start.handle()); start && end) {
        owner_->executed(one.at, *start, *end);
    }
}

/// Reports the times of the first entry of the stream, up to `upto`. If times of another stream must be reported before, moves that
/// stream and epoch into `before` instead, once each. Whether there was an entry.
bool driver_stream::report_next_times(epoch upto, std::pair<detail::owner<driver_stream>, epoch>& before) noexcept {
    times one;
    {
        const std::lock_guard lock(mutex_);
        if (times_.empty() || times_.front().at > upto) {
            return false;
        }
        times& first = times_.front();
        if (!first.after.empty()) {
            before = std::move(first.after.back());
            first.after.pop_back();
            return true;
        }
        one = std::move(first);
        times_.pop_front();
    }
    report(one);
    // Pairs with tell_times: a thread that finds none left may complete the operation, and then the owner may be destroyed.
    unreported_.fetch_sub(1, std::memory_order_release);
    return true;
}

/// A thread that looks at a stream may find an operation complete before any thread has found what it waited for in another
/// stream complete. That is complete, too, and its times are reported first, so that times are reported in causal order.
void driver_stream::report_times(epoch upto) noexcept {
    if (!has_unreported()) {
        return;
    }
    // One thread at a time, since it goes from stream to stream. Lock order: before the locks of driver streams.
    static detail::mutex telling;
    const std::lock_guard lock(telling);
    // The last one is reported first; then those before it, then this stream.
    std::vector<std::pair<detail::owner<driver_stream>, epoch>> others;
    for (;;) {
        std::pair<detail::owner<driver_stream>, epoch> before;
        driver_stream& next = others.empty() ? *this : *others.back().first;
        if (!next.report_next_times(others.empty() ? upto : others.back().second, before)) {
            if (others.empty()) {
                return;
            }
            others.pop_back();
        } else if (before.first) {
            try {
                others.push_back(std::move(before));
            } catch (...) {
                // No memory: these are reported in another order.
            }
        }
    }
}

}  // namespace weir::backend::cuda
