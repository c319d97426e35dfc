#pragma once

#include <cstddef>
#include <optional>

#include "backend/timeline.hpp"
#include "frontier/point.hpp"

namespace weir::runtime {

/// An object that is released once no operation uses it any more. Intrusive: retiring it allocates nothing. The caller that
/// retires it gives up ownership; `release` ends it.
class retired : private backend::waiter {
public:
    retired() = default;
    retired(const retired&) = delete;
    retired& operator=(const retired&) = delete;

    /// A point that must complete before the release; none if all are complete. Called again once that point is complete.
    [[nodiscard]] virtual std::optional<frontiers::point> pending() noexcept = 0;

    /// Releases the object, on the reaper's thread or one that calls `release_due`, under no lock. Called exactly once.
    virtual void release() noexcept = 0;

protected:
    virtual ~retired() = default;

private:
    friend class reaper;
    void reached() noexcept final;

    retired* next_ = nullptr;  ///< in the reaper's list
};

/// Releases retired objects when the last operation that uses them is complete, and not before (rule L4).
///
///     push, from any thread --> list --> the reaper's thread --> pending? --no--> release
///                                ^                                  | yes
///                                +--- the thread that completes <---+ waits in the point's timeline, on no thread
///
/// A thread of its own does this. It starts with the first use and sleeps while it has nothing to do. A push wakes it at once, and so
/// does the completion of a point that an item waits for; it never polls. So an item is released when its last point is
/// complete, plus the time to wake a thread, plus the releases that were due before it. A thread that calls `release_due` does the
/// same without the time to wake another one. Releases run one after the other, under no lock: a release that blocks delays the others.
///
/// The exit of the process waits for nothing: once exit handlers run, nothing is released any more; what is left leaks and
/// is counted. The same holds in a forked child that cannot use Weir.
class reaper {
public:
    /// Starts the thread. Idempotent. Must be called before anything is retired, because it can fail: throws std::bad_alloc,
    /// out_of_memory (no thread can be started), state_error (a forked child that cannot use Weir).
    static void start();

    /// Takes ownership of `one`. Never allocates, takes no lock, and does not block: any thread may call, including a driver's
    /// own thread in a callback.
    static void push(retired& one) noexcept;

    /// The same from an ordinary thread that holds no lock: makes `one` wait for its point at once, so that the reaper's thread
    /// handles it once and not twice. May notify other waiters on this thread that a point is complete.
    static void push_when_over(retired& one) noexcept;

    /// Blocks until everything that was pushed before this call is handled: released, or made to wait for a point. Returns at once within
    /// a release, and where nothing is released any more. Call it under no lock.
    static void drain() noexcept;

    /// Handles on the calling thread what was pushed before this call, as the reaper's thread does; nothing while another thread is at
    /// it, and within a release. Releases run code of the objects' owners: call it under no lock.
    static void release_due() noexcept;

    /// Number of objects that were pushed and are not released yet.
    [[nodiscard]] static std::size_t held() noexcept;
    /// Number of objects that will never be released, because the process ends or this is such a child: `held` from then on, else 0.
    [[nodiscard]] static std::size_t leaked() noexcept;

    /// @{
    /// In the child of a fork, which has no reaper thread yet: pushed objects stay in the list until `resume`. Throws
    /// out_of_memory, std::bad_alloc.
    static void begin_child() noexcept;
    static void resume();
    /// @}

    /// Blocks until everything pushed up to now is released. For tests: what the objects wait for must be complete, or become so.
    static void wait_until_empty() noexcept;

private:
    friend class retired;
    static void start_thread();
    static void queue(retired& one) noexcept;
    static void run() noexcept;
    static bool serve_list() noexcept;
    static void serve(retired& one) noexcept;
    static bool waits(retired& one) noexcept;
    static void end() noexcept;
};

}  // namespace weir::runtime
