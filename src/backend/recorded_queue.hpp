#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <utility>

#include "backend/backend.hpp"
#include "backend/record_ring.hpp"
#include "frontier/point.hpp"
#include "observe/acting.hpp"

namespace weir::backend {

/// A queue whose waits and operations are stored, in order, in host memory until a thread runs them: the common
/// part of all queues that Weir itself runs. While such a queue waits for another stream it occupies no thread.
///
/// One thread at a time submits; one thread at a time, perhaps another one, runs the records (`look`, `execute`, `rest`).
class recorded_queue : public queue {
public:
    void reserve(std::size_t waits, const detail::task_ref& work) override;
    void wait(point target) noexcept override;
    void submit(epoch at, const operation& what) noexcept override;

protected:
    recorded_queue(timeline& line, queue_events& events) : line_(&line), events_(&events) {}

    /// What is at the front, once waits that are over have been removed.
    enum class ahead : std::uint8_t {
        nothing,
        work,
        waiting,  ///< a wait that is not over: another thread may run the queue already, once the waiter is notified
    };

    /// The queue had no work and has some now: has its records run soon. Called by the submitting thread, under the
    /// stream's lock.
    virtual void schedule() noexcept = 0;

    /// Removes waits as long as `pass(target)` returns true: then they need not be waited for.
    template <class Pass>
    [[nodiscard]] ahead look_past(Pass&& pass) noexcept {
        for (;;) {
            void* const front = records_.front();
            if (front == nullptr) {
                return ahead::nothing;
            }
            if (*static_cast<kind*>(front) == kind::work) {
                return ahead::work;
            }
            const point target = static_cast<wait_record*>(front)->target;
            records_.pop(sizeof(wait_record));
            if (!pass(target)) {
                return ahead::waiting;
            }
        }
    }
    /// Removes waits as `look_past` does, and runs work by `work()`, until one of them leaves the queue to another thread, or nothing
    /// is left and the queue rests: then it may be destroyed.
    template <class Pass, class Work>
    void work_off(Pass&& pass, Work&& work) noexcept {
        for (;;) {
            const ahead found = look_past(pass);
            if (found == ahead::waiting) {
                return;
            }
            if (found == ahead::nothing ? rest() : !work()) {
                return;
            }
        }
    }
    /// Removes waits that are over. `self` is notified when the first remaining wait is over.
    [[nodiscard]] ahead look(waiter& self) noexcept;
    /// Whether there is a record that an earlier load of the producer's state has shown.
    [[nodiscard]] bool sees_records() const noexcept { return records_.has_seen(); }
    /// Whether there are submitted records that have not run. Loads the producer's state if it knows of none.
    [[nodiscard]] bool has_records() noexcept { return records_.front() != nullptr; }
    /// The kind of the work at the front. Requires that `look` returned `work`.
    [[nodiscard]] runtime::work_kind kind_ahead() noexcept { return front().work; }
    /// Whether there is only an epoch to complete, and nothing to run.
    [[nodiscard]] bool is_empty_ahead() noexcept { return front().type == nullptr; }
    /// The nature of the code at the front. Requires that there is some.
    [[nodiscard]] detail::task_nature nature_ahead() noexcept { return front().type->nature; }
    [[nodiscard]] runtime::site site_ahead() noexcept { return front().from(); }
    [[nodiscard]] epoch epoch_ahead() noexcept { return front().at; }
    [[nodiscard]] timeline& line() noexcept { return *line_; }
    /// Address of the counter of pending operations, to prefetch it.
    [[nodiscard]] const void* counter_line() const noexcept { return &pending_; }
    /// Whether there are submitted operations that are not yet accounted for as run, as the submitting thread sees it.
    [[nodiscard]] bool is_pending() const noexcept { return pending_.value.load(std::memory_order_acquire) != 0; }

    /// Runs the work at the front and completes its epoch. `started` and `ended` return the time; called only for timed work.
    template <class Started, class Ended>
    void execute(Started&& started, Ended&& ended) noexcept {
        work_record& record = front();
        const detail::task_type* const type = record.type;
        const epoch at = record.at;
        void* const object = reinterpret_cast<std::byte*>(&record) + work_header;
        {
            const observe::acting_for self({line_->number(), at});
            const auto start = record.timed ? started() : std::chrono::steady_clock::time_point();
            if (run_work(*events_, at, record.from(), type, object) && record.timed && type != nullptr) {
                events_->executed(at, start, ended());
            }
            drop_front(record, object);
        }
        line_->complete(at);
    }
    void execute() noexcept {
        execute([] { return std::chrono::steady_clock::now(); }, [] { return std::chrono::steady_clock::now(); });
    }

    /// Hands the work at the front to `take(epoch, operation)` instead, which moves it out and has it completed later. If
    /// that throws, the work stays at the front.
    template <class Take>
    void hand_on(Take&& take) {
        work_record& record = front();
        void* const object = reinterpret_cast<std::byte*>(&record) + work_header;
        const epoch at = record.at;
        take(at, operation{{record.type, object}, record.from(), record.work, record.timed});
        const observe::acting_for self({line_->number(), at});
        drop_front(record, object);
    }
    /// Fails the work at the front without running it.
    void fail_ahead(std::exception_ptr why) noexcept {
        work_record& record = front();
        const epoch at = record.at;
        events_->failed(at, record.from(), std::move(why));
        const observe::acting_for self({line_->number(), at});
        drop_front(record, reinterpret_cast<std::byte*>(&record) + work_header);
        line_->complete(at);
    }

    /// Claims the queue, like a thread that runs its records, to have one operation bypass the records, and counts that operation as
    /// pending: `rest_alone` must follow. Requires that nothing is pending (`is_pending`). By the submitting thread.
    void claim_alone() noexcept {
        pending_.value.store(1, std::memory_order_relaxed);  // only the submitting thread raises it from 0
    }
    /// True if nothing was submitted since: the queue rests. Otherwise the thread still has the queue, for the new records. A full fence.
    [[nodiscard]] bool rest_alone() noexcept {
        const bool rests = pending_.value.fetch_sub(1, std::memory_order_seq_cst) == 1;
#ifndef __x86_64__
        std::atomic_thread_fence(std::memory_order_seq_cst);  // on x86-64 the read-modify-write itself is a full fence
#endif
        return rests;
    }
    /// Accounts for what has run since the last rest. True if nothing is left: then another thread may run the queue already, and it may
    /// be destroyed.
    [[nodiscard]] bool rest() noexcept;

private:
    enum class kind : std::uint8_t { wait, work };
    struct wait_record {
        kind what;
        point target;
    };
    /// Kept short, since each byte of it travels from the submitting processor to the one that runs it.
    struct work_record {
        kind what;
        runtime::work_kind work;
        bool timed;
        std::uint32_t line;  ///< this, `label`, `file` and `function` are the site that enqueued it
        const char* label;
        const char* file;
        const char* function;
        epoch at;
        const detail::task_type* type;  ///< null: there is only the epoch to complete

        [[nodiscard]] runtime::site from() const noexcept { return {label, {file, function, line}}; }
    };
    static constexpr std::size_t work_header = record_ring::rounded(sizeof(work_record));

    [[nodiscard]] work_record& front() noexcept { return *static_cast<work_record*>(records_.front()); }

    void drop_front(work_record& record, void* object) noexcept {
        const detail::task_type* const type = record.type;
        if (type != nullptr) {
            type->destroy(object);
        }
        records_.pop(work_header + (type == nullptr ? 0 : type->size));
        ++ran_;
    }

    timeline* line_;
    queue_events* events_;
    record_ring records_;
    std::int64_t ran_ = 0;  ///< operations that ran since the last rest; owned by the thread that runs records
    /// Operations submitted and not accounted for as run. The thread that raises it from 0 schedules the queue. While it is above
    /// 0 the queue is scheduled, or a thread runs it, or it waits. A thread that has run an operation before the submitting thread
    /// counts it leaves -1 behind; the submitting thread then finds that there is nothing left to schedule.
    ///
    /// On cache lines of its own: the thread that runs records polls members of derived classes while there are no records,
    /// and each poll would take the counter from the submitting thread.
    struct alignas(64) counter {
        std::atomic<std::int64_t> value{0};
    } pending_;
};

}  // namespace weir::backend
