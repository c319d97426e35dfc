// How and where an operation touches memory. Layer: base.
#pragma once

#include <cstdint>

namespace weir {

/// How an operation touches memory. Writing includes changing in place: a write is ordered after earlier reads and writes, a read after
/// earlier writes only (rule O1).
enum class access_mode : std::uint8_t { read, write };

/// The bytes in [begin, end), counted from the start of a buffer.
struct byte_range {
    std::uint64_t begin = 0;  ///< the first byte
    std::uint64_t end = 0;    ///< the end: one past the last byte

    /// Whether both are the same range.
    friend bool operator==(const byte_range&, const byte_range&) = default;
};

}  // namespace weir
