#pragma once

#include <atomic>

#include "backend/backend.hpp"
#include "backend/cpu/record_ring.hpp"
#include "backend/cpu/workers.hpp"

namespace weir::backend::cpu {

/// A stream of the CPU: a queue of waits and operations that workers run, one at a time, in order. While it waits for
/// another stream it holds no thread.
class cpu_queue final : public queue, private runnable, private waiter {
public:
    cpu_queue(timeline& line, queue_events& events) : line_(&line), events_(&events) {}
    ~cpu_queue() override = default;

    void reserve(std::size_t waits, const detail::task_ref& work) override;
    void wait(point target) noexcept override;
    void submit(epoch at, const operation& what) noexcept override;

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

    /// How many operations a worker runs before it lets others have a turn.
    static constexpr int turn = 256;

    void run() noexcept override;
    void run_blocking() noexcept override;
    [[nodiscard]] bool has_work() noexcept override { return records_.front() != nullptr; }
    void reached() noexcept override { workers::instance().schedule(*this); }
    void execute(work_record& record) noexcept;
    /// Accounts for what has run since the last rest. Whether nothing is left: then somebody else may have the queue
    /// already, and it may be gone.
    [[nodiscard]] bool rest() noexcept;

    timeline* line_;
    queue_events* events_;
    record_ring records_;
    std::int64_t ran_ = 0;  ///< operations that ran since the last rest; the worker's
    /// Operations submitted and not accounted for as run. Whoever raises it from 0 schedules the queue; while it is above 0
    /// the queue is scheduled, or a worker has it, or it waits. A worker that has run an operation before its submitter
    /// got to count it leaves -1 behind, and the submitter finds that there is nothing left to schedule.
    alignas(64) std::atomic<std::int64_t> pending_{0};
};

}  // namespace weir::backend::cpu
