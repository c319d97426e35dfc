#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "backend/backend.hpp"
#include "order/sequencer.hpp"
#include "runtime/observer.hpp"
#include "runtime/ordering.hpp"
#include "weir/detail/intrusive.hpp"
#include "weir/device.hpp"

namespace weir::runtime {

/// What all copies of a stream share. Owners: the user's stream objects, and the queue while it has work (rule S4).
class stream_state final : public detail::counted<stream_state>, private backend::queue_events {
public:
    /// Throws std::bad_alloc.
    static detail::owner<stream_state> make(device_state& device, int priority, std::string name);

    [[nodiscard]] device_state& device() const noexcept { return *device_; }
    [[nodiscard]] const stream_info& info() const noexcept { return info_; }
    [[nodiscard]] int priority() const noexcept { return priority_; }
    [[nodiscard]] frontiers::timeline_id timeline() const noexcept { return info_.timeline; }
    [[nodiscard]] std::uint64_t id() const noexcept { return info_.id; }

    /// Guards `sequence`, `queue` and what enters them. In the lock order after buffers and devices; among streams by id.
    std::mutex mutex;
    order::sequencer sequence;
    std::unique_ptr<backend::queue> queue;

    std::atomic<bool> closed{false};
    /// Throws state_error if closed.
    void expect_open() const;

    [[nodiscard]] std::optional<ordering_mode> ordering() const noexcept { return mode_.get(); }
    void set_ordering(std::optional<ordering_mode> mode) noexcept { mode_.set(mode); }

    /// The stream's tail at this moment.
    [[nodiscard]] order::mark tail();

    void last_owner_gone() noexcept;

private:
    friend class detail::counted<stream_state>;
    stream_state(device_state& device, frontiers::timeline_id timeline, int priority, std::string name);
    ~stream_state() = default;

    void failed(backend::epoch at, const site& from, std::exception_ptr why) noexcept override;
    void executed(backend::epoch at, std::chrono::steady_clock::time_point start,
                  std::chrono::steady_clock::time_point end) noexcept override;
    void busy() noexcept override { add_owner(); }
    void idle() noexcept override { drop_owner(); }

    device_state* device_;
    std::string name_;
    stream_info info_;
    int priority_;
    own_ordering mode_;
};

}  // namespace weir::runtime
