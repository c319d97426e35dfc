// Ordering modes: automatic or manual, by array, stream, scope and process (rule O5).
#include "order/mode.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace weir::order::test {
namespace {

constexpr auto manual = ordering_mode::manual;
constexpr auto automatic = ordering_mode::automatic;
constexpr std::optional<ordering_mode> silent;

TEST(O5, TheProcessDecidesWhereNothingElseDoes) {
    EXPECT_EQ(effective_mode(silent, silent, silent, automatic), automatic);
    EXPECT_EQ(effective_mode(silent, silent, silent, manual), manual);
}

TEST(O5, TheInnermostWins) {
    // Array, stream, scope, process: from the inside out. The innermost mode that is set decides, whatever the outer ones are.
    for (const ordering_mode inner : {manual, automatic}) {
        const ordering_mode outer = inner == manual ? automatic : manual;
        for (const auto& scope : {silent, std::optional{outer}}) {
            for (const auto& stream : {silent, std::optional{outer}}) {
                EXPECT_EQ(effective_mode(inner, stream, scope, outer), inner);
            }
            EXPECT_EQ(effective_mode(silent, inner, scope, outer), inner);
        }
        EXPECT_EQ(effective_mode(silent, silent, inner, outer), inner);
    }
}

}  // namespace
}  // namespace weir::order::test
