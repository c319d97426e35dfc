// How many programs the property tests run, and from which seed: WEIR_TEST_PROGRAMS, and WEIR_TEST_SEED to replay one.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

namespace order_test {

inline std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
    const char* text = std::getenv(variable);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

inline std::uint64_t first_seed() { return number_from("WEIR_TEST_SEED", 1); }

/// Calls `run(seed)` for the number of seeds that is asked for, one `share`-th of them, until it returns false; or only for the
/// seed of WEIR_TEST_SEED if that is set.
template <class Run>
void for_each_seed(std::uint64_t share, Run&& run) {
    const bool one = std::getenv("WEIR_TEST_SEED") != nullptr;
    const std::uint64_t programs = one ? 1 : number_from("WEIR_TEST_PROGRAMS", 50'000) / share;
    for (std::uint64_t i = 0; i < programs; ++i) {
        if (!run(first_seed() + i)) {
            return;
        }
    }
}

inline std::string replay(std::uint64_t seed) { return "WEIR_TEST_SEED=" + std::to_string(seed) + "\n"; }

}  // namespace order_test
