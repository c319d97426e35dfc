#pragma once

#include <atomic>
#include <cstdint>

namespace weir::runtime {

/// What makes an operation more than it is as a rule, wherever it goes. Each reason has a bit, so that an operation asks one
/// question. Who gives a reason sees to the order in which others hear of it.
class attention {
public:
    enum reason : std::uint32_t {
        profiler = 1,  ///< one may want to be told (nvtx_range)
        fork = 2,      ///< the process is a child that cannot use Weir, or has not yet (fork_guard)
        observer = 4,  ///< there is one (observers)
    };

    /// Whether there is any.
    [[nodiscard]] static bool is_needed() noexcept { return reasons_.load(std::memory_order_relaxed) != 0; }
    static void begin(reason why) noexcept { reasons_.fetch_or(why, std::memory_order_relaxed); }
    static void end(reason why) noexcept { reasons_.fetch_and(~std::uint32_t{why}, std::memory_order_relaxed); }

private:
    static inline constinit std::atomic<std::uint32_t> reasons_{profiler};  // until somebody has looked for one
};

}  // namespace weir::runtime
