// Shapes, windows and their errors: what is wrong, and how to correct it.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "weir/array.hpp"
#include "weir/error.hpp"
#include "weir/launch.hpp"

namespace weir {
namespace {

template <class Error>
std::string message_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const Error& error) {
        return error.what();
    }
    return "nothing was thrown";
}

TEST(Shape, PrintsAsNumPyDoes) {
    EXPECT_EQ(shape().to_string(), "()");
    EXPECT_EQ(shape(3).to_string(), "(3,)");
    EXPECT_EQ(shape({3, 4}).to_string(), "(3, 4)");
}

TEST(Shape, CountsElements) {
    EXPECT_EQ(shape().elements(), 1);
    EXPECT_EQ(shape({3, 0, 4}).elements(), 0);
    EXPECT_EQ(shape({3, 5}).elements(), 15);
}

TEST(Shape, IsAnotherIfAnyExtentIs) {
    for (std::size_t count = 0; count <= 6; ++count) {  // up to four are kept in place
        const std::vector<std::int64_t> extents(count, 2);
        const shape one((std::span(extents)));
        EXPECT_EQ(one, shape(std::span(extents)));
        for (std::size_t axis = 0; axis < count; ++axis) {
            std::vector<std::int64_t> others = extents;
            others[axis] = 3;
            EXPECT_NE(one, shape(std::span(others))) << count << " " << axis;
        }
        std::vector<std::int64_t> more = extents;
        more.push_back(0);
        EXPECT_NE(one, shape(std::span(more))) << count;
        EXPECT_NE(shape(std::span(more)), one) << count;
    }
}

TEST(Shape, RefusesWhatCannotBe) {
    EXPECT_EQ(message_of<argument_error>([] {
                  shape({3, -1});
              }),
              "the shape (3, -1) has the extent -1: extents are 0 or more");
    const std::vector<std::int64_t> many(33, 1);
    EXPECT_NE(message_of<argument_error>([&] { shape(std::span(many)); }).find("at most 32"), std::string::npos);
    EXPECT_EQ(shape(std::span(many).first(32)).elements(), 1);
    const std::int64_t large = std::int64_t{1} << 40;
    EXPECT_NE(message_of<argument_error>([&] { shape({large, large}); }).find("more elements"), std::string::npos);
    EXPECT_NE(message_of<argument_error>([&] { shape({0, large, large}); }).find("more elements"), std::string::npos);
}

TEST(Array, KnowsWhatItIs) {
    array x = empty({3, 4}, dtype::complex64);
    EXPECT_EQ(x.size(), 12);
    EXPECT_EQ(x.nbytes(), 96U);
    EXPECT_EQ(x.footprint(detail::key), (order::footprint{0, 96}));
    EXPECT_EQ(x.to_string(), "<weir.array complex64 (3, 4) on cpu>");
    EXPECT_EQ(x.device(), cpu());
    EXPECT_EQ(array().to_string(), "<weir.array float64 (0,) on cpu>");
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(x.data()) % 256, 0U);
}

TEST(Array, SlicesAreTheSameMemory) {
    array x = empty({4, 3}, dtype::float32);
    array rows = x.slice(1, 3);
    EXPECT_EQ(rows.shape(), shape({2, 3}));
    EXPECT_EQ(rows.data(), x.data() + 12);
    EXPECT_EQ(rows.footprint(detail::key), (order::footprint{12, 36}));
    EXPECT_EQ(rows.buffer().unique_id(), x.buffer().unique_id());
    array none = rows.slice(2, 2);
    EXPECT_EQ(none.size(), 0);
    EXPECT_TRUE(none.footprint(detail::key).empty());
    array element = rows.slice(1, 2).reshape({3}).slice(2, 3);
    EXPECT_EQ(element.footprint(detail::key), (order::footprint{32, 36}));
}

TEST(Array, SlicesOutOfRangeSayTheRange) {
    array x = empty({4, 3}, dtype::float32);
    EXPECT_EQ(message_of<argument_error>([&] { (void)x.slice(2, 9); }),
              "slice [2, 9) of an array of the shape (4, 3): the range must lie within [0, 4)");
    EXPECT_NE(message_of<argument_error>([&] { (void)x.slice(-1, 2); }), "nothing was thrown");
    EXPECT_NE(message_of<argument_error>([&] { (void)x.slice(3, 2); }), "nothing was thrown");
    EXPECT_EQ(message_of<argument_error>([&] { (void)empty(shape()).slice(0, 1); }),
              "slice [0, 1) of an array without dimensions: reshape it to (1,) first");
}

TEST(Array, ReshapeKeepsTheElements) {
    array x = empty({4, 3}, dtype::float32);
    EXPECT_EQ(x.reshape({2, 6}).shape(), shape({2, 6}));
    EXPECT_EQ(x.reshape({2, 6}).data(), x.data());
    EXPECT_EQ(message_of<argument_error>([&] { (void)x.reshape({5}); }),
              "an array of the shape (4, 3) has 12 elements and cannot become (5,), which has 5");
}

TEST(Array, ViewsMustBeOfTheElementType) {
    array x = empty(3, dtype::float32);
    EXPECT_NO_THROW((void)x.view<float>());
    EXPECT_EQ(message_of<argument_type_error>([&] { (void)x.view<double>(); }),
              "the array's elements are float32, not float64: ask for a view of its own type");
    EXPECT_THROW((void)x.read<std::complex<float>>(), argument_type_error);
    EXPECT_THROW((void)x.write<double>(), argument_type_error);
}

TEST(Array, AWindowMustFitAndBeAligned) {
    const buffer memory(100);
    EXPECT_NO_THROW(array(memory, dtype::float64, 12, 0));
    EXPECT_NO_THROW(array(memory, dtype::complex128, 6, 0));
    EXPECT_NO_THROW(array(memory, dtype::complex64, 1, 4));
    EXPECT_NE(message_of<argument_error>([&] { array(memory, dtype::float64, 12, 8); }).find("the buffer has 100"),
              std::string::npos);
    EXPECT_NE(message_of<argument_error>([&] { array(memory, dtype::float64, 0, 101); }).find("the buffer has 100"),
              std::string::npos);
    EXPECT_NE(message_of<argument_error>([&] { array(memory, dtype::float64, 1, 4); }).find("multiple of 8"),
              std::string::npos);
}

TEST(Array, EmptyArraysHaveNoMemoryAndTakePartInEverything) {
    const stream s;
    array x = empty({0, 3}, dtype::float32, s);
    EXPECT_EQ(x.data(), nullptr);
    EXPECT_EQ(x.buffer().bytes(), 0U);
    EXPECT_TRUE(x.ready());
    fill(s, x, 1);
    copy(s, x, x);
    copy_from_host(s, x, {});
    parallel_for(
        s, x.size(), [](auto, auto) {}, inout(x.view<float>()));
    EXPECT_EQ(x.read<float>().size(), 0U);
    EXPECT_EQ(x.write<float>().size(), 0U);
    s.synchronize();
}

}  // namespace
}  // namespace weir
