#include "backend/cuda/queue.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "backend/cuda/context.hpp"
#include "backend/cuda/submissions.hpp"
#include "backend/native.hpp"
#include "backend/spin.hpp"
#include "weir/detail/fork_section.hpp"
#include "weir/detail/interruption.hpp"
#include "weir/error.hpp"

namespace weir::backend::cuda {

namespace {

/// Host code that stands for work of the device, from the time it enters the stream until it has run.
struct body_call {
    detail::owner<lane> of;
    queue_events* events;
    epoch at;
    runtime::site from;
    const detail::task_type* type;
    void* object;

    static void run(void* one) noexcept {
        const std::unique_ptr<body_call> self(static_cast<body_call*>(one));
        const acting_for operation({self->of->line().number(), self->at});
        static_cast<void>(run_work(*self->events, self->at, self->from, self->type, self->object));
    }
};

/// How many streams a thread passes on for each other before it waits instead.
constexpr int most_helping = 16;
thread_local int helping = 0;

}  // namespace

submission::submission(device_context& in, timeline& line, queue_events& owner, int priority, unsigned flags,
                       host_bodies* bodies)
    : recorded_queue(line, *this),
      lane_(new lane(in, line, owner, submissions::lock_of(line.number()), priority, flags)),
      bodies_(bodies),
      number_(line.number()),
      has_straight_way_(lane_->ordered_as() == implicit_order::none) {
    make_ready();
}

submission::submission(device_context& in, timeline& line, queue_events& owner, stream_handle adopted,
                       host_bodies* bodies)
    : recorded_queue(line, *this),
      lane_(new lane(in, line, owner, submissions::lock_of(line.number()), adopted)),
      bodies_(bodies),
      number_(line.number()),
      is_shared_(true),
      has_straight_way_(false) {
    make_ready();
}

void submission::make_ready() {
    lies_at({counter_line(), &lane_, straight_.data(), lane_->first_line()});
    try {
        task_threads::instance().keep_one();
    } catch (const std::system_error& why) {
        throw device_error(std::string("no thread can be started that passes work on to a CUDA device: ") + why.what());
    }
}

void submission::reserve(std::size_t waits, const detail::task_ref& work) {
    if (!lane_->is_reachable()) {
        throw argument_error(
            "the stream is the default stream of another thread (handle 2), which only that thread can use: make a "
            "stream with weir::stream(device), which all threads can use");
    }
    targets_.reserve(waits);
    recorded_queue::reserve(waits + 1, work);
}

void submission::submit(epoch at, const operation& what) noexcept {
    if (is_for_the_host(what.kind, what.work.type)) {
        // A wait for its own stream says that it, and those that follow, are not for the driver.
        recorded_queue::wait({line().number(), at - 1});
    }
    for (const point target : targets_) {
        recorded_queue::wait(target);
    }
    targets_.clear();
    lane_->enqueued(at);
    recorded_queue::submit(at, what);
}

void submission::flush(point upto) noexcept {
    if (!lane_->is_reachable()) {
        return;  // its own thread does it
    }
    if (unclaimed_.load(std::memory_order_relaxed) && unclaimed_.exchange(false, std::memory_order_acq_rel)) {
        pass_on(false);
    }
    if (is_shared_.load(std::memory_order_acquire)) {
        await_others(upto);
    }
}

/// Another thread is at it, perhaps for longer. A body that enqueues here may be what that thread runs: it does not wait.
void submission::await_others(point upto) noexcept {
    detail::interruptible* const answers = detail::interruptible::current();
    while (lane_->passed_on() < upto.at && acting_for::current().at == 0) {
        if (!spin_until([&] { return lane_->passed_on() >= upto.at; }, true)) {
            if (answers != nullptr && !answers->may_go_on()) {
                return;
            }
            std::this_thread::yield();
        }
    }
}

/// Under the stream's lock: no operation is claimed from now on.
void submission::share() noexcept {
    is_shared_.store(true, std::memory_order_release);
    has_straight_way_.store(false, std::memory_order_relaxed);  // read under the stream's lock, too
    lane_->share();
}

/// Others may put work into the stream as soon as this returns.
void submission::await_shared(point upto) noexcept {
    flush(upto);  // waits, since the stream is shared
    try {
        lane_->mark_for_others();
    } catch (...) {
        // Without the event, waits for what is in the stream may last longer than they need to.
    }
    lane_->await_records(lane_->submitted());
}

void submission::run_blocking() noexcept {
    const std::shared_ptr<submission> self = shared_from_this();
    held_.store(false, std::memory_order_relaxed);
    pass_on(true);
}

void submission::pass_on(bool may_block) noexcept {
    if (std::exchange(was_cancelled_, false)) {
        std::for_each(straight_.begin(), straight_.end(), [](straight_wait& one) { one.end.former = {}; });
    }
    const detail::fork_section whole;  // one for all locks
    const in_context here(lane_->in());
    work_off([&](point target) { return pass(target); }, [&] { return pass_work_on(may_block); });
}

/// The stream of the driver's that `target` is in, if the driver itself puts whatever enters this one behind that (rule S6);
/// else null.
std::shared_ptr<submission> submission::ordered_behind(point target) const noexcept {
    if (lane_->ordered_as() == implicit_order::none) {
        return nullptr;
    }
    std::shared_ptr<submission> theirs = submissions::find(target.timeline);
    const bool is_behind = theirs && &theirs->lane_->in() == &lane_->in() &&
                           ordered_by_device(lane_->ordered_as(), theirs->lane_->ordered_as()) &&
                           theirs->lane_->submitted() >= target.at;
    return is_behind ? theirs : nullptr;
}

/// Whether `target` is in a stream of the driver's: then `event` is behind it.
bool submission::find_event(point target, event_ref& event) {
    const std::shared_ptr<submission> theirs = submissions::find(target.timeline);
    if (!theirs) {
        return false;
    }
    lane& from = *theirs->lane_;
    if (from.submitted() < target.at && helping < most_helping && !theirs->is_shared()) {
        // Its thread has not come to it yet. In a cycle this cannot end: work enters streams in the order of its epochs. A call into a shared
        // stream passes its own work on, and may wait for the host meanwhile, which this call must not wait for.
        ++helping;
        theirs->flush(target);
        --helping;
    }
    const auto is_there = [&] { return from.submitted() >= target.at; };
    if (!is_there() && (theirs->held_.load(std::memory_order_relaxed) || !spin_until(is_there, false))) {
        return false;
    }
    event = from.event_for_stream(target.at);
    return static_cast<bool>(event);
}

/// Whether the wait is over, or in the hands of the driver; else this is told when it is over.
bool submission::pass(point target) noexcept {
    lane_->answer();
    timeline& other = timeline_table::instance().at(target.timeline);
    host_waits_ = host_waits_ || &other == &line();
    if (other.completed() >= target.at) {
        return true;
    }
    try {
        if (const auto theirs = host_waits_ ? nullptr : ordered_behind(target)) {
            passed_.push_back(target);
            // Whoever knows later that this stream is over finds at once that the other is.
            theirs->lane_->prepare(target.at);
            return true;
        }
        event_ref event;
        if (!host_waits_ && find_event(target, event)) {
            passed_.push_back(target);
            lane_->in().expect(lane_->in().api().stream_wait_event(lane_->stream(), event.handle(), 0),
                               "cuStreamWaitEvent");
            return true;
        }
    } catch (...) {
        // No event can be had: the wait is done here instead.
    }
    return !hold_until(other, target.at);
}

/// Whether the calling thread may wait until `target` is over: not if it runs the code of a stream that this waits for. But where no
/// other thread can pass it on, nothing else is left; the owner has refused what waits for itself there.
bool submission::may_block_for(point target) noexcept {
    const point self = acting_for::current();
    return self.at == 0 || lane_->stream() == per_thread_stream() || !comes_after(target, self);
}

/// Whether this is told later, from when on another thread may pass on what is ahead. Else the calling thread has waited, as it does
/// where others put work into the stream (rule O9).
bool submission::hold_until(timeline& line, epoch at) noexcept {
    if (is_shared_.load(std::memory_order_relaxed) && may_block_for({line.number(), at}) &&
        timeline_table::instance().host_wait_or_end({line.number(), at})) {
        return false;
    }
    held_.store(true, std::memory_order_relaxed);
    if (line.wait(*this, at)) {
        return true;
    }
    held_.store(false, std::memory_order_relaxed);
    return false;
}

/// Whether it went on: else this is told, or scheduled.
bool submission::pass_work_on(bool may_block) noexcept {
    if (!std::exchange(host_waits_, false)) {
        submit_ahead();
        return true;
    }
    if (!may_block && !is_shared_.load(std::memory_order_relaxed)) {
        host_waits_ = true;
        held_.store(true, std::memory_order_relaxed);
        task_threads::instance().schedule_surely(*this);
        return false;
    }
    run_ahead();
    return true;
}

[[gnu::hot]] bool submission::is_for_the_host(runtime::work_kind what, const detail::task_type* type) const noexcept {
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

void submission::run_ahead() noexcept {
    const detail::owner<lane> of = lane_;
    epoch done = 0;
    hand_on([&](epoch at, const operation& what) {
        const acting_for self({line().number(), at});
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

void submission::submit_ahead() noexcept {
    epoch done = 0;
    entered how = entered::nothing;
    hand_on([&](epoch at, const operation& what) {
        done = at;
        how = enter_stream(at, what);
    });
    has_entered(done, how);
}

/// Puts an operation into the driver's stream, as far as it may run.
[[gnu::hot]] submission::entered submission::enter_stream(epoch at, const operation& what) noexcept {
    lane_->answer();
    if (what.work.type == nullptr) {
        return entered::nothing;
    }
    const bool is_foreign = what.work.type->nature == detail::task_nature::foreign;
    const entered how = is_foreign ? entered::foreign_work : entered::work;
    // Whether it fails is known now, unless code of the host decides it when the stream gets there.
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

/// What the operation owns is gone, or kept by the lane.
[[gnu::hot]] void submission::has_entered(epoch at, entered what) noexcept {
    if (what == entered::nothing) {
        keep_order(at);
    }
    passed_.clear();
    lane_->submitted(at);
    // In a stream with implicit order what put nothing there is over when other streams are, which an event behind it alone tells.
    const bool is_hidden = what != entered::call && lane_->ordered_as() != implicit_order::none;
    try {
        if (what == entered::foreign_work || is_hidden || is_shared_.load(std::memory_order_relaxed)) {
            lane_->mark();
        } else if (lane_->is_mark_due(at)) {
            lane_->record_due_mark(at);
        }
    } catch (...) {
        // Without the event, waits for this operation may last longer than they need to.
    }
    lane_->passed_on(at);
}

/// Whether the work is code of the host that runs when the stream gets there. A moment's code is, too, in its way.
bool submission::is_body(const operation& what) const noexcept {
    const detail::task_nature nature = what.work.type->nature;
    return nature == detail::task_nature::work || (nature == detail::task_nature::foreign && bodies_ != nullptr);
}

[[gnu::hot]] void submission::put_into_stream(epoch at, const operation& what) {
    device_context& in = lane_->in();
    if (in.is_broken()) {
        throw device_error(in.why_broken());
    }
    const detail::task_type& type = *what.work.type;
    const bool is_moment = what.kind == runtime::work_kind::moment;
    if (type.nature == detail::task_nature::native && type.trivial && !what.timed && !is_moment && bodies_ == nullptr) {
        const acting_for self({line().number(), at});
        const submitting_to stream(lane_->stream());
        type.run(what.work.object);
        return;
    }
    if (type.nature == detail::task_nature::foreign) {
        lane_->mark();
        lane_->await_records(lane_->submitted());
    }
    lane::times told;
    told.at = at;
    if (is_moment) {
        told.base = in.base();
        told.end = in.timed_events.take();
    } else if (what.timed) {
        begin_times(told);
    }
    const bool runs_later = is_body(what);
    void* object = what.work.object;
    if (!type.trivial || runs_later) {
        object = lane_->keep(at, what.work);
    }
    if (is_moment) {
        told.moment = &type;
        told.object = object;
    } else if (runs_later) {
        put_body(at, what.from, &type, object);
    } else {
        if (bodies_ != nullptr) {
            // What it depends on may yet fail: then it runs all the same, and its results are refused (rule K4).
            put_body(at, what.from, nullptr, nullptr);
        }
        const acting_for self({line().number(), at});
        const submitting_to stream(lane_->stream());
        type.run(object);
    }
    if (is_moment) {
        end_times(std::move(told));
    } else if (told.end) {
        try {
            end_times(std::move(told));
        } catch (...) {
            // The operation is in the stream: it has no times.
        }
    }
}

/// Of an operation that a trace wants the times of. Where they cannot be had it has none.
void submission::begin_times(lane::times& told) noexcept {
    device_context& in = lane_->in();
    try {
        told.base = in.base();
        told.start = in.timed_events.take();
        event_ref end = in.timed_events.take();
        in.expect(in.api().event_record(told.start.handle(), lane_->stream()), "cuEventRecord");
        told.end = std::move(end);
    } catch (...) {
        told.start = {};
    }
}

/// Whoever finds that it is over must tell first what else is. Throws std::bad_alloc.
void submission::tells_after_passed(lane::times& told) const {
    for (const point target : passed_) {
        if (const auto theirs = submissions::find(target.timeline); theirs && theirs->lane_->has_untold()) {
            told.after.emplace_back(theirs->lane_, target.at);
        }
    }
}

/// What put nothing into the stream but waits has no times, and yet others must be told before it is known to be over: a host task
/// may be behind it, which runs at once, or the host.
void submission::keep_order(epoch at) noexcept {
    if (passed_.empty()) {
        return;
    }
    try {
        lane::times told;
        told.at = at;
        tells_after_passed(told);
        if (!told.after.empty()) {
            lane_->time(std::move(told));
        }
    } catch (const std::bad_alloc&) {
        // No memory: they come in another order.
    }
}

/// Throws device_error, std::bad_alloc.
void submission::end_times(lane::times&& told) {
    tells_after_passed(told);
    const device_context& in = lane_->in();
    in.expect(in.api().event_record(told.end.handle(), lane_->stream()), "cuEventRecord");
    lane_->time(std::move(told));
}

void submission::put_body(epoch at, const runtime::site& from, const detail::task_type* type, void* object) {
    auto call = std::make_unique<body_call>(body_call{lane_, &lane_->owner(), at, from, type, object});
    bodies_->put(lane_->stream(), &body_call::run, call.get());
    static_cast<void>(call.release());  // its own from here on
}

std::optional<int> cuda_queue::priority() const noexcept {
    const device_context& in = to_->of()->in();
    const in_relaxed_context here(in);
    int found = 0;
    const bool is_told = in.api().stream_priority(to_->of()->stream(), &found) == success;
    return is_told ? std::optional(found) : std::nullopt;
}

void cuda_queue::expect_no_capture() const {
    if (to_->of()->is_reachable()) {
        cuda::expect_no_capture(to_->of()->in(), to_->of()->stream());
    }
}

bool cuda_queue::is_idle() const {
    const device_context& in = to_->of()->in();
    if (!to_->of()->is_reachable()) {
        return false;  // this thread cannot ask
    }
    expect_no_capture();  // to ask a stream that is being captured for its progress would end that
    const in_relaxed_context here(in);
    return in.api().stream_query(to_->of()->stream()) != error_not_ready;
}

cuda_queue::cuda_queue(std::shared_ptr<submission> to) : to_(std::move(to)) {
    submissions::add(to_->of()->line().number(), to_);
}

cuda_queue::~cuda_queue() { submissions::remove(to_->of()->line().number()); }

}  // namespace weir::backend::cuda
