// Work of the program's own that declares what it reads and writes: parallel_for, access, host_task.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <latch>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "backend/shared_loop.hpp"
#include "support/messages.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::message_of;
using testing::gate;

/// A function of another library: it knows pointers and a handle, and nothing of Weir.
void their_scale(void* /*queue*/, const double* from, double* to, std::size_t count) {
    std::transform(from, from + count, to, [](double value) { return 3 * value; });
}

TEST(ParallelFor, VisitsEachIndexOnceAndHandsOutSpans) {
    const stream s;
    array x = zeros(1000, dtype::float64, s);
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

TEST(ParallelFor, ALargeRangeVisitsEachIndexOnce) {
    for (const device& each : {cpu(), device::from_name("cpu:inline"), sim(0)}) {
        const stream s(each);
        std::vector<std::uint8_t> visits(300'001);
        parallel_for(s, range(1, visits.size()), [&](std::size_t i) { ++visits[i]; }).synchronize();
        EXPECT_EQ(visits[0], 0) << each.name();
        EXPECT_EQ(std::count(visits.begin(), visits.end(), 1), 300'000) << each.name();
    }
}

TEST(ParallelFor, ALargeRangeIsSharedAmongThreads) {
    if (backend::loop_threads() < 2) {
        GTEST_SKIP() << "there is one worker only: see WEIR_CPU_THREADS";
    }
    const stream s;
    // The first index and the last wait for each other: no thread alone passes both.
    constexpr std::size_t last = 99'999;
    std::latch both(2);
    parallel_for(s, last + 1, [&](std::size_t i) {
        if (i == 0 || i == last) {
            both.arrive_and_wait();
        }
    }).synchronize();
    EXPECT_TRUE(both.try_wait());
}

TEST(ParallelFor, ARangeOnOneThreadKeepsItsOrder) {
    for (const device& each : {device::from_name("cpu:inline"), sim(0)}) {
        const stream s(each);
        std::size_t next = 0;
        std::size_t out_of_order = 0;
        parallel_for(s, 100'000, [&](std::size_t i) { out_of_order += i == next++ ? 0U : 1U; }).synchronize();
        EXPECT_EQ(next, 100'000U) << each.name();
        EXPECT_EQ(out_of_order, 0U) << each.name();
    }
}

TEST(ParallelFor, AnExceptionInASharedRangeFailsTheOperation) {
    const stream s;
    const completion failed = parallel_for(s, 100'000, [](std::size_t i) {
        if (i == 77'777) {
            throw std::runtime_error("not this one");
        }
    });
    EXPECT_THAT(message_of<operation_error>([&] { failed.synchronize(); }), ::testing::HasSubstr("not this one"));
}

TEST(ParallelFor, LargeAndPickyBodiesAreKeptWhole) {
    const stream s;
    std::array<double, 1000> table{};  // too large to be kept in the stream's own storage
    std::iota(table.begin(), table.end(), 0.0);
    array x = empty(1000, dtype::float64, s);
    parallel_for(
        s, x.size(), [table](std::size_t i, auto out) { out[i] = table[i]; }, out(x.view<double>()));
    table.fill(-1);
    EXPECT_EQ(x.read<double>()[999], 999.0);
}

TEST(Access, AnArrayThatWasMovedFromHasNoMemory) {
    const stream s;
    array x = ones({4}, dtype::float64, s);
    array y = std::move(x);
    EXPECT_EQ(x.tracked(detail::key).resource, nullptr);
    EXPECT_EQ(x.device_data(), nullptr);
    EXPECT_EQ(inout<double>(x).request(detail::key).target, nullptr) << "not that of y, which may end sooner";
    EXPECT_NE(inout<double>(y).request(detail::key).target, nullptr);
    x = zeros({3}, dtype::float64, s);
    EXPECT_EQ(x.read<double>()[2], 0.0);
    array z;
    z = std::move(x);
    EXPECT_EQ(x.tracked(detail::key).resource, nullptr);
    EXPECT_EQ(z.read<double>().size(), 3U);
}

/// Checks that `given` declares what `expected` says.
template <class T>
void expect_same(const access_argument<T>& given, const access_argument<T>& expected) {
    EXPECT_EQ(given.data().data(), expected.data().data());
    EXPECT_EQ(given.data().size(), expected.data().size());
    EXPECT_EQ(given.host_data().data(), expected.host_data().data());
    EXPECT_EQ(given.request(detail::key).target, expected.request(detail::key).target);
    EXPECT_EQ(given.request(detail::key).where, expected.request(detail::key).where);
    EXPECT_EQ(given.request(detail::key).mode, expected.request(detail::key).mode);
    EXPECT_EQ(given.request(detail::key).overwrites, expected.request(detail::key).overwrites);
}

TEST(Operand, AnArrayWithItsTypeSaysWhatItsViewSays) {
    array whole = zeros({6, 8}, dtype::int32);
    for (array x : {whole, whole.slice(2, 5), whole.reshape({48}), empty({0, 3}, dtype::int32)}) {
        expect_same(in<std::int32_t>(x), in(x.view<std::int32_t>()));
        expect_same(out<std::int32_t>(x), out(x.view<std::int32_t>()));
        expect_same(inout<std::int32_t>(x), inout(x.view<std::int32_t>()));
    }
    // In, out and inout are distinct, and so are parts of an array.
    EXPECT_EQ(in<std::int32_t>(whole).request(detail::key).mode, order::access_mode::read);
    EXPECT_TRUE(out<std::int32_t>(whole).request(detail::key).overwrites);
    EXPECT_FALSE(inout<std::int32_t>(whole).request(detail::key).overwrites);
    EXPECT_NE(in<std::int32_t>(whole).data().data(), in<std::int32_t>(whole.slice(2, 5)).data().data());
    EXPECT_EQ(in<double>(array()).data().size(), 0U);
}

TEST(Operand, AnArrayWithATypeThatIsNotItsOwnOrInAnotherOrderIsRefused) {
    array x = zeros({4, 6}, dtype::int32);
    array turned = x.t();
    const auto refusals = [](array& of, auto use) {
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

TEST(Access, OrdersACallOfAnotherLibraryLikeAnOperation) {
    gate held;
    const stream first;
    const stream second;
    array x = zeros(64, dtype::float64, first);
    array y = zeros(64, dtype::float64, second);
    second.synchronize();
    held.hold(first);
    fill(first, x, 2);
    const completion theirs = access(
        on(second).label("their_scale"),
        [](native_stream native, auto from, auto to) { their_scale(native.handle, from.data(), to.data(), to.size()); },
        in<double>(x), out<double>(y));
    EXPECT_FALSE(theirs.done());
    held.open();
    EXPECT_EQ(y.read<double>()[63], 6.0);
}

TEST(Access, ControlWithoutOrderingTheCallComesTooEarly) {
    gate held;
    const stream first;
    const stream second;
    array x = zeros(64, dtype::float64, first);
    array y = zeros(64, dtype::float64, second);
    cpu().synchronize();
    const ordering_scope manual(ordering_mode::manual);
    held.hold(first);
    fill(first, x, 2);
    access(
        second, [](native_stream, auto from, auto to) { their_scale(nullptr, from.data(), to.data(), to.size()); },
        in<double>(x), out<double>(y))
        .synchronize();
    EXPECT_EQ(y.read<double>()[63], 0.0);
    held.open();
    first.synchronize();
}

TEST(HostTask, GetsItsOperandsAndMayBlockOnTheProgramsLocks) {
    const stream worker;
    const stream other;
    array x = full(8, 1, dtype::float64, worker);
    std::mutex of_program;
    std::unique_lock taken(of_program);
    const completion task = host_task(
        worker,
        [&](auto values) {
            const std::lock_guard lock(of_program);
            values[0] = 5;
        },
        inout(x.view<double>()));
    array y = full(8, 2, dtype::float64, other);
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
