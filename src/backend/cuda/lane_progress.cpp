// How far a stream is: who looks, what is told then, and when its owner may go.
#include <algorithm>
#include <chrono>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "backend/acting.hpp"
#include "backend/cuda/context.hpp"
#include "backend/cuda/event_pool.hpp"
#include "backend/cuda/lane.hpp"
#include "backend/timeline.hpp"
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

bool lane::is_over(const event_ref& event) noexcept {
    const result answer = in_->api().event_query(event.handle());
    if (answer != success && answer != error_not_ready) {
        in_->note_error(answer);
    }
    return answer == success;
}

/// Says up to where everything is over if `last` is, which may be no event: then 0. In the context.
epoch lane::reached_with(const lane_events::recorded& last) noexcept {
    if (!last.event) {
        return 0;
    }
    // Returns at once. Tools that watch the order of things (compute-sanitizer) take no question for a wait.
    in_->api().event_synchronize(last.event.handle());
    return last.at;
}

/// Completes everything up to `reached`, unless that is 0; or all there is, if the context is broken. In no context.
void lane::settle(epoch reached) noexcept {
    if (in_->is_broken()) {
        give_up();
    } else if (reached != 0) {
        advance(reached);
        // Not before the epochs are complete, which another thread may have in hand: whoever finds one that is not, and no event
        // for it, records one behind all that is in the stream by then.
        const std::lock_guard lock(mutex_);
        events_.drop_until(line_->completed());
    }
}

void lane::look() noexcept {
    epoch reached = 0;
    {
        const in_relaxed_context here(*in_);
        lane_events::recorded last;
        bool is_at_end = false;
        for (;;) {
            // The oldest, then one in the middle: as a rule nearly all are over, or none.
            lane_events::recorded first;
            lane_events::recorded middle;
            {
                const std::lock_guard lock(mutex_);
                if (const lane_events::recorded* const found = events_.behind(last.at + 1); found != nullptr) {
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

/// Up to where everything is over if the stream has nothing to do, else 0. In the context.
epoch lane::end_if_idle() noexcept {
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
    // To ask for the stream would be to ask for what others put in, too. There is an event, unless one could not be had.
    prepare(all);
    return 0;
}

void lane::prepare(epoch at) noexcept {
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
        // No memory for an event, or a broken context, which is noted: somebody looks again.
    }
}

void lane::ask(epoch at) noexcept {
    if (at <= line_->completed() || last_event() >= at) {
        return;
    }
    epoch known = asked_for_.load(std::memory_order_relaxed);
    while (known < at && !asked_for_.compare_exchange_weak(known, at, std::memory_order_relaxed)) {
    }
    epoch due = next_mark_.load(std::memory_order_relaxed);
    while (due != before_each && !next_mark_.compare_exchange_weak(due, before_next, std::memory_order_acq_rel)) {
    }
}

void lane::program_recorded(epoch at) noexcept {
    if (has_others()) {
        return;  // each operation has an event
    }
    const epoch known = asked_for_.load(std::memory_order_relaxed);
    if (submitted() < known && known < at) {
        give_events();  // several are asked for behind work that is held, and asked_for_ knows one
    }
    ask(at);
}

void lane::glance() noexcept {
    epoch reached = 0;
    {
        const in_relaxed_context here(*in_);
        lane_events::recorded last;
        lane_events::recorded middle;
        {
            const std::lock_guard lock(mutex_);
            last = events_.last();
            middle = events_.middle_of_those_behind(0);
        }
        const bool is_at_end = !last.event || is_over(last.event);
        if (!is_at_end) {
            const bool is_any_over = middle.event && middle.at != last.at && is_over(middle.event);
            last = is_any_over ? std::move(middle) : lane_events::recorded();
        }
        reached = std::max(reached_with(last), is_at_end ? end_if_idle() : 0);
    }
    settle(reached);
}

void lane::look_for(epoch at) noexcept {
    if (at <= line_->completed()) {
        return;
    }
    prepare(at);
    epoch reached = 0;
    {
        const in_relaxed_context here(*in_);
        lane_events::recorded behind;
        {
            const std::lock_guard lock(mutex_);
            if (const lane_events::recorded* const found = events_.behind(at); found != nullptr) {
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

/// Nothing runs in the context any more: what is in the stream has failed.
void lane::give_up() noexcept {
    raise(lost_, submitted());
    complete();
}

void lane::advance(epoch reached) noexcept {
    raise(reached_, reached);
    complete();
}

/// Several threads may find at once that something is over, or lost. One of them completes it, up to what the others have found. It
/// alone reports a loss, before the operations are complete, so that the owner is there and each loss is reported once.
void lane::complete() noexcept {
    epoch over = 0;
    const auto end = [this] {
        return std::max(reached_.load(std::memory_order_seq_cst), lost_.load(std::memory_order_seq_cst));
    };
    while (line_->completed() < end()) {
        // Whoever is refused has stated what it found before, and who completes looks at that again afterwards.
        if (completing_.exchange(true, std::memory_order_seq_cst)) {
            break;
        }
        const epoch sound = std::max(reached_.load(std::memory_order_seq_cst), completed_);
        const epoch upto = end();
        if (upto > completed_) {
            if (lost_.load(std::memory_order_seq_cst) > sound) {
                owner_->lost(sound + 1, upto, std::make_exception_ptr(device_error(in_->why_broken())));
            }
            tell_times(upto);
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

/// The owner is told first: who finds is_busy_ set may tell it at once that the stream is idle.
void lane::stay() noexcept {
    owner_->busy();
    if (is_busy_.exchange(true, std::memory_order_seq_cst)) {
        owner_->idle();  // it was told before; the caller keeps it
    }
}

/// The operation at `at` is in the stream, and its owner was not told to stay.
void lane::stay_until(epoch at) noexcept {
    stay();
    // Who found before that it is over, found nobody to let go.
    if (line_->completed() >= at) {
        leave_if_idle(at);
    }
}

/// Everything up to `upto` is complete. The owner may be gone then.
void lane::leave_if_idle(epoch upto) noexcept {
    if (last_.load(std::memory_order_seq_cst) != upto) {
        return;
    }
    const detail::owner<lane> self(this);  // the owner may have the last other one
    // A thread that completes a later operation while is_busy_ is clear here leaves the owner alone. So once it is set again, this looks
    // again whether all is complete.
    for (epoch over = upto; last_.load(std::memory_order_seq_cst) == over; over = line_->completed()) {
        if (!is_busy_.exchange(false, std::memory_order_seq_cst)) {
            return;  // another thread was faster
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

/// Before the epochs are complete: whoever knows that an operation is over may rely on what it owned being gone.
void lane::let_go(epoch upto) noexcept {
    for (;;) {
        kept one;
        {
            const std::lock_guard lock(mutex_);
            if (kept_.empty() || kept_.front().at > upto) {
                return;
            }
            one = std::move(kept_.front());
            kept_.pop_front();
        }
        const acting_for self({line_->number(), one.at});
        one.type->destroy(one.storage.get());
    }
}

void lane::tell(const times& one) noexcept {
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

/// Tells the times of what is first in the stream, up to `upto`, unless others must be told before: then `before` says which,
/// once. Whether there was anything.
bool lane::tell_next(epoch upto, std::pair<detail::owner<lane>, epoch>& before) noexcept {
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
    tell(one);
    // Pairs with tell_times: who finds none left may complete the operation, and then the owner may go.
    untold_.fetch_sub(1, std::memory_order_release);
    return true;
}

/// Who looks at a stream may find that an operation is over before anybody has seen the end of what it waited for in
/// another. That is over, too, and is told first, so that times are told in an order in which things happened.
void lane::tell_times(epoch upto) noexcept {
    if (!has_untold()) {
        return;
    }
    static detail::mutex
        telling;  // one thread at a time, since it goes from stream to stream; before the lanes' own locks
    const std::lock_guard lock(telling);
    std::vector<std::pair<detail::owner<lane>, epoch>>
        others;  // the last one is told first; then those, then this stream
    for (;;) {
        std::pair<detail::owner<lane>, epoch> before;
        lane& next = others.empty() ? *this : *others.back().first;
        if (!next.tell_next(others.empty() ? upto : others.back().second, before)) {
            if (others.empty()) {
                return;
            }
            others.pop_back();
        } else if (before.first) {
            try {
                others.push_back(std::move(before));
            } catch (...) {
                // No memory: these come in another order.
            }
        }
    }
}

}  // namespace weir::backend::cuda
