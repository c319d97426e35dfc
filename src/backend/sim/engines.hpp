#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>

#include "backend/fifo.hpp"
#include "backend/host_driven.hpp"
#include "backend/sim/random.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/detail/simulation.hpp"

namespace weir::backend::sim {

class sim_queue;

/// What an operation needs in order to run. A device has a fixed number of the first two; host threads are unlimited.
enum class engine : std::uint8_t { compute, copy, host };

/// The engines of one simulated accelerator, and the threads that act as them. A queue is always in one place:
///
///     submit, a wait is over --> examine --> waits again, or is empty
///                                   ^  |
///            an operation has ended |  +--> ready, for an engine of one kind --> runs
///                                   +---------------------------------------------+
///
/// Waiting queues are known only to the timelines that they wait for, and occupy no thread. Under the virtual clock the
/// threads rest, and the host threads that wait take the same steps one by one.
class engines final : private host_driven {
public:
    /// Behaves as `settings` specify; they must not request a virtual clock.
    explicit engines(const testing::sim_settings& settings) : settings_(settings), choices_(settings.seed) {}
    engines(const engines&) = delete;
    engines& operator=(const engines&) = delete;
    /// Only without threads, which use the object until the process ends.
    ~engines() = default;

    /// Makes sure that there are enough threads for the engines of `wanted`. Throws device_error.
    void start_threads(const testing::sim_settings& wanted);

    /// `entered`: the queue has work, having had none. `left` follows once for each such call, when the queue has none again.
    void entered(sim_queue& one) noexcept;
    void left() noexcept;
    /// Has a thread examine the front of the queue.
    void examine(sim_queue& one) noexcept;
    /// The queue's next operation can run on an engine of this kind.
    void ready(sim_queue& one, engine on) noexcept;

    [[nodiscard]] testing::sim_settings settings() const;
    /// Sets how it behaves from now on, as far as there are threads. Nothing may be pending; blocks until the queues have seen
    /// that.
    void configure(testing::sim_settings settings) noexcept;

    [[nodiscard]] bool is_virtual() const noexcept { return virtual_.load(std::memory_order_relaxed); }
    /// The current time of the device.
    [[nodiscard]] std::chrono::steady_clock::time_point now() const noexcept;
    /// The time of the virtual clock `since` after it was started.
    [[nodiscard]] std::chrono::steady_clock::time_point time_of(std::chrono::nanoseconds since) const noexcept;

private:
    static constexpr std::size_t kinds = 3;
    using lock = std::unique_lock<detail::mutex>;

    void work() noexcept;
    [[nodiscard]] bool is_free(std::size_t kind) const noexcept;
    /// Takes out a queue that may run now; null if there is none.
    [[nodiscard]] sim_queue* choose() noexcept;
    [[nodiscard]] sim_queue* choose_by_seed(fifo<sim_queue>& from) noexcept;
    void enter(sim_queue& one, bool is_new) noexcept;
    void wake_one() noexcept;

    [[nodiscard]] bool step() noexcept override;
    void examine_all(lock& held) noexcept;
    void start_all(lock& held) noexcept;
    [[nodiscard]] sim_queue* end_next() noexcept;

    mutable detail::mutex mutex_;  ///< guards what follows; a leaf in the lock order
    detail::condition_variable wake_;
    detail::condition_variable rested_;  ///< no queue has work any more
    testing::sim_settings settings_;
    random_numbers choices_;
    fifo<sim_queue> unexamined_;
    std::array<fifo<sim_queue>, kinds> ready_;
    std::array<int, kinds> running_{};
    std::size_t active_ = 0;  ///< queues that have work
    int threads_ = 0;
    int sleeping_ = 0;

    fifo<sim_queue> started_;            ///< under the virtual clock: queues that an engine runs
    std::chrono::nanoseconds clock_{0};  ///< the time of the virtual clock
    std::chrono::steady_clock::time_point clock_began_;
    std::atomic<bool> virtual_{false};  ///< a copy of settings_.virtual_clock, for threads without the lock
};

}  // namespace weir::backend::sim
