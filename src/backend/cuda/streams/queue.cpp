#include "backend/cuda/streams/queue.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "backend/cuda/device/context.hpp"
#include "backend/cuda/streams/submission_queues.hpp"
#include "backend/native.hpp"
#include "backend/spin.hpp"
#include "observe/acting.hpp"
#include "weir/detail/fork_section.hpp"
#include "weir/detail/interruption.hpp"
#include "weir/error.hpp"

namespace weir::backend::cuda {

namespace {

/// Host code that replaces device work, from the time it enters the stream until it has run.
struct body_call {
    detail::owner<driver_stream> of;
    queue_events* events;
    epoch at;
    runtime::site from;
    const detail::task_type* type;
    void* object;

    static void run(void* one) noexcept {
        const std::unique_ptr<body_call> self(static_cast<body_call*>(one));
        const observe::acting_for operation({self->of->line().number(), self->at});
        static_cast<void>(run_work(*self->events, self->at, self->from, self->type, self->object));
    }
};

/// How deep a thread may nest passing on work of other streams before it waits instead.
constexpr int most_helping = 16;
thread_local int helping = 0;

/// While it lives, the thread passes on the work of a queue. That may wait for an operation of another queue, and passes that on first: then
/// one lives within another.
class passing_on {
public:
    passing_on() noexcept { innermost_ = this; }
    ~passing_on() { innermost_ = outer_; }
    passing_on(const passing_on&) = delete;
    passing_on& operator=(const passing_on&) = delete;

    /// Whether the thread does so for another queue's sake, and not for an operation that host code of a stream enqueues. What the other
    /// queue waits for was enqueued before; behind that there may be what waits for the other queue. So the thread must not wait here, but
    /// leaves the rest to other threads.
    [[nodiscard]] static bool is_nested() noexcept {
        return innermost_ != nullptr && innermost_->outer_ != nullptr && innermost_->outer_->code_ == innermost_->code_;
    }

private:
    static inline thread_local passing_on* innermost_ = nullptr;

    passing_on* outer_ = innermost_;
    frontiers::point code_ = observe::acting_for::current();  ///< that the thread runs
};

}  // namespace

submission_queue::submission_queue(device_context& in, timeline& line, queue_events& owner, int priority,
                                   unsigned flags, host_bodies* bodies)
    : recorded_queue(line, *this),
      driver_stream_(new driver_stream(in, line, owner, submission_queues::lock_of(line.number()), priority, flags)),
      bodies_(bodies),
      number_(line.number()),
      has_fast_path_(driver_stream_->ordered_as() == implicit_order::none) {
    make_ready();
}

submission_queue::submission_queue(device_context& in, timeline& line, queue_events& owner, stream_handle adopted,
                                   host_bodies* bodies)
    : recorded_queue(line, *this),
      driver_stream_(new driver_stream(in, line, owner, submission_queues::lock_of(line.number()), adopted)),
      bodies_(bodies),
      number_(line.number()),
      is_shared_(true),
      has_fast_path_(false) {
    make_ready();
}

void submission_queue::make_ready() {
    lies_at({counter_line(), &driver_stream_, fast_path_.data(), driver_stream_->first_line()});
    try {
        task_threads::instance().keep_one();
    } catch (const std::system_error& why) {
        throw device_error(std::string("no thread can be started that passes work on to a CUDA device: ") + why.what());
    }
}

void submission_queue::reserve(std::size_t waits, const detail::task_ref& work) {
    if (!driver_stream_->is_reachable()) {
        throw argument_error(
            "the stream is the default stream of another thread (handle 2), which only that thread can use: make a "
            "stream with weir::stream(device), which all threads can use");
    }
    targets_.reserve(waits);
    recorded_queue::reserve(waits + 1, work);
}

void submission_queue::submit(epoch at, const operation& what) noexcept {
    if (is_for_the_host(what.kind, what.work.type)) {
        // A wait for its own stream marks this operation, and those that follow, as not for the driver.
        recorded_queue::wait({line().number(), at - 1});
    }
    for (const point target : targets_) {
        recorded_queue::wait(target);
    }
    targets_.clear();
    driver_stream_->enqueued(at);
    recorded_queue::submit(at, what);
}

void submission_queue::flush(point upto) noexcept {
    if (!driver_stream_->is_reachable()) {
        return;  // its own thread passes the work on
    }
    if (unclaimed_.load(std::memory_order_relaxed) && unclaimed_.exchange(false, std::memory_order_acq_rel)) {
        pass_on(false);
    }
    if (is_shared_.load(std::memory_order_acquire)) {
        await_others(upto);
    }
}

/// Another thread is passing work on, perhaps for long. Host code of a stream may be what that thread runs: then this does not wait.
void submission_queue::await_others(point upto) noexcept {
    detail::interruptible* const answers = detail::interruptible::current();
    while (driver_stream_->passed_on() < upto.at && observe::acting_for::current().at == 0) {
        if (!spin_until([&] { return driver_stream_->passed_on() >= upto.at; }, true)) {
            if (answers != nullptr && !answers->may_go_on()) {
                return;
            }
            std::this_thread::yield();
        }
    }
}

/// Under the stream's lock: no operation is claimed from now on.
void submission_queue::share() noexcept {
    is_shared_.store(true, std::memory_order_release);
    has_fast_path_.store(false, std::memory_order_relaxed);  // read under the stream's lock, too
    driver_stream_->share();
}

/// Other code may put work into the stream as soon as this returns.
void submission_queue::await_shared(point upto) noexcept {
    flush(upto);  // waits, since the stream is shared
    try {
        driver_stream_->pin_event_for_others();
    } catch (...) {
        // Without the event, waits for what is in the stream may last longer than they need to.
    }
    driver_stream_->await_records(driver_stream_->submitted());
}

void submission_queue::run_blocking() noexcept {
    const std::shared_ptr<submission_queue> self = shared_from_this();
    held_.store(false, std::memory_order_relaxed);
    pass_on(true);
}

void submission_queue::pass_on(bool may_block) noexcept {
    if (std::exchange(was_cancelled_, false)) {
        std::for_each(fast_path_.begin(), fast_path_.end(), [](fast_wait& one) { one.end.former = {}; });
    }
    const detail::fork_section whole;  // one section for all locks
    const in_context here(driver_stream_->in());
    const passing_on counted;
    work_off([&](point target) { return pass(target); }, [&] { return pass_work_on(may_block); });
}

/// The submission queue that holds `target`, if the driver itself orders whatever enters this stream behind it (rule S6);
/// else null.
std::shared_ptr<submission_queue> submission_queue::ordered_behind(point target) const noexcept {
    if (driver_stream_->ordered_as() == implicit_order::none) {
        return nullptr;
    }
    std::shared_ptr<submission_queue> theirs = submission_queues::find(target.timeline);
    const bool is_behind = theirs && &theirs->driver_stream_->in() == &driver_stream_->in() &&
                           ordered_by_device(driver_stream_->ordered_as(), theirs->driver_stream_->ordered_as()) &&
                           theirs->driver_stream_->submitted() >= target.at;
    return is_behind ? theirs : nullptr;
}

/// Another thread is passing `at` on. Whether that is in its driver stream when this returns. A thread that would have to wait for the host
/// otherwise, since other code puts work into this stream, waits for as long as that takes: there is no cycle, since `at` was enqueued before
/// the operation ahead, and waits only for what was enqueued before it. A thread with other work to pass on waits for a moment only.
bool submission_queue::await_entry(const submission_queue& theirs, epoch at) const noexcept {
    const driver_stream& to = *theirs.driver_stream_;
    const auto is_there = [&] { return to.submitted() >= at; };
    const auto is_known = [&] { return is_there() || theirs.held_.load(std::memory_order_relaxed); };
    const bool has_time = is_shared_.load(std::memory_order_relaxed) && helping == 0 &&
                          observe::acting_for::current().at == 0 && to.is_reachable();
    detail::interruptible* const answers = detail::interruptible::current();
    while (!is_known() && !spin_until(is_known, has_time) && has_time && (answers == nullptr || answers->may_go_on())) {
        std::this_thread::yield();
    }
    return is_there();
}

/// Whether `target` is in a driver stream: then `event` covers it.
bool submission_queue::find_event(point target, event_ref& event) {
    const std::shared_ptr<submission_queue> theirs = submission_queues::find(target.timeline);
    if (!theirs) {
        return false;
    }
    driver_stream& from = *theirs->driver_stream_;
    if (from.submitted() < target.at && helping < most_helping && !theirs->is_shared()) {
        // The thread of that stream has not passed it on yet. These calls cannot form a cycle: work enters streams in the order of its
        // epochs. A call into a shared stream passes its own work on, and may wait for the host meanwhile: this call must not wait
        // for it.
        ++helping;
        theirs->flush(target);
        --helping;
    }
    if (from.submitted() < target.at && !await_entry(*theirs, target.at)) {
        return false;
    }
    event = from.event_for_stream(target.at);
    return static_cast<bool>(event);
}

/// Whether the wait is over, or the driver carries it out. Otherwise reached() is called once it is over.
bool submission_queue::pass(point target) noexcept {
    driver_stream_->answer();
    timeline& other = timeline_table::instance().at(target.timeline);
    host_waits_ = host_waits_ || &other == &line();
    if (other.completed() >= target.at) {
        return true;
    }
    try {
        if (const auto theirs = host_waits_ ? nullptr : ordered_behind(target)) {
            passed_.push_back(target);
            // A thread that later finds this stream complete then finds the other one complete at once.
            theirs->driver_stream_->prepare(target.at);
            return true;
        }
        event_ref event;
        if (!host_waits_ && find_event(target, event)) {
            passed_.push_back(target);
            driver_stream_->in().expect(
                driver_stream_->in().api().stream_wait_event(driver_stream_->stream(), event.handle(), 0),
                "cuStreamWaitEvent");
            return true;
        }
    } catch (...) {
        // No event can be made: the wait is done here instead.
    }
    return !hold_until(other, target.at);
}

/// Whether the calling thread may block until `target` is complete: not if it runs code of a stream that `target` waits for. Where no
/// other thread can pass the work on, blocking is the only way; the owner has refused what would wait for itself there.
bool submission_queue::may_block_for(point target) noexcept {
    const point self = observe::acting_for::current();
    return self.at == 0 || driver_stream_->stream() == per_thread_stream() || !comes_after(target, self);
}

/// True if reached() is called once `at` is complete: from here on another thread may pass on what is ahead. False if the wait is over,
/// perhaps because the calling thread blocked for it, as it does where other code puts work into the stream (rule O9).
bool submission_queue::hold_until(timeline& line, epoch at) noexcept {
    held_.store(true, std::memory_order_relaxed);
    const bool is_over = is_shared_.load(std::memory_order_relaxed) && !is_left_to_others() &&
                         may_block_for({line.number(), at}) &&
                         timeline_table::instance().host_wait_or_end({line.number(), at});
    if (!is_over && line.wait(*this, at)) {
        return true;
    }
    held_.store(false, std::memory_order_relaxed);
    return false;
}

/// Whether another thread can pass on what is ahead: not in the default stream of one thread.
bool submission_queue::can_be_left_to_others() const noexcept {
    return driver_stream_->stream() != per_thread_stream();
}

/// Whether the thread must leave what would wait here to another one.
bool submission_queue::is_left_to_others() const noexcept { return passing_on::is_nested() && can_be_left_to_others(); }

/// Whether there is something in the stream that is not over. All of Weir's is: so other code put it there.
bool submission_queue::has_work_of_others() const noexcept {
    const device_context& in = driver_stream_->in();
    const in_relaxed_context here(in);
    return in.api().stream_query(driver_stream_->stream()) == error_not_ready;
}

/// Blocks until that is over, since host code comes after it, as Weir's own work does. If the driver refuses to wait (a broken context, a
/// capture that has begun meanwhile), the operation finds that out.
void submission_queue::await_work_of_others() const noexcept {
    const device_context& in = driver_stream_->in();
    const in_relaxed_context here(in);
    static_cast<void>(in.note_error(in.api().stream_synchronize(driver_stream_->stream())));
}

/// Whether the operation ahead was passed on or run. Otherwise the queue is scheduled for a thread that may block.
bool submission_queue::pass_work_on(bool may_block) noexcept {
    // Pending work keeps the owner until it is submitted, so it lives here. The driver stream goes after its owner.
    const detail::owner<driver_stream> of = driver_stream_;
    const kept_stream_owner stays(*of);
    if (!std::exchange(host_waits_, false)) {
        submit_ahead();
        return true;
    }
    const bool is_shared = is_shared_.load(std::memory_order_relaxed);
    const bool is_behind_others = is_shared && has_work_of_others();
    if (!may_block && (!is_shared || is_left_to_others() || (is_behind_others && can_be_left_to_others()))) {
        host_waits_ = true;
        held_.store(true, std::memory_order_relaxed);
        task_threads::instance().schedule_surely(*this);
        return false;
    }
    held_.store(true, std::memory_order_relaxed);
    if (is_behind_others) {
        await_work_of_others();
    }
    run_ahead();
    held_.store(false, std::memory_order_relaxed);
    return true;
}

[[gnu::hot]] bool submission_queue::is_for_the_host(runtime::work_kind what,
                                                    const detail::task_type* type) const noexcept {
    if (type == nullptr || type->nature != detail::task_nature::work) {
        return false;
    }
    switch (what) {
        case runtime::work_kind::moment:
            return false;
        case runtime::work_kind::device:
            return bodies_ == nullptr;
        default:
            return true;
    }
}

void submission_queue::run_ahead() noexcept {
    const detail::owner<driver_stream> of = driver_stream_;
    epoch done = 0;
    hand_on([&](epoch at, const operation& what) {
        const observe::acting_for self({line().number(), at});
        const auto start = std::chrono::steady_clock::now();
        queue_events& events = *this;
        if (run_work(events, at, what.from, what.work.type, what.work.object) && what.timed) {
            executed(at, start, std::chrono::steady_clock::now());
        }
        done = at;
    });
    of->submitted(done);
    of->passed_on(done);
    of->finished(done);
}

void submission_queue::submit_ahead() noexcept {
    epoch done = 0;
    entered how = entered::nothing;
    hand_on([&](epoch at, const operation& what) {
        done = at;
        how = enter_stream(at, what);
    });
    has_entered(done, how);
}

/// Puts an operation into the driver's stream, unless it may not run (rule K4).
[[gnu::hot]] submission_queue::entered submission_queue::enter_stream(epoch at, const operation& what) noexcept {
    driver_stream_->answer();
    if (what.work.type == nullptr) {
        return entered::nothing;
    }
    const bool is_foreign = what.work.type->nature == detail::task_nature::foreign;
    const entered how = is_foreign ? entered::foreign_work : entered::work;
    // Whether the operation fails is known now, unless host code decides that when the stream reaches it.
    const bool is_known = bodies_ == nullptr;
    queue_events& events = *this;
    if (is_known && !events.may_run(at)) {
        return how;
    }
    try {
        put_into_stream(at, what);
    } catch (...) {
        failed(at, what.from, std::current_exception());
        return how;
    }
    if (is_known) {
        events.succeeded(at);
    }
    return !is_foreign && what.work.type->put != nullptr ? entered::call : how;
}

/// What the operation owns is destroyed, or kept by the driver stream.
[[gnu::hot]] void submission_queue::has_entered(epoch at, entered what) noexcept {
    if (what == entered::nothing) {
        keep_order(at);
    }
    passed_.clear();
    driver_stream_->submitted(at);
    // In a stream with implicit order, an operation that put nothing there is complete only when other streams are: only an event
    // behind it shows that.
    const bool is_hidden = what != entered::call && driver_stream_->ordered_as() != implicit_order::none;
    try {
        if (what == entered::foreign_work || is_hidden || is_shared_.load(std::memory_order_relaxed)) {
            driver_stream_->pin_event();
        } else if (driver_stream_->is_event_due(at)) {
            driver_stream_->record_due_event(at);
        }
    } catch (...) {
        // Without the event, waits for this operation may last longer than they need to.
    }
    driver_stream_->passed_on(at);
}

/// Whether the work is host code that runs when the stream reaches it. Code of a moment runs on the host, too, but later.
bool submission_queue::is_body(const operation& what) const noexcept {
    const detail::task_nature nature = what.work.type->nature;
    return nature == detail::task_nature::work || (nature == detail::task_nature::foreign && bodies_ != nullptr);
}

[[gnu::hot]] void submission_queue::put_into_stream(epoch at, const operation& what) {
    device_context& in = driver_stream_->in();
    if (in.is_broken()) {
        throw device_error(in.why_broken());
    }
    const detail::task_type& type = *what.work.type;
    const bool is_moment = what.kind == runtime::work_kind::moment;
    if (type.nature == detail::task_nature::native && !what.timed && !is_moment && bodies_ == nullptr) {
        void* const itself = type.trivial ? what.work.object : driver_stream_->keep(at, what.work);
        const observe::acting_for self({line().number(), at});
        const submitting_to stream(driver_stream_->stream());
        type.run(itself);
        return;
    }
    if (type.nature == detail::task_nature::foreign) {
        driver_stream_->pin_event();
        // If the program ends this wait, waits for what is in the stream may last longer than they need to.
        driver_stream_->await_records(driver_stream_->submitted());
    }
    driver_stream::times its_times;
    its_times.at = at;
    if (is_moment) {
        its_times.base = in.base();
        its_times.end = in.timed_events.take();
    } else if (what.timed) {
        begin_times(its_times);
    }
    const bool runs_later = is_body(what);
    void* object = what.work.object;
    if (!type.trivial || runs_later) {
        object = driver_stream_->keep(at, what.work);
    }
    if (is_moment) {
        its_times.moment = &type;
        its_times.object = object;
    } else if (runs_later) {
        put_body(at, what.from, &type, object);
    } else {
        if (bodies_ != nullptr) {
            // An operation it depends on may yet fail: then it runs all the same, and its results are refused (rule K4).
            put_body(at, what.from, nullptr, nullptr);
        }
        const observe::acting_for self({line().number(), at});
        const submitting_to stream(driver_stream_->stream());
        type.run(object);
    }
    if (is_moment) {
        end_times(std::move(its_times));
    } else if (its_times.end) {
        try {
            end_times(std::move(its_times));
        } catch (...) {
            // The operation is in the stream: it has no times.
        }
    }
}

/// Records the start time of an operation that a trace wants. Without an event the operation has no times.
void submission_queue::begin_times(driver_stream::times& its_times) noexcept {
    device_context& in = driver_stream_->in();
    try {
        its_times.base = in.base();
        its_times.start = in.timed_events.take();
        event_ref end = in.timed_events.take();
        in.expect(in.api().event_record(its_times.start.handle(), driver_stream_->stream()), "cuEventRecord");
        its_times.end = std::move(end);
    } catch (...) {
        its_times.start = {};
    }
}

/// Notes which times must be reported before those of this operation. Throws std::bad_alloc.
void submission_queue::set_times_after(driver_stream::times& its_times) const {
    for (const point target : passed_) {
        if (const auto theirs = submission_queues::find(target.timeline);
            theirs && theirs->driver_stream_->has_unreported()) {
            its_times.after.emplace_back(theirs->driver_stream_, target.at);
        }
    }
}

/// An operation that put only waits into the stream has no times. Still, times of other streams must be reported before it is known to be
/// complete: a host task that runs at once may wait behind it, or the host.
void submission_queue::keep_order(epoch at) noexcept {
    if (passed_.empty()) {
        return;
    }
    try {
        driver_stream::times its_times;
        its_times.at = at;
        set_times_after(its_times);
        if (!its_times.after.empty()) {
            driver_stream_->time(std::move(its_times));
        }
    } catch (const std::bad_alloc&) {
        // No memory: the times are reported in another order.
    }
}

/// Throws device_error, std::bad_alloc.
void submission_queue::end_times(driver_stream::times&& its_times) {
    set_times_after(its_times);
    const device_context& in = driver_stream_->in();
    in.expect(in.api().event_record(its_times.end.handle(), driver_stream_->stream()), "cuEventRecord");
    driver_stream_->time(std::move(its_times));
}

void submission_queue::put_body(epoch at, const runtime::site& from, const detail::task_type* type, void* object) {
    auto call =
        std::make_unique<body_call>(body_call{driver_stream_, &driver_stream_->owner(), at, from, type, object});
    bodies_->put(driver_stream_->stream(), &body_call::run, call.get());
    static_cast<void>(call.release());  // the call owns itself from here on
}

std::optional<int> cuda_queue::priority() const noexcept {
    const device_context& in = to_->of()->in();
    const in_relaxed_context here(in);
    int found = 0;
    const bool has_priority = in.api().stream_priority(to_->of()->stream(), &found) == success;
    return has_priority ? std::optional(found) : std::nullopt;
}

void cuda_queue::expect_no_capture() const {
    if (to_->of()->is_reachable()) {
        cuda::expect_no_capture(to_->of()->in(), to_->of()->stream());
    }
}

bool cuda_queue::is_idle() const {
    const device_context& in = to_->of()->in();
    if (!to_->of()->is_reachable()) {
        return false;  // this thread cannot query the stream
    }
    expect_no_capture();  // to query a stream that is being captured would end the capture
    const in_relaxed_context here(in);
    return in.api().stream_query(to_->of()->stream()) != error_not_ready;
}

cuda_queue::cuda_queue(std::shared_ptr<submission_queue> to) : to_(std::move(to)) {
    submission_queues::add(to_->of()->line().number(), to_);
}

cuda_queue::~cuda_queue() { submission_queues::remove(to_->of()->line().number()); }

}  // namespace weir::backend::cuda
