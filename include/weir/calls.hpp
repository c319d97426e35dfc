// What library calls have in common. Layer: calls.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "weir/device.hpp"
#include "weir/export.hpp"

namespace weir {

/// Whether a call returns before its work is over (rule P2).
enum class call_blocking : std::uint8_t {
    automatic,  ///< it blocks only if it computes on a device that cannot reach the operand's memory
    always,     ///< it blocks
};

/// Where a call computes: where its operand lies (the default), on a device of a kind, or on a device. If that device
/// cannot reach the operand's memory, the operand is copied there and the result is copied back (rule P2). Of several
/// devices of a kind it is the operand's, else that of the stream, else the first.
using execution_target = std::variant<std::monostate, device_kind, device>;

/// The most memory of the computing device that a call may take besides its operand and its result: for a workspace, and
/// for copies of both where they lie on another device. What a library allocates within itself does not count.
///
/// \code
/// .memory_limit = 1 << 20      // bytes
/// .memory_limit = 0.5          // a part of the device's memory, more than 0, at most 1
/// .memory_limit = "80%"        // the same: the default
/// .memory_limit = "1.5 GiB"    // B, kB, MB, GB, TB: powers of 1000; KiB, MiB, GiB, TiB: powers of 1024
/// \endcode
class WEIR_EXPORT memory_limit {
public:
    /// "80%".
    memory_limit() = default;
    /// Throws argument_error if it is negative.
    template <std::integral Integer>
        requires(!std::same_as<Integer, bool>)
    memory_limit(Integer bytes)  // NOLINT(google-explicit-constructor): reads as a value
        : memory_limit(from_bytes(bytes < 0, static_cast<std::uint64_t>(bytes))) {}
    /// Throws argument_error unless it is more than 0 and at most 1.
    memory_limit(double part);  // NOLINT(google-explicit-constructor): reads as a value
    /// Throws argument_error for what it cannot read. Letters may be small or capital.
    memory_limit(std::string_view text);  // NOLINT(google-explicit-constructor): reads as a value
    /// The same: `.memory_limit = "80%"`.
    memory_limit(const char* text)  // NOLINT(google-explicit-constructor): reads as a value
        : memory_limit(std::string_view(text)) {}

    /// What it comes to on a device: a part is one of what the device's pool may hold (rule L6).
    [[nodiscard]] std::size_t bytes(device on) const;

private:
    static memory_limit from_bytes(bool negative, std::uint64_t bytes);

    bool is_part_ = true;
    double part_ = 0.8;
    std::uint64_t bytes_ = 0;
};

}  // namespace weir
