#pragma once

#include <cstddef>
#include <optional>

#include "backend/timeline.hpp"
#include "frontier/point.hpp"

namespace weir::runtime {

/// Something to let go of once no operation uses it any more. Intrusive: retiring it costs no allocation. Whoever retires
/// it gives it away; `release` ends it.
class retired : private backend::waiter {
public:
    retired() = default;
    retired(const retired&) = delete;
    retired& operator=(const retired&) = delete;

    /// A point that must be over before the release; none if all are. Asked again once that point is over.
    [[nodiscard]] virtual std::optional<frontiers::point> pending() noexcept = 0;

    /// Lets go, on the reaper's thread, under no lock. Exactly once.
    virtual void release() noexcept = 0;

protected:
    virtual ~retired() = default;

private:
    friend class reaper;
    void reached() noexcept final;

    retired* next_ = nullptr;  ///< in the reaper's list
};

/// Lets go of what was retired, when the last operation that uses it is over, and not before (rule L4).
///
///     push, from any thread --> list --> the reaper's thread --> pending? --no--> release
///                                ^                                  | yes
///                                +--- the thread that completes <---+ waits in the point's timeline, on no thread
///
/// One thread does it, which starts with the first use and sleeps where it has nothing to do. It is woken at once by a push,
/// and by the completion of what an item waits for; it polls nothing. So an item goes when its last point is over, plus the
/// time to wake a thread, plus the releases that were due before it. Releases run one after the other, under no lock: a
/// release that blocks holds up the others.
///
/// At the process's exit nothing waits: from the moment when exit handlers run nothing is released any more, what is left
/// leaks and is counted. The same in a forked child that cannot use Weir.
class reaper {
public:
    /// Starts the thread. Idempotent. To be called before there is anything to retire, since it can fail: throws
    /// std::bad_alloc, out_of_memory (no thread can be had), state_error (a forked child that cannot use Weir).
    static void start();

    /// Takes `one`. Never allocates, takes no lock, and does not block: any thread may call, a driver's own in a callback
    /// included.
    static void push(retired& one) noexcept;

    /// The same from an ordinary thread that holds no lock: has `one` wait for its point at once, so that the reaper's
    /// thread has work once and not twice. May tell others on this thread that a point is over.
    static void push_when_over(retired& one) noexcept;

    /// What was taken and not let go of yet.
    [[nodiscard]] static std::size_t held() noexcept;
    /// What will never be let go of, since the process ends or this is such a child: `held` from then on, else 0.
    [[nodiscard]] static std::size_t leaked() noexcept;

    /// @{
    /// In the child of a fork, which has no such thread yet: what was taken stays in the list until `resume`. Throws
    /// out_of_memory, std::bad_alloc.
    static void begin_child() noexcept;
    static void resume();
    /// @}

    /// Blocks until everything taken up to now is let go of. For tests: what is held must be over, or get over.
    static void wait_until_empty() noexcept;

private:
    friend class retired;
    static void start_thread();
    static void queue(retired& one) noexcept;
    static void run() noexcept;
    static void serve(retired& one) noexcept;
    static bool waits(retired& one) noexcept;
    static void end() noexcept;
};

}  // namespace weir::runtime
