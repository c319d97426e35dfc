// The price of live imports, when their calls block, when their owners get the memory back, and what happens if a package or
// its queue fails (rules L4, O6, S7, X6).
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "support/devices.hpp"
#include "support/sharing_versions.hpp"
#include "support/stuck_host.hpp"

namespace weir {
namespace {

using namespace test::sharing;  // NOLINT(google-build-using-namespace): the words of these tests
using test::here;
using test::library_without_queues;
using test::producer;
using test::stuck_host;

WEIR_CONFORMANCE(L4, TheLibraryGetsItsMemoryBackOnceAfterTheLastUse) {
    const auto library = std::make_shared<producer>(here());
    const stream s(here());
    testing::gate held;
    std::atomic<int> releases{0};
    const producer::array t = theirs(library, 0);
    {
        array a(import_live(t.data(), t.bytes(), here(), library, [&releases] { ++releases; }), dtype::float64, {n});
        held.hold(s);
        add(s, a, 1);
    }
    EXPECT_EQ(releases, 0);
    held.open();
    s.synchronize();
    while (releases == 0) {
        std::this_thread::yield();
    }
    EXPECT_EQ(library->values(t), all(1));
    EXPECT_EQ(releases, 1);
}

WEIR_CONFORMANCE(X6, AnOperationOnTheLibrarysOwnQueueCostsNothingMore) {
    const auto library = std::make_shared<producer>(here());
    const producer::array t = theirs(library, 0);
    array a = import(library, t);
    const stream own = stream::adopt(*library->current());
    const int before = library->current()->submitted;
    for (int i = 0; i < 10; ++i) {
        add(own, a, 1);
        library->add(t, 1);
    }
    EXPECT_EQ(library->current()->submitted - before, 10);
    EXPECT_EQ(library->values(t), all(20));
}

WEIR_CONFORMANCE(X6, OperandsOfOneLibraryShareOneEntryAndOneExit) {
    const auto library = std::make_shared<producer>(here());
    const stream s(here());
    const producer::array x = theirs(library, 3);
    const producer::array y = library->empty(n);
    array a = import(library, x);
    array b = import(library, y);
    testing::gate held;
    held.hold(s);  // a complete operation needs no exit
    const int before = library->current()->submitted;
    times_ten(s, b, a);
    EXPECT_EQ(library->current()->submitted - before, 2);
    held.open();
    s.synchronize();
    EXPECT_EQ(library->values(y), all(30));
}

/// A library may hand over the same memory many times, and each import is a buffer of its own.
WEIR_CONFORMANCE(X6, MemoryThatIsImportedTwiceIsTheSameMemory) {
    const auto library = std::make_shared<producer>(here());
    const stream s(here());
    const producer::array t = theirs(library, 0);
    constexpr auto last = static_cast<std::int64_t>(n);
    array whole = import(library, t);
    const auto numbered = [&] { copy(s, whole, arange(0, last, 1, dtype::float64, s)); };
    const auto expect = [&](auto value_at, const char* what) {
        numbers expected;
        for (std::int64_t i = 0; i < last; ++i) {
            expected.push_back(static_cast<double>(value_at(i)));
        }
        EXPECT_EQ(library->values(t), expected) << what;
    };
    const array first = import(library, t).slice(0, last - 1);
    array later = import(library, t).slice(1, last);

    numbered();
    copy(s, later, first);
    expect([](auto i) { return i == 0 ? 0 : i - 1; }, "copy");
    numbered();
    const array backwards = import(library, t)[{slice{{}, {}, -1}}];
    array forwards = import(library, t);
    copy(s, forwards, backwards);
    expect([](auto i) { return last - 1 - i; }, "copy in another order");
    numbered();
    compute(s, binary_operation::add, later, first, later);
    expect([](auto i) { return i == 0 ? 0 : 2 * i - 1; }, "arithmetic");
    numbered();
    const elementwise_kernel sum("float64 x, float64 y", "float64 z", "z = x + y");
    sum.launch(s, {later, first}, {&later});
    expect([](auto i) { return i == 0 ? 0 : 2 * i - 1; }, "an element-wise kernel");
    numbered();
    array again = import(library, t);
    sum.launch(s, {whole, 1}, {&again});
    expect([](auto i) { return i + 1; }, "element by element");
}

TEST(X6, WithALibraryWithoutQueuesTheOperationIsOverWhenTheCallReturns) {
    const auto library = std::make_shared<library_without_queues>();
    numbers memory = all(1);
    const stream s;
    array a(import_live(memory.data(), n * sizeof(double), cpu(), library, 0), dtype::float64, {n});
    const completion done = add(s, a, 1);
    EXPECT_TRUE(done.done());
    memory[0] += 1;  // y = f(x); x += 1
    EXPECT_EQ(memory[0], 3);

    // Control: under manual ordering the call returns before.
    const ordering_scope manual(ordering_mode::manual);
    testing::gate held;
    held.hold(s);
    const completion later = add(s, a, 1);
    EXPECT_FALSE(later.done());
    held.open();
    later.synchronize();
}

WEIR_CONFORMANCE(O6, TheHostReadsALiveImportAfterWhatTheLibraryDid) {
    const auto library = std::make_shared<producer>(here());
    const producer::array t = theirs(library, 0);
    array a = import(library, t);
    const auto held = make_latch();
    library->current()->hold(held);
    library->fill(t, 8);
    EXPECT_FALSE(a.ready());
    {
        const ordering_scope manual(ordering_mode::manual);
        EXPECT_EQ(values(a), all(0)) << "control: left to the program, nobody waits";
    }
    const stuck_host waits([&] { held->open(); });
    EXPECT_EQ(values(a), all(8));
    EXPECT_TRUE(waits.was_stuck());
}

TEST(S7, WhatALibraryThrowsWhenAskedComesOutAndNothingIsEnqueued) {
    class broken final : public package {
    public:
        [[nodiscard]] std::string_view name() const noexcept override { return "broken"; }
        [[nodiscard]] std::optional<stream> current_stream(device /*of*/) override {
            if (is_broken) {
                throw std::runtime_error("no current stream");
            }
            return std::nullopt;
        }
        bool is_broken = false;
    };
    const auto library = std::make_shared<broken>();
    numbers memory = all(1);
    const stream s;
    array a(import_live(memory.data(), n * sizeof(double), cpu(), library, 0), dtype::float64, {n});
    library->is_broken = true;
    EXPECT_THROW(add(s, a, 1), std::runtime_error);
    library->is_broken = false;
    add(s, a, 1);
    EXPECT_EQ(values(a), all(2));
    EXPECT_THROW(static_cast<void>(import_live(memory.data(), 8, cpu(), nullptr, 0)), argument_error);
}

WEIR_CONFORMANCE(X6, AQueueThatRefusesTheEntryMakesTheCallFailAndNothingIsEnqueued) {
    const auto library = std::make_shared<producer>(here());
    const stream s(here());
    const producer::array t = theirs(library, 1);
    array a = import(library, t);
    library->current()->refusals = 1;
    EXPECT_THROW(add(s, a, 1), operation_error);
    EXPECT_EQ(library->values(t), all(1));
    add(s, a, 1).synchronize();
    EXPECT_EQ(library->values(t), all(2));
}

// The queue takes the entry and refuses the exit. Its owner does not know that and goes on right after the call, so the
// call must not return before the operation is complete.
WEIR_CONFORMANCE(X6, AQueueThatRefusesTheExitMakesTheCallBlock) {
    const auto library = std::make_shared<producer>(here());
    const stream s(here());
    const producer::array t = theirs(library, 1);
    array a = import(library, t);
    {
        testing::gate held;
        held.hold(s);
        library->current()->spared = 1;
        library->current()->refusals = 1;
        const stuck_host waits([&] { held.open(); });
        const completion done = add(s, a, 1);
        EXPECT_TRUE(waits.was_stuck());
        EXPECT_TRUE(done.done());
        EXPECT_EQ(library->current()->refusals, 0) << "it was the exit";
    }
    library->update(t.elements(), 2, 0);
    EXPECT_EQ(library->values(t), all(4));
    EXPECT_NO_THROW(s.synchronize()) << "no operation has failed";

    // The queue works as before.
    add(s, a, 1);
    library->update(t.elements(), 2, 0);
    s.synchronize();
    EXPECT_EQ(library->values(t), all(10));
}

WEIR_CONFORMANCE(X6, ControlTheCallDoesNotBlockIfTheQueueTakesTheExit) {
    const auto library = std::make_shared<producer>(here());
    const stream s(here());
    const producer::array t = theirs(library, 1);
    array a = import(library, t);
    testing::gate held;
    held.hold(s);
    const completion done = add(s, a, 1);  // would never return if it blocked
    EXPECT_FALSE(done.done());
    library->update(t.elements(), 2, 0);
    held.open();
    s.synchronize();
    EXPECT_EQ(library->values(t), all(4));
}

// Two libraries share an operand. One refuses the exit, and the other must still get its own.
WEIR_CONFORMANCE(X6, WhereOneQueueRefusesTheExitTheOtherGetsIts) {
    const auto refusing = std::make_shared<producer>(here());
    const auto other = std::make_shared<producer>(here());
    const stream s(here());
    const producer::array t = theirs(refusing, 1);
    const producer::array u = theirs(other, 0);
    array a = import(refusing, t);
    array b = import(other, u);
    {
        testing::gate held;
        held.hold(s);
        refusing->current()->spared = 1;
        refusing->current()->refusals = 1;
        const stuck_host waits([&] { held.open(); });
        parallel_for(
            on(s).label("add"), n, [](auto i, auto to, auto from) { store(to[i], load(from[i]) + load(to[i])); },
            inout(b.view<double>()), inout(a.view<double>()));
        EXPECT_TRUE(waits.was_stuck());
        EXPECT_EQ(refusing->current()->refusals, 0);
    }
    refusing->fill(t, 50);
    other->update(u.elements(), 3, 1);
    EXPECT_EQ(other->values(u), all(4));
    EXPECT_EQ(refusing->values(t), all(50));
}

// If the exit is refused, a thread of the program waits for the operation. The operation may enqueue work meanwhile, and
// that work may belong in the queue that has refused.
WEIR_CONFORMANCE(X6, WhatAnOperationEnqueuesWhileItsExitIsRefusedIsNotStuck) {
    const auto library = std::make_shared<producer>(here());
    const stream s(here());
    const stream other(here());
    array a = import(library, theirs(library, 1));
    const producer::array t = theirs(library, 1);
    array b = import(library, t);
    {
        testing::gate held;
        held.hold(s);
        library->current()->spared = 1;
        library->current()->refusals = 1;
        const stuck_host waits([&] { held.open(); });
        host_task(
            s, [&](auto) { add(other, b, 1); }, in(a.view<double>()));
        EXPECT_TRUE(waits.was_stuck());
        EXPECT_EQ(library->current()->refusals, 0);
    }
    library->update(t.elements(), 2, 0);
    other.synchronize();
    EXPECT_EQ(library->values(t), all(4));
}

}  // namespace
}  // namespace weir
