#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <utility>

#include "backend/acting.hpp"
#include "backend/backend.hpp"
#include "backend/record_ring.hpp"
#include "frontier/point.hpp"

namespace weir::backend {

/// A queue whose waits and operations lie, in order, in memory of the host until somebody comes and runs them: the common
/// part of all queues that Weir itself works off. While such a queue waits for another stream it holds no thread.
///
/// One thread at a time submits; one thread at a time, perhaps another, works off (`look`, `execute`, `rest`).
class recorded_queue : public queue {
public:
    void reserve(std::size_t waits, const detail::task_ref& work) override;
    void wait(point target) noexcept override;
    void submit(epoch at, const operation& what) noexcept override;

protected:
    recorded_queue(timeline& line, queue_events& events) : line_(&line), events_(&events) {}

    /// What lies at the front, once waits that are over are out of the way.
    enum class ahead : std::uint8_t {
        nothing,
        work,
        waiting,  ///< a wait that is not over: another thread may have the queue already, as the waiter is told
    };

    /// Has the queue worked off soon: it had no work, and has some now. Called by the thread that submits, under the
    /// stream's lock.
    virtual void schedule() noexcept = 0;

    /// Takes out waits as long as `pass(target)` says that they need not be waited for.
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
    /// Takes out waits as `look_past` does, and work by `work()`, until one of them says that somebody else goes on, or nothing
    /// is left and the queue rests: then it may be gone.
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
    /// Passes waits that are over. `self` is told when the first that is not is over.
    [[nodiscard]] ahead look(waiter& self) noexcept;
    /// Whether there is anything to work off that was seen by an earlier look at what is submitted.
    [[nodiscard]] bool sees_records() const noexcept { return records_.has_seen(); }
    /// Whether anything was submitted that is not worked off. Looks, if it sees nothing.
    [[nodiscard]] bool has_records() noexcept { return records_.front() != nullptr; }
    /// What kind of work lies at the front, of which `look` has said that it is work.
    [[nodiscard]] runtime::work_kind kind_ahead() noexcept { return front().work; }
    /// Whether there is anything to run, or only an epoch to complete.
    [[nodiscard]] bool is_empty_ahead() noexcept { return front().type == nullptr; }
    /// What the code ahead does. There is some.
    [[nodiscard]] detail::task_nature nature_ahead() noexcept { return front().type->nature; }
    [[nodiscard]] runtime::site site_ahead() noexcept { return front().from(); }
    [[nodiscard]] epoch epoch_ahead() noexcept { return front().at; }
    [[nodiscard]] timeline& line() noexcept { return *line_; }
    /// Where it lies that each operation is counted.
    [[nodiscard]] const void* counter_line() const noexcept { return &pending_; }
    /// Whether anything is submitted and not accounted for as run, as the thread that submits sees it.
    [[nodiscard]] bool is_pending() const noexcept { return pending_.value.load(std::memory_order_acquire) != 0; }

    /// Runs the work at the front and completes its epoch. `started` and `ended` tell the time, if it is wanted.
    template <class Started, class Ended>
    void execute(Started&& started, Ended&& ended) noexcept {
        work_record& record = front();
        const detail::task_type* const type = record.type;
        const epoch at = record.at;
        void* const object = reinterpret_cast<std::byte*>(&record) + work_header;
        {
            const acting_for self({line_->number(), at});
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

    /// Hands the work at the front to `take(epoch, operation)` instead, which moves it out and sees to its completion. If
    /// that throws, the work is still there.
    template <class Take>
    void hand_on(Take&& take) {
        work_record& record = front();
        void* const object = reinterpret_cast<std::byte*>(&record) + work_header;
        take(record.at, operation{{record.type, object}, record.from(), record.work, record.timed});
        drop_front(record, object);
    }
    /// Has the work at the front fail without running.
    void fail_ahead(std::exception_ptr why) noexcept {
        work_record& record = front();
        const epoch at = record.at;
        events_->failed(at, record.from(), std::move(why));
        drop_front(record, reinterpret_cast<std::byte*>(&record) + work_header);
        line_->complete(at);
    }

    /// Takes the queue as a thread does that works it off, to put one operation past the records, and counts that operation as
    /// run: `rest_alone` follows. Nothing is pending (`is_pending`). By the thread that submits.
    void claim_alone() noexcept {
        pending_.value.store(1, std::memory_order_relaxed);  // only who submits raises it from 0
    }
    /// Whether nothing was submitted since, so that the queue rests; else the thread has it still, for what was. A full fence.
    [[nodiscard]] bool rest_alone() noexcept {
        const bool rests = pending_.value.fetch_sub(1, std::memory_order_seq_cst) == 1;
#ifndef __x86_64__
        std::atomic_thread_fence(std::memory_order_seq_cst);  // there the change itself is one
#endif
        return rests;
    }
    /// Accounts for what has run since the last rest. Whether nothing is left: then somebody else may have the queue
    /// already, and it may be gone.
    [[nodiscard]] bool rest() noexcept;

private:
    enum class kind : std::uint8_t { wait, work };
    struct wait_record {
        kind what;
        point target;
    };
    /// Kept short, since each byte of it travels from the processor that enqueues to the one that runs.
    struct work_record {
        kind what;
        runtime::work_kind work;
        bool timed;
        std::uint32_t line;  ///< this, `label`, `file` and `function` are the site that enqueued it
        const char* label;
        const char* file;
        const char* function;
        epoch at;
        const detail::task_type* type;  ///< null: nothing to do but to complete the epoch

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
    std::int64_t ran_ = 0;  ///< operations that ran since the last rest; of the thread that works off
    /// Operations submitted and not accounted for as run. Whoever raises it from 0 schedules the queue; while it is above
    /// 0 the queue is scheduled, or a thread has it, or it waits. A thread that has run an operation before its submitter
    /// got to count it leaves -1 behind, and the submitter finds that there is nothing left to schedule.
    ///
    /// On cache lines of its own: what derived classes have is asked by the thread that works off, again and again while
    /// there is nothing, and each such look would take the counter from the thread that submits.
    struct alignas(64) counter {
        std::atomic<std::int64_t> value{0};
    } pending_;
};

}  // namespace weir::backend
