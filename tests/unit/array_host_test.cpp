// The host is ordered like a stream (rules O6, X7): it waits for exactly what conflicts, and nothing changes while it looks.
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <stdexcept>
#include <thread>

#include "runtime/submission/host_copies.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using testing::gate;

TEST(O6, ReadingWaitsForTheWriteAndWritingForTheReadsToo) {
    const stream writer;
    const stream reader;
    gate write;
    gate read;
    array x = zeros(8, dtype::float64, writer);
    writer.synchronize();
    write.hold(writer);
    fill(writer, x, 1);
    read.hold(reader);
    double seen = 0;
    parallel_for(
        reader, 1, [&](auto, auto from) { seen = from[0]; }, in(x.view<double>()));
    EXPECT_FALSE(x.ready());
    std::thread opener([&] { write.open(); });
    EXPECT_EQ(x.read<double>()[0], 1.0);  // although the reader is still held
    opener.join();
    EXPECT_TRUE(x.ready());
    EXPECT_FALSE(x.buffer().ready(true));
    std::thread other_opener([&] { read.open(); });
    x.write<double>()[0] = 2;
    other_opener.join();
    EXPECT_EQ(seen, 1.0);
}

/// Waits for nothing.
double first_of(const array& x) { return *reinterpret_cast<const double*>(x.data()); }

/// Enqueues a change of `x` on another thread while the host copies `copied` of it. Returns whether that thread waits for the copy.
bool waits_for_a_copy(array x, const array& copied) {
    const stream s;
    std::atomic<bool> has_returned{false};
    std::optional<host_access> copy(std::in_place, detail::key, copied.buffer(), copied.footprint(detail::key),
                                    order::access_mode::read, source_location::current(), true);
    std::thread other([&] {
        fill(s, x, 2);
        s.synchronize();
        has_returned.store(true);
    });
    while (runtime::host_copies::waiting() == 0 && !has_returned.load()) {
        std::this_thread::yield();
    }
    const bool waits = !has_returned.load();
    EXPECT_EQ(first_of(x), waits ? 0.0 : 2.0);
    copy.reset();
    other.join();
    EXPECT_EQ(first_of(x), 2.0);
    return waits;
}

TEST(O6, WhatTheHostCopiesChangesAfterwards) {
    array x = zeros(8, dtype::float64);
    EXPECT_TRUE(waits_for_a_copy(x, x));
    EXPECT_EQ(runtime::host_copies::waiting(), 0);
}

TEST(O6, ACopyOfOtherElementsIsNotWaitedFor) {
    array x = zeros(8, dtype::float64);
    EXPECT_FALSE(waits_for_a_copy(x.slice(0, 4), x.slice(4, 8)));
}

TEST(O6, WhatReadsAsACopyDoesIsNotHeldUp) {
    const stream s;
    array x = zeros(8, dtype::float64, s);
    array y = empty(8, dtype::float64, s);
    const host_access copy(detail::key, x.buffer(), x.footprint(detail::key), order::access_mode::read,
                           source_location::current(), true);
    weir::copy(s, y, x);
    EXPECT_EQ(y.read<double>()[7], 0.0);
}

TEST(O6, ACopyThatIsRefusedHoldsUpNothing) {
    const stream s;
    array x = zeros(8, dtype::float64, s);
    access(
        s, [](native_stream, std::span<double>) { throw std::runtime_error("no"); }, out(x.view<double>()));
    EXPECT_THROW(static_cast<void>(host_access(detail::key, x.buffer(), x.footprint(detail::key),
                                               order::access_mode::read, source_location::current(), true)),
                 operation_error);
    fill(s, x, 3);
    EXPECT_EQ(x.read<double>()[0], 3.0);
}

TEST(O6, OtherPartsOfTheArrayAreNotWaitedFor) {
    const stream s;
    gate held;
    array x = zeros(8, dtype::float64, s);
    s.synchronize();
    held.hold(s);
    fill(s, x.slice(0, 4), 1);
    EXPECT_EQ(x.slice(4, 8).read<double>()[0], 0.0);
    x.slice(4, 8).write<double>()[0] = 3;
    EXPECT_TRUE(x.slice(4, 8).ready());
    EXPECT_FALSE(x.ready());
    held.open();
    EXPECT_EQ(x.read<double>()[0], 1.0);
}

TEST(O5, ManualOrderingDoesNotWaitForHazardsOnTheHost) {
    const stream s;
    gate held;
    array x = zeros(8, dtype::float64, s);
    s.synchronize();
    held.hold(s);
    fill(s, x, 1);
    {
        const ordering_scope scope(ordering_mode::manual);
        EXPECT_EQ(x.read<double>()[0], 0.0);
    }
    x.set_ordering(ordering_mode::manual);
    EXPECT_EQ(x.read<double>()[0], 0.0);
    x.set_ordering(std::nullopt);
    held.open();
    EXPECT_EQ(x.read<double>()[0], 1.0);
}

TEST(X7, AnOperationThatConflictsWithALiveViewIsOverWhenTheCallReturns) {
    const stream s;
    array x = zeros(8, dtype::float64, s);
    {
        const auto view = x.read<double>();
        EXPECT_TRUE(fill(s, x, 1).done());
        EXPECT_EQ(view[0], 1.0);
    }
    gate held;
    held.hold(s);
    EXPECT_FALSE(fill(s, x, 2).done());  // the view is gone: nothing waits
    held.open();
}

TEST(X7, TheCallReturnsOnlyOnceTheOperationIsOver) {
    const stream s;
    array x = zeros(8, dtype::float64, s);
    s.synchronize();
    std::atomic<bool> has_returned{false};
    bool returned_early = false;
    const auto view = x.read<double>();
    parallel_for(
        s, 1,
        [&](auto, auto /*to*/) {
            for (int i = 0; i < 100'000 && !has_returned; ++i) {
                std::this_thread::yield();
            }
            returned_early = has_returned;
        },
        inout<double>(x));
    has_returned = true;
    s.synchronize();
    EXPECT_FALSE(returned_early);
}

TEST(X7, ViewsMoveAndEndOnce) {
    const stream s;
    array x = zeros(8, dtype::float64, s);
    {
        auto view = x.write<double>();
        const auto moved = std::move(view);
        moved[0] = 4;
        EXPECT_TRUE(fill(s, x.slice(1, 8), 1).done());
    }
    gate held;
    held.hold(s);
    EXPECT_FALSE(fill(s, x, 2).done());
    held.open();
    s.synchronize();
}

TEST(K4, ReadingWhatAFailedOperationShouldHaveWrittenRaises) {
    const stream s;
    array x = zeros(8, dtype::float64, s);
    parallel_for(
        on(s).label("window"), 1, [](auto, auto) { throw std::runtime_error("no"); },
        inout(x.slice(0, 4).view<double>()));
    try {
        (void)x.read<double>();
        FAIL() << "the array is not valid";
    } catch (const operation_error& error) {
        EXPECT_EQ(error.label(), "window");
    }
    EXPECT_EQ(x.slice(4, 8).read<double>()[0], 0.0) << "the other half is";
    {
        const auto all = x.write<double>();  // what the host writes itself is valid again
        std::fill(all.begin(), all.end(), 3.0);
    }
    EXPECT_EQ(x.read<double>()[0], 3.0);
    // The failed reading has left no view behind.
    gate held;
    held.hold(s);
    EXPECT_FALSE(fill(s, x, 2).done());
    held.open();
}

}  // namespace
}  // namespace weir
