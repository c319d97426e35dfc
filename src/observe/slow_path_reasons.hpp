#pragma once

#include <atomic>
#include <cstdint>

namespace weir::observe {

/// The reasons why operations must take the slow path. Each reason has a bit, so that the fast path tests one word. Relaxed: code that
/// sets a reason publishes it to other threads by other means where the order matters.
class slow_path_reasons {
public:
    enum reason : std::uint32_t {
        profiler = 1,  ///< there may be a profiler (nvtx_range)
        fork = 2,      ///< the process is a child that cannot use Weir, or has not resumed yet (fork_guard)
        observer = 4,  ///< there is an observer (observers)
        /// The child cannot use Weir at all: threads that do not exist there may hold its locks (fork_guard).
        lost = 8,
        verifier = 16,  ///< operations are held to what they declare (verify_access)
    };

    /// A thread has a label for what it enqueues (detail::label_scope). The fast path supports such operations, once they are named. Above
    /// the bits of the reasons, the word counts these scopes.
    static constexpr std::uint32_t one_label = 256;

    /// Whether there is any reason.
    [[nodiscard]] static bool is_needed() noexcept { return reasons_.load(std::memory_order_relaxed) != 0; }
    [[nodiscard]] static bool is_needed_for(reason why) noexcept {
        return (reasons_.load(std::memory_order_relaxed) & why) != 0;
    }
    /// The same apart from labels.
    [[nodiscard]] static bool is_needed_besides_labels() noexcept {
        return (reasons_.load(std::memory_order_relaxed) & (one_label - 1)) != 0;
    }
    static void begin_label() noexcept { reasons_.fetch_add(one_label, std::memory_order_relaxed); }
    static void end_label() noexcept { reasons_.fetch_sub(one_label, std::memory_order_relaxed); }
    static void begin(reason why) noexcept { reasons_.fetch_or(why, std::memory_order_relaxed); }
    static void end(reason why) noexcept { reasons_.fetch_and(~std::uint32_t{why}, std::memory_order_relaxed); }

private:
    // `profiler` is set until the first operation has looked for a profiler.
    static inline constinit std::atomic<std::uint32_t> reasons_{profiler};
};

}  // namespace weir::observe
