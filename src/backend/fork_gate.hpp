#pragma once

#include <atomic>
#include <cstdint>

#include "weir/detail/fork_section.hpp"

namespace weir::backend {

/// Belongs to one thread at a time. Never freed: a thread that forks may read it at any time.
struct alignas(64) presence {
    std::atomic<unsigned> depth{0};  ///< nesting depth of the thread's sections; pairs with the gate (see fork_gate)
    std::atomic<bool> taken{false};
    bool is_for_once = false;  ///< the thread is ending: it gives the presence back when it leaves its last section
    presence* next = nullptr;
};

/// Keeps threads out of sections (detail::fork_section) while one forks.
///
///     thread:  sets its depth; reads the gate                  (no fence: the forking thread pays for both)
///     fork:    closes the gate; membarrier(2); reads all depths
///
/// Either the thread sees the closed gate and leaves, or the forking thread sees it inside. Where the system has no membarrier,
/// each thread executes a fence of its own.
class fork_gate {
public:
    /// Whether the calling thread is in a section.
    [[nodiscard]] static bool is_inside() noexcept;
    /// From now on no thread but the caller enters a section that it is not in. One thread at a time.
    static void close() noexcept;
    static void open() noexcept;
    /// Whether other threads are in sections. Call it while the gate is closed.
    [[nodiscard]] static bool others_inside() noexcept;

    /// Called in the child, where there are no other threads.
    static void begin_child() noexcept;
    /// The number of forks between the first process and this one: shows whether something was made before the last fork.
    [[nodiscard]] static std::uint64_t generation() noexcept;

    /// A detail::fork_section for code that every operation runs through.
    class section {
    public:
        [[gnu::always_inline]] section() noexcept : self_(mine_ == nullptr ? &appear() : mine_) { enter(*self_); }
        [[gnu::always_inline]] ~section() { leave(*self_); }
        section(const section&) = delete;
        section& operator=(const section&) = delete;

    private:
        presence* self_;
    };

private:
    friend class detail::fork_section;

    [[gnu::always_inline]] static void enter(presence& self) noexcept {
        const unsigned depth = self.depth.load(std::memory_order_relaxed);
        self.depth.store(depth + 1, std::memory_order_relaxed);
        if (depth == 0) [[likely]] {
            std::atomic_signal_fence(std::memory_order_seq_cst);
            if (gate_.load(std::memory_order_relaxed) != 0) [[unlikely]] {
                enter_slowly(self);
            }
        }
    }
    [[gnu::always_inline]] static void leave(presence& self) noexcept {
        const unsigned depth = self.depth.load(std::memory_order_relaxed) - 1;
        self.depth.store(depth, std::memory_order_release);
        if (depth == 0 && self.is_for_once) [[unlikely]] {
            give_back();
        }
    }
    [[gnu::cold]] static presence& appear() noexcept;
    [[gnu::cold]] static void enter_slowly(presence& self) noexcept;
    [[gnu::cold]] static void give_back() noexcept;
    static bool may_stay(const presence& self) noexcept;
    static void wait_while_closed() noexcept;
    static void find_barrier() noexcept;

    static constexpr int is_closed = 1;
    static constexpr int needs_fences = 2;
    static inline constinit std::atomic<int> gate_{0};
    static inline constinit thread_local presence* mine_ = nullptr;
};

}  // namespace weir::backend
