// Fast path of an operation into the driver's stream, past the records of work that is held back.
#include <algorithm>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <thread>
#include <utility>

#include "backend/cuda/device/context.hpp"
#include "backend/cuda/streams/driver_stream_events.hpp"
#include "backend/cuda/streams/queue.hpp"
#include "backend/cuda/streams/submission_queues.hpp"
#include "order/plan.hpp"
#include "weir/detail/intrusive.hpp"
#include "weir/detail/operation.hpp"
#include "weir/detail/rare.hpp"
#include "weir/detail/task.hpp"

namespace weir::backend::cuda {

namespace {

/// Whether `at` is in a driver stream, for a caller that is about to have a stream wait for it: driver_stream::has_entered. The
/// caller has locked the place of its timeline; this call unlocks it.
[[gnu::always_inline]] inline bool is_in_a_stream(submission_queues::place& here, epoch at,
                                                  driver_stream::awaited_end& known) noexcept {
    const std::lock_guard lock(here.mutex.within_section(), std::adopt_lock);
    const detail::owner<driver_stream>& theirs = here.on;
    bool must_record = false;
    if (!theirs || !theirs->has_entered(at, known, must_record)) [[unlikely]] {
        detail::cold_path();
        return false;
    }
    if (must_record) {
        known.record_in(theirs);
    }
    return true;
}
[[gnu::always_inline]] inline bool is_in_a_stream(point target, driver_stream::awaited_end& known) noexcept {
    submission_queues::place* const here = submission_queues::find_place(target.timeline);
    if (here == nullptr) [[unlikely]] {
        detail::cold_path();
        return false;
    }
    here->mutex.within_section().lock();
    return is_in_a_stream(*here, target.at, known);
}

/// Makes room in the event list of a stream. Called under the lock of its place, which it releases.
[[gnu::hot, gnu::noinline]] bool leave_some_out(submission_queues::place& here) noexcept {
    here.on->leave_some_out();
    here.mutex.within_section().unlock();
    return true;
}

[[gnu::cold, gnu::noinline]] bool wake_one(submission_queues::place& here) noexcept {
    here.mutex.within_section().wake_one();
    return true;
}

}  // namespace

/// `claim` of an operation with waits. Succeeds if everything it waits for, which was incomplete just now, is in driver streams.
[[gnu::hot, gnu::noinline]] bool submission_queue::claim_with_waits(epoch at,
                                                                    std::span<const order::wait> waits) noexcept {
    fast_wait* next = fast_path_.data();
    for (const order::wait& issued : waits) {
        if (was_cancelled_ || next == fast_path_.data() + most_fast_waits ||
            !is_in_a_stream(issued.target.at, next->end)) [[unlikely]] {
            detail::cold_path();
            return cancel_waits();
        }
        next->target = issued.target.at;
        ++next;
    }
    fast_waits_ = static_cast<std::uint8_t>(waits.size());
    claim_plainly(at);
    return true;
}

/// The same for an operation with a single wait. `locked` is the locked place of its timeline; this call unlocks it.
[[gnu::hot, gnu::noinline]] bool submission_queue::claim_with_wait(submission_queues::place& locked, epoch at,
                                                                   point target) noexcept {
    fast_wait& one = fast_path_.front();
    if (was_cancelled_) [[unlikely]] {
        detail::cold_path();
        locked.mutex.within_section().unlock();
        return cancel_waits();
    }
    if (!is_in_a_stream(locked, target.at, one.end)) [[unlikely]] {
        detail::cold_path();
        return cancel_waits();
    }
    one.target = target;
    fast_waits_ = 1;
    claim_plainly(at);
    return true;
}
/// The common case of a single wait: an event is recorded in the same stream as for the last wait of this kind.
/// Tail calls only, so that the compiler needs no stack frame, as in claim.
[[gnu::always_inline]] inline bool submission_queue::claim_with_one(epoch at,
                                                                    std::span<const order::wait> waits) noexcept {
    const point target = waits.front().target.at;
    submission_queues::place* const here = submission_queues::find_place(target.timeline);
    if (here == nullptr || !here->mutex.within_section().try_lock()) [[unlikely]] {
        return claim_with_waits(at, waits);
    }
    fast_wait& one = fast_path_.front();
    driver_stream* const theirs = here->on.get();
    bool is_full = false;
    pooled_event* fresh = nullptr;
    if (theirs == nullptr || theirs != one.end.of.get() || (fresh = theirs->new_end(target.at, is_full)) == nullptr)
        [[unlikely]] {
        return claim_with_wait(*here, at, target);
    }
    one.target = target;
    one.end.again = fresh;
    fast_waits_ = one_to_record;
    claim_plainly(at);
    if (is_full) [[unlikely]] {
        return leave_some_out(*here);
    }
    return here->mutex.within_section().let_go() ? wake_one(*here) : true;
}

/// The claim fails. The owners that the slots held are released later, where no lock is held: until then no other claim has waits.
[[gnu::cold, gnu::noinline]] bool submission_queue::cancel_waits() noexcept {
    was_cancelled_ = true;
    std::for_each(fast_path_.begin(), fast_path_.end(), [](fast_wait& one) { one.end.cancel(); });
    return false;
}

[[gnu::always_inline]] inline void submission_queue::claim_plainly(epoch at) noexcept {
    driver_stream_->enters(at);
    claim_alone();
}

[[gnu::always_inline]] inline bool submission_queue::claim_if_free(epoch at,
                                                                   std::span<const order::wait> waits) noexcept {
    if (is_pending() || !has_fast_path_.load(std::memory_order_relaxed)) [[unlikely]] {
        return false;
    }
    // No other thread has the queue, nor can one get it but by a submission under this lock.
    if (waits.size() == 1) {
        return claim_with_one(at, waits);
    }
    if (!waits.empty()) {
        return claim_with_waits(at, waits);
    }
    claim_plainly(at);
    return true;
}

/// `claim` of host code, which may have to run on a thread of Weir's.
[[gnu::noinline]] bool submission_queue::claim_for_code(epoch at, const operation& what,
                                                        std::span<const order::wait> waits) noexcept {
    return !is_for_the_host(what.kind, what.work.type) && claim_if_free(at, waits);
}

// Tail calls only, so that the compiler needs no stack frame.
[[gnu::hot]] bool submission_queue::claim(epoch at, const operation& what,
                                          std::span<const order::wait> waits) noexcept {
    const detail::task_type* const type = what.work.type;
    if (type != nullptr && type->nature == detail::task_nature::work) [[unlikely]] {
        return claim_for_code(at, what, waits);
    }
    return claim_if_free(at, waits);
}

/// Whether `put` alone does all there is to do for the operation (detail::queue_handle).
[[gnu::always_inline]] inline bool submission_queue::is_plain(const operation& what) const noexcept {
    const detail::task_type* const type = what.work.type;
    return type != nullptr && type->put != nullptr && !what.timed && bodies_ == nullptr && !has_pending_failures() &&
           !driver_stream_->in().is_broken();
}

/// The target is in a driver stream. Whether the driver accepted the wait.
[[gnu::always_inline]] inline bool submission_queue::wait_fast(fast_wait& one) noexcept {
    const device_context& in = driver_stream_->in();
    auto* const to = driver_stream_->stream();
    const auto wait = [&in, to ](event_handle event) __attribute__((always_inline)) {
        const auto call = [event, &in, to] { return in.api().stream_wait_event(to, event, 0); };
        in.expect(by_handle(in, call), "cuStreamWaitEvent");
    };
    try {
        one.end.wait_with(wait);
        return true;
    } catch (...) {
        return false;  // no event can be made, or the driver refuses the wait
    }
}

/// Blocks until the target is complete. Work in a driver stream completes without the calling thread.
[[gnu::cold, gnu::noinline]] void submission_queue::wait_here(const fast_wait& one) noexcept {
    while (!timeline_table::instance().host_wait_or_end(one.target)) {
        std::this_thread::yield();  // the wait was ended, but the operation may not run before its target
    }
}

/// Has the stream wait for the targets that were claimed with the operation.
[[gnu::hot, gnu::noinline]] void submission_queue::wait_for_claimed(bool is_plain) noexcept {
    const std::size_t waits = fast_waits_ == one_to_record ? 1 : fast_waits_;
    fast_waits_ = 0;
    std::size_t refused = 0;  // one bit for each wait
    for (std::size_t i = 0; i < waits; ++i) {
        fast_wait& one = fast_path_[i];
        if (!wait_fast(one)) [[unlikely]] {
            detail::cold_path();
            refused |= std::size_t{1} << i;
        }
        if (!is_plain) [[unlikely]] {
            detail::cold_path();
            remember_passed(one.target);
        }
    }
    // Only once all events are recorded, since other threads may wait for them.
    for (std::size_t i = 0; refused != 0; ++i, refused >>= 1) {
        if ((refused & 1) != 0) {
            wait_here(fast_path_[i]);
        }
    }
}

/// The same for `one_to_record`. What the driver refuses is repeated on the slow path, in the context.
[[gnu::always_inline]] inline void submission_queue::record_and_wait() noexcept {
    driver_stream::awaited_end& end = fast_path_.front().end;
    pooled_event& fresh = *end.again;
    const auto wait = [this, &fresh] {
        return driver_stream_->in().api().stream_wait_event(driver_stream_->stream(), fresh.handle, 0);
    };
    if (end.of->record_plainly(fresh.handle) != success || wait() != success) [[unlikely]] {
        detail::cold_path();
        wait_for_claimed(true);
        return;
    }
    fast_waits_ = 0;
    end.again = nullptr;
    driver_stream_events::was_recorded(fresh);
}

[[gnu::hot]] void submission_queue::carry_out(epoch at, const operation& what) noexcept {
    driver_stream_->answer();
    const bool plain = is_plain(what);
    if (fast_waits_ != 0) {
        if (fast_waits_ == one_to_record && plain) {
            record_and_wait();
        } else {
            wait_for_claimed(plain);
        }
    }
    if (!plain) [[unlikely]] {
        detail::cold_path();
        carry_out_in_context(at, what);
        return;
    }
    put_plainly(at, what);
    enters_plainly(at);
    const bool rests = rest_alone();
    driver_stream_->make_known(at);
    if (!rests) [[unlikely]] {
        detail::cold_path();
        pass_on(false);
    }
}

void submission_queue::carry_out_in_context(epoch at, const operation& what) noexcept {
    {
        const in_context here(driver_stream_->in());
        has_entered(at, enter_stream(at, what));
    }
    if (!rest_alone()) {
        pass_on(false);
    }
}

/// Keeps the target for the order in which times are reported.
void submission_queue::remember_passed(point target) noexcept {
    try {
        passed_.push_back(target);
    } catch (const std::bad_alloc&) {
        // No memory: the times are reported in another order.
    }
}

/// What `enter_stream` does for an operation that is_plain.
[[gnu::always_inline]] inline void submission_queue::put_plainly(epoch at, const operation& what) noexcept {
    try {
        what.work.type->put(what.work.object, driver_stream_->stream());
        static_cast<queue_events&>(*this).succeeded(at);
    } catch (...) {
        failed(at, what.from, std::current_exception());
    }
}

/// `has_entered` for such an operation, in a stream into which only Weir puts work. A full fence and driver_stream::make_known must follow.
[[gnu::always_inline]] inline void submission_queue::enters_plainly(epoch at) noexcept {
    if (!passed_.empty()) [[unlikely]] {
        detail::cold_path();
        passed_.clear();
    }
    driver_stream& on = *driver_stream_;
    on.entered(at);
    if (on.is_event_due(at)) {
        try {
            on.record_due_event(at);
        } catch (...) {
            // Without the event, waits for this operation may last longer than they need to.
        }
    }
    on.passed_on(at);
}

}  // namespace weir::backend::cuda
