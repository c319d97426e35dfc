#include "backend/cuda/streams/driver_stream.hpp"

#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>

#include "backend/cuda/streams/watcher.hpp"
#include "backend/spin.hpp"
#include "backend/watched_poll.hpp"
#include "observe/acting.hpp"

namespace weir::backend::cuda {

namespace {

implicit_order order_of(unsigned flags) noexcept {
    return (flags & stream_non_blocking) != 0 ? implicit_order::none : implicit_order::blocking;
}

/// The order of an adopted stream. Throws device_error.
implicit_order order_of(const context& in, stream_handle stream) {
    if (stream == nullptr || stream == legacy_stream()) {
        return implicit_order::legacy;
    }
    const in_relaxed_context here(in);
    unsigned flags = 0;
    in.expect(in.api().stream_flags(stream, &flags), "cuStreamGetFlags");
    return order_of(flags);
}

/// A number of the calling thread, unique in this process. The system reuses the id of a thread that has ended.
std::uint64_t number_of_thread() noexcept {
    static constinit std::atomic<std::uint64_t> last{0};
    thread_local const std::uint64_t mine = last.fetch_add(1, std::memory_order_relaxed) + 1;
    return mine;
}

}  // namespace

driver_stream::driver_stream(device_context& in, timeline& line, queue_events& owner, hot_mutex& lock, int priority,
                             unsigned flags)
    : in_(&in),
      submitted_(line.completed()),
      passed_on_(line.completed()),
      last_(line.completed()),
      next_due_(line.completed() + far_ahead),
      ordered_as_(order_of(flags)),
      line_(&line),
      owner_(&owner),
      mutex_(lock),
      reached_(line.completed()),
      completed_(line.completed()) {
    const in_relaxed_context here(in);
    in.expect(here.entered(), "cuCtxSetCurrent");
    in.expect(in.api().stream_create(&stream_, flags, priority), "cuStreamCreateWithPriority");
}

driver_stream::driver_stream(device_context& in, timeline& line, queue_events& owner, hot_mutex& lock,
                             stream_handle adopted)
    : in_(&in),
      stream_(adopted),
      submitted_(line.completed()),
      passed_on_(line.completed()),
      last_(line.completed()),
      next_due_(line.completed() + far_ahead),
      is_adopted_(true),
      ordered_as_(order_of(in, adopted)),
      line_(&line),
      owner_(&owner),
      mutex_(lock),
      thread_(number_of_thread()),
      reached_(line.completed()),
      completed_(line.completed()) {}

driver_stream::~driver_stream() {
    if (is_adopted_) {
        return;
    }
    const in_relaxed_context here(*in_);
    in_->api().stream_destroy(stream_);
}

bool driver_stream::is_of_this_thread() const noexcept { return number_of_thread() == thread_; }

/// The operation at `at` is in the stream; the owner or the watcher may not know of it yet.
void driver_stream::find_watcher(epoch at) noexcept {
    if (!is_busy_.load(std::memory_order_seq_cst)) {
        stay_until(at);
    }
    if (wanted.load(std::memory_order_seq_cst) >= at) {
        watcher::instance().hurry(*this, at);
    } else if (!watched.load(std::memory_order_seq_cst)) {
        watcher::instance().add(*this);
    }
}

void* driver_stream::keep(epoch at, const detail::task_ref& object) {
    std::unique_ptr<std::max_align_t[]> storage;
    if (object.type->size > sizeof(kept::room)) {
        storage = std::make_unique<std::max_align_t[]>(object.type->size / sizeof(std::max_align_t) + 1);
    }
    const std::lock_guard lock(mutex_);
    if (spare_.empty()) {
        spare_.emplace_back();
    }
    kept_.splice(kept_.end(), spare_, spare_.begin());
    kept& one = kept_.back();
    one.at = at;
    one.type = object.type;
    one.storage = std::move(storage);
    void* const place = one.place();
    object.type->move(object.object, place);
    return place;
}

void driver_stream::time(times what) {
    const std::lock_guard lock(mutex_);
    times_.push_back(std::move(what));
    unreported_.fetch_add(1, std::memory_order_relaxed);  // seen by every thread that sees the operation in the stream
}

/// Whether no event covers `covered`. If the last one does, it is pinned.
bool driver_stream::lacks_pinned_event(epoch covered) noexcept {
    const std::lock_guard lock(mutex_);
    return !events_.cover(covered, true) && line_->completed() < covered;
}

void driver_stream::pin_event() {
    if (lacks_pinned_event(submitted())) {
        record_fresh_end(true);
    }
}

void driver_stream::share() noexcept {
    // A thread that is about to record an event for the stream has noted that under the lock before.
    const std::lock_guard lock(mutex_);
    others_enter_.store(true, std::memory_order_seq_cst);
}

void driver_stream::pin_event_for_others() {
    const epoch covered = submitted();
    if (lacks_pinned_event(covered)) {
        static_cast<void>(record_for(covered, covered, true));
    }
}

void driver_stream::await_records(epoch upto) noexcept {
    // A thread that records such an event waits only for room in the driver's queue. That may come only once host code of a
    // stream returns: so a thread that runs such code does not wait.
    const auto are_made = [&] {
        if (records_.load(std::memory_order_seq_cst) != 0) {
            return false;
        }
        const std::lock_guard lock(mutex_);
        return !events_.has_unrecorded(upto);
    };
    if (observe::acting_for::current().at != 0 || are_made()) {
        return;
    }
    watched_poll poll({line_->number(), upto});
    while (!spin_until(are_made, true)) {
        if (!poll.may_go_on()) {
            return;  // the program's call throws at its end
        }
        std::this_thread::yield();
    }
}

/// In a fork_section, by the submitting thread.
[[gnu::hot]] void driver_stream::record_fresh_end(bool is_pinned) {
    const epoch covered = submitted();
    pooled_event* again = nullptr;
    {
        const std::lock_guard lock(mutex_.within_section());
        again = events_.next(covered, is_pinned);
    }
    record_end(covered, again, is_pinned);
}

/// Records `again`, which `events_.next` returned for `covered`, or a new event if it is null. Under no lock.
[[gnu::hot]] void driver_stream::record_end(epoch covered, pooled_event* again, bool is_pinned) {
    if (again == nullptr) [[unlikely]] {
        event_ref fresh = in_->events.take();
        record(fresh.handle());
        const std::lock_guard lock(mutex_.within_section());
        events_.add({covered, std::move(fresh), is_pinned});
        return;
    }
    try {
        record(again->handle);
    } catch (...) {
        forget(*again);
        throw;
    }
    driver_stream_events::was_recorded(*again);
}

[[gnu::hot]] void driver_stream::record_due_event(epoch at) {
    if (is_event_missing(at)) {
        record_fresh_end(false);
    }
}

/// Sets when the next event is due. Whether the operation at `at` is to have one now.
bool driver_stream::is_event_missing(epoch at) noexcept {
    // A thread that asks for an event sets asked_for_ before it changes next_pinned_: that is seen here, or the next operation sees it.
    epoch next = at + far_ahead;
    epoch known = next_due_.load(std::memory_order_relaxed);
    do {
        if (known == before_each) {
            return false;  // before the next operation, the submitting thread or a waiting stream records it
        }
    } while (!next_due_.compare_exchange_weak(known, next, std::memory_order_acq_rel, std::memory_order_relaxed));
    const epoch last = std::max(last_event(), line_->completed());
    const epoch asked_for = asked_for_.load(std::memory_order_relaxed);
    const epoch due = last < asked_for ? std::min(asked_for, last + far_ahead) : last + far_ahead;
    if (due <= at) {
        return true;
    }
    next_due_.compare_exchange_strong(next, due, std::memory_order_relaxed);
    return false;
}

/// The epoch that the last event covers, which may have yet to be recorded; 0 if there is none.
epoch driver_stream::last_event() noexcept {
    const std::lock_guard lock(mutex_);
    return events_.last_epoch();
}

/// In a fork_section, by the submitting thread.
[[gnu::hot, gnu::noinline]] void driver_stream::record_asked_event() noexcept {
    const epoch covered = submitted();
    pooled_event* again = nullptr;
    bool is_missing = false;
    bool is_tight = false;
    {
        const std::lock_guard lock(mutex_.within_section());
        is_missing = std::max(events_.last_epoch(), line_->completed()) < covered;
        is_tight = !events_.has_room_for(between_operations);
        if (is_missing && !is_tight) [[likely]] {
            again = events_.next(covered, false);
        }
    }
    if (is_tight && gives_events()) [[unlikely]] {
        make_room();
    }
    if (!is_missing) {
        return;
    }
    try {
        if (is_tight) [[unlikely]] {
            record_fresh_end(false);
        } else {
            record_end(covered, again, false);
        }
    } catch (...) {
        // The next operation gets one.
    }
}

/// Makes room for the events of the next operations without leaving out one of an incomplete operation. Drops complete ones, after a
/// query of the driver once in many operations, or enlarges the list. Under no lock.
[[gnu::noinline]] void driver_stream::make_room() noexcept {
    driver_stream_events::recorded middle;
    {
        const std::lock_guard lock(mutex_.within_section());
        if (events_.keep_more_if_few()) {
            return;
        }
        middle = events_.middle_of_those_behind(0);
    }
    const bool is_half_over = middle.event && [&] {
        const in_relaxed_context here(*in_);
        return is_over(middle.event);
    }();
    const std::lock_guard lock(mutex_.within_section());
    if (is_half_over) {
        events_.are_over(middle.at);
    }
    if (!events_.has_room_for(between_operations)) {
        events_.keep_more();
    }
}

void driver_stream::record_in_context(event_handle event) const {
    const in_context here(*in_);
    in_->expect(in_->api().event_record(event, stream_), "cuEventRecord");
}

[[gnu::hot]] event_ref driver_stream::event_for_stream(epoch at) {
    give_events();
    driver_stream_events::recorded found = recorded_for(at);
    if (found.event) {
        const std::lock_guard lock(mutex_);
        note_wait(at, found.at);
    }
    return std::move(found.event);
}

/// The first event that covers `at`, recorded now if there is none; none if `at` is complete.
[[gnu::hot]] driver_stream_events::recorded driver_stream::recorded_for(epoch at) {
    const about_to_call until_recorded(*this);
    epoch covered = 0;
    {
        const std::lock_guard lock(mutex_);
        if (line_->completed() >= at) {
            return {};  // an event recorded from now on would cover work of other code
        }
        if (const driver_stream_events::recorded* const found = events_.behind(at); found != nullptr) {
            return *found;
        }
        covered = submitted();
        // Where the calling thread cannot reach the stream, the stream's own thread has recorded an event, or is about to.
        if (covered < at || !is_reachable()) {
            return {};
        }
    }
    if (has_others()) {
        expect_no_capture(*in_, stream_);
    }
    return record_for(at, covered, false);
}

/// `covered`, which is not before `at`, was submitted. In the context.
driver_stream_events::recorded driver_stream::record_for(epoch at, epoch covered, bool is_pinned) {
    event_ref fresh = in_->events.take();
    record(fresh.handle());
    const std::lock_guard lock(mutex_);
    events_.add({covered, std::move(fresh), is_pinned});
    // Work that another thread puts into the stream meanwhile may have come before the event. None of it is held back by a gate,
    // since such work has a pinned event before it, which would then be the first.
    return *events_.behind(at);
}

/// `event` was recorded behind `covered` by a thread that waits for it. In a fork_section.
void driver_stream::add_end(epoch covered, event_ref&& event) noexcept {
    const std::lock_guard lock(mutex_.within_section());
    try {
        events_.add({covered, std::move(event), false});
    } catch (const std::bad_alloc&) {
        return;  // another thread that waits for it records a new one
    }
}

void driver_stream::forget(const pooled_event& one) noexcept {
    const std::lock_guard lock(mutex_);
    events_.forget(one);
}

void driver_stream::awaited_end::cancel() noexcept {
    if (again != nullptr) {
        of->forget(*std::exchange(again, nullptr));
    }
    if (std::exchange(is_another, false)) {
        of->records_.fetch_sub(1, std::memory_order_release);
    }
    event = event_ref();
}

}  // namespace weir::backend::cuda
