#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>

#include "backend/timeline.hpp"
#include "frontier/point.hpp"
#include "weir/detail/mutex.hpp"

namespace weir::backend {

/// A device whose work runs only while host threads wait: one under a virtual clock.
class host_driven {
public:
    /// Runs one task on the calling thread; false if none can run now. One thread at a time, but the task may itself wait for other
    /// work, and call step again meanwhile.
    [[nodiscard]] virtual bool step() noexcept = 0;

protected:
    host_driven() = default;
    ~host_driven() = default;
};

/// The host threads that wait while there are devices which they must drive. One of them drives all such devices, the others
/// sleep until it is their turn. When nothing can run (because what they wait for depends on a stream of the CPU, a gate or
/// another thread) all of them sleep until news() is called.
class driving_hosts {
public:
    /// The instance of the process; never destroyed.
    static driving_hosts& instance();

    /// Whether there is any such device. The only check on fast paths.
    [[nodiscard]] static bool needed() noexcept { return count_.load(std::memory_order_relaxed) != 0; }

    /// Adds or removes a device that is driven. Threads that wait already when the first one is added do not drive.
    void add(host_driven& device) noexcept;
    void remove(host_driven& device) noexcept;

    /// Something may be able to run that could not run before.
    void news() noexcept;

    /// Blocks until `line` has reached `target`, a point on it; drives meanwhile. Throws what `answers`, which may be null,
    /// throws: it is asked between steps, but not by waits within a step.
    void wait(timeline& line, point target, detail::interruptible* answers);
    /// Makes one step, unless another thread drives already: so that a thread that polls makes progress, too.
    void step_once() noexcept;

    /// Called in the child of a fork, where no device of the parent runs.
    void begin_child() noexcept;

private:
    static constexpr std::size_t most = 16;
    using lock = std::unique_lock<detail::mutex>;
    struct waiting;

    driving_hosts() = default;
    [[nodiscard]] bool step(lock& held) noexcept;

    detail::mutex mutex_;  ///< guards what follows; a leaf in the lock order; released while a device makes a step
    detail::condition_variable changed_;
    std::array<host_driven*, most> devices_{};
    std::size_t next_ = 0;    ///< the device whose turn it is
    std::thread::id driver_;  ///< the thread that drives
    std::uint64_t news_ = 0;
    static inline std::atomic<int> count_{0};
};

}  // namespace weir::backend
