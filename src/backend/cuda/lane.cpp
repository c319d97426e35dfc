#include "backend/cuda/lane.hpp"

#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>

#include "backend/acting.hpp"
#include "backend/cuda/watcher.hpp"
#include "backend/spin.hpp"

namespace weir::backend::cuda {

namespace {

implicit_order order_of(unsigned flags) noexcept {
    return (flags & stream_non_blocking) != 0 ? implicit_order::none : implicit_order::blocking;
}

/// Of a stream of others. Throws device_error.
implicit_order order_of(const context& in, stream_handle stream) {
    if (stream == nullptr || stream == legacy_stream()) {
        return implicit_order::legacy;
    }
    const in_relaxed_context here(in);
    unsigned flags = 0;
    in.expect(in.api().stream_flags(stream, &flags), "cuStreamGetFlags");
    return order_of(flags);
}

/// Of the calling thread, and of no other one in this process. The system gives the id of a thread that has ended to another one.
std::uint64_t number_of_thread() noexcept {
    static constinit std::atomic<std::uint64_t> last{0};
    thread_local const std::uint64_t mine = last.fetch_add(1, std::memory_order_relaxed) + 1;
    return mine;
}

}  // namespace

lane::lane(device_context& in, timeline& line, queue_events& owner, hot_mutex& lock, int priority, unsigned flags)
    : in_(&in),
      submitted_(line.completed()),
      passed_on_(line.completed()),
      last_(line.completed()),
      next_mark_(line.completed() + far_ahead),
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

lane::lane(device_context& in, timeline& line, queue_events& owner, hot_mutex& lock, stream_handle adopted)
    : in_(&in),
      stream_(adopted),
      submitted_(line.completed()),
      passed_on_(line.completed()),
      last_(line.completed()),
      next_mark_(line.completed() + far_ahead),
      is_adopted_(true),
      ordered_as_(order_of(in, adopted)),
      line_(&line),
      owner_(&owner),
      mutex_(lock),
      thread_(number_of_thread()),
      reached_(line.completed()),
      completed_(line.completed()) {}

lane::~lane() {
    if (is_adopted_) {
        return;
    }
    const in_relaxed_context here(*in_);
    in_->api().stream_destroy(stream_);
}

bool lane::is_of_this_thread() const noexcept { return number_of_thread() == thread_; }

/// The operation at `at` is in the stream; somebody may not know it who must.
void lane::find_watcher(epoch at) noexcept {
    if (!is_busy_.load(std::memory_order_seq_cst)) {
        stay_until(at);
    }
    if (wanted.load(std::memory_order_seq_cst) >= at) {
        watcher::instance().hurry(*this, at);
    } else if (!watched.load(std::memory_order_seq_cst)) {
        watcher::instance().add(*this);
    }
}

void* lane::keep(epoch at, const detail::task_ref& object) {
    kept one{at, object.type, std::make_unique<std::max_align_t[]>(object.type->size / sizeof(std::max_align_t) + 1)};
    void* const place = one.storage.get();
    const std::lock_guard lock(mutex_);
    kept_.push_back(std::move(one));
    object.type->move(object.object, place);
    return place;
}

void lane::time(times what) {
    const std::lock_guard lock(mutex_);
    times_.push_back(std::move(what));
    untold_.fetch_add(1, std::memory_order_relaxed);  // seen by those who see the operation in the stream
}

/// Whether nothing that stands behind `covered` will do as a mark.
bool lane::lacks_mark(epoch covered) noexcept {
    const std::lock_guard lock(mutex_);
    return !events_.cover(covered, true) && line_->completed() < covered;
}

void lane::mark() {
    if (lacks_mark(submitted())) {
        record_fresh_end(true);
    }
}

void lane::share() noexcept {
    const std::lock_guard lock(mutex_);  // a thread that was to record an event for the stream has said so before
    others_enter_.store(true, std::memory_order_seq_cst);
}

void lane::mark_for_others() {
    const epoch covered = submitted();
    if (lacks_mark(covered)) {
        static_cast<void>(record_for(covered, covered, true));
    }
}

void lane::await_records(epoch upto) noexcept {
    // A thread that records such an event waits for nothing but room in the driver's queue. That may come only once a body of a
    // stream returns: a thread that runs one does not wait.
    const auto are_made = [&] {
        if (records_.load(std::memory_order_seq_cst) != 0) {
            return false;
        }
        const std::lock_guard lock(mutex_);
        return !events_.has_unrecorded(upto);
    };
    while (acting_for::current().at == 0 && !are_made()) {
        if (!spin_until(are_made, true)) {
            std::this_thread::yield();
        }
    }
}

/// In a fork_section, by the thread that submits.
[[gnu::hot]] void lane::record_fresh_end(bool is_mark) {
    const epoch covered = submitted();
    pooled_event* again = nullptr;
    {
        const std::lock_guard lock(mutex_.within_section());
        again = events_.next(covered, is_mark);
    }
    if (again == nullptr) [[unlikely]] {
        event_ref fresh = in_->events.take();
        record(fresh.handle());
        const std::lock_guard lock(mutex_.within_section());
        events_.add({covered, std::move(fresh), is_mark});
        return;
    }
    try {
        record(again->handle);
    } catch (...) {
        forget(*again);
        throw;
    }
    lane_events::was_recorded(*again);
}

[[gnu::hot]] void lane::record_due_mark(epoch at) {
    if (is_mark_missing(at)) {
        record_fresh_end(false);
    }
}

/// Says when the next mark is due. Whether the operation at `at` is to have one now.
bool lane::is_mark_missing(epoch at) noexcept {
    // A thread that asks for an event sets asked_for_ before it changes next_mark_: that is seen here, or the next operation sees it.
    epoch next = at + far_ahead;
    epoch known = next_mark_.load(std::memory_order_relaxed);
    do {
        if (known == before_each) {
            return false;  // the next operation records it, or a stream that waits
        }
    } while (!next_mark_.compare_exchange_weak(known, next, std::memory_order_acq_rel, std::memory_order_relaxed));
    const epoch last = std::max(last_event(), line_->completed());
    const epoch asked_for = asked_for_.load(std::memory_order_relaxed);
    const epoch due = last < asked_for ? std::min(asked_for, last + far_ahead) : last + far_ahead;
    if (due <= at) {
        return true;
    }
    next_mark_.compare_exchange_strong(next, due, std::memory_order_relaxed);
    return false;
}

/// Behind what the last event stands that there is, or soon is; 0 if there is none.
epoch lane::last_event() noexcept {
    const std::lock_guard lock(mutex_);
    return events_.last_epoch();
}

/// In a fork_section, by the thread that submits.
[[gnu::hot, gnu::noinline]] void lane::record_asked_mark() noexcept {
    bool is_missing = false;
    bool is_tight = false;
    {
        const std::lock_guard lock(mutex_.within_section());
        is_missing = std::max(events_.last_epoch(), line_->completed()) < submitted();
        is_tight = !events_.has_room_for(between_operations);
    }
    if (is_tight && gives_events()) [[unlikely]] {
        make_room();
    }
    if (!is_missing) {
        return;
    }
    try {
        record_fresh_end(false);
    } catch (...) {
        // The next operation gets one.
    }
}

/// Has room for the events of the next operations without leaving out one of an operation that is not over: drops those that are over,
/// which it asks the driver once for every so many operations, or has room for more. Under no lock.
[[gnu::noinline]] void lane::make_room() noexcept {
    lane_events::recorded middle;
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

void lane::record_in_context(event_handle event) const {
    const in_context here(*in_);
    in_->expect(in_->api().event_record(event, stream_), "cuEventRecord");
}

[[gnu::hot]] event_ref lane::event_for_stream(epoch at) {
    give_events();
    lane_events::recorded found = recorded_for(at);
    if (found.event) {
        const std::lock_guard lock(mutex_);
        note_wait(at, found.at);
    }
    return std::move(found.event);
}

/// The first event that is over once `at` is, recorded now if there is none; none if `at` is complete.
[[gnu::hot]] lane_events::recorded lane::recorded_for(epoch at) {
    const about_to_call until_recorded(*this);
    epoch covered = 0;
    {
        const std::lock_guard lock(mutex_);
        if (line_->completed() >= at) {
            return {};  // an event from now on would stand behind what others put there
        }
        if (const lane_events::recorded* const found = events_.behind(at); found != nullptr) {
            return *found;
        }
        covered = submitted();
        // Where the calling thread cannot reach the stream, the stream's own thread has recorded one, or does so presently.
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
lane_events::recorded lane::record_for(epoch at, epoch covered, bool is_mark) {
    event_ref fresh = in_->events.take();
    record(fresh.handle());
    const std::lock_guard lock(mutex_);
    events_.add({covered, std::move(fresh), is_mark});
    // What enters the stream meanwhile, by another thread, may have come before the event: nothing that a gate holds back, for
    // there was a mark before that, which is then the first.
    return *events_.behind(at);
}

/// `event` was recorded behind `covered` by a thread that waits for it. In a fork_section.
void lane::add_end(epoch covered, event_ref&& event) noexcept {
    const std::lock_guard lock(mutex_.within_section());
    try {
        events_.add({covered, std::move(event), false});
    } catch (const std::bad_alloc&) {
        return;  // who else waits for it records another
    }
}

void lane::forget(const pooled_event& one) noexcept {
    const std::lock_guard lock(mutex_);
    events_.forget(one);
}

void lane::awaited_end::cancel() noexcept {
    if (again != nullptr) {
        of->forget(*std::exchange(again, nullptr));
    }
    if (std::exchange(is_another, false)) {
        of->records_.fetch_sub(1, std::memory_order_release);
    }
    event = event_ref();
}

}  // namespace weir::backend::cuda
