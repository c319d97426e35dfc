#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "backend/backend.hpp"
#include "backend/cuda/api/driver_api.hpp"
#include "backend/cuda/device/device_context.hpp"
#include "backend/cuda/streams/driver_stream_events.hpp"
#include "backend/event_counts.hpp"
#include "backend/hot_mutex.hpp"
#include "frontier/point.hpp"
#include "weir/detail/intrusive.hpp"
#include "weir/detail/rare.hpp"

namespace weir::backend::cuda {

/// A stream of the driver and what Weir knows of its progress. A GPU does not notify the host when work is complete, so a host
/// thread has to look:
///
///     submitted(at) ... submitted(at + n)     work enters the stream, no event yet
///     event_for(at)                           a thread or a stream must wait: an event is recorded behind all that was submitted
///     look()                                  an event is complete: everything up to its epoch is complete
///
/// One event can thus serve many operations (rule O4), and a program that uses one stream records none for ordering. Some events
/// must not cover more than was asked, because later work in the stream may wait for anything (rule O7). Such an event is recorded
/// at once and pinned (`pin_event`). From the first time that another stream waits for this one, each operation has an event of its
/// own (`gives_events`). The stream that waits records it while the operation is the last one; otherwise the submitting thread
/// records it before the next operation enters. So at most the first wait covers more than the operation. An event that the program
/// records gets its place in the same way (`program_recorded`).
///
/// Recording an event adds to the driver's queue, which blocks while that is full. So a thread that only looks records no event,
/// but asks the driver whether the stream has anything left to do. The submitting thread records one now and then
/// (`record_due_event`), and before the next operation where one is asked for (`answer`). These events show the progress of a
/// stream that never runs empty.
///
/// Reference-counted: a thread that looks holds a reference. May be used by any thread, under no lock. Exceptions: `submitted`,
/// `pin_event`, `keep` and `time` belong to the submitting thread.
class driver_stream final : public detail::counted<driver_stream> {
public:
    /// Makes a stream. `lock` guards what is kept; it is never destroyed. Throws device_error.
    driver_stream(device_context& in, timeline& line, queue_events& owner, hot_mutex& lock, int priority,
                  unsigned flags);
    /// Uses a stream that the program or a library owns. Throws device_error.
    driver_stream(device_context& in, timeline& line, queue_events& owner, hot_mutex& lock, stream_handle adopted);
    ~driver_stream();
    void last_owner_gone() noexcept { delete this; }
    driver_stream(const driver_stream&) = delete;
    driver_stream& operator=(const driver_stream&) = delete;

    [[nodiscard]] device_context& in() const noexcept { return *in_; }
    /// Address of the members that each operation needs, to prefetch them.
    [[nodiscard]] const void* first_line() const noexcept { return &in_; }
    [[nodiscard]] stream_handle stream() const noexcept { return stream_; }
    /// Whether the program or a library owns the stream.
    [[nodiscard]] bool is_adopted() const noexcept { return is_adopted_; }
    /// How the driver orders it with other streams of the context.
    [[nodiscard]] implicit_order ordered_as() const noexcept { return ordered_as_; }
    /// Whether its handle means this stream on the calling thread: the handle 2 means another stream on each thread.
    [[nodiscard]] bool is_reachable() const noexcept { return stream_ != per_thread_stream() || is_of_this_thread(); }
    [[nodiscard]] timeline& line() const noexcept { return *line_; }
    [[nodiscard]] queue_events& owner() const noexcept { return *owner_; }

    /// Everything up to this epoch is in the stream.
    [[nodiscard]] epoch submitted() const noexcept { return submitted_.load(std::memory_order_acquire); }

    /// The operation at `at` is enqueued: the owner must stay until it is complete. Called by the enqueuing thread.
    void enqueued(epoch at) noexcept {
        // Pairs with leave_if_idle: either that sees the new last_, or this sees that is_busy_ was cleared.
        last_.store(at, std::memory_order_seq_cst);
        if (!is_busy_.load(std::memory_order_seq_cst)) {
            stay();
        }
    }
    /// The same for an operation that enters the stream in this call. The caller keeps the owner alive meanwhile; `submitted` has it stay.
    void enters(epoch at) noexcept { last_.store(at, std::memory_order_relaxed); }
    /// States that the operation at `at` is in the stream.
    void submitted(epoch at) noexcept {
        submitted_.store(at, std::memory_order_seq_cst);
        make_known(at);
    }
    /// The same for a caller that then executes a full fence and calls `make_known`.
    void entered(epoch at) noexcept { submitted_.store(at, std::memory_order_release); }
    /// Has the watcher look at the stream if a thread or a stream waits for `at` or the watcher does not watch the stream, and has
    /// the owner stay if the stream was idle.
    void make_known(epoch at) noexcept {
        // Pairs with watcher::look_at_all: either it sees the operation, or this sees that the stream is no longer watched. Pairs
        // with leave_if_idle: either that sees the new last_, or this sees that is_busy_ was cleared.
        if (!is_busy_.load(std::memory_order_seq_cst) || wanted.load(std::memory_order_seq_cst) >= at ||
            !watched.load(std::memory_order_seq_cst)) [[unlikely]] {
            detail::cold_path();
            find_watcher(at);
        }
    }
    /// Records a pinned event behind everything that is in the stream, unless there is an event. Throws device_error, std::bad_alloc.
    void pin_event();
    /// From now on the program or a library also puts work into the stream: no event is recorded in it any more for complete operations.
    void share() noexcept;
    /// `pin_event` on any thread, once other code may put work into the stream. Throws what pin_event throws.
    void pin_event_for_others();
    /// Blocks until no other thread is about to record an event up to `upto`, or until the thread's interruptible ends the wait. After
    /// `pin_event`, or for a shared stream, none begins to: what the caller puts there next comes behind all these events (rule O7).
    void await_records(epoch upto) noexcept;
    /// Everything up to this epoch is in the stream, and so is the event behind it, if one must come before work of other code. A call
    /// that put it there may return to a program that puts work of its own into the stream.
    [[nodiscard]] epoch passed_on() const noexcept { return passed_on_.load(std::memory_order_acquire); }
    void passed_on(epoch at) noexcept { passed_on_.store(at, std::memory_order_release); }
    /// From now on each operation has an event right behind it, for as long as the stream lives (rule O7): another stream waits for
    /// this one. A host wait for the last submitted operation does not need that. Any thread.
    void give_events() noexcept {
        if (!gives_events()) [[unlikely]] {
            detail::cold_path();
            next_due_.store(before_each, std::memory_order_release);
        }
    }
    [[nodiscard]] bool gives_events() const noexcept {
        return next_due_.load(std::memory_order_relaxed) == before_each;
    }
    /// The program records an event behind the operation at `at`, which was enqueued last. A driver event gets that place, so that
    /// a wait for the operation covers nothing later. Makes no driver call. Any thread.
    void program_recorded(epoch at) noexcept;
    /// Whether an event is due behind the operation at `at`, which was submitted last. If so, call `record_due_event`.
    [[nodiscard]] bool is_event_due(epoch at) const noexcept {
        // next_pinned_ == before_each wraps around and gives false: `answer` records these events.
        return at > next_due_.load(std::memory_order_relaxed) - 1;
    }
    /// Records an event behind `at` if one is asked for, or if the last one is far behind. Throws device_error, std::bad_alloc.
    void record_due_event(epoch at);
    /// Keeps what an operation owns until it is complete: moves it to the returned address. Throws std::bad_alloc: then nothing
    /// was moved.
    [[nodiscard]] void* keep(epoch at, const detail::task_ref& object);
    /// The times of the operation at `at` are reported once it is complete, provided that `end` is set.
    struct times {
        epoch at = 0;
        event_ref start;
        event_ref end;
        std::shared_ptr<const clock_base> base;
        /// If not null: run then, with the time of `end` as the device's time.
        const detail::task_type* moment = nullptr;
        void* object = nullptr;
        /// Operations of other streams that it waited for: their times are reported first, by the thread that finds this one complete.
        std::vector<std::pair<detail::owner<driver_stream>, epoch>> after{};
    };
    void time(times what);
    /// Whether there are any times that are not reported yet, of what is in the stream.
    [[nodiscard]] bool has_unreported() const noexcept { return unreported_.load(std::memory_order_acquire) != 0; }

    /// The operation at `at`, which ran on the host, is complete, and so are all before it.
    void finished(epoch at) noexcept { advance(at); }

    /// An event that is complete once `at` is, recorded now if there is none; empty if `at` is complete or not in the stream yet.
    /// Throws device_error, std::bad_alloc.
    [[nodiscard]] event_ref event_for(epoch at) { return recorded_for(at).event; }
    /// The same for another stream that is about to wait for it.
    [[nodiscard]] event_ref event_for_stream(epoch at);

    /// The event that a stream has to wait for, or has to record before it waits; nothing if the operation is complete.
    struct awaited_end {
        /// One that is complete once the operation is. If there is none:
        event_ref event;
        /// The calling thread has to record a new one, counted in `records_` of the driver stream, or:
        bool is_another = false;
        /// The calling thread has to record this one, which is already in the list of `of`.
        pooled_event* again = nullptr;
        /// The driver stream to record in. Stays set afterwards, so that a repeated wait for the same stream need not change the
        /// reference count.
        detail::owner<driver_stream> of;
        detail::owner<driver_stream> former;  ///< the previous `of`; releasing it may call the driver

        /// Sets the driver stream to record in. Under the lock.
        [[gnu::always_inline]] void record_in(const detail::owner<driver_stream>& theirs) noexcept {
            if (of != theirs) {
                record_in_another(theirs);
            }
        }
        [[gnu::noinline]] void record_in_another(const detail::owner<driver_stream>& theirs) noexcept {
            former = std::exchange(of, theirs);
        }
        /// Calls `wait(event)` for an event that is complete once the operation is. Call it once, in a fork_section. Throws what
        /// `wait` throws, device_error, std::bad_alloc.
        template <class Wait>
        [[gnu::always_inline]] void wait_with(const Wait wait) {
            if (event) {
                // Moved out first: where the driver refuses the wait, the event must not stay for the next wait.
                const event_ref its_own = std::move(event);
                wait(its_own.handle());
                return;
            }
            if (former) [[unlikely]] {
                detail::cold_path();
                former = {};
            }
            if (again == nullptr) [[unlikely]] {
                detail::cold_path();
                if (std::exchange(is_another, false)) {
                    const Wait same(wait);  // a copy, so that the first one can stay in registers
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
            // From here on other threads may wait for the event, and may use it again.
            driver_stream_events::was_recorded(one);
        }
        /// The wait is not carried out after all.
        void cancel() noexcept;
    };
    /// Whether `at` is in the stream, and it is complete, or there is an event for it, or the calling thread can record one. For a caller
    /// that is about to wait. Fills in `end`, except `of`; sets `must_record` if the caller has to record the event. Under the lock.
    [[nodiscard, gnu::always_inline]] bool has_entered(epoch at, awaited_end& end, bool& must_record) noexcept;

    /// The same for the common case that `at` entered the stream last, has no event yet, and an event can be used again. Returns that
    /// event: the caller records it (`record_plainly`), then calls `leave_some_out` if `is_full`. Otherwise returns null and changes
    /// nothing.
    [[nodiscard, gnu::always_inline]] pooled_event* new_end(epoch at, bool& is_full) noexcept {
        return submitted() != at || has_others() || line_->completed() >= at ? nullptr
                                                                             : events_.next_behind_all(at, is_full);
    }
    void leave_some_out() noexcept { events_.leave_some_out(); }
    /// Whether an event was recorded right behind the operation at `at`, so that a wait for it covers nothing later. Under the lock.
    [[nodiscard]] bool has_own_end(epoch at) const noexcept {
        const driver_stream_events::recorded* const found = events_.behind(at);
        return found != nullptr && found->at == at;
    }
    /// Returns what the driver answers, whichever context is current: see by_handle. The stream is not adopted.
    [[nodiscard, gnu::always_inline]] result record_plainly(event_handle event) const noexcept {
        return in_->api().event_record(event, stream_);
    }

    /// Makes sure that the operation at `at` is found complete soon after it is. Never waits.
    void prepare(epoch at) noexcept;
    /// The same for a stream into which only Weir puts work. The operation gets an event when it enters the stream. If it has entered
    /// without one, an event is recorded before the next operation enters. Without a next operation the stream runs empty, which is seen.
    void ask(epoch at) noexcept;
    /// Before anything of the next operation enters: records an event behind all that is in the stream, if one is asked for there
    /// (`ask`, `give_events`). In a fork_section, by the submitting thread.
    [[gnu::always_inline]] void answer() noexcept {
        if (next_due_.load(std::memory_order_relaxed) <= before_next) [[unlikely]] {
            detail::cold_path();
            record_asked_event();
        }
    }
    /// Whether the driver's queue has room for a call, assuming that each operation makes fewer than 16.
    [[nodiscard]] bool surely_has_room() const noexcept { return submitted() <= line_->completed() + surely_fit; }
    /// Completes every operation known to be complete by its events, or all of them if the stream has nothing left to do. Never waits.
    void look() noexcept;
    /// The same with few queries, since each takes driver locks from the submitting threads: whether the last event is complete,
    /// else one in the middle.
    void glance() noexcept;
    /// Completes everything up to `at` if it is complete on the device: for a thread that waits only for `at`. Prepares `at`. Never waits.
    void look_for(epoch at) noexcept;
    /// Whether the stream may hold anything that is not known to be complete.
    [[nodiscard]] bool has_pending() const noexcept { return line_->completed() < submitted(); }

    int idle_looks = 0;  ///< of the watcher's thread: how many looks in a row found nothing to do

    /// While a moment runs: the device's time.
    [[nodiscard]] static const std::chrono::steady_clock::time_point* moment() noexcept { return moment_; }

private:
    /// An object that lives until its operation is complete.
    struct kept {
        epoch at = 0;
        const detail::task_type* type = nullptr;
        std::unique_ptr<std::max_align_t[]> storage;  ///< of objects that are larger than `room`
        alignas(std::max_align_t) std::array<std::byte, 64> room;

        [[nodiscard]] void* place() noexcept { return storage ? static_cast<void*>(storage.get()) : room.data(); }
    };
    /// At most this number of elements are kept for later objects.
    static constexpr std::size_t most_spare = 256;
    /// At least one of this number of successive operations has an event.
    static constexpr epoch far_ahead = 256;
    /// CUDA's queue holds 1024 driver calls. It has room while at most this many operations are not known to be complete, unless each
    /// makes 16 calls or more, waits included.
    static constexpr epoch surely_fit = 64;
    /// Values of next_pinned_: record an event before each operation from now on, or before the next one. The first epoch is 1.
    static constexpr epoch before_each = 0;
    static constexpr epoch before_next = 1;
    /// At most this number of events enter the list between two operations, each added by a waiting thread.
    static constexpr std::size_t between_operations = 3;

    [[nodiscard]] bool is_of_this_thread() const noexcept;
    [[nodiscard]] bool lacks_pinned_event(epoch covered) noexcept;
    void record(event_handle event) const;
    [[gnu::cold]] void record_in_context(event_handle event) const;
    template <class Wait>
    void wait_with_another(const Wait& wait);
    void add_end(epoch covered, event_ref&& event) noexcept;
    void forget(const pooled_event& one) noexcept;
    void record_fresh_end(bool is_pinned);
    void record_end(epoch covered, pooled_event* again, bool is_pinned);
    void record_asked_event() noexcept;
    void make_room() noexcept;
    void note_wait(epoch at, epoch behind) const noexcept;
    [[nodiscard]] bool is_event_missing(epoch at) noexcept;
    [[nodiscard]] epoch last_event() noexcept;
    [[nodiscard]] epoch end_if_idle() noexcept;
    /// Whether other code puts work into the stream. Then there is an event behind the last operation that Weir put there.
    [[nodiscard]] bool has_others() const noexcept {
        return is_adopted_ || others_enter_.load(std::memory_order_seq_cst);  // pairs with await_records
    }
    /// While it lives, the calling thread, which is not the submitting one, is about to call the driver for the stream.
    class about_to_call {
    public:
        explicit about_to_call(driver_stream& of) noexcept : of_(&of) {
            of.records_.fetch_add(1, std::memory_order_seq_cst);
        }
        /// For a call that has been counted in records_ already.
        about_to_call(driver_stream& of, std::adopt_lock_t /*counted*/) noexcept : of_(&of) {}
        ~about_to_call() { of_->records_.fetch_sub(1, std::memory_order_release); }
        about_to_call(const about_to_call&) = delete;
        about_to_call& operator=(const about_to_call&) = delete;

    private:
        driver_stream* of_;
    };
    [[nodiscard]] driver_stream_events::recorded recorded_for(epoch at);
    [[nodiscard]] driver_stream_events::recorded record_for(epoch at, epoch covered, bool is_pinned);
    [[nodiscard]] bool is_over(const event_ref& event) noexcept;
    [[nodiscard]] epoch reached_with(const driver_stream_events::recorded& last) noexcept;
    void settle(epoch reached) noexcept;
    void advance(epoch reached) noexcept;
    void stay() noexcept;
    void stay_until(epoch at) noexcept;
    void find_watcher(epoch at) noexcept;
    void leave_if_idle(epoch upto) noexcept;
    void let_go(epoch upto) noexcept;
    void report_times(epoch upto) noexcept;
    void report(const times& one) noexcept;
    [[nodiscard]] bool report_next_times(epoch upto, std::pair<detail::owner<driver_stream>, epoch>& before) noexcept;
    void give_up() noexcept;
    void complete() noexcept;

    // Members that each operation needs, on one cache line.
    alignas(64) device_context* in_;
    stream_handle stream_ = nullptr;
    std::atomic<epoch> submitted_;
    std::atomic<epoch> passed_on_;
    std::atomic<epoch> last_;      ///< the last epoch enqueued
    std::atomic<epoch> next_due_;  ///< operations from this epoch on are to get an event

public:                            // the watcher's
    std::atomic<epoch> wanted{0};  ///< a thread or a stream waits for this epoch
    std::atomic<bool> watched{false};

private:
    std::atomic<bool> is_busy_{false};  ///< the owner was asked to stay (queue_events::busy)
    bool is_adopted_ = false;
    implicit_order ordered_as_ = implicit_order::none;

    // Members that a wait needs, on either side, on one more cache line.
    timeline* line_;
    queue_events* owner_;
    hot_mutex& mutex_;  ///< guards what follows; a leaf in the lock order
    driver_stream_events events_;
    std::list<kept> kept_;
    std::list<kept> spare_;  ///< elements without an object, so that `keep` need not allocate
    std::deque<times> times_;

    std::uint64_t thread_ = 0;  ///< number of the thread that made this, if the stream is adopted

    std::atomic<epoch> asked_for_{0};        ///< record an event behind this epoch
    std::atomic<bool> others_enter_{false};  ///< the program has the handle; set under the lock
    std::atomic<int> records_{0};            ///< number of threads that are about_to_call

    std::atomic<std::size_t> unreported_{0};  ///< times not reported yet: in times_, or being reported

    std::atomic<epoch> reached_;           ///< complete on the device, though perhaps not completed in the timeline yet
    std::atomic<epoch> lost_{0};           ///< up to here, what is not complete never will be: the context is broken
    std::atomic<bool> completing_{false};  ///< a thread is completing up to reached_
    epoch completed_;                      ///< owned by the completing thread
    static inline thread_local const std::chrono::steady_clock::time_point* moment_ = nullptr;
};

// What each operation that spans two streams runs through.

/// Another stream waits for the operation at `at` with an event that covers everything up to `behind`. Under the lock.
inline void driver_stream::note_wait(epoch at, epoch behind) const noexcept {
    if (behind != at && !events_.is_over(behind) && line_->completed() < at) [[unlikely]] {
        detail::cold_path();
        event_counts::late_waits.fetch_add(1, std::memory_order_relaxed);
    }
}

[[gnu::always_inline]] inline void driver_stream::record(event_handle event) const {
    if (is_adopted_) [[unlikely]] {  // perhaps a default stream, whose handle does not determine the context
        record_in_context(event);
        return;
    }
    const auto call = [event, of = in_, to = stream_] { return of->api().event_record(event, to); };
    in_->expect(by_handle(*in_, call), "cuEventRecord");
}

/// Keeps the owner of a driver stream while a thread that has no reference to it puts an operation into the stream. The operation may
/// complete as soon as it is submitted; the queue then gives up its owner, perhaps after the program's last handle, and before
/// `make_known` has looked whether the owner is to stay.
class kept_stream_owner {
public:
    explicit kept_stream_owner(const driver_stream& of) noexcept : owner_(of.owner()) { owner_.busy(); }
    ~kept_stream_owner() { owner_.idle(); }
    kept_stream_owner(const kept_stream_owner&) = delete;
    kept_stream_owner& operator=(const kept_stream_owner&) = delete;

private:
    queue_events& owner_;
};

inline bool driver_stream::has_entered(epoch at, awaited_end& end, bool& must_record) noexcept {
    const epoch entered = submitted();
    if (entered < at) [[unlikely]] {
        detail::cold_path();
        return false;
    }
    must_record = false;
    // Before the events: a thread that completes an operation drops its event afterwards, and then the first event is a later operation's.
    if (line_->completed() >= at) [[unlikely]] {
        detail::cold_path();
        return true;
    }
    give_events();
    const driver_stream_events::recorded* const found = events_.behind(at);
    must_record = found == nullptr;
    note_wait(at, found == nullptr ? entered : found->at);
    if (found != nullptr) {
        end.event = found->event;
        return true;
    }
    if (has_others()) [[unlikely]] {  // this thread cannot reach the stream, or other code may be capturing it
        detail::cold_path();
        return false;
    }
    end.again = events_.next(entered, false);
    if (end.again == nullptr) [[unlikely]] {
        detail::cold_path();
        end.is_another = true;
        records_.fetch_add(1, std::memory_order_relaxed);  // visible to a thread that takes the lock later
    }
    return true;
}

/// With a new event, which is not in the list yet.
template <class Wait>
[[gnu::noinline]] void driver_stream::wait_with_another(const Wait& wait) {
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
