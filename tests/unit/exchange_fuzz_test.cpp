// Random input for the exchange from a seed (scenario B10): each run tries a number of the inputs that the fuzzers of tests/fuzz try.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <span>

#include "fuzz/arrow_input.hpp"
#include "fuzz/dlpack_input.hpp"

namespace weir::fuzz {
namespace {

/// WEIR_FUZZ_INPUTS, else a number that takes a second.
std::uint64_t inputs() {
    const char* const said = std::getenv("WEIR_FUZZ_INPUTS");
    return said == nullptr ? 4000 : std::strtoull(said, nullptr, 10);
}

outcomes of_random_inputs(void (*one)(std::span<const std::uint8_t>, outcomes&)) {
    outcomes seen;
    std::mt19937_64 random(20261126);
    for (std::uint64_t i = 0; i < inputs(); ++i) {
        std::array<std::uint8_t, 256> bytes{};
        for (std::uint8_t& each : bytes) {
            each = static_cast<std::uint8_t>(random());
        }
        one(bytes, seen);
    }
    return seen;
}

TEST(ExchangeFuzz, B10RandomTensorsAreTakenOrRefusedAndDeletedOnce) {
    const outcomes seen = of_random_inputs(dlpack_input);
    EXPECT_GT(seen.taken, inputs() / 100) << "the inputs are so bad that they test nothing";
    EXPECT_GT(seen.refused, inputs() / 100);
}

TEST(ExchangeFuzz, B10RandomColumnsAreTakenOrRefusedAndReleasedOnce) {
    const outcomes seen = of_random_inputs(arrow_input);
    EXPECT_GT(seen.taken, inputs() / 100);
    EXPECT_GT(seen.refused, inputs() / 100);
}

}  // namespace
}  // namespace weir::fuzz
