#pragma once

#include <string>
#include <utility>

#include "backend/backend.hpp"

namespace weir::backend::sim {

/// Memory of the host in the place of pinned and managed memory, where CUDA devices are simulated: a simulated device
/// reaches it as it reaches its own.
class host_memory final : public memory_source {
public:
    /// `host`: where it comes from. `is_pinned`: else it stands for managed memory.
    host_memory(std::string name, memory_source& host, bool is_pinned)
        : name_(std::move(name)), host_(&host), is_pinned_(is_pinned) {}
    ~host_memory() override = default;

    [[nodiscard]] std::string_view name() const noexcept override { return name_; }
    [[nodiscard]] memory_piece allocate(std::size_t bytes) noexcept override { return host_->allocate(bytes); }
    void deallocate(memory_piece memory, std::size_t bytes) noexcept override { host_->deallocate(memory, bytes); }
    [[nodiscard]] std::size_t total_memory() const noexcept override { return host_->total_memory(); }
    [[nodiscard]] bool host_reaches_memory() const noexcept override { return true; }
    [[nodiscard]] bool is_pinned() const noexcept override { return is_pinned_; }

private:
    std::string name_;
    memory_source* host_;
    bool is_pinned_;
};

}  // namespace weir::backend::sim
