#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>

#include "backend/timeline.hpp"
#include "frontier/point.hpp"

namespace weir::backend {

/// A device whose work runs only while threads of the host wait: one under a virtual clock.
class host_driven {
public:
    /// Runs a piece of work on the calling thread; false if none can run now. One thread at a time, but what it runs may
    /// wait for other work, and step again meanwhile.
    [[nodiscard]] virtual bool step() noexcept = 0;

protected:
    host_driven() = default;
    ~host_driven() = default;
};

/// The threads of the host that wait while there are devices which they must drive: one of them drives all such devices,
/// the others sleep until it is their turn. When nothing can run (what they wait for is up to a stream of the CPU, a gate,
/// another thread) all of them sleep until there is news.
class driving_hosts {
public:
    /// The ones of the process; never destroyed.
    static driving_hosts& instance();

    /// Whether there is any such device. The one question of those that are in a hurry.
    [[nodiscard]] static bool needed() noexcept { return count_.load(std::memory_order_relaxed) != 0; }

    /// From now on `device` is driven, or is no more. Threads that wait already when the first one comes do not drive.
    void add(host_driven& device) noexcept;
    void remove(host_driven& device) noexcept;

    /// There may be something to run that could not run before.
    void news() noexcept;

    /// Blocks until `line` has reached `target`, which is on it; drives meanwhile. Throws what `answers`, which may be null,
    /// throws: it is asked between steps, but not by what waits within one.
    void wait(timeline& line, point target, detail::interruptible* answers);
    /// Makes one step, unless another thread drives already: so that those who only ask, again and again, get on too.
    void step_once() noexcept;

private:
    static constexpr std::size_t most = 16;
    using lock = std::unique_lock<std::mutex>;
    struct waiting;

    driving_hosts() = default;
    [[nodiscard]] bool step(lock& held) noexcept;

    std::mutex mutex_;  ///< guards what follows; a leaf in the lock order, open while a device makes a step
    std::condition_variable changed_;
    std::array<host_driven*, most> devices_{};
    std::size_t next_ = 0;    ///< the device whose turn it is
    std::thread::id driver_;  ///< who drives
    std::uint64_t news_ = 0;
    static inline std::atomic<int> count_{0};
};

}  // namespace weir::backend
