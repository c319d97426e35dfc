// The folder backend/sim/ simulates an accelerator: memory of its own that the host cannot touch, engines that
// run a number of operations at once, and as much disorder as the rules of streams allow.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "backend/backend.hpp"
#include "backend/capability/shared_memory.hpp"
#include "backend/sim/engines.hpp"

namespace weir::backend::sim {

/// Simulates pinned and managed memory by host memory, which a simulated device reaches as it does its own.
class simulated_shared_memory final : public capability::shared_memory {
public:
    explicit simulated_shared_memory(const driver& of) noexcept : of_(&of) {}
    ~simulated_shared_memory() = default;

    [[nodiscard]] std::unique_ptr<memory_source> make_managed(memory_source& host) override;
    [[nodiscard]] std::unique_ptr<memory_source> make_pinned(memory_source& host) override;

private:
    const driver* of_;  ///< names the device
};

/// A simulated device, `sim:<id>` or one that replaces `cuda:<id>`. Never destroyed, since its threads use it until the process ends.
class sim_driver final : public driver {
public:
    explicit sim_driver(std::string name);
    ~sim_driver() override = default;

    [[nodiscard]] std::string_view name() const noexcept override { return name_; }
    [[nodiscard]] std::unique_ptr<queue> make_queue(timeline& line, queue_events& events,
                                                    const queue_options& how) override;
    /// Throws argument_error.
    [[nodiscard]] std::uint64_t identify(void* handle) const override;
    [[nodiscard]] bool can_wait_for(const driver* whose) const noexcept override;
    [[nodiscard]] memory_chunk allocate(std::size_t bytes) noexcept override;
    void deallocate(memory_chunk memory, std::size_t bytes) noexcept override;
    [[nodiscard]] std::size_t total_memory() const noexcept override { return memory_; }
    [[nodiscard]] bool host_reaches_memory() const noexcept override { return false; }
    [[nodiscard]] std::chrono::steady_clock::time_point now() const noexcept override { return engines_.now(); }
    [[nodiscard]] bool has_virtual_clock() const noexcept override { return engines_.is_virtual(); }
    void fetch(std::byte* host, const std::byte* device, std::size_t bytes) override;
    void store(std::byte* device, const std::byte* host, std::size_t bytes) override;

    [[nodiscard]] testing::sim_settings settings() const;
    /// Sets how it behaves from now on. Nothing may be pending; blocks until its queues have seen that. Throws argument_error,
    /// device_error; then nothing has changed.
    void configure(const testing::sim_settings& settings);
    /// The same for settings that the device had before, which cannot fail.
    void restore(testing::sim_settings settings) noexcept;

private:
    std::string name_;
    engines engines_{{}};
    simulated_shared_memory shared_memory_{*this};
    std::atomic<std::size_t> memory_;   ///< size of its memory
    std::atomic<std::size_t> used_{0};  ///< bytes in use
};

}  // namespace weir::backend::sim
