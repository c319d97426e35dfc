#pragma once

#include <cstdint>

#include "random_programs/program.hpp"
#include "random_programs/settings.hpp"

namespace random_programs {

/// What the threads of a program share.
enum class shape : std::uint8_t {
    alone,       ///< one thread
    slices,      ///< threads own parts of the same arrays and use the same streams
    hand_over,   ///< the same, and after each phase the threads exchange the parts
    accumulate,  ///< all threads add to the same arrays; the order does not matter, a lost addition does
};
inline constexpr int shapes = 4;

[[nodiscard]] shape shape_of(std::uint64_t seed) noexcept;

/// The raw program of a seed: the same on every machine. To be completed.
[[nodiscard]] program generate(std::uint64_t seed);

/// A raw program of one thread that drops busy arrays and makes new ones more often than it waits.
[[nodiscard]] program generate_reuse(std::uint64_t seed);

/// Calls `run(seed)` for one `share`-th of the programs that are asked for, among those with one thread.
template <class Run>
void for_each_serial_seed(std::uint64_t share, Run&& run) {
    std::uint64_t left = wanted_programs(share);
    for (std::uint64_t seed = first_seed(); left > 0; ++seed) {
        if (shape_of(seed) == shape::alone) {
            --left;
            run(seed);
        } else if (is_replay()) {
            return;
        }
    }
}

}  // namespace random_programs
