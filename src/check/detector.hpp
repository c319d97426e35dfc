#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "check/access_history.hpp"
#include "check/program_order.hpp"
#include "runtime/observer.hpp"
#include "weir/check.hpp"

namespace weir::check {

/// The observer behind a check_scope. Any thread.
class detector final : public runtime::observer {
public:
    explicit detector(check_options options) : options_(options) {}

    [[nodiscard]] weir::report report() const;

    [[nodiscard]] bool wants_safety() const noexcept override { return true; }
    void stream_made(const runtime::stream_info& stream) override;
    void operation(const runtime::observed_operation& what) override;
    void stream_waits(const runtime::stream_info& stream, frontiers::epoch at, frontiers::point target,
                      std::uint64_t event, bool issued, const source_location& where) override;
    void host_waited(frontiers::point target, const source_location& where) override;
    void host_access(const runtime::observed_access& what, const source_location& where) override;
    void allocated(std::uint64_t resource, std::uint64_t bytes, const runtime::stream_info& stream,
                   const source_location& where) override;
    void dropped(std::uint64_t resource) override;

private:
    struct memory {
        access_history history;
        std::uint64_t bytes = 0;
        source_location allocated;  ///< line 0 if nobody saw it
    };
    /// The second access of a race.
    struct present {
        const runtime::observed_access* access;
        const agent* who;  ///< null for the host
        runtime::site from;
    };

    /// Runs `act` under the lock. Observers cannot throw: when memory runs out, that is noted, and so is what the report
    /// can no longer promise.
    template <class Act>
    void note(Act&& act) noexcept;

    /// Whether Weir orders this access and that counts.
    [[nodiscard]] bool left_to_weir(const runtime::observed_access& access) const noexcept;
    void found(const past_access& first, const present& second);
    [[nodiscard]] race describe(const past_access& first, const present& second) const;
    [[nodiscard]] race_access describe(const runtime::observed_access& access, const agent* who,
                                       const runtime::site& from) const;

    const check_options options_;
    mutable std::mutex mutex_;  ///< guards what follows; a leaf in the lock order
    program_order order_;
    std::unordered_map<std::uint64_t, memory> memory_;
    std::vector<race> races_;
    std::unordered_map<std::string, std::size_t> by_lines_;  ///< index into races_
    std::size_t lost_ = 0;                                   ///< calls for which memory did not suffice
};

}  // namespace weir::check
