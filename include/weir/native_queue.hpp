// Queues of others, which Weir adopts as streams. Layer: runtime.
#pragma once

#include <cstdint>
#include <functional>

#include "weir/device.hpp"
#include "weir/export.hpp"

namespace weir {

/// An in-order queue that somebody else owns and works with: another library's stream. Derive from it to tell Weir how
/// to use such a queue, and hand it to `stream::adopt`. Weir never ends it (scenario C8).
///
/// Work of others may enter the queue at any time, and Weir never sees it.
class WEIR_EXPORT native_queue {
public:
    native_queue();
    native_queue(const native_queue&) = delete;
    native_queue& operator=(const native_queue&) = delete;
    virtual ~native_queue();

    /// What tells queues apart: never given to another one, unlike addresses and handles (rule S5).
    [[nodiscard]] std::uint64_t unique_id() const noexcept { return id_; }

    /// The device whose memory the queue's work uses. Constant.
    [[nodiscard]] virtual weir::device device() const noexcept = 0;

    /// Puts `task` behind everything that is in the queue. Each task begins when the one before it has ended, whoever put
    /// it there, and is run exactly once. It is short, but for operations that the program itself enqueued through Weir.
    ///
    /// Must not run the task before it returns, must not wait for work, and must not call Weir. Any thread, under no lock
    /// of Weir but the one that keeps what Weir puts into this queue in order. If it throws, the task is not in the queue.
    virtual void submit(std::function<void()> task) = 0;

    /// Puts a pause behind everything that is in the queue: when the queue gets there it calls `begin(resume)` once, and
    /// what is behind the pause starts once somebody has called `resume`, on any thread, perhaps before `begin` returns.
    /// The rest as for `submit`.
    ///
    /// At first a task that blocks its thread for so long. To be overridden where several queues share threads, one of
    /// which might be needed to end another's pause.
    virtual void pause(std::function<void(std::function<void()> resume)> begin);

    /// Whether everything in the queue has ended. May say no for a moment when it just has. Never blocks.
    [[nodiscard]] virtual bool idle() const noexcept = 0;

private:
    std::uint64_t id_;
};

}  // namespace weir
