#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <thread>

#include "backend/fifo.hpp"
#include "weir/detail/mutex.hpp"

namespace weir::backend::cpu {

/// An object that has work for a worker. Intrusive: scheduling it costs no allocation.
class runnable {
public:
    /// Runs the available work. The object may be destroyed, or scheduled again, when this returns.
    virtual void run() noexcept = 0;
    /// Whether there is more to run. Asked by the thread that runs it.
    [[nodiscard]] virtual bool has_work() noexcept = 0;

    runnable* next = nullptr;  ///< used by fifo

protected:
    runnable() = default;
    ~runnable() = default;
};

using run_list = fifo<runnable>;

/// The threads that run the streams of the CPU: a fixed number, for work that computes; host tasks run elsewhere. Idle
/// threads sleep; one of them looks for work for some microseconds first, since waking a thread costs more than most
/// operations.
class workers {
public:
    using time_point = std::chrono::steady_clock::time_point;

    /// The instance of the process; never destroyed, so that streams may be used until the process ends.
    static workers& instance() noexcept;

    /// Makes sure that all threads run; call before anything is scheduled. A later call starts those that could not be started before.
    /// Throws std::bad_alloc, device_error.
    void start();

    /// Has `one` run soon. On a worker it is kept back until the worker has no other work or is about to start an
    /// operation, so that a hand-over between two streams stays on one thread.
    void schedule(runnable& one) noexcept;

    /// Offers the work that the calling worker has kept back to the other workers. Called before each operation.
    static void offer() noexcept;

    /// Whether the calling worker has kept work back.
    [[nodiscard]] static bool has_other_work() noexcept;

    /// Called by a worker that runs `with`, which has no work left, and that has kept nothing back. Stays with `with` for some
    /// microseconds, as long as no other work waits for a worker. Whether `with` got more work; work that follows closely then need not
    /// be scheduled. First waits until `look_from`, or until a host thread waits.
    [[nodiscard]] bool linger(runnable& with, time_point look_from) noexcept;
    /// Called by a worker that has looked for work and goes on with what it runs. A thread that scheduled something meanwhile relied
    /// on that look, so another worker has to be woken.
    void leave_to_others() noexcept;

    [[nodiscard]] std::size_t count() const noexcept { return count_; }

    /// In the child of a fork, which has none of the threads: drops them. `were_started`: whether there were any.
    void begin_child() noexcept;
    [[nodiscard]] bool were_started() const noexcept { return were_started_.load(std::memory_order_relaxed); }

private:
    workers() noexcept;
    void work() noexcept;
    void push(run_list& ready) noexcept;
    runnable* take() noexcept;
    /// Looks for work without sleeping, unless another worker does, until there is some, or `found()`. First waits until
    /// `look_from`, or until a host thread waits; does not wait if `look_from` is the default time.
    template <class Found>
    [[nodiscard]] bool look_for_work(time_point look_from, Found&& found) noexcept;

    std::size_t count_;
    detail::mutex start_mutex_;  ///< guards the starting of threads
    std::atomic<std::size_t> started_{0};
    std::atomic<bool> were_started_{false};  ///< in this process or in one that it was forked from

    detail::condition_variable wake_;
    // Members that workers with work and workers that look for it touch, on two cache lines of their own: the lock, and what it guards.
    alignas(64) detail::mutex mutex_;  ///< guards what follows; a leaf in the lock order
    alignas(64) run_list ready_;
    std::size_t sleeping_ = 0;
    std::atomic<std::size_t> waiting_{0};  ///< number of entries of ready_, read by the looking worker without the lock
    std::atomic<bool> looking_{false};     ///< whether a worker looks for work without sleeping
};

}  // namespace weir::backend::cpu
