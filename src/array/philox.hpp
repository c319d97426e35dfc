#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weir::random_numbers {

/// Philox4x32-10: four random words that depend only on a counter and a key.
[[nodiscard]] constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                                            std::array<std::uint32_t, 2> key) noexcept {
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t a = std::uint64_t{0xD2511F53U} * counter[0];
        const std::uint64_t b = std::uint64_t{0xCD9E8D57U} * counter[2];
        counter = {static_cast<std::uint32_t>(b >> 32U) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
                   static_cast<std::uint32_t>(a >> 32U) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
        key = {key[0] + 0x9E3779B9U, key[1] + 0xBB67AE85U};
    }
    return counter;
}

/// Block number `block` of the numbers that belong to `seed`.
[[nodiscard]] constexpr std::array<std::uint32_t, 4> block_of(std::uint64_t seed, std::uint64_t block) noexcept {
    return philox({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32U), 0, 0},
                  {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U)});
}

/// The upper 53 bits of two words, as a number in [0, 1).
[[nodiscard]] constexpr double real(std::uint32_t low, std::uint32_t high) noexcept {
    const std::uint64_t both = std::uint64_t{high} << 32U | low;
    return static_cast<double>(both >> 11U) * 0x1p-53;
}
/// The upper 24 bits of a word.
[[nodiscard]] constexpr float real(std::uint32_t word) noexcept { return static_cast<float>(word >> 8U) * 0x1p-24F; }

}  // namespace weir::random_numbers
