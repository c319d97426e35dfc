#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "weir/ordering.hpp"

namespace weir::runtime {

/// Whether any ordering mode was ever set; if not, everything is automatic. Relaxed, paired with no other operation: the thread that
/// sets a mode sees its own write, and other threads see the modes of before or after.
inline constinit std::atomic<bool> any_ordering_was_set{false};

/// Whether Weir or the program orders the operations of an array or a stream, if that was set for it. Relaxed, paired with no other
/// operation: an operation sees the mode of before or after.
class own_ordering {
public:
    [[nodiscard]] std::optional<ordering_mode> get() const noexcept {
        return decoded(mode_.load(std::memory_order_relaxed));
    }
    [[nodiscard]] bool is_set() const noexcept { return mode_.load(std::memory_order_relaxed) != 0; }
    /// Makes the mode automatic whatever the program sets: for memory that is internal to Weir. Unlike `set`, it leaves
    /// `any_ordering_was_set`, because everything is automatic until a mode is set.
    void set_internal() noexcept { mode_.store(internal, std::memory_order_relaxed); }
    [[nodiscard]] bool is_internal() const noexcept { return mode_.load(std::memory_order_relaxed) == internal; }
    void set(std::optional<ordering_mode> mode) noexcept {
        if (mode) {
            any_ordering_was_set.store(true, std::memory_order_relaxed);
        }
        mode_.store(encoded(mode), std::memory_order_relaxed);
    }

    /// A mode, or none, in one byte.
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
