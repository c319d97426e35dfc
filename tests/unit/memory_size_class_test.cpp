#include <gtest/gtest.h>

#include "memory/size_class.hpp"

namespace weir::memory {
namespace {

TEST(L6, SizeClassesAreFourForEachDoubling) {
    EXPECT_EQ(class_size(0), 256U);
    EXPECT_EQ(class_size(3), 1024U);
    EXPECT_EQ(class_size(4), 1280U);
    EXPECT_EQ(class_size(7), 2048U);
    EXPECT_EQ(class_size(8), 2560U);
    EXPECT_EQ(class_size(11), 4096U);
    for (std::size_t index = 0; index + 4 < 160; ++index) {
        EXPECT_GT(class_size(index + 1), class_size(index));
        EXPECT_LE(class_size(index + 1) * 4, class_size(index) * 5 + 4 * granule)
            << "no class wastes more than a quarter";
    }
}

TEST(L6, EachSizeLiesBetweenItsClasses) {
    for (std::size_t index = 0; index < 160; ++index) {
        const std::size_t size = class_size(index);
        EXPECT_EQ(class_above(size), index);
        EXPECT_EQ(class_below(size), index);
        EXPECT_EQ(class_above(size + 1), index + 1);
        EXPECT_EQ(class_above(size - 1), index);
        EXPECT_EQ(class_below(class_size(index + 1) - 1), index);
    }
}

TEST(L6, LargeSizesAreNotRoundedToAClass) {
    const std::size_t large = largest_class + 1;
    EXPECT_LT(rounded_size(large), large + (std::size_t{64} << 10));
    EXPECT_EQ(rounded_size(large) % granule, 0U);
    EXPECT_EQ(rounded_size(1), granule);
    EXPECT_EQ(rounded_size(largest_class), largest_class);
}

}  // namespace
}  // namespace weir::memory
