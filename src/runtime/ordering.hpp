#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "weir/ordering.hpp"

namespace weir::runtime {

/// Whether a mode was ever set, of anything: else all is automatic. Alone: who sets one is its own witness, and others see the modes
/// of before or after.
inline constinit std::atomic<bool> any_ordering_was_set{false};

/// Who orders an array's or a stream's operations, if it says so. Alone: an operation sees the mode of before or after.
class own_ordering {
public:
    [[nodiscard]] std::optional<ordering_mode> get() const noexcept {
        return decoded(mode_.load(std::memory_order_relaxed));
    }
    [[nodiscard]] bool is_set() const noexcept { return mode_.load(std::memory_order_relaxed) != 0; }
    /// Automatic whatever the program says: memory that only Weir knows. Unlike `set` it does not count as a mode that was set,
    /// since all is automatic until one is.
    void set_internal() noexcept { mode_.store(internal, std::memory_order_relaxed); }
    [[nodiscard]] bool is_internal() const noexcept { return mode_.load(std::memory_order_relaxed) == internal; }
    void set(std::optional<ordering_mode> mode) noexcept {
        if (mode) {
            any_ordering_was_set.store(true, std::memory_order_relaxed);
        }
        mode_.store(encoded(mode), std::memory_order_relaxed);
    }

    /// One byte for a mode or none.
    [[nodiscard]] static constexpr std::uint8_t encoded(std::optional<ordering_mode> mode) noexcept {
        return mode ? static_cast<std::uint8_t>(static_cast<std::uint8_t>(*mode) + 1) : std::uint8_t{0};
    }
    [[nodiscard]] static constexpr std::optional<ordering_mode> decoded(std::uint8_t mode) noexcept {
        if (mode == 0) {
            return std::nullopt;
        }
        return mode == internal ? ordering_mode::automatic : static_cast<ordering_mode>(mode - 1);
    }

private:
    static constexpr std::uint8_t internal = 3;

    std::atomic<std::uint8_t> mode_{0};
};

/// The mode of the innermost ordering_scope of the calling thread.
[[nodiscard]] std::optional<ordering_mode> scope_ordering() noexcept;
/// The mode of the process.
[[nodiscard]] ordering_mode process_ordering() noexcept;

}  // namespace weir::runtime
