#pragma once

#include <cstdint>

namespace weir::backend::sim {

/// Pseudo-random numbers, the same on all machines for one seed (splitmix64, Steele, Lea and Flood 2014).
class random_numbers {
public:
    explicit random_numbers(std::uint64_t seed = 0) noexcept : state_(seed) {}

    [[nodiscard]] std::uint64_t next() noexcept {
        state_ += 0x9e3779b97f4a7c15U;
        std::uint64_t mixed = state_;
        mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
        mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
        return mixed ^ (mixed >> 31U);
    }
    /// One of 0 ... count - 1. `count` is not 0 and small against 2^64.
    [[nodiscard]] std::uint64_t below(std::uint64_t count) noexcept { return next() % count; }

private:
    std::uint64_t state_;
};

}  // namespace weir::backend::sim
