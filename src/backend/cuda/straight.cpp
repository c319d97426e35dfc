// The straight way of an operation into the driver's stream, past the records of what is held.
#include <algorithm>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <thread>
#include <utility>

#include "backend/cuda/context.hpp"
#include "backend/cuda/lane_events.hpp"
#include "backend/cuda/queue.hpp"
#include "backend/cuda/submissions.hpp"
#include "order/plan.hpp"
#include "weir/detail/intrusive.hpp"
#include "weir/detail/operation.hpp"
#include "weir/detail/rare.hpp"
#include "weir/detail/task.hpp"

namespace weir::backend::cuda {

namespace {

/// Whether `at` is in a stream of the driver's, for somebody who is about to have a stream wait for it: lane::has_entered. The
/// place of its timeline is locked before, and free afterwards.
[[gnu::always_inline]] inline bool is_in_a_stream(submissions::place& here, epoch at,
                                                  lane::awaited_end& known) noexcept {
    const std::lock_guard lock(here.mutex.within_section(), std::adopt_lock);
    const detail::owner<lane>& theirs = here.on;
    bool must_record = false;
    if (!theirs || !theirs->has_entered(at, known, must_record)) [[unlikely]] {
        detail::rare();
        return false;
    }
    if (must_record) {
        known.record_in(theirs);
    }
    return true;
}
[[gnu::always_inline]] inline bool is_in_a_stream(point target, lane::awaited_end& known) noexcept {
    submissions::place* const here = submissions::find_place(target.timeline);
    if (here == nullptr) [[unlikely]] {
        detail::rare();
        return false;
    }
    here->mutex.within_section().lock();
    return is_in_a_stream(*here, target.at, known);
}

/// Has a stream's events have room again, under the lock of its place, and lets go of that.
[[gnu::hot, gnu::noinline]] bool leave_some_out(submissions::place& here) noexcept {
    here.on->leave_some_out();
    here.mutex.within_section().unlock();
    return true;
}

[[gnu::cold, gnu::noinline]] bool wake_one(submissions::place& here) noexcept {
    here.mutex.within_section().wake_one();
    return true;
}

}  // namespace

/// `claim` of an operation that waits, if all that it waits for, which was not over just now, is in streams of the driver's.
[[gnu::hot, gnu::noinline]] bool submission::claim_with_waits(epoch at, std::span<const order::wait> waits) noexcept {
    straight_wait* next = straight_.data();
    for (const order::wait& issued : waits) {
        if (was_cancelled_ || next == straight_.data() + most_straight || !is_in_a_stream(issued.target.at, next->end))
            [[unlikely]] {
            detail::rare();
            return cancel_waits();
        }
        next->target = issued.target.at;
        ++next;
    }
    straight_waits_ = static_cast<std::uint8_t>(waits.size());
    claim_plainly(at);
    return true;
}

/// The same of an operation that waits for one alone, whose timeline's place is `locked`; afterwards it is free.
[[gnu::hot, gnu::noinline]] bool submission::claim_with_wait(submissions::place& locked, epoch at,
                                                             point target) noexcept {
    straight_wait& one = straight_.front();
    if (was_cancelled_) [[unlikely]] {
        detail::rare();
        locked.mutex.within_section().unlock();
        return cancel_waits();
    }
    if (!is_in_a_stream(locked, target.at, one.end)) [[unlikely]] {
        detail::rare();
        return cancel_waits();
    }
    one.target = target;
    straight_waits_ = 1;
    claim_plainly(at);
    return true;
}
/// The common case of that, without a frame, as claim is: an event is recorded for the one in the stream that the last wait of this kind was for.
[[gnu::always_inline]] inline bool submission::claim_with_one(epoch at, std::span<const order::wait> waits) noexcept {
    const point target = waits.front().target.at;
    submissions::place* const here = submissions::find_place(target.timeline);
    if (here == nullptr || !here->mutex.within_section().try_lock()) [[unlikely]] {
        return claim_with_waits(at, waits);
    }
    straight_wait& one = straight_.front();
    lane* const theirs = here->on.get();
    bool is_full = false;
    pooled_event* fresh = nullptr;
    if (theirs == nullptr || theirs != one.end.of.get() || (fresh = theirs->new_end(target.at, is_full)) == nullptr)
        [[unlikely]] {
        return claim_with_wait(*here, at, target);
    }
    one.target = target;
    one.end.again = fresh;
    straight_waits_ = one_to_record;
    claim_plainly(at);
    if (is_full) [[unlikely]] {
        return leave_some_out(*here);
    }
    return here->mutex.within_section().let_go() ? wake_one(*here) : true;
}

/// They are not waited for so. What the slots owned before goes where no lock is held: until then no other claim has waits.
[[gnu::cold, gnu::noinline]] bool submission::cancel_waits() noexcept {
    was_cancelled_ = true;
    std::for_each(straight_.begin(), straight_.end(), [](straight_wait& one) { one.end.cancel(); });
    return false;
}

[[gnu::always_inline]] inline void submission::claim_plainly(epoch at) noexcept {
    lane_->enters(at);
    claim_alone();
}

[[gnu::always_inline]] inline bool submission::claim_if_free(epoch at, std::span<const order::wait> waits) noexcept {
    if (is_pending() || !has_straight_way_.load(std::memory_order_relaxed)) [[unlikely]] {
        return false;
    }
    // Nobody else has the queue, nor can anybody get it but by what is submitted under this lock.
    if (waits.size() == 1) {
        return claim_with_one(at, waits);
    }
    if (!waits.empty()) {
        return claim_with_waits(at, waits);
    }
    claim_plainly(at);
    return true;
}

/// Of code of the host's, which may be for a thread of Weir's.
[[gnu::noinline]] bool submission::claim_for_code(epoch at, const operation& what,
                                                  std::span<const order::wait> waits) noexcept {
    return !is_for_the_host(what.kind, what.work.type) && claim_if_free(at, waits);
}

// Without a frame: whom it calls, it calls last.
[[gnu::hot]] bool submission::claim(epoch at, const operation& what, std::span<const order::wait> waits) noexcept {
    const detail::task_type* const type = what.work.type;
    if (type != nullptr && type->nature == detail::task_nature::work) [[unlikely]] {
        return claim_for_code(at, what, waits);
    }
    return claim_if_free(at, waits);
}

/// Whether the operation is put there plainly (detail::queue_handle), and nothing is to be done about it besides.
[[gnu::always_inline]] inline bool submission::is_plain(const operation& what) const noexcept {
    const detail::task_type* const type = what.work.type;
    return type != nullptr && type->put != nullptr && !what.timed && bodies_ == nullptr && !in_trouble() &&
           !lane_->in().is_broken();
}

/// The target is in a stream of the driver's. Whether the driver took the wait.
[[gnu::always_inline]] inline bool submission::wait_straight(straight_wait& one) noexcept {
    const device_context& in = lane_->in();
    auto* const to = lane_->stream();
    const auto wait = [&in, to ](event_handle event) __attribute__((always_inline)) {
        const auto call = [event, &in, to] { return in.api().stream_wait_event(to, event, 0); };
        in.expect(by_handle(in, call), "cuStreamWaitEvent");
    };
    try {
        one.end.wait_with(wait);
        return true;
    } catch (...) {
        return false;  // no event can be had, or none can be waited for
    }
}

/// What is in a stream of the driver's gets over without the calling thread.
[[gnu::cold, gnu::noinline]] void submission::wait_here(const straight_wait& one) noexcept {
    while (!timeline_table::instance().host_wait_or_end(one.target)) {
        std::this_thread::yield();  // ended, but the operation may not run before
    }
}

/// Has the stream wait for what was claimed with the operation.
[[gnu::hot, gnu::noinline]] void submission::wait_for_claimed(bool is_plain) noexcept {
    const std::size_t waits = straight_waits_ == one_to_record ? 1 : straight_waits_;
    straight_waits_ = 0;
    std::size_t refused = 0;  // a bit for each
    for (std::size_t i = 0; i < waits; ++i) {
        straight_wait& one = straight_[i];
        if (!wait_straight(one)) [[unlikely]] {
            detail::rare();
            refused |= std::size_t{1} << i;
        }
        if (!is_plain) [[unlikely]] {
            detail::rare();
            remember_passed(one.target);
        }
    }
    // Once all events are recorded, for which other threads may wait.
    for (std::size_t i = 0; refused != 0; ++i, refused >>= 1) {
        if ((refused & 1) != 0) {
            wait_here(straight_[i]);
        }
    }
}

/// The same for `one_to_record`. What the driver refuses is done again at length, in the context.
[[gnu::always_inline]] inline void submission::record_and_wait() noexcept {
    lane::awaited_end& end = straight_.front().end;
    pooled_event& fresh = *end.again;
    const auto wait = [this, &fresh] { return lane_->in().api().stream_wait_event(lane_->stream(), fresh.handle, 0); };
    if (end.of->record_plainly(fresh.handle) != success || wait() != success) [[unlikely]] {
        detail::rare();
        wait_for_claimed(true);
        return;
    }
    straight_waits_ = 0;
    end.again = nullptr;
    lane_events::was_recorded(fresh);
}

[[gnu::hot]] void submission::carry_out(epoch at, const operation& what) noexcept {
    lane_->answer();
    const bool plain = is_plain(what);
    if (straight_waits_ != 0) {
        if (straight_waits_ == one_to_record && plain) {
            record_and_wait();
        } else {
            wait_for_claimed(plain);
        }
    }
    if (!plain) [[unlikely]] {
        detail::rare();
        carry_out_in_context(at, what);
        return;
    }
    put_plainly(at, what);
    enters_plainly(at);
    const bool rests = rest_alone();
    lane_->make_known(at);
    if (!rests) [[unlikely]] {
        detail::rare();
        pass_on(false);
    }
}

void submission::carry_out_in_context(epoch at, const operation& what) noexcept {
    {
        const in_context here(lane_->in());
        has_entered(at, enter_stream(at, what));
    }
    if (!rest_alone()) {
        pass_on(false);
    }
}

/// For the order in which times are told.
void submission::remember_passed(point target) noexcept {
    try {
        passed_.push_back(target);
    } catch (const std::bad_alloc&) {
        // No memory: they come in another order.
    }
}

/// What `enter_stream` does for work that is put there plainly (detail::queue_handle).
[[gnu::always_inline]] inline void submission::put_plainly(epoch at, const operation& what) noexcept {
    try {
        what.work.type->put(what.work.object, lane_->stream());
        static_cast<queue_events&>(*this).succeeded(at);
    } catch (...) {
        failed(at, what.from, std::current_exception());
    }
}

/// `has_entered` for such work in a stream that nobody else puts work into. A full fence and lane::make_known follow.
[[gnu::always_inline]] inline void submission::enters_plainly(epoch at) noexcept {
    if (!passed_.empty()) [[unlikely]] {
        detail::rare();
        passed_.clear();
    }
    lane& on = *lane_;
    on.entered(at);
    if (on.is_mark_due(at)) {
        try {
            on.record_due_mark(at);
        } catch (...) {
            // Without the event, waits for this operation may last longer than they need to.
        }
    }
    on.passed_on(at);
}

}  // namespace weir::backend::cuda
