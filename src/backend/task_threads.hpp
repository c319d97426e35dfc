#pragma once

#include <cstddef>
#include <mutex>

#include "backend/fifo.hpp"
#include "weir/detail/mutex.hpp"

namespace weir::backend {

/// Something that has work which may block. Intrusive: being scheduled costs no allocation.
class blocking_work {
public:
    /// Runs one piece of work that may block. `self` may be gone, or scheduled again, when this returns.
    virtual void run_blocking() noexcept = 0;

    blocking_work* next = nullptr;  ///< fifo's own

protected:
    blocking_work() = default;
    ~blocking_work() = default;
};

/// The threads that run host tasks, on whatever device: as many as it takes, so that a task that blocks holds up nothing
/// but its stream (DESIGN, Decisions).
class task_threads {
public:
    /// The ones of the process; never destroyed, so that streams may be used until the very end.
    static task_threads& instance();

    /// Has `one.run_blocking()` run on a thread of its own. false if no thread could be started.
    [[nodiscard]] bool schedule(blocking_work& one) noexcept;

    /// Makes sure that there is a thread for what must run in any case. Throws std::system_error.
    void keep_one();
    /// The same as `schedule`; if no thread can be started, it runs later, on one that there is. After `keep_one`.
    void schedule_surely(blocking_work& one) noexcept;

    /// In the child of a fork, which has none of the threads.
    void begin_child() noexcept;
    /// Starts again the one that stays, if there was one. Throws std::system_error.
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
