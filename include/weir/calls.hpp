// What library calls have in common. Layer: calls.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "weir/detail/integer.hpp"
#include "weir/device.hpp"
#include "weir/export.hpp"

namespace weir {

/// Whether a call returns before its work is complete (rule P2).
enum class call_blocking : std::uint8_t {
    automatic,  ///< it blocks only if it computes on a device that cannot reach the operand's memory
    always,     ///< it always blocks
};

/// Where a call computes: on the device that holds its operand (the default), on a device of a kind, or on a given device. If that device
/// cannot reach the operand's memory, the operand is copied there and the result is copied back (rule P2). Of several devices of a kind,
/// it is the operand's, else that of the stream, else the first.
using execution_target = std::variant<std::monostate, device_kind, device>;

/// The most memory of the computing device that a call may use besides its operand and its result: for a workspace, and for copies of
/// both if they are on another device. What a library allocates internally counts for a sparse matrix only (solve_options::memory_limit).
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
    /// A number of bytes. Throws argument_error if it is negative.
    template <detail::integer Integer>
    memory_limit(Integer bytes)  // NOLINT(google-explicit-constructor): reads as a value
        : memory_limit(from_bytes(bytes < 0, static_cast<std::uint64_t>(bytes))) {}
    /// A part of the device's memory. Throws argument_error unless it is more than 0 and at most 1.
    template <std::floating_point Number>
    memory_limit(Number part)  // NOLINT(google-explicit-constructor): reads as a value
        : memory_limit(from_part(static_cast<double>(part))) {}
    /// A text as shown above. Throws argument_error if it cannot be parsed. Upper and lower case are the same.
    memory_limit(std::string_view text);  // NOLINT(google-explicit-constructor): reads as a value
    /// The same: `.memory_limit = "80%"`.
    memory_limit(const char* text)  // NOLINT(google-explicit-constructor): reads as a value
        : memory_limit(std::string_view(text)) {}

    /// The limit in bytes on a device: a part is a part of what the device's pool may hold (rule L6).
    [[nodiscard]] std::size_t bytes(device on) const;

    /// Whether both are the same number of bytes, or the same part.
    friend bool operator==(const memory_limit&, const memory_limit&) = default;

private:
    static memory_limit from_part(double part);
    static memory_limit from_bytes(bool negative, std::uint64_t bytes);

    bool is_part_ = true;
    double part_ = 0.8;
    std::uint64_t bytes_ = 0;
};

}  // namespace weir
