// Work of the program's own that declares what it reads and writes: parallel_for, access, host_task.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <mutex>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "support/messages.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::message_of;
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

TEST(Access, AnArrayThatWasMovedFromHasNoMemory) {
    const stream s;
    array x = ones({4}, dtype::float64, s);
    const array y = std::move(x);
    EXPECT_EQ(x.tracked().resource, nullptr);
    EXPECT_EQ(x.device_data(), nullptr);
    EXPECT_EQ(inout<double>(x).request.target, nullptr) << "not that of y, which may end sooner";
    EXPECT_NE(inout<double>(y).request.target, nullptr);
    x = zeros({3}, dtype::float64, s);
    EXPECT_EQ(x.read<double>()[2], 0.0);
    array z;
    z = std::move(x);
    EXPECT_EQ(x.tracked().resource, nullptr);
    EXPECT_EQ(z.read<double>().size(), 3U);
}

/// What `given` says is what `expected` says.
template <class T>
void expect_same(const access_argument<T>& given, const access_argument<T>& expected) {
    EXPECT_EQ(given.data.data(), expected.data.data());
    EXPECT_EQ(given.data.size(), expected.data.size());
    EXPECT_EQ(given.to_host, expected.to_host);
    EXPECT_EQ(given.request.target, expected.request.target);
    EXPECT_EQ(given.request.where, expected.request.where);
    EXPECT_EQ(given.request.mode, expected.request.mode);
    EXPECT_EQ(given.request.overwrites, expected.request.overwrites);
}

TEST(Operand, AnArrayWithItsTypeSaysWhatItsViewSays) {
    const array whole = zeros({6, 8}, dtype::int32);
    for (const array& x : {whole, whole.slice(2, 5), whole.reshape({48}), empty({0, 3}, dtype::int32)}) {
        expect_same(in<std::int32_t>(x), in(x.view<std::int32_t>()));
        expect_same(out<std::int32_t>(x), out(x.view<std::int32_t>()));
        expect_same(inout<std::int32_t>(x), inout(x.view<std::int32_t>()));
    }
    // What tells the three, and parts of an array, from each other.
    EXPECT_EQ(in<std::int32_t>(whole).request.mode, order::access_mode::read);
    EXPECT_TRUE(out<std::int32_t>(whole).request.overwrites);
    EXPECT_FALSE(inout<std::int32_t>(whole).request.overwrites);
    EXPECT_NE(in<std::int32_t>(whole).data.data(), in<std::int32_t>(whole.slice(2, 5)).data.data());
    EXPECT_EQ(in<double>(array()).data.size(), 0U);
}

TEST(Operand, AnArrayWithATypeThatIsNotItsOwnOrInAnotherOrderIsRefused) {
    const array x = zeros({4, 6}, dtype::int32);
    const array turned = x.t();
    const auto refusals = [](const array& of, auto use) {
        return std::array{message_of<error>([&] { (void)in<decltype(use)>(of); }),
                          message_of<error>([&] { (void)out<decltype(use)>(of); }),
                          message_of<error>([&] { (void)inout<decltype(use)>(of); })};
    };
    for (const std::string& message : refusals(x, float())) {
        EXPECT_EQ(message, message_of<argument_type_error>([&] { (void)x.view<float>(); }));
    }
    for (const std::string& message : refusals(turned, std::int32_t())) {
        EXPECT_EQ(message, message_of<argument_error>([&] { (void)turned.view<std::int32_t>(); }));
    }
    for (const std::string& message : refusals(x, std::int32_t())) {
        EXPECT_EQ(message, "nothing was thrown");
    }
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
    const completion theirs = access(on(second).label("their_scale"), in<double>(x), out<double>(y),
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
    access(second, in<double>(x), out<double>(y), [](native_stream, auto from, auto to) {
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
