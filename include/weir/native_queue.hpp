// Foreign queues, which Weir adopts as streams. Layer: runtime.
#pragma once

#include <cstdint>
#include <functional>

#include "weir/device.hpp"
#include "weir/export.hpp"

namespace weir {

/// An in-order queue that another library owns and uses: its stream. Derive from this class to describe to Weir how to use such a queue,
/// and pass it to `stream::adopt`. Weir never ends the queue (scenario C8).
///
/// Other code may put work into the queue at any time, and Weir never sees that work.
class WEIR_EXPORT native_queue {
public:
    native_queue();
    native_queue(const native_queue&) = delete;
    native_queue& operator=(const native_queue&) = delete;
    virtual ~native_queue();

    /// Identifies the queue: never reused for another queue, unlike addresses and handles (rule S5).
    [[nodiscard]] std::uint64_t unique_id() const noexcept { return id_; }

    /// The device whose memory the queue's work uses. Constant.
    [[nodiscard]] virtual weir::device device() const noexcept = 0;

    /// Puts `task` behind everything in the queue. Each task begins when the one before it has ended, whatever code put that there, and
    /// runs exactly once. Tasks are short, except for operations that the program itself enqueued through Weir.
    ///
    /// Must not run the task before it returns, must not wait for work, and must not call Weir. Called on any thread, under no lock of Weir
    /// except the one that keeps Weir's tasks in this queue in order. If it throws, the task is not in the queue.
    virtual void submit(std::function<void()> task) = 0;

    /// Puts a pause behind everything in the queue. When the queue reaches the pause, it calls `begin(resume)` once. What is behind the
    /// pause starts once `resume` was called, on any thread, perhaps before `begin` returns. Otherwise as for `submit`.
    ///
    /// The default is a task that blocks its thread until then. Override it if several queues share threads, and such a thread might be
    /// needed to end another queue's pause.
    virtual void pause(std::function<void(std::function<void()> resume)> begin);

    /// Whether everything in the queue has ended. May return false for a moment after the end. Never blocks.
    [[nodiscard]] virtual bool idle() const noexcept = 0;

private:
    std::uint64_t id_;
};

}  // namespace weir
