// Rows, columns and tiles of one array: each is ordered by itself (rule O3), and bodies reach their elements.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/arrays.hpp"
#include "support/messages.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::message_of;
using test::values_of;
using ::testing::ElementsAre;
using testing::gate;

array column(const array& of, std::int64_t number) { return of[{ellipsis, number}]; }

TEST(O3, AColumnBeingWrittenDelaysOnlyItself) {
    const stream writer;
    const stream reader;
    array x = zeros({100, 8}, dtype::float32, writer);
    writer.synchronize();
    gate held;
    held.hold(writer);
    fill(writer, column(x, 3), 1);
    array other = copy(reader, column(x, 4));
    EXPECT_EQ(other.read<float>()[99], 0.0F) << "another column is not delayed";
    EXPECT_EQ(column(x, 2).read<float>()[0], 0.0F) << "nor for the host";
    array same = copy(reader, column(x, 3));
    EXPECT_FALSE(same.ready());
    EXPECT_FALSE(x[0].ready()) << "a row crosses the column";
    held.open();
    EXPECT_EQ(same.read<float>()[99], 1.0F);
}

TEST(O3, ControlWithoutOrderingTheColumnIsReadTooEarly) {
    const stream writer;
    const stream reader;
    array x = zeros({100, 8}, dtype::float32, writer);
    writer.synchronize();
    gate held;
    const ordering_scope manual(ordering_mode::manual);
    held.hold(writer);
    fill(writer, column(x, 3), 1);
    array same = copy(reader, column(x, 3));
    reader.synchronize();
    EXPECT_EQ(same.read<float>()[99], 0.0F);
    held.open();
    writer.synchronize();
}

TEST(O3, TilesHalvesAndTransposedTilesAreApart) {
    const stream writer;
    const stream other;
    array x = zeros({64, 64}, dtype::int16, writer);
    writer.synchronize();
    gate held;
    held.hold(writer);
    array tile = x[{slice{0, 32}, slice{0, 32}}];
    fill(writer, tile, 1);
    fill(other, x[{slice{32, 64}, slice{0, 32}}], 2);
    fill(other, x[{slice{0, 32}, slice{32, 64}}].t(), 3);
    fill(other, x[{slice{32, 64}, slice{32, 64}}][slice{{}, {}, -1}], 4);
    other.synchronize();  // none of them waits for the gate
    EXPECT_EQ((x[{40, 40}].read<std::int16_t>()[0]), 4);
    fill(other, x.t()[{slice{31, 40}, slice{31, 40}}], 5);
    EXPECT_FALSE(other.done()) << "one element of the held tile is in it";
    held.open();
    EXPECT_EQ((x[{31, 31}].read<std::int16_t>()[0]), 5);
}

TEST(Strided, BodiesReachElementsByTheirIndices) {
    const stream s;
    array x = zeros({4, 6}, dtype::float64, s);
    array odd = x.t()[slice{1, {}, 2}];  // three columns, as rows
    parallel_for(
        s, 3,
        [](std::size_t i, const strided_span<double, 2>& to) {
            for (std::int64_t j = 0; j < to.extent(1); ++j) {
                to(i, j) = static_cast<double>(10 * i) + static_cast<double>(j);
            }
        },
        out(odd.strided<double, 2>()));
    EXPECT_THAT(values_of<double>(x[1]), ElementsAre(0, 1, 0, 11, 0, 21));
    double last = 0;
    host_task(
        s, [&](const strided_span<const double, 1>& from) { last = from(2); },
        in(odd[{ellipsis, 3}].strided<double, 1>()));
    s.synchronize();
    EXPECT_EQ(last, 23.0);
    double corner = 0;
    access(
        s, [&](native_stream, const auto& from) { corner = from(); }, in(x[{3, 5}].strided<double, 0>()));
    s.synchronize();
    EXPECT_EQ(corner, 23.0);
}

TEST(Strided, SpansAreForCOrderAlone) {
    array x = zeros({4, 6}, dtype::float64);
    EXPECT_EQ(
        message_of<argument_error>([&] { (void)x.t().view<double>(); }),
        "the elements of <weir.array float64 (6, 4) on cpu> do not lie in C order: ask for strided<T, Rank>(), or "
        "make a copy with contiguous(on, x)");
    EXPECT_THROW((void)x.t().write<double>(), argument_error);
    EXPECT_THROW((void)in(x.t()), argument_error);
    EXPECT_THROW((void)out(x.t()), argument_error);
    EXPECT_EQ(message_of<argument_error>([&] { (void)(x.strided<double, 1>()); }),
              "<weir.array float64 (4, 6) on cpu> has 2 dimensions, not 1: ask for as many as it has, or reshape it");
    EXPECT_THROW((void)(x.strided<float, 2>()), argument_type_error);
    EXPECT_THROW((void)fft::fft(zeros(4, dtype::float16)), argument_type_error);
    EXPECT_THROW((void)fft::fft(zeros(4, dtype::int64)), argument_type_error);
}

}  // namespace
}  // namespace weir
