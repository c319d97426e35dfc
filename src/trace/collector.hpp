#pragma once

#include <chrono>
#include <mutex>
#include <string_view>

#include "runtime/gone_streams.hpp"
#include "runtime/observer.hpp"
#include "runtime/stream_directory.hpp"
#include "trace/log.hpp"
#include "weir/detail/mutex.hpp"

namespace weir::trace {

/// The observer behind a trace_scope: takes notes, formats nothing. Any thread.
class collector final : public runtime::observer {
public:
    /// What was noted up to now, for `read(const log&)`. Holds up those who have news.
    template <class Read>
    auto read(Read&& read) const {
        const std::lock_guard lock(mutex_);
        return read(static_cast<const log&>(log_));
    }

    /// Call once the collector has been added: from now on, each stream that it is told of is new.
    void knows_all_streams() noexcept;

    [[nodiscard]] bool wants_times() const noexcept override { return true; }
    void stream_made(const runtime::stream_info& stream) override;
    void stream_gone(const runtime::stream_info& stream, frontiers::point last) override;
    void operation(const runtime::observed_operation& what) override;
    void event_recorded(std::uint64_t event, const runtime::stream_info& stream, frontiers::point at,
                        const source_location& where) override;
    void stream_waits(const runtime::stream_info& stream, frontiers::epoch at, frontiers::point target,
                      std::uint64_t event, runtime::wait_made how, const source_location& where) override;
    void host_waited(frontiers::point target, const source_location& where) override;
    void device_waited(std::string_view device, const source_location& where) override;
    void host_access(const runtime::observed_access& what, const source_location& where) override;
    void allocated(const runtime::observed_allocation& what) override;
    void dropped(std::uint64_t resource) override;
    void failed(frontiers::point which) noexcept override;
    void executed(const runtime::observed_execution& what) noexcept override;

private:
    /// Adds what `make()` gives, under the lock. Observers cannot throw: news without memory are counted as lost.
    template <class Make>
    void note(Make&& make) noexcept;
    /// Notes a stream that was not noted yet.
    void meet(const runtime::stream_info& stream, bool is_new = false);
    [[nodiscard]] moment moment_of(frontiers::point p) const { return {directory_.stream_of(p), p.at}; }

    const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
    mutable detail::mutex mutex_;  ///< guards what follows; a leaf in the lock order
    log log_;
    runtime::stream_directory directory_;
    runtime::gone_streams gone_;
    bool knows_all_streams_ = false;
};

}  // namespace weir::trace
