// Memory that stays reserved for work that Weir never sees. Layer: exchange.
#pragma once

#include <atomic>

#include "weir/buffer.hpp"
#include "weir/export.hpp"

namespace weir::exchange {

/// Keeps memory reserved, even when the arrays in it are gone, for work that is enqueued where Weir cannot see it, such as the replays of a
/// CUDA graph that another package captured (rule X7). It orders nothing: the program orders the replays with other work, or states them by
/// `weir::used_on`.
///
/// Any thread. Several threads may call `release` and `operator bool` at the same time; a move and the destructor are for one thread alone.
class WEIR_EXPORT pin {
public:
    /// An empty buffer has nothing to reserve. Throws std::bad_alloc.
    [[nodiscard]] explicit pin(const buffer& memory);
    /// @{
    /// Takes over what `other` pins; what this object pinned stays pinned for ever.
    pin(pin&& other) noexcept;
    pin& operator=(pin&& other) noexcept;
    /// @}
    /// Memory that was not released stays reserved for ever: the end of the object does not prove that the last replay is complete.
    ~pin();

    /// States that no further work of other code uses the memory. Work that is already enqueued may still be running: memory of a CUDA
    /// device comes back as rule L5 says. Idempotent, never blocks.
    void release() noexcept;
    /// Whether it keeps memory reserved.
    [[nodiscard]] explicit operator bool() const noexcept { return state_.load(std::memory_order_relaxed) != nullptr; }

private:
    struct state;
    static void keep_for_ever(state* one) noexcept;
    std::atomic<state*> state_{nullptr};  ///< owned; the thread that exchanges it for null releases it
};

}  // namespace weir::exchange
