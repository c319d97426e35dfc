#include "backend/cuda/lane.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "backend/acting.hpp"
#include "backend/cuda/watcher.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/error.hpp"

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

void lane::mark_for_others() {
    others_enter_.store(true, std::memory_order_relaxed);
    const epoch covered = submitted();
    if (lacks_mark(covered)) {
        static_cast<void>(record_for(covered, covered, true));
    }
}

/// Somebody waits for the operation at `at`, and the first event there is stands behind a later one. If it had one of its own, which
/// was left out, more are kept from now on. Under the lock.
[[gnu::noinline]] const lane_events::recorded* lane::event_of_its_own(epoch at,
                                                                      const lane_events::recorded& later) noexcept {
    if (at <= fine_after_.load(std::memory_order_relaxed)) {
        return &later;
    }
    events_.keep_more();
    return events_.behind(at);
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
    const int left = finely_awaited_.load(std::memory_order_relaxed);
    if (left <= 1 && !is_mark_missing(at)) [[unlikely]] {
        return;
    }
    if (left > 0) {
        finely_awaited_.store(left - 1, std::memory_order_relaxed);  // a wait that comes just now counts next time
    }
    record_fresh_end(false);
}

/// Says when the next mark is due, where the next operation need not have one. Whether this one is to have one.
bool lane::is_mark_missing(epoch at) noexcept {
    // Who waits for an operation says so before it sets next_mark_ to 0: that is seen here, or the next operation sees it.
    epoch next = at + far_ahead;
    next_mark_.exchange(next, std::memory_order_acq_rel);
    if (const int left = finely_awaited_.load(std::memory_order_relaxed); left > 0) {
        if (left > 1) {
            next_mark_.store(0, std::memory_order_relaxed);
        }
        return true;
    }
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

[[gnu::cold]] void lane::record_asked_mark() noexcept {
    if (std::max(last_event(), line_->completed()) >= submitted()) {
        return;
    }
    try {
        record_fresh_end(false);
    } catch (...) {
        // The next operation gets one.
    }
}

void lane::record_in_context(event_handle event) const {
    const in_context here(*in_);
    in_->expect(in_->api().event_record(event, stream_), "cuEventRecord");
}

void lane::awaited_by_host(epoch at) noexcept {
    const std::lock_guard lock(mutex_);
    static_cast<void>(event_behind(at));
}

[[gnu::hot]] event_ref lane::event_for(epoch at) {
    {
        const std::lock_guard lock(mutex_);
        if (const lane_events::recorded* const found = event_behind(at); found != nullptr) {
            return found->event;
        }
    }
    return recorded_for(at).event;
}

/// The first event that is over once `at` is, recorded now if there is none.
[[gnu::hot]] lane_events::recorded lane::recorded_for(epoch at) {
    epoch covered = 0;
    {
        const std::lock_guard lock(mutex_);
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
    event = event_ref();
}

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
    if (has_others()) {
        // To ask for the stream would be to ask for what they put in, too. There is an event, unless one could not be had.
        prepare(all);
        return 0;
    }
    const result answer = in_->api().stream_query(stream_);
    if (answer != success && answer != error_not_ready) {
        in_->note_error(answer);
    }
    return answer == success ? all : 0;
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
    next_mark_.store(before_next, std::memory_order_release);
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
    const epoch last = submitted();
    const epoch first = reached_.load(std::memory_order_acquire) + 1;
    if (first <= last) {
        owner_->lost(first, last, std::make_exception_ptr(device_error(in_->why_broken())));
        advance(last);
    }
}

/// Several threads may find at once that something is over. One of them completes it, up to what the others have found.
void lane::advance(epoch reached) noexcept {
    epoch known = reached_.load(std::memory_order_relaxed);
    while (known < reached && !reached_.compare_exchange_weak(known, reached, std::memory_order_seq_cst)) {
    }
    epoch over = 0;
    while (line_->completed() < reached_.load(std::memory_order_seq_cst)) {
        // Whoever is refused has stated what it found before, and who completes looks at that again afterwards.
        if (completing_.exchange(true, std::memory_order_seq_cst)) {
            break;
        }
        const epoch upto = reached_.load(std::memory_order_seq_cst);
        if (upto > completed_) {
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
    if (!is_busy_.exchange(false, std::memory_order_seq_cst)) {
        return;  // another thread was faster
    }
    // Whoever enqueues now has found the owner told to stay, or tells it again.
    const bool is_last =
        last_.load(std::memory_order_seq_cst) == upto && submitted_.load(std::memory_order_seq_cst) == upto;
    if (!is_last && !is_busy_.exchange(true, std::memory_order_seq_cst)) {
        return;
    }
    owner_->idle();
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
