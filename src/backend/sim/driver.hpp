// The folder backend/sim/ is an accelerator that is not there: memory of its own that the host cannot touch, engines that
// run so many operations at once, and as much disorder as the rules of streams allow.
#pragma once

#include <atomic>
#include <string>

#include "backend/backend.hpp"
#include "backend/sim/engines.hpp"

namespace weir::backend::sim {

/// A simulated device, `sim:<id>` or one that stands for `cuda:<id>`. Lives for ever, since its threads use it until the very end.
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
    [[nodiscard]] memory_piece allocate(std::size_t bytes) noexcept override;
    void deallocate(memory_piece memory, std::size_t bytes) noexcept override;
    [[nodiscard]] std::size_t total_memory() const noexcept override { return memory_; }
    [[nodiscard]] bool host_reaches_memory() const noexcept override { return false; }
    [[nodiscard]] std::chrono::steady_clock::time_point now() const noexcept override { return engines_.now(); }
    [[nodiscard]] bool has_virtual_clock() const noexcept override { return engines_.is_virtual(); }
    void fetch(std::byte* host, const std::byte* device, std::size_t bytes) override;
    void store(std::byte* device, const std::byte* host, std::size_t bytes) override;

    [[nodiscard]] testing::sim_settings settings() const;
    /// From now on it behaves so. Nothing may be pending; blocks until its queues have seen that. Throws argument_error,
    /// device_error, and has changed nothing then.
    void configure(const testing::sim_settings& settings);
    /// The same for settings that it had before.
    void restore(testing::sim_settings settings) noexcept;

private:
    std::string name_;
    engines engines_{{}};
    std::atomic<std::size_t> memory_;   ///< what it has
    std::atomic<std::size_t> used_{0};  ///< of that
};

}  // namespace weir::backend::sim
