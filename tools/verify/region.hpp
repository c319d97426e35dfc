// Which bytes of a memory region an access may touch, and whether two accesses share one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weir_verify {

/// `count` parts, `stride` bytes from one to the next.
struct level {
    std::uint64_t stride = 0;
    std::uint64_t count = 0;
    friend bool operator==(const level&, const level&) = default;
};

/// The bytes [begin, end); with levels, only the runs of `run` bytes that start at begin + i0 * stride0 + i1 * stride1 +
/// ... for all indices below the counts, the last of which ends at `end`. Outermost level first.
struct region {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t run = 0;
    std::vector<level> levels;

    [[nodiscard]] bool empty() const noexcept { return begin >= end; }
    friend bool operator==(const region&, const region&) = default;
};

/// Upper limit of byte offsets in a log, so that differences fit into signed numbers.
inline constexpr std::uint64_t most_bytes = std::uint64_t{1} << 62;

/// What contradicts the description above; empty if nothing does.
[[nodiscard]] std::string flaw_of(const region& one);

enum class sharing : std::uint8_t {
    none,     ///< they have no byte in common
    certain,  ///< they share a byte
    unknown,  ///< too many runs to decide
};

/// Exact, unless more than about a million runs would have to be compared.
[[nodiscard]] sharing compare(const region& a, const region& b);

/// Whether `outer` contains every byte of `inner`; may return false where that is hard to decide.
[[nodiscard]] bool covers(const region& outer, const region& inner);

/// "bytes [0, 64)", or with the levels.
[[nodiscard]] std::string to_string(const region& one);

}  // namespace weir_verify
