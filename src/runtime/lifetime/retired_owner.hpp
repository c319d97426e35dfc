#pragma once

#include <memory>
#include <utility>

#include "frontier/point.hpp"
#include "runtime/lifetime/reaper.hpp"

namespace weir::runtime {

/// The owner of a native queue, which a stream keeps alive, until the reaper's thread releases it. Releasing the owner may end
/// the queue, and a task of that queue must not do that; but the last use of the stream may end in such a task.
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
