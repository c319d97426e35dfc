#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "order/history.hpp"
#include "runtime/ordering.hpp"

namespace weir::runtime {

/// The host's live views of one resource. A conflicting operation is over before its call returns (rule X7).
class host_views {
public:
    /// May throw std::bad_alloc; nothing is entered then.
    void enter(const order::footprint& where, order::access_mode mode) { views_.push_back({where, mode}); }
    /// Takes out one view that was entered with the same arguments.
    void leave(const order::footprint& where, order::access_mode mode) noexcept {
        const auto found = std::find(views_.begin(), views_.end(), view{where, mode});
        if (found != views_.end()) {
            *found = views_.back();
            views_.pop_back();
        }
    }
    [[nodiscard]] bool conflict_with(const order::footprint& where, order::access_mode mode) const noexcept {
        return std::any_of(views_.begin(), views_.end(), [&](const view& one) {
            const bool writes = one.mode == order::access_mode::write || mode == order::access_mode::write;
            return writes && order::overlap(one.where, where);
        });
    }

private:
    struct view {
        order::footprint where;
        order::access_mode mode;
        friend bool operator==(const view&, const view&) = default;
    };
    std::vector<view> views_;
};

/// Anything whose accesses are tracked: memory, and what is used like memory (plans, workspaces, library handles: P3).
class resource {
public:
    explicit resource(std::uint64_t size = 0) noexcept : id_(next_id()), size_(size) {}
    resource(const resource&) = delete;
    resource& operator=(const resource&) = delete;

    /// Guards `history` and `views`. First in the lock order; several are locked by address (rule O8).
    std::mutex mutex;
    order::history history;
    host_views views;

    /// Unique in the process. New for each owner of the same memory.
    [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
    /// Bytes; footprints lie in [0, size).
    [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
    /// From now on it belongs to somebody new. Nobody else may know it at this moment.
    void renew(std::uint64_t size) noexcept {
        id_ = next_id();
        size_ = size;
    }

    [[nodiscard]] std::optional<ordering_mode> ordering() const noexcept { return mode_.get(); }
    void set_ordering(std::optional<ordering_mode> mode) noexcept { mode_.set(mode); }

protected:
    ~resource() = default;

private:
    static std::uint64_t next_id() noexcept;

    std::uint64_t id_;
    std::uint64_t size_;
    own_ordering mode_;
};

}  // namespace weir::runtime
