// Memory that Weir shares with another library, whose work it never sees (rules X6, X7, S5, S7, L4; scenarios A).
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "support/sharing_versions.hpp"

namespace weir {
namespace {

using namespace test::sharing;  // NOLINT(google-build-using-namespace): the words of these tests
using test::expect_sharing_versions;
using test::library_without_queues;
using test::producer;
using test::sharing_run;
using test::thread_queue;
using test::with_queue;

/// A live import of a library's array.
array import(const std::shared_ptr<producer>& from, const producer::array& x, package_use use = package_use::writes) {
    return {import_live(x.data(), x.bytes(), cpu(), from, x.owner(), use), dtype::float64, {n}};
}

TEST(A12, AnOperationSeesWhatTheLibraryDidRightBefore) {
    expect_sharing_versions(all(20), [](sharing_run& run) {
        const producer::array t = run.library->empty(n);
        run.library->fill(t, 1);
        run.library->current()->drain();
        const array a = import(run.library, t);
        const array result = ours(0);
        run.hold_library();
        run.library->add(t, 1);
        run.enter_by_hand();
        times_ten(run.s, result, a);
        run.exit_by_hand();
        run.finish();
        return values(result);
    });
}

TEST(A1, TheLibraryMayChangeTheOperandRightAfterTheCall) {
    expect_sharing_versions(all(10), [](sharing_run& run) {
        const producer::array t = run.library->empty(n);
        run.library->fill(t, 1);
        run.library->current()->drain();
        const array a = import(run.library, t);
        const array result = ours(0);
        run.hold_stream();
        run.enter_by_hand();
        times_ten(run.s, result, a);
        run.exit_by_hand();
        run.library->add(t, 2);  // res = kernel(arr); arr += 2
        run.finish();
        return values(result);
    });
}

TEST(A2, AConsumerThatReadsRightAfterTheImportSeesFinalValuesAndDoesNotBlock) {
    const auto library = std::make_shared<producer>();
    const stream s;
    const auto held = make_latch();
    library->current()->hold(held);
    const producer::array t = library->empty(n);
    library->fill(t, 4);
    const array a = import(library, t);
    const array result = ours(0);
    const completion done = times_ten(s, result, a);
    EXPECT_FALSE(done.done()) << "the host is here, and the library has not begun";
    held->open();
    EXPECT_EQ(values(result), all(40));
}

TEST(A3, OperandsOfSeveralLibrariesAndQueuesAreAllOrdered) {
    for (const bool hold_first : {true, false}) {
        for (const auto mode : {ordering_mode::automatic, ordering_mode::manual}) {
            const ordering_scope scope(mode);
            const auto x_library = std::make_shared<producer>();
            const auto y_library = std::make_shared<producer>();
            const stream s;
            const producer::array x = x_library->empty(n);
            const producer::array y = y_library->empty(n);
            x_library->fill(x, 0);
            y_library->fill(y, 0);
            x_library->current()->drain();
            y_library->current()->drain();
            const array a = import(x_library, x);
            const array b = import(y_library, y);
            const array result = ours(0);
            const auto held = make_latch();
            (hold_first ? x_library : y_library)->current()->hold(held);
            x_library->fill(x, 1);
            y_library->fill(y, 2);
            const completion done = parallel_for(
                s, n, [](auto i, auto to, auto from, auto more) { to[i] = load(from[i]) + load(more[i]); },
                out(result.view<double>()), in(a.view<double>()), in(b.view<double>()));
            x_library->fill(x, 100);
            y_library->fill(y, 100);
            if (mode == ordering_mode::manual) {
                done.synchronize();  // would hang, had it been ordered
            }
            held->open();
            s.synchronize();
            if (mode == ordering_mode::automatic) {
                EXPECT_EQ(values(result), all(3));
            } else {
                EXPECT_NE(values(result), all(3)) << "control";
            }
            x_library->current()->drain();
            y_library->current()->drain();
        }
    }
}

TEST(A4, WhatALibraryDidOnSeveralQueuesIsTheLibrarysToJoinOrToSay) {
    enum class duty { none, joined, said };
    for (const duty done : {duty::none, duty::joined, duty::said}) {
        const auto library = std::make_shared<producer>();
        const stream s;
        const producer::queue q1 = library->make_queue();
        const producer::queue q2 = library->make_queue();
        const producer::array t = library->empty(n);
        library->fill(t, 0);
        library->current()->drain();
        const auto held = make_latch();
        q2->hold(held);
        const std::span<double> all_elements = t.elements();
        {
            const with_queue first(library, q1);
            library->fill(all_elements.first(20), 1);
        }
        {
            const with_queue second(library, q2);
            library->fill(all_elements.subspan(20, 20), 1);
        }
        library->fill(all_elements.last(24), 1);
        if (done == duty::joined) {
            producer::join(library->current(), q1);
            producer::join(library->current(), q2);
        }
        const array a = import(library, t);
        if (done == duty::said) {
            used_on(a.buffer(), stream::adopt(*q1));
            used_on(a.buffer(), stream::adopt(*q2));
        }
        const array result = ours(0);
        const completion end = times_ten(s, result, a);
        if (done == duty::none) {
            end.synchronize();  // Weir knows of the library's current queue alone
        } else {
            EXPECT_FALSE(end.done());
        }
        held->open();
        if (done == duty::none) {
            EXPECT_NE(values(result), all(10)) << "control";
        } else {
            EXPECT_EQ(values(result), all(10));
        }
        q2->drain();
    }
}

TEST(A5, TheQueueThatWasCurrentAtTheImportMayGoBeforeTheUse) {
    const auto library = std::make_shared<producer>();
    const stream s;
    const producer::array t = library->empty(n);
    const auto held = make_latch();
    producer::queue first = library->make_queue();
    const std::weak_ptr<thread_queue> watch = first;
    library->push_current(first);
    first->hold(held);
    library->fill(t, 5);
    const array a = import(library, t);
    library->pop_current();
    first.reset();
    EXPECT_FALSE(watch.expired()) << "Weir has work there";
    const array result = ours(0);
    const completion done = times_ten(s, result, a);
    EXPECT_FALSE(done.done()) << "what the library did before the import comes first, wherever it did it";
    held->open();
    EXPECT_EQ(values(result), all(50));
    while (!watch.expired()) {
        std::this_thread::yield();
    }
}

TEST(A5, OurStreamMayGoBeforeTheLibraryTouchesTheDataAgain) {
    const auto library = std::make_shared<producer>();
    const producer::array t = library->empty(n);
    library->fill(t, 1);
    const array a = import(library, t);
    testing::gate held;
    {
        const stream s;
        held.hold(s);
        add(s, a, 1);
    }
    library->add(t, 10);
    held.open();
    EXPECT_EQ(library->values(t), all(12));
}

// The order is the program's here, so that nothing but the owner keeps the library from reusing the memory.
numbers read_by_a_late_operation(bool keeps_owner, bool library_drops_first) {
    const ordering_scope manual(ordering_mode::manual);
    const auto library = std::make_shared<producer>();
    const stream s;
    testing::gate held;
    const array result = ours(0);
    producer::array t = library->empty(n);
    library->fill(t, 1);
    library->current()->drain();
    std::shared_ptr<void> owner = keeps_owner ? t.owner() : nullptr;
    array view(import_live(t.data(), t.bytes(), cpu(), library, std::move(owner)), dtype::float64, {n});
    const void* const where = t.data();
    if (library_drops_first) {
        t = {};
    }
    held.hold(s);
    times_ten(s, result, view);
    view = {};
    t = {};
    // Of the same size, at once: where the old one was, if the library has it back.
    const producer::array next = library->empty(n);
    EXPECT_EQ(next.data() == where, !keeps_owner);
    library->fill(next, 9);
    library->current()->drain();
    held.open();
    s.synchronize();
    EXPECT_EQ(library->values(next), all(9));
    return values(result);
}

TEST(A6, AViewThatIsDroppedWhileInUseKeepsTheLibrarysMemory) {
    EXPECT_EQ(read_by_a_late_operation(true, false), all(10));
    EXPECT_NE(read_by_a_late_operation(false, false), all(10)) << "control: memory without an owner";
}

TEST(A7, TheLibraryDropsItsArrayFirstAndTheViewIsUsedAndDropped) {
    EXPECT_EQ(read_by_a_late_operation(true, true), all(10));
    EXPECT_NE(read_by_a_late_operation(false, true), all(10)) << "control: memory without an owner";
}

TEST(L4, TheLibraryGetsItsMemoryBackOnceAfterTheLastUse) {
    const auto library = std::make_shared<producer>();
    const stream s;
    testing::gate held;
    std::atomic<int> releases{0};
    const producer::array t = library->empty(n);
    library->fill(t, 0);
    {
        const array a(import_live(t.data(), t.bytes(), cpu(), library, [&releases] { ++releases; }), dtype::float64,
                      {n});
        held.hold(s);
        add(s, a, 1);
    }
    EXPECT_EQ(releases, 0);
    held.open();
    while (releases == 0) {
        std::this_thread::yield();
    }
    EXPECT_EQ(library->values(t), all(1));
    EXPECT_EQ(releases, 1);
}

TEST(A11, TheLibrarysCurrentQueueIsAskedForAtEachCall) {
    for (const auto mode : {ordering_mode::automatic, ordering_mode::manual}) {
        const ordering_scope scope(mode);
        const auto library = std::make_shared<producer>();
        const stream s;
        const producer::array t = library->empty(n);
        library->fill(t, 1);
        library->current()->drain();
        const array a = import(library, t);
        const array first = ours(0);
        const array second = ours(0);
        times_ten(s, first, a).synchronize();
        const auto held = make_latch();
        const producer::queue other = library->make_queue();
        producer::join(other, library->current());
        completion done;
        {
            const with_queue changed(library, other);
            other->hold(held);
            library->add(t, 1);
            done = times_ten(s, second, a);
            library->add(t, 100);
        }
        if (mode == ordering_mode::manual) {
            done.synchronize();
        }
        held->open();
        EXPECT_EQ(values(first), all(10));
        s.synchronize();
        if (mode == ordering_mode::automatic) {
            EXPECT_EQ(values(second), all(20));
        } else {
            EXPECT_NE(values(second), all(20)) << "control";
        }
        other->drain();
    }
}

TEST(X6, AnOperationOnTheLibrarysOwnQueueCostsNothingMore) {
    const auto library = std::make_shared<producer>();
    const producer::array t = library->empty(n);
    library->fill(t, 0);
    const array a = import(library, t);
    const stream theirs = stream::adopt(*library->current());
    const int before = library->current()->submitted;
    for (int i = 0; i < 10; ++i) {
        add(theirs, a, 1);
        library->add(t, 1);
    }
    EXPECT_EQ(library->current()->submitted - before, 10);
    EXPECT_EQ(library->values(t), all(20));
}

TEST(X6, OperandsOfOneLibraryShareOneEntryAndOneExit) {
    const auto library = std::make_shared<producer>();
    const stream s;
    const producer::array x = library->empty(n);
    const producer::array y = library->empty(n);
    library->fill(x, 3);
    const array a = import(library, x);
    const array b = import(library, y);
    const int before = library->current()->submitted;
    times_ten(s, b, a);
    EXPECT_EQ(library->current()->submitted - before, 2);
    EXPECT_EQ(library->values(y), all(30));
}

TEST(X6, WithALibraryWithoutQueuesTheOperationIsOverWhenTheCallReturns) {
    const auto library = std::make_shared<library_without_queues>();
    numbers memory = all(1);
    const stream s;
    const array a(import_live(memory.data(), n * sizeof(double), cpu(), library, 0), dtype::float64, {n});
    const completion done = add(s, a, 1);
    EXPECT_TRUE(done.done());
    memory[0] += 1;  // y = f(x); x += 1
    EXPECT_EQ(memory[0], 3);

    // Control: left to the program, the call returns before.
    const ordering_scope manual(ordering_mode::manual);
    testing::gate held;
    held.hold(s);
    const completion later = add(s, a, 1);
    EXPECT_FALSE(later.done());
    held.open();
    later.synchronize();
}

TEST(O6, TheHostReadsALiveImportAfterWhatTheLibraryDid) {
    const auto library = std::make_shared<producer>();
    const producer::array t = library->empty(n);
    library->fill(t, 0);
    library->current()->drain();
    const array a = import(library, t);
    const auto held = make_latch();
    library->current()->hold(held);
    library->fill(t, 8);
    EXPECT_FALSE(a.ready());
    {
        const ordering_scope manual(ordering_mode::manual);
        EXPECT_EQ(values(a), all(0)) << "control: left to the program, nobody waits";
    }
    std::thread opener([&] { held->open(); });
    EXPECT_EQ(values(a), all(8));
    opener.join();
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
    const array a(import_live(memory.data(), n * sizeof(double), cpu(), library, 0), dtype::float64, {n});
    library->is_broken = true;
    EXPECT_THROW(add(s, a, 1), std::runtime_error);
    library->is_broken = false;
    add(s, a, 1);
    EXPECT_EQ(values(a), all(2));
    EXPECT_THROW(static_cast<void>(import_live(memory.data(), 8, cpu(), nullptr, 0)), argument_error);
}

TEST(X6, AQueueThatRefusesTheEntryMakesTheCallFailAndNothingIsEnqueued) {
    const auto library = std::make_shared<producer>();
    const stream s;
    const producer::array t = library->empty(n);
    library->fill(t, 1);
    const array a = import(library, t);
    library->current()->refusals = 1;
    EXPECT_THROW(add(s, a, 1), operation_error);
    EXPECT_EQ(library->values(t), all(1));
    add(s, a, 1);
    EXPECT_EQ(library->values(t), all(2));
}

}  // namespace
}  // namespace weir
