#pragma once

#include <string>
#include <utility>

#include "backend/backend.hpp"

namespace weir::backend {

/// Host memory in place of pinned and managed memory, where no driver provides these. Host code reaches it, and so does a simulated
/// device, as it reaches its own memory.
class plain_host_memory final : public memory_source {
public:
    /// `host`: the source of the memory. `is_pinned`: replaces pinned memory, otherwise managed memory.
    plain_host_memory(std::string name, memory_source& host, bool is_pinned)
        : name_(std::move(name)), host_(&host), is_pinned_(is_pinned) {}
    ~plain_host_memory() override = default;

    [[nodiscard]] std::string_view name() const noexcept override { return name_; }
    [[nodiscard]] memory_chunk allocate(std::size_t bytes) noexcept override { return host_->allocate(bytes); }
    void deallocate(memory_chunk memory, std::size_t bytes) noexcept override { host_->deallocate(memory, bytes); }
    [[nodiscard]] std::size_t total_memory() const noexcept override { return host_->total_memory(); }
    [[nodiscard]] bool host_reaches_memory() const noexcept override { return true; }
    [[nodiscard]] bool is_pinned() const noexcept override { return is_pinned_; }

private:
    std::string name_;
    memory_source* host_;
    bool is_pinned_;
};

}  // namespace weir::backend
