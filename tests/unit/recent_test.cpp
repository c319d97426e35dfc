// The last values for addresses (src/watch/recent.hpp).
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "watch/recent.hpp"

namespace weir::detail {
namespace {

constexpr std::uint64_t step = 512;  // between the addresses that an allocator gives out

TEST(Recent, WhatWasKeptIsFoundByItsAddressAlone) {
    const auto all = std::make_unique<recent<int>>();
    all->keep(step, 7);
    ASSERT_NE(all->find(step), nullptr);
    EXPECT_EQ(*all->find(step), 7);
    EXPECT_EQ(all->find(0), nullptr);
    EXPECT_EQ(all->find(2 * step), nullptr);
    all->keep(step, 8);
    EXPECT_EQ(*all->find(step), 8);
}

TEST(Recent, WhatIsForgottenIsNotFound) {
    const auto all = std::make_unique<recent<int>>();
    all->keep(step, 7);
    all->forget(2 * step);
    EXPECT_NE(all->find(step), nullptr);
    all->forget(step);
    EXPECT_EQ(all->find(step), nullptr);
}

TEST(Recent, OfManyTheLastOnesAreFoundAndNoneIsTakenForAnother) {
    const auto all = std::make_unique<recent<std::uint64_t>>();
    constexpr std::uint64_t many = 100'000;
    std::uint64_t found = 0;
    for (std::uint64_t i = 0; i < many; ++i) {
        all->keep(i * step, i);
        ASSERT_NE(all->find(i * step), nullptr);
    }
    for (std::uint64_t i = 0; i < many; ++i) {
        if (const std::uint64_t* const one = all->find(i * step)) {
            ASSERT_EQ(*one, i);
            ++found;
        }
    }
    EXPECT_GT(found, 1000U) << "addresses of an allocator share few places";
    EXPECT_LE(found, 2048U);
}

}  // namespace
}  // namespace weir::detail
