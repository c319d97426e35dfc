#pragma once

#include <chrono>
#include <mutex>
#include <string_view>

#include "observe/gone_streams.hpp"
#include "observe/observer.hpp"
#include "observe/stream_directory.hpp"
#include "trace/log.hpp"
#include "weir/detail/mutex.hpp"

namespace weir::trace {

/// The observer behind a trace_scope: stores what it receives, formats nothing. Any thread.
class collector final : public observe::observer {
public:
    /// Calls `read(const log&)` with everything received up to now. Blocks threads that report to this observer meanwhile.
    template <class Read>
    auto read(Read&& read) const {
        const std::lock_guard lock(mutex_);
        return read(static_cast<const log&>(log_));
    }

    /// To be called once the collector has been added: from now on, each stream that is reported to it is new.
    void knows_all_streams() noexcept;

    [[nodiscard]] bool wants_times() const noexcept override { return true; }
    void stream_made(const observe::stream_info& stream) override;
    void stream_gone(const observe::stream_info& stream, frontiers::point last) override;
    void operation(const observe::observed_operation& what) override;
    void event_recorded(std::uint64_t event, const observe::stream_info& stream, frontiers::point at,
                        const source_location& where) override;
    void stream_waits(const observe::stream_info& stream, frontiers::epoch at, frontiers::point target,
                      std::uint64_t event, observe::wait_made how, const source_location& where) override;
    void host_waited(frontiers::point target, const source_location& where) override;
    void device_waited(std::string_view device, const source_location& where) override;
    void host_access(const observe::observed_access& what, const source_location& where) override;
    void allocated(const observe::observed_allocation& what) override;
    void dropped(std::uint64_t resource) override;
    void failed(frontiers::point which) noexcept override;
    void executed(const observe::observed_execution& what) noexcept override;

private:
    /// Adds the result of `make()`, under the lock. Observers cannot throw: a report for which there is no memory is counted as lost.
    template <class Make>
    void note(Make&& make) noexcept;
    /// Adds a stream that was not added yet. May throw std::bad_alloc.
    void meet(const observe::stream_info& stream, bool is_new = false);
    [[nodiscard]] moment moment_of(frontiers::point p) const { return {directory_.stream_of(p), p.at}; }

    const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
    mutable detail::mutex mutex_;  ///< guards what follows; a leaf in the lock order
    log log_;
    observe::stream_directory directory_;
    observe::gone_streams gone_;
    bool knows_all_streams_ = false;
};

}  // namespace weir::trace
