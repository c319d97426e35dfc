#pragma once

#include "backend/backend.hpp"

namespace weir::backend::cpu {

/// The CPU: the host's memory, and queues that workers run or, if inline, the enqueuing threads (rule S8).
class cpu_driver final : public driver {
public:
    explicit cpu_driver(bool is_inline = false) : is_inline_(is_inline) {}
    ~cpu_driver() override = default;

    [[nodiscard]] std::string_view name() const noexcept override { return is_inline_ ? "cpu:inline" : "cpu"; }
    [[nodiscard]] std::unique_ptr<queue> make_queue(timeline& line, queue_events& events,
                                                    const queue_options& how) override;
    [[nodiscard]] memory_chunk allocate(std::size_t bytes) noexcept override;
    void deallocate(memory_chunk memory, std::size_t bytes) noexcept override;
    [[nodiscard]] std::size_t total_memory() const noexcept override;
    [[nodiscard]] bool host_reaches_memory() const noexcept override { return true; }
    void fetch(std::byte* host, const std::byte* device, std::size_t bytes) override;
    void store(std::byte* device, const std::byte* host, std::size_t bytes) override;

private:
    bool is_inline_;
};

}  // namespace weir::backend::cpu
