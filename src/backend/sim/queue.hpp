#pragma once

#include "backend/recorded_queue.hpp"
#include "backend/sim/engines.hpp"
#include "backend/task_threads.hpp"
#include "backend/timeline.hpp"

namespace weir::backend::sim {

/// A stream of a simulated accelerator: a queue that the engines of its device run.
class sim_queue final : public recorded_queue, private blocking_work, private waiter {
public:
    sim_queue(engines& of, timeline& line, queue_events& events) : recorded_queue(line, events), engines_(&of) {}
    ~sim_queue() override = default;

    /// Runs records until the queue waits, has nothing left, or has handed its next operation to an engine. The object may be destroyed
    /// then.
    void advance() noexcept;
    /// Runs the operation for which it was handed to an engine.
    void run() noexcept { execute(); }
    /// The same, from `starts` to `ends` by the virtual clock.
    void run_virtually() noexcept;
    /// The operation at the front.
    [[nodiscard]] testing::sim_operation operation_ahead() noexcept { return {site_ahead(), kind_ahead()}; }

    // Used by the engines, under their lock.
    sim_queue* next = nullptr;
    int held_back = 0;  ///< number of operations that are to overtake it
    int overtaken = 0;  ///< number of operations that have overtaken it
    engine on = engine::compute;
    std::chrono::nanoseconds starts{0};  ///< on the virtual clock
    std::chrono::nanoseconds ends{0};

private:
    void schedule() noexcept override { engines_->entered(*this); }
    void reached() noexcept override { engines_->examine(*this); }
    void run_blocking() noexcept override {
        execute();
        engines_->examine(*this);
    }

    engines* engines_;
};

}  // namespace weir::backend::sim
