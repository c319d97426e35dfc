// Work of the program's own that declares what it reads and writes: parallel_for, access, host_task.
#include <gtest/gtest.h>

#include <mutex>
#include <numeric>
#include <vector>

#include "weir/weir.hpp"

namespace weir {
namespace {

using testing::gate;

/// Somebody else's function: it knows pointers and a handle, and nothing of Weir.
void their_scale(void* /*queue*/, const double* from, double* to, std::size_t count) {
    std::transform(from, from + count, to, [](double value) { return 3 * value; });
}

TEST(ParallelFor, VisitsEachIndexOnceAndHandsOutSpans) {
    const stream s;
    const array x = zeros(1000, dtype::float64, s);
    parallel_for(
        s, range(10, 990), [](std::size_t i, auto out) { out[i] += static_cast<double>(i); }, inout(x.view<double>()));
    const auto values = x.read<double>();
    for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(values[i], i >= 10 && i < 990 ? static_cast<double>(i) : 0.0);
    }
}

TEST(ParallelFor, ABodyWithoutSpansGetsTheIndexAlone) {
    const stream s;
    std::vector<int> visits(100);
    parallel_for(s, visits.size(), [&](std::size_t i) { ++visits[i]; }).synchronize();
    EXPECT_EQ(visits, std::vector<int>(100, 1));
    parallel_for(s, -5, [&](std::size_t i) { ++visits[i]; }).synchronize();
    EXPECT_EQ(visits, std::vector<int>(100, 1));
}

TEST(ParallelFor, LargeAndPickyBodiesAreKeptWhole) {
    const stream s;
    std::array<double, 1000> table{};  // too large to be kept in the stream's own storage
    std::iota(table.begin(), table.end(), 0.0);
    const array x = empty(1000, dtype::float64, s);
    parallel_for(
        s, x.size(), [table](std::size_t i, auto out) { out[i] = table[i]; }, out(x.view<double>()));
    table.fill(-1);
    EXPECT_EQ(x.read<double>()[999], 999.0);
}

TEST(Access, OrdersSomebodyElsesCallLikeAnOperation) {
    gate held;
    const stream first;
    const stream second;
    const array x = zeros(64, dtype::float64, first);
    const array y = zeros(64, dtype::float64, second);
    second.synchronize();
    held.hold(first);
    fill(first, x, 2);
    const completion theirs = access(on(second).label("their_scale"), in(x.view<double>()), out(y.view<double>()),
                                     [](native_stream native, auto from, auto to) {
                                         their_scale(native.handle, from.data(), to.data(), to.size());
                                     });
    EXPECT_FALSE(theirs.done());
    held.open();
    EXPECT_EQ(y.read<double>()[63], 6.0);
}

TEST(Access, ControlWithoutOrderingTheCallComesTooEarly) {
    gate held;
    const stream first;
    const stream second;
    const array x = zeros(64, dtype::float64, first);
    const array y = zeros(64, dtype::float64, second);
    cpu().synchronize();
    const ordering_scope manual(ordering_mode::manual);
    held.hold(first);
    fill(first, x, 2);
    access(second, in(x.view<double>()), out(y.view<double>()), [](native_stream, auto from, auto to) {
        their_scale(nullptr, from.data(), to.data(), to.size());
    }).synchronize();
    EXPECT_EQ(y.read<double>()[63], 0.0);
    held.open();
    first.synchronize();
}

TEST(HostTask, GetsItsOperandsAndMayBlockOnTheProgramsLocks) {
    const stream worker;
    const stream other;
    const array x = full(8, 1, dtype::float64, worker);
    std::mutex of_program;
    std::unique_lock taken(of_program);
    const completion task = host_task(
        worker,
        [&](auto values) {
            const std::lock_guard lock(of_program);
            values[0] = 5;
        },
        inout(x.view<double>()));
    const array y = full(8, 2, dtype::float64, other);
    EXPECT_EQ(y.read<double>()[0], 2.0) << "another stream must not wait for the blocked task";
    EXPECT_FALSE(task.done());
    taken.unlock();
    EXPECT_EQ(x.read<double>()[0], 5.0);
}

TEST(On, AfterOrdersWhatNoAccessShows) {
    gate held;
    const stream first;
    const stream second;
    int value = 0;
    held.hold(first);
    const event set = parallel_for(first, 1, [&](std::size_t) { value = 1; });
    int seen = -1;
    const completion looked = parallel_for(on(second).after(set), 1, [&](std::size_t) { seen = value; });
    EXPECT_FALSE(looked.done());
    held.open();
    looked.synchronize();
    EXPECT_EQ(seen, 1);
}

}  // namespace
}  // namespace weir
