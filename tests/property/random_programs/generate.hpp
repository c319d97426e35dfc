#pragma once

#include <cstdint>

#include "random_programs/program.hpp"

namespace random_programs {

/// What the threads of a program have to do with each other.
enum class shape : std::uint8_t {
    alone,       ///< one thread
    slices,      ///< threads own parts of the same arrays and use the same streams
    hand_over,   ///< the same, and after each phase the parts change hands
    accumulate,  ///< all threads add to the same arrays; the order does not matter, a lost addition does
};
inline constexpr int shapes = 4;

[[nodiscard]] shape shape_of(std::uint64_t seed) noexcept;

/// The raw program of a seed: the same on every machine. To be completed.
[[nodiscard]] program generate(std::uint64_t seed);

}  // namespace random_programs
