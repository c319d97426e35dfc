#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "backend/backend.hpp"
#include "backend/cuda/device_context.hpp"
#include "backend/cuda/driver_api.hpp"
#include "backend/cuda/lane_events.hpp"
#include "backend/event_counts.hpp"
#include "backend/hot_mutex.hpp"
#include "frontier/point.hpp"
#include "weir/detail/intrusive.hpp"
#include "weir/detail/rare.hpp"

namespace weir::backend::cuda {

/// A stream of the driver's and what Weir knows of its progress. A GPU completes work without telling anybody, so that
/// somebody has to look:
///
///     submitted(at) ... submitted(at + n)     work enters the stream, no event yet
///     event_for(at)                           somebody must wait: an event is recorded behind all that was submitted
///     look()                                  an event is over: everything up to its epoch is complete
///
/// One event can so serve many operations (rule O4), and a program that uses one stream records none for ordering. Where
/// an event must not come later than asked, since what is behind may wait for anything (rule O7), one is recorded at once
/// (`mark`). From the first time that another stream waits for this one, each operation has an event of its own (`gives_events`):
/// a stream that waits records it while the operation is the last one, else the thread that submits does before the next
/// operation enters. So at most the first wait is for more than the operation. An event that the program records has its place
/// in the same way (`program_recorded`).
///
/// To record an event is to add to the driver's queue, which waits for the device where that is full. So whoever only looks records
/// none, but asks whether the stream has anything left to do, and the thread that submits records one now and then
/// (`record_due_mark`), or before the next operation where it is asked to (`answer`): the progress of a stream that is never
/// done is seen by those.
///
/// Shared: whoever looks keeps it. Any thread, under no lock, but for `submitted`, the marks, `keep` and `time`, which
/// belong to the thread that submits.
class lane final : public detail::counted<lane> {
public:
    /// Makes a stream. `lock` guards what is kept; it lives for ever. Throws device_error.
    lane(device_context& in, timeline& line, queue_events& owner, hot_mutex& lock, int priority, unsigned flags);
    /// Uses one that others own. Throws device_error.
    lane(device_context& in, timeline& line, queue_events& owner, hot_mutex& lock, stream_handle adopted);
    ~lane();
    void last_owner_gone() noexcept { delete this; }
    lane(const lane&) = delete;
    lane& operator=(const lane&) = delete;

    [[nodiscard]] device_context& in() const noexcept { return *in_; }
    /// Where what each operation needs lies.
    [[nodiscard]] const void* first_line() const noexcept { return &in_; }
    [[nodiscard]] stream_handle stream() const noexcept { return stream_; }
    /// Whether others own the stream.
    [[nodiscard]] bool is_adopted() const noexcept { return is_adopted_; }
    /// How the driver orders it with other streams of the context.
    [[nodiscard]] implicit_order ordered_as() const noexcept { return ordered_as_; }
    /// Whether its handle means this stream on the calling thread: the handle 2 means another one on each.
    [[nodiscard]] bool is_reachable() const noexcept { return stream_ != per_thread_stream() || is_of_this_thread(); }
    [[nodiscard]] timeline& line() const noexcept { return *line_; }
    [[nodiscard]] queue_events& owner() const noexcept { return *owner_; }

    /// Everything up to this is in the stream.
    [[nodiscard]] epoch submitted() const noexcept { return submitted_.load(std::memory_order_acquire); }

    /// The operation at `at` is enqueued: the owner must stay until it is over. By the thread that enqueues.
    void enqueued(epoch at) noexcept {
        // Pairs with advance: either that sees the new end, or this sees that the owner was let go.
        last_.store(at, std::memory_order_seq_cst);
        if (!is_busy_.load(std::memory_order_seq_cst)) {
            stay();
        }
    }
    /// The same for one that enters the stream in this call, and keeps the owner meanwhile: `submitted` has it stay.
    void enters(epoch at) noexcept { last_.store(at, std::memory_order_relaxed); }
    /// The operation at `at` is in the stream.
    void submitted(epoch at) noexcept {
        submitted_.store(at, std::memory_order_seq_cst);
        make_known(at);
    }
    /// The same where a full fence and `make_known` follow anyway.
    void entered(epoch at) noexcept { submitted_.store(at, std::memory_order_release); }
    /// Sees to it that those know it who must.
    void make_known(epoch at) noexcept {
        // Pairs with watcher::look_at_all: either it sees the operation, or this sees that nobody watches any more. And with
        // leave_if_idle: either that sees the new end, or this sees that the owner was let go.
        if (!is_busy_.load(std::memory_order_seq_cst) || wanted.load(std::memory_order_seq_cst) >= at ||
            !watched.load(std::memory_order_seq_cst)) [[unlikely]] {
            detail::rare();
            find_watcher(at);
        }
    }
    /// Records an event behind everything that is in the stream, unless there is one. Throws device_error, std::bad_alloc.
    void mark();
    /// From now on others put work into the stream: nothing is recorded in it any more for operations that are complete.
    void share() noexcept;
    /// `mark` on any thread, once others may put work into the stream. Throws as that does.
    void mark_for_others();
    /// Blocks until no other thread is about to record an event for an operation up to `upto`. After `mark`, or for a stream that is
    /// shared, no new one comes: what the caller puts into the stream next comes behind all these events (rule O7).
    void await_records(epoch upto) noexcept;
    /// Everything up to this is in the stream, and so is the event behind it that work of others must not come before: a call
    /// that put it there may return to a program that puts work of its own into the stream.
    [[nodiscard]] epoch passed_on() const noexcept { return passed_on_.load(std::memory_order_acquire); }
    void passed_on(epoch at) noexcept { passed_on_.store(at, std::memory_order_release); }
    /// From now on each operation has an event at its place, for as long as the stream lives (rule O7): another stream waits for
    /// this one. The host's wait for what was submitted last does not ask for that. Any thread.
    void give_events() noexcept {
        if (!gives_events()) [[unlikely]] {
            detail::rare();
            next_mark_.store(before_each, std::memory_order_release);
        }
    }
    [[nodiscard]] bool gives_events() const noexcept {
        return next_mark_.load(std::memory_order_relaxed) == before_each;
    }
    /// The program records an event behind the operation at `at`, which was enqueued last: one of the driver's has that place, so
    /// that a wait for the operation covers nothing later. Makes no call of the driver's. Any thread.
    void program_recorded(epoch at) noexcept;
    /// Whether that is the turn of the operation at `at`, which was submitted last: `record_due_mark` follows.
    [[nodiscard]] bool is_mark_due(epoch at) const noexcept {
        // before_each wraps around: `answer` records those.
        return at > next_mark_.load(std::memory_order_relaxed) - 1;
    }
    /// Records an event behind it if one is asked for, or if it is far from the last one. Throws device_error, std::bad_alloc.
    void record_due_mark(epoch at);
    /// Keeps what an operation owns until it is over: moves it to where the answer points. Throws std::bad_alloc: then nothing
    /// was moved.
    [[nodiscard]] void* keep(epoch at, const detail::task_ref& object);
    /// The times of the operation at `at` are to be told when it is over; if it has any, `end` is one.
    struct times {
        epoch at = 0;
        event_ref start;
        event_ref end;
        std::shared_ptr<const clock_base> base;
        const detail::task_type* moment =
            nullptr;  ///< if not null: to be run then, with the time of `end` as the device's
        void* object = nullptr;
        /// What it waited for in other streams: their times are told first, whoever finds first that they are over.
        std::vector<std::pair<detail::owner<lane>, epoch>> after{};
    };
    void time(times what);
    /// Whether there are any. Of what is in the stream.
    [[nodiscard]] bool has_untold() const noexcept { return untold_.load(std::memory_order_acquire) != 0; }

    /// The operation at `at`, and all before it, is over: it ran on the host.
    void finished(epoch at) noexcept { advance(at); }

    /// An event that is over once `at` is, recorded now if there is none; empty if `at` is complete or not in the stream yet.
    /// Throws device_error, std::bad_alloc.
    [[nodiscard]] event_ref event_for(epoch at) { return recorded_for(at).event; }
    /// The same for another stream that waits for it.
    [[nodiscard]] event_ref event_for_stream(epoch at);

    /// What somebody has to wait for, or to record before; nothing if the operation is complete.
    struct awaited_end {
        event_ref event;  ///< one that is over once the operation is; or, if there is none,
        bool is_another =
            false;  ///< the calling thread has to record a new one, which `records_` of the lane counts, or
        pooled_event* again = nullptr;  ///< the calling thread has to record this one, which is in its list already,
        /// where this is. Stays afterwards: who waits for the same stream again, as streams in
        /// turn do, need not count an owner each time.
        detail::owner<lane> of;
        detail::owner<lane> former;  ///< what `of` was, which may end in a call of the driver

        /// States where to record. Under the lock.
        [[gnu::always_inline]] void record_in(const detail::owner<lane>& theirs) noexcept {
            if (of != theirs) {
                record_in_another(theirs);
            }
        }
        [[gnu::noinline]] void record_in_another(const detail::owner<lane>& theirs) noexcept {
            former = std::exchange(of, theirs);
        }
        /// Calls `wait(event)` for an event that is over once the operation is. Once, in a fork_section. Throws what that throws,
        /// device_error, std::bad_alloc.
        template <class Wait>
        [[gnu::always_inline]] void wait_with(const Wait wait) {
            if (event) {
                // Also where the driver refuses it is not for the next wait.
                const event_ref its_own = std::move(event);
                wait(its_own.handle());
                return;
            }
            if (former) [[unlikely]] {
                detail::rare();
                former = {};
            }
            if (again == nullptr) [[unlikely]] {
                detail::rare();
                if (std::exchange(is_another, false)) {
                    const Wait same(wait);  // one of its own: the first one can stay in registers
                    of->wait_with_another(same);
                }
                return;
            }
            pooled_event& one = *std::exchange(again, nullptr);
            try {
                of->record(one.handle);
                wait(one.handle);
            } catch (...) {
                of->forget(one);
                throw;
            }
            // From here on others may wait for it, and others use it again.
            lane_events::was_recorded(one);
        }
        /// Nobody waits after all.
        void cancel() noexcept;
    };
    /// Whether `at` is in the stream, and it is complete, or there is an event for it, or the calling thread can record one: for
    /// somebody who is about to wait, who fills in `end`, but for `of`. If it leaves that to the caller, `must_record`. Under the lock.
    [[nodiscard, gnu::always_inline]] bool has_entered(epoch at, awaited_end& end, bool& must_record) noexcept;

    /// The same where `at` entered the stream last and has no event yet, as with streams in turn, and there is one to be used again:
    /// that, which the caller records (`record_plainly`), then `leave_some_out` if `is_full`. Else null: nothing has changed.
    [[nodiscard, gnu::always_inline]] pooled_event* new_end(epoch at, bool& is_full) noexcept {
        return submitted() != at || has_others() || line_->completed() >= at ? nullptr
                                                                             : events_.next_behind_all(at, is_full);
    }
    void leave_some_out() noexcept { events_.leave_some_out(); }
    /// Whether an event was recorded right behind the operation at `at`: a wait for it covers nothing that came later. Under the lock.
    [[nodiscard]] bool has_own_end(epoch at) const noexcept {
        const lane_events::recorded* const found = events_.behind(at);
        return found != nullptr && found->at == at;
    }
    /// As the driver answers whichever context is current: see by_handle. The stream is not adopted.
    [[nodiscard, gnu::always_inline]] result record_plainly(event_handle event) const noexcept {
        return in_->api().event_record(event, stream_);
    }

    /// Sees to it that the operation at `at` is known to be over soon after it is. Never waits.
    void prepare(epoch at) noexcept;
    /// The same for a stream that nobody else puts work into. The operation gets an event when it enters the stream; if it did and has
    /// none, one is recorded before the next one enters. Without a next one the stream has nothing to do some day, which is seen, too.
    void ask(epoch at) noexcept;
    /// Before anything of the next operation enters: records an event behind all that is in the stream, if one is asked for there
    /// (`ask`, `give_events`).
    /// In a fork_section, by the thread that submits.
    [[gnu::always_inline]] void answer() noexcept {
        if (next_mark_.load(std::memory_order_relaxed) <= before_next) [[unlikely]] {
            detail::rare();
            record_asked_mark();
        }
    }
    /// Whether the driver's queue has room for a call, however many each operation makes, within reason.
    [[nodiscard]] bool surely_has_room() const noexcept { return submitted() <= line_->completed() + surely_fit; }
    /// Completes all that is over, as far as there are events, or else if there is nothing left to do. Never waits.
    void look() noexcept;
    /// The same with few questions to the driver, each of which takes its locks from those who submit: whether the last event is
    /// over, else one in the middle.
    void glance() noexcept;
    /// Completes what is over if `at` is: for who wants just that. Prepares that. Never waits.
    void look_for(epoch at) noexcept;
    /// Whether anything may be in the stream that is not known to be over.
    [[nodiscard]] bool has_pending() const noexcept { return line_->completed() < submitted(); }

    int idle_looks = 0;  ///< of the watcher's thread: so often in a row it had nothing to do

    /// Inside a moment that runs: the device's time.
    [[nodiscard]] static const std::chrono::steady_clock::time_point* moment() noexcept { return moment_; }

private:
    struct kept {
        epoch at;
        const detail::task_type* type;
        std::unique_ptr<std::max_align_t[]> storage;
    };
    /// One of so many operations has an event in any case.
    static constexpr epoch far_ahead = 256;
    /// CUDA's queue holds 1024 calls of the driver, and has room where no more operations than this are not known to be over: unless each
    /// is 16 calls, waits included, or more.
    static constexpr epoch surely_fit = 64;
    /// next_mark_ where an event is to be recorded before each operation from now on, and before the next one. The first epoch is 1.
    static constexpr epoch before_each = 0;
    static constexpr epoch before_next = 1;
    /// So many events at most enter the list between two operations, each by a thread that waits.
    static constexpr std::size_t between_operations = 3;

    [[nodiscard]] bool is_of_this_thread() const noexcept;
    [[nodiscard]] bool lacks_mark(epoch covered) noexcept;
    void record(event_handle event) const;
    [[gnu::cold]] void record_in_context(event_handle event) const;
    template <class Wait>
    void wait_with_another(const Wait& wait);
    void add_end(epoch covered, event_ref&& event) noexcept;
    void forget(const pooled_event& one) noexcept;
    void record_fresh_end(bool is_mark);
    void record_asked_mark() noexcept;
    void make_room() noexcept;
    void note_wait(epoch at, epoch behind) const noexcept;
    [[nodiscard]] bool is_mark_missing(epoch at) noexcept;
    [[nodiscard]] epoch last_event() noexcept;
    [[nodiscard]] epoch end_if_idle() noexcept;
    /// Whether others put work into the stream. Then there is an event behind what Weir put there last.
    [[nodiscard]] bool has_others() const noexcept {
        return is_adopted_ || others_enter_.load(std::memory_order_seq_cst);  // pairs with await_records
    }
    /// While it lives, the calling thread is about to call the driver for the stream, which it does not pass on.
    class about_to_call {
    public:
        explicit about_to_call(lane& of) noexcept : of_(&of) { of.records_.fetch_add(1, std::memory_order_seq_cst); }
        /// Of one that was counted before.
        about_to_call(lane& of, std::adopt_lock_t /*counted*/) noexcept : of_(&of) {}
        ~about_to_call() { of_->records_.fetch_sub(1, std::memory_order_release); }
        about_to_call(const about_to_call&) = delete;
        about_to_call& operator=(const about_to_call&) = delete;

    private:
        lane* of_;
    };
    [[nodiscard]] lane_events::recorded recorded_for(epoch at);
    [[nodiscard]] lane_events::recorded record_for(epoch at, epoch covered, bool is_mark);
    [[nodiscard]] bool is_over(const event_ref& event) noexcept;
    [[nodiscard]] epoch reached_with(const lane_events::recorded& last) noexcept;
    void settle(epoch reached) noexcept;
    void advance(epoch reached) noexcept;
    void stay() noexcept;
    void stay_until(epoch at) noexcept;
    void find_watcher(epoch at) noexcept;
    void leave_if_idle(epoch upto) noexcept;
    void let_go(epoch upto) noexcept;
    void tell_times(epoch upto) noexcept;
    void tell(const times& one) noexcept;
    [[nodiscard]] bool tell_next(epoch upto, std::pair<detail::owner<lane>, epoch>& before) noexcept;
    void give_up() noexcept;
    void complete() noexcept;

    // What each operation needs, on one cache line.
    alignas(64) device_context* in_;
    stream_handle stream_ = nullptr;
    std::atomic<epoch> submitted_;
    std::atomic<epoch> passed_on_;
    std::atomic<epoch> last_;       ///< enqueued
    std::atomic<epoch> next_mark_;  ///< operations from here on are to get an event

public:                            // the watcher's
    std::atomic<epoch> wanted{0};  ///< somebody waits for it
    std::atomic<bool> watched{false};

private:
    std::atomic<bool> is_busy_{false};  ///< the owner was told to stay
    bool is_adopted_ = false;
    implicit_order ordered_as_ = implicit_order::none;

    // What those need that wait, or are waited for, on one more.
    timeline* line_;
    queue_events* owner_;
    hot_mutex& mutex_;  ///< guards what follows; a leaf in the lock order
    lane_events events_;
    std::deque<kept> kept_;
    std::deque<times> times_;

    std::uint64_t thread_ = 0;  ///< the number of the one that made this, if others own the stream

    std::atomic<epoch> asked_for_{0};        ///< an event is to be behind it
    std::atomic<bool> others_enter_{false};  ///< the handle is known to others; set under the lock
    std::atomic<int> records_{0};            ///< threads that are about_to_call

    std::atomic<std::size_t> untold_{0};  ///< times that are not told yet: in times_, or on their way

    std::atomic<epoch> reached_;           ///< is over, though perhaps not completed yet
    std::atomic<epoch> lost_{0};           ///< what is not over up to here will never be: the context is broken
    std::atomic<bool> completing_{false};  ///< some thread completes up to reached_
    epoch completed_;                      ///< of the thread that completes
    static inline thread_local const std::chrono::steady_clock::time_point* moment_ = nullptr;
};

// What each operation on two streams goes through.

/// Another stream waits for the operation at `at` with an event that stands behind `behind`. Under the lock.
inline void lane::note_wait(epoch at, epoch behind) const noexcept {
    if (behind != at && !events_.is_over(behind) && line_->completed() < at) [[unlikely]] {
        detail::rare();
        event_counts::late_waits.fetch_add(1, std::memory_order_relaxed);
    }
}

[[gnu::always_inline]] inline void lane::record(event_handle event) const {
    if (is_adopted_) [[unlikely]] {  // perhaps a default one, whose handle says nothing
        record_in_context(event);
        return;
    }
    const auto call = [event, of = in_, to = stream_] { return of->api().event_record(event, to); };
    in_->expect(by_handle(*in_, call), "cuEventRecord");
}

inline bool lane::has_entered(epoch at, awaited_end& end, bool& must_record) noexcept {
    const epoch entered = submitted();
    if (entered < at) [[unlikely]] {
        detail::rare();
        return false;
    }
    must_record = false;
    // Before the events: who completes an operation drops its event afterwards, and then the first one is a later operation's.
    if (line_->completed() >= at) [[unlikely]] {
        detail::rare();
        return true;
    }
    give_events();
    const lane_events::recorded* const found = events_.behind(at);
    must_record = found == nullptr;
    note_wait(at, found == nullptr ? entered : found->at);
    if (found != nullptr) {
        end.event = found->event;
        return true;
    }
    if (has_others()) [[unlikely]] {  // out of this thread's reach, or captured by others just then
        detail::rare();
        return false;
    }
    end.again = events_.next(entered, false);
    if (end.again == nullptr) [[unlikely]] {
        detail::rare();
        end.is_another = true;
        records_.fetch_add(1, std::memory_order_relaxed);  // seen by a thread that has the lock later
    }
    return true;
}

/// With an event that is not in the list yet.
template <class Wait>
[[gnu::noinline]] void lane::wait_with_another(const Wait& wait) {
    event_ref fresh;
    epoch covered = 0;
    {
        const about_to_call until_recorded(*this, std::adopt_lock);
        fresh = in_->events.take();
        covered = submitted();
        record(fresh.handle());
    }
    wait(fresh.handle());
    add_end(covered, std::move(fresh));
}

}  // namespace weir::backend::cuda
