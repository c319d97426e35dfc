#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <thread>

#include "backend/fifo.hpp"
#include "weir/detail/mutex.hpp"

namespace weir::backend::cpu {

/// Something that has work for a worker. Intrusive: being scheduled costs no allocation.
class runnable {
public:
    /// Runs what there is. `self` may be gone, or scheduled again, when this returns.
    virtual void run() noexcept = 0;
    /// Whether there is more to run. Asked by the thread that runs it.
    [[nodiscard]] virtual bool has_work() noexcept = 0;

    runnable* next = nullptr;  ///< fifo's own

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

    /// The ones of the process; never destroyed, so that streams may be used until the very end.
    static workers& instance() noexcept;

    /// Makes sure that all threads run; before anything is scheduled. A later call starts those that one could not. Throws
    /// std::bad_alloc, device_error.
    void start();

    /// Has `one` run soon. On a worker it is kept back until the worker has nothing to do itself or is about to start an
    /// operation, so that a hand-over between two streams stays on one thread.
    void schedule(runnable& one) noexcept;

    /// Offers to the other workers what the calling worker has kept back. Called before each operation.
    static void offer() noexcept;

    /// Whether the calling worker has kept something back.
    [[nodiscard]] static bool has_other_work() noexcept;

    /// Called by a worker that runs `with`, which has no work left, and that has kept nothing back: stays with it for some
    /// microseconds, as long as nothing else waits for a worker. Whether it got more work; what follows closely need not be
    /// scheduled then. First waits until `look_from`, or a thread of the host waits.
    [[nodiscard]] bool linger(runnable& with, time_point look_from) noexcept;
    /// To be said by a worker that has looked for work and goes on with what it runs: who scheduled something meanwhile has relied
    /// on it, so another has to come.
    void leave_to_others() noexcept;

    [[nodiscard]] std::size_t count() const noexcept { return count_; }

    /// In the child of a fork, which has none of the threads, while they are forgotten. Whether there were any.
    void begin_child() noexcept;
    [[nodiscard]] bool were_started() const noexcept { return were_started_.load(std::memory_order_relaxed); }

private:
    workers() noexcept;
    void work() noexcept;
    void push(run_list& ready) noexcept;
    runnable* take() noexcept;
    /// Looks for work without sleeping, unless another worker does, until there is some, or `found()`. First waits until
    /// `look_from`, or a thread of the host waits; not at all if that is no time.
    template <class Found>
    [[nodiscard]] bool look_for_work(time_point look_from, Found&& found) noexcept;

    std::size_t count_;
    detail::mutex start_mutex_;  ///< guards the starting of threads
    std::atomic<std::size_t> started_{0};
    std::atomic<bool> were_started_{false};  ///< in this process or one that it was forked from

    detail::condition_variable wake_;
    // What those who have or look for work touch, on two cache lines of their own: the lock, and what it guards.
    alignas(64) detail::mutex mutex_;  ///< guards what follows; a leaf in the lock order
    alignas(64) run_list ready_;
    std::size_t sleeping_ = 0;
    std::atomic<std::size_t> waiting_{0};  ///< entries of ready_, for the one that looks without the lock
    std::atomic<bool> looking_{false};     ///< whether a worker looks for work without sleeping
};

}  // namespace weir::backend::cpu
