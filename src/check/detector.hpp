#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "check/access_history.hpp"
#include "check/event_history.hpp"
#include "check/freed_memory.hpp"
#include "check/program_order.hpp"
#include "frontier/point.hpp"
#include "runtime/gone_streams.hpp"
#include "runtime/observer.hpp"
#include "weir/check.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/source_location.hpp"

namespace weir::check {

/// The observer behind a check_scope. Any thread.
class detector final : public runtime::observer {
public:
    explicit detector(check_options options)
        : options_(std::move(options)),
          warn_(options_.warn ? std::make_shared<const runtime::verdicts::teller>(options_.warn) : nullptr) {}

    [[nodiscard]] weir::report report() const;

    [[nodiscard]] bool wants_safety() const noexcept override { return true; }
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
    void host_met_package(frontiers::point entry) override;
    void package_used(std::uint64_t resource, const order::footprint& where, order::access_mode mode,
                      frontiers::point at) override;
    void allocated(const runtime::observed_allocation& what) override;
    void released(std::uint64_t resource) override;
    void dropped(std::uint64_t resource) override;

private:
    struct memory {
        access_history history;
        access_history packages;    ///< what packages that share it have done, as far as they said so
        access_history former;      ///< what earlier owners' accesses may still do to it, unordered with their drops
        std::uint64_t bytes = 0;    ///< 0 if nobody saw it allocated
        std::uint64_t size = 0;     ///< the same, as accesses know it
        source_location allocated;  ///< line 0 then
        memory_place place;
        std::optional<agent> allocator;  ///< none if no stream did
        owners_end end;
    };
    /// The second access of a race: an operation's, the host's, or a drop, which writes all.
    struct present {
        order::footprint where;
        order::access_mode mode = order::access_mode::write;
        std::optional<agent> who;  ///< none for the host
        runtime::site from;
        bool is_drop = false;
    };
    enum class fault : std::uint8_t { unordered, early_reuse, use_after_free };

    /// Runs `act` under the lock. Observers cannot throw: when memory runs out, that is noted, and so is what the report
    /// can no longer promise.
    template <class Act>
    void note(Act&& act) noexcept;

    /// Orders `self` after what entries and exits of packages that share memory order it after (rules X6, X7).
    void join_packages(agent self, const runtime::observed_operation& what);
    /// Calls `join(moment)` for all that Weir orders before an access that is left to it, with or without a wait.
    template <class Join>
    void join_conflicts(const runtime::observed_access& access, Join&& join);
    /// Whether Weir orders this access and that counts.
    [[nodiscard]] bool left_to_weir(const runtime::observed_access& access) const noexcept;
    /// Reports what conflicts with an access, of its own memory and of what that was before, and is not ordered before.
    template <class IsBefore>
    void look_back(const runtime::observed_access& access, const present& second, IsBefore&& is_before);
    /// Its last owner dropped it.
    void judge_end(std::uint64_t resource, const memory& one);

    /// `of` is the memory that the second access touches.
    void found(fault what, const past_access& first, const present& second, std::uint64_t resource, const memory& of);
    /// Fills in what two places in the program do not tell.
    void complete(race& one, fault what, const past_access& first, const present& second, std::uint64_t resource,
                  const memory& of) const;
    void raise(const race& one) const;
    [[nodiscard]] std::optional<stale_wait> stale_wait_before(const past_access& first, const present& second) const;
    [[nodiscard]] race_access describe(const runtime::site& from, const std::optional<agent>& who) const;

    const check_options options_;
    const std::shared_ptr<const runtime::verdicts::teller> warn_;  ///< null: the standard error output
    mutable detail::mutex mutex_;                                  ///< guards what follows; a leaf in the lock order
    program_order order_;
    event_history events_;
    runtime::gone_streams gone_;
    freed_memory freed_;
    std::unordered_map<std::uint64_t, memory> memory_;
    std::vector<race> races_;
    std::unordered_map<std::string, std::size_t> by_lines_;  ///< index into races_
    std::size_t lost_ = 0;                                   ///< calls for which memory did not suffice
    std::size_t unjudged_drops_ = 0;                         ///< of memory that nobody saw allocated, possibly in use
};

}  // namespace weir::check
