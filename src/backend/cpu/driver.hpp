#pragma once

#include "backend/backend.hpp"

namespace weir::backend::cpu {

/// The CPU: the host's memory, queues run by workers.
class cpu_driver final : public driver {
public:
    cpu_driver() = default;
    ~cpu_driver() override = default;

    [[nodiscard]] std::string_view name() const noexcept override { return "cpu"; }
    [[nodiscard]] std::unique_ptr<queue> make_queue(timeline& line, queue_events& events) override;
    [[nodiscard]] std::byte* allocate(std::size_t bytes) noexcept override;
    void deallocate(std::byte* memory, std::size_t bytes) noexcept override;
    [[nodiscard]] std::size_t total_memory() const noexcept override;
};

}  // namespace weir::backend::cpu
