#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>

#include "backend/fifo.hpp"
#include "backend/host_driven.hpp"
#include "backend/sim/random.hpp"
#include "weir/detail/simulation.hpp"

namespace weir::backend::sim {

class sim_queue;

/// What an operation needs in order to run. A device has so many of the first two; the host has no end of threads.
enum class engine : std::uint8_t { compute, copy, host };

/// The engines of one simulated accelerator, and the threads that play them. A queue is always in one place:
///
///     submit, a wait is over --> examine --> waits again, or is empty
///                                   ^  |
///            an operation has ended |  +--> ready, for an engine of one kind --> runs
///                                   +---------------------------------------------+
///
/// Waiting queues are known only to the timelines that they wait for, and hold no thread. Under the virtual clock the
/// threads rest, and the same course is taken step by step by the threads of the host that wait.
class engines final : private host_driven {
public:
    /// As testing::sim_settings say; not under a virtual clock.
    explicit engines(const testing::sim_settings& settings) : settings_(settings), choices_(settings.seed) {}
    engines(const engines&) = delete;
    engines& operator=(const engines&) = delete;
    ~engines() = default;  ///< there are no threads: they use it until the very end

    /// Makes sure that there are threads for so many operations at once. Throws device_error.
    void start_threads(const testing::sim_settings& wanted);

    /// The queue has work, having had none; each call is followed by one of `left`, when it has none again.
    void entered(sim_queue& one) noexcept;
    void left() noexcept;
    /// Has a thread look at what lies at the front of the queue.
    void examine(sim_queue& one) noexcept;
    /// The queue's next operation can run on an engine of this kind.
    void ready(sim_queue& one, engine on) noexcept;

    [[nodiscard]] testing::sim_settings settings() const;
    /// From now on it behaves so, as far as there are threads. Nothing may be pending; blocks until the queues have seen
    /// that.
    void configure(testing::sim_settings settings) noexcept;

    [[nodiscard]] bool is_virtual() const noexcept { return virtual_.load(std::memory_order_relaxed); }
    /// The device's time.
    [[nodiscard]] std::chrono::steady_clock::time_point now() const noexcept;
    /// What the virtual clock shows `since` after it was started.
    [[nodiscard]] std::chrono::steady_clock::time_point time_of(std::chrono::nanoseconds since) const noexcept;

private:
    static constexpr std::size_t kinds = 3;
    using lock = std::unique_lock<std::mutex>;

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

    mutable std::mutex mutex_;  ///< guards what follows; a leaf in the lock order
    std::condition_variable wake_;
    std::condition_variable rested_;  ///< no queue has work any more
    testing::sim_settings settings_;
    random_numbers choices_;
    fifo<sim_queue> unexamined_;
    std::array<fifo<sim_queue>, kinds> ready_;
    std::array<int, kinds> running_{};
    std::size_t active_ = 0;  ///< queues that have work
    int threads_ = 0;
    int sleeping_ = 0;

    fifo<sim_queue> started_;            ///< under the virtual clock: those that an engine has
    std::chrono::nanoseconds clock_{0};  ///< how far it is
    std::chrono::steady_clock::time_point clock_began_;
    std::atomic<bool> virtual_{false};  ///< settings_.virtual_clock, for those without the lock
};

}  // namespace weir::backend::sim
