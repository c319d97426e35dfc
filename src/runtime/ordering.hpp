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
        return mode == 0 ? std::nullopt : std::optional(static_cast<ordering_mode>(mode - 1));
    }

private:
    std::atomic<std::uint8_t> mode_{0};
};

/// The mode of the innermost ordering_scope of the calling thread.
[[nodiscard]] std::optional<ordering_mode> scope_ordering() noexcept;
/// The mode of the process.
[[nodiscard]] ordering_mode process_ordering() noexcept;

}  // namespace weir::runtime
