// Arrays on a device with memory of its own: all operations work there, and arrays move between devices with any strides.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>

#include "support/arrays.hpp"
#include "support/messages.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::make_array;
using test::message_of;
using test::values_of;
using ::testing::ElementsAre;
using testing::gate;

TEST(Devices, ViewsArithmeticAndReductionsOnASimulatedOne) {
    const stream s(sim(0));
    const use current(s);
    array x = arange(0, 12, 1, dtype::int32, s).reshape({3, 4});
    EXPECT_EQ(x.device(), sim(0));
    EXPECT_THAT(values_of<std::int32_t>(x.t()[1]), ElementsAre(1, 5, 9)) << "a column, read run by run";
    EXPECT_THAT(values_of<std::int32_t>(x[{slice{0, 2}, slice{1, 3}}]), ElementsAre(1, 2, 5, 6));
    EXPECT_THAT(values_of<std::int32_t>(x[{slice{{}, {}, -1}, slice{0, 2}}]), ElementsAre(8, 9, 4, 5, 0, 1));
    array y = x + x[0];
    EXPECT_EQ(y.device(), sim(0));
    EXPECT_THAT(values_of<std::int32_t>(y[2]), ElementsAre(8, 10, 12, 14));
    EXPECT_THAT(values_of<std::int64_t>(sum(s, y, 0)), ElementsAre(12, 18, 24, 30));
    x[{ellipsis, 0}] *= 2;
    EXPECT_THAT(values_of<std::int32_t>(select(s, x > 8, x, 0)[2]), ElementsAre(16, 9, 10, 11));
    EXPECT_THAT(values_of<float16>(astype(s, x.t(), dtype::float16)[0]),
                ElementsAre(float16(0.0F), float16(8.0F), float16(16.0F)));
    copy(s, x, x[slice{{}, {}, -1}]);
    EXPECT_THAT(values_of<std::int32_t>(x[0]), ElementsAre(16, 9, 10, 11));
    const std::int32_t packed[] = {7, 8, 9};
    copy_from_host(s, x.t()[3], std::as_bytes(std::span(packed)));
    EXPECT_THAT(values_of<std::int32_t>(x[{ellipsis, 3}]), ElementsAre(7, 8, 9));
    EXPECT_THROW((void)x.t().write<std::int32_t>(), argument_error);
}

TEST(Devices, ArraysWithoutElementsHaveOne) {
    const stream s(sim(0));
    array nothing = zeros({0, 3}, dtype::float32, s);
    EXPECT_EQ(nothing.device(), sim(0));
    EXPECT_EQ(nothing.t().device(), sim(0));
    EXPECT_EQ((nothing + 1).device(), sim(0));
    EXPECT_EQ(to(s, nothing, cpu()).device(), cpu());
    // The result of an operation on an empty array has memory, which must be allocated there.
    array sums = sum(s, nothing, 0);
    EXPECT_EQ(sums.device(), sim(0));
    EXPECT_THAT(values_of<float>(sums + ones(3, dtype::float32, s)), ElementsAre(1, 1, 1));
    EXPECT_EQ(array().device(), cpu());
}

TEST(Devices, TheSameBitsEverywhere) {
    const stream here;
    const stream there(sim(0));
    EXPECT_EQ(values_of<double>(random(1001, 9, dtype::float64, here)),
              values_of<double>(random(1001, 9, dtype::float64, there)));
    const auto total = [](const stream& on) {
        return values_of<float>(sum(on, random({99, 77}, 4, dtype::float32, on)))[0];
    };
    EXPECT_EQ(total(here), total(there));
}

TEST(Devices, MovesWithAnyStridesOnAStreamOfEither) {
    const stream here;
    const stream there(sim(0));
    array x = make_array<std::int32_t>(here, {2, 3}, {0, 1, 2, 3, 4, 5});
    for (const stream_ref& on : {stream_ref(here), stream_ref(there)}) {
        array moved = to(on, x.t(), sim(0));
        EXPECT_EQ(moved.device(), sim(0));
        EXPECT_THAT(values_of<std::int32_t>(moved), ElementsAre(0, 3, 1, 4, 2, 5));
        array back = to(on, moved[{ellipsis, 1}], cpu());
        EXPECT_EQ(back.device(), cpu());
        EXPECT_THAT(values_of<std::int32_t>(back), ElementsAre(3, 4, 5));
        array wide = zeros({2, 3}, dtype::float64, here);
        copy(on, wide[{ellipsis, slice{{}, {}, -1}}], moved.t()[0]);
        EXPECT_THAT(values_of<double>(wide), ElementsAre(2, 1, 0, 2, 1, 0)) << "converted, broadcast, back to front";
    }
    EXPECT_EQ(to(there, x, sim(0)).device(), sim(0));
    array second = to(here, to(there, x, sim(0)), cpu());
    EXPECT_THAT(values_of<std::int32_t>(second), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(Devices, MovesAreOrderedOnBothSides) {
    const stream here;
    const stream there(sim(0));
    array x = zeros({4, 4}, dtype::int32, here);
    here.synchronize();
    gate held;
    held.hold(here);
    fill(here, x[{ellipsis, 1}], 6);
    array moved = to(there, x.t(), sim(0));
    EXPECT_FALSE(moved.ready());
    const stream elsewhere(sim(0));
    const stream packing;
    const use current(packing);  // strided elements are packed for the other device's stream here
    array apart = to(elsewhere, x[{ellipsis, 2}], sim(0));
    EXPECT_EQ(values_of<std::int32_t>(apart)[0], 0) << "another column does not wait";
    held.open();
    EXPECT_THAT(values_of<std::int32_t>(moved[1]), ElementsAre(6, 6, 6, 6));
}

TEST(Devices, OperandsOfAnotherDeviceAreRefused) {
    const stream here;
    const stream there(sim(0));
    array x = ones(4, dtype::float64, here);
    array y = ones(4, dtype::float64, there);
    const std::string message = message_of<argument_error>([&] { (void)(x + y); });
    EXPECT_NE(message.find("on sim:0"), std::string::npos) << message;
    EXPECT_NE(message.find("to(on, x, device)"), std::string::npos) << message;
    EXPECT_THROW((void)sum(there, x), argument_error);
    EXPECT_THROW((void)astype(here, y, dtype::float32), argument_error);
    EXPECT_THROW(fill(here, y, 1), argument_error);
    EXPECT_THROW((void)select(here, x, x, y), argument_error);
}

}  // namespace
}  // namespace weir
