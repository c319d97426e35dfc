// Floating-point numbers of 16 bits: storage, and exact conversion to and from wider ones. Layer: base.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <type_traits>

namespace weir {

namespace detail {

/// The float next to `value` whose last bit says whether anything was lost ("round to odd"). Rounding it once more, to a format with at
/// least two bits fewer, gives the result of rounding `value` itself.
constexpr float round_to_odd(double value) noexcept {
    const auto nearest = static_cast<float>(value);
    auto bits = std::bit_cast<std::uint32_t>(nearest);
    const auto back = static_cast<double>(nearest);
    if (back == value || value != value) {
        return nearest;
    }
    const bool too_large = (back < 0 ? -back : back) > (value < 0 ? -value : value);
    bits -= too_large ? 1U : 0U;
    return std::bit_cast<float>(bits | 1U);
}

/// The same for integers: exact up to 53 bits.
template <std::integral Integer>
constexpr double round_to_odd_double(Integer value) noexcept {
    if constexpr (sizeof(Integer) < 8) {
        return static_cast<double>(value);
    } else {
        const bool negative = value < 0;
        auto magnitude = static_cast<std::uint64_t>(value);
        magnitude = negative ? std::uint64_t{0} - magnitude : magnitude;
        if (magnitude >> 53U != 0) {
            magnitude = ((magnitude >> 11U) | ((magnitude & 2047U) != 0 ? 1U : 0U)) << 11U;
        }
        const auto rounded = static_cast<double>(magnitude);
        return negative ? -rounded : rounded;
    }
}

constexpr std::uint16_t float16_bits(float value) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = bits & 0x7fffffffU;
    // At least 2^-14: rebias the exponent, then add half of the last kept bit, less one unit if that bit is even (ties to even).
    const std::uint32_t normal = (magnitude - (112U << 23U) + 0xfffU + (magnitude >> 13U & 1U)) >> 13U;
    // Below 2^-14: the sum with 1/2 has its last bit at the last bit of a subnormal float16, so the addition rounds.
    const std::uint32_t small = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3f000000U;
    const std::uint32_t nan = 0x7e00U | ((magnitude >> 13U) & 0x3ffU);
    std::uint32_t rounded = magnitude < 0x38800000U ? small : normal;
    rounded = magnitude >= 0x47800000U || rounded > 0x7c00U ? 0x7c00U : rounded;
    rounded = magnitude > 0x7f800000U ? nan : rounded;
    return static_cast<std::uint16_t>((bits >> 16U & 0x8000U) | rounded);
}

constexpr float float16_value(std::uint16_t bits) noexcept {
    const std::uint32_t magnitude = bits & 0x7fffU;
    // Read as a float, it has an exponent that is wrong by 112, for normal and for subnormal numbers.
    const float scaled = std::bit_cast<float>(magnitude << 13U) * 0x1p112F;
    const std::uint32_t special = magnitude >= 0x7c00U ? 0x7f800000U : 0U;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | special |
                                (static_cast<std::uint32_t>(bits) & 0x8000U) << 16U);
}

constexpr std::uint16_t bfloat16_bits(float value) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (bits + 0x7fffU + (bits >> 16U & 1U)) >> 16U;
    const bool nan = (bits & 0x7fffffffU) > 0x7f800000U;
    return static_cast<std::uint16_t>(nan ? (bits >> 16U) | 0x40U : rounded);
}

constexpr float bfloat16_value(std::uint16_t bits) noexcept {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

/// The common base of both formats: two bytes, made by rounding to nearest (ties to even), and widened to float without loss. Arithmetic is
/// float's.
template <std::uint16_t (*Narrow)(float) noexcept, float (*Widen)(std::uint16_t) noexcept>
class short_float {
public:
    /// Uninitialized; 0 if made with {}.
    short_float() = default;
    /// @{
    /// Rounds once, to nearest, ties to even; numbers that are too large become infinite.
    explicit constexpr short_float(float value) noexcept : bits_(Narrow(value)) {}
    explicit constexpr short_float(double value) noexcept : bits_(Narrow(round_to_odd(value))) {}
    template <std::integral Integer>
    explicit constexpr short_float(Integer value) noexcept : short_float(round_to_odd_double(value)) {}
    /// @}

    /// The number with these bits.
    [[nodiscard]] static constexpr short_float from_bits(std::uint16_t bits) noexcept {
        short_float made{};
        made.bits_ = bits;
        return made;
    }
    /// The bits of the format.
    [[nodiscard]] constexpr std::uint16_t bits() const noexcept { return bits_; }
    /// The same number as a float: exact.
    constexpr operator float() const noexcept {  // NOLINT(google-explicit-constructor): loses nothing
        return Widen(bits_);
    }

private:
    std::uint16_t bits_;
};

}  // namespace detail

/// IEEE 754 binary16: 11 significant bits, largest value 65504. Conversion to it rounds to nearest, ties to even.
class float16 : public detail::short_float<detail::float16_bits, detail::float16_value> {
public:
    using short_float::short_float;
    float16() = default;
    /// The same number.
    constexpr float16(const short_float& same) noexcept : short_float(same) {}  // NOLINT(google-explicit-constructor)
};

/// The upper half of a float: 8 significant bits, float's range. Conversion to it rounds to nearest, ties to even.
class bfloat16 : public detail::short_float<detail::bfloat16_bits, detail::bfloat16_value> {
public:
    using short_float::short_float;
    bfloat16() = default;
    /// The same number.
    constexpr bfloat16(const short_float& same) noexcept : short_float(same) {}  // NOLINT(google-explicit-constructor)
};

static_assert(std::is_trivially_copyable_v<float16> && sizeof(float16) == 2);
static_assert(std::is_trivially_copyable_v<bfloat16> && sizeof(bfloat16) == 2);

}  // namespace weir
