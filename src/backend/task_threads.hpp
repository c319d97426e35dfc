#pragma once

#include <cstddef>
#include <mutex>

#include "backend/fifo.hpp"
#include "weir/detail/mutex.hpp"

namespace weir::backend {

/// An object with work that may block. Intrusive: scheduling it costs no allocation.
class blocking_work {
public:
    /// Runs one task that may block. The object may be destroyed, or scheduled again, when this returns.
    virtual void run_blocking() noexcept = 0;

    blocking_work* next = nullptr;  ///< used by fifo

protected:
    blocking_work() = default;
    ~blocking_work() = default;
};

/// The threads that run host tasks, of all devices: as many as needed, so that a task that blocks holds up only its own
/// stream (DESIGN, Decisions).
class task_threads {
public:
    /// The instance of the process; never destroyed, so that streams may be used until the process ends.
    static task_threads& instance();

    /// Has a thread of its own run `one.run_blocking()`. False if no thread could be started.
    [[nodiscard]] bool schedule(blocking_work& one) noexcept;

    /// Makes sure that there is a thread for work that must run in any case. Throws std::system_error.
    void keep_one();
    /// The same as `schedule`; if no thread can be started, the work runs later, on an existing one. Requires `keep_one`.
    void schedule_surely(blocking_work& one) noexcept;

    /// Called in the child of a fork, which has none of the threads.
    void begin_child() noexcept;
    /// Starts the permanent thread again, if there was one. Throws std::system_error.
    void resume();

private:
    task_threads() = default;
    void work(bool stays) noexcept;
    void push(blocking_work& one) noexcept;
    [[nodiscard]] bool have_one_idle() noexcept;

    detail::mutex mutex_;  ///< guards what follows; a leaf in the lock order
    detail::condition_variable wake_;
    fifo<blocking_work> waiting_;
    std::size_t idle_ = 0;
    bool one_stays_ = false;
    bool stayed_before_fork_ = false;
};

}  // namespace weir::backend
