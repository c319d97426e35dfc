#pragma once

#include <memory>
#include <utility>

#include "frontier/point.hpp"
#include "runtime/reaper.hpp"

namespace weir::runtime {

/// What a stream keeps for others, until it is let go of on the reaper's thread: an owner of a native queue may end the
/// queue, which the queue's own tasks, where the last use of the stream may end, must not do.
class retired_owner final : private retired {
public:
    explicit retired_owner(std::shared_ptr<void> owner) noexcept : owner_(std::move(owner)) {}

    /// Gives `one` to the reaper, which must have been started.
    static void retire(std::unique_ptr<retired_owner> one) noexcept { reaper::push(*one.release()); }

private:
    friend std::default_delete<retired_owner>;
    ~retired_owner() override = default;
    [[nodiscard]] std::optional<frontiers::point> pending() noexcept override { return std::nullopt; }
    void release() noexcept override { delete this; }

    std::shared_ptr<void> owner_;
};

}  // namespace weir::runtime
