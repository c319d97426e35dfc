// Memory of another library that Weir uses, and whose work Weir never sees: live imports (scenarios A1 to A7, A10 to A12).
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "support/devices.hpp"
#include "support/sharing_versions.hpp"

namespace weir {
namespace {

using namespace test::sharing;  // NOLINT(google-build-using-namespace): the words of these tests
using test::expect_sharing_versions;
using test::here;
using test::producer;
using test::sharing_run;
using test::thread_queue;
using test::with_queue;

WEIR_CONFORMANCE(A12, AnOperationSeesWhatTheLibraryDidRightBefore) {
    expect_sharing_versions(all(20), {{"library adds", "times ten"}}, __FILE__, [](sharing_run& run) {
        const producer::array t = theirs(run.library, 1);
        array a = import(run.library, t);
        array result = ours(0);
        run.hold_library();
        run.by_library({}, {a}, run.at("library adds"), [&] { run.library->add(t, 1); });
        run.enter_by_hand();
        times_ten(run.s, result, a, run.at("times ten"));
        run.exit_by_hand();
        run.finish();
        return values(result);
    });
}

WEIR_CONFORMANCE(A1, TheLibraryMayChangeTheOperandRightAfterTheCall) {
    expect_sharing_versions(all(10), {{"times ten", "library adds"}}, __FILE__, [](sharing_run& run) {
        const producer::array t = theirs(run.library, 1);
        array a = import(run.library, t);
        array result = ours(0);
        run.hold_stream();
        run.enter_by_hand();
        times_ten(run.s, result, a, run.at("times ten"));
        run.exit_by_hand();
        // res = kernel(arr); arr += 2
        run.by_library({}, {a}, run.at("library adds"), [&] { run.library->add(t, 2); });
        run.finish();
        return values(result);
    });
}

WEIR_CONFORMANCE(A2, AConsumerThatReadsRightAfterTheImportSeesFinalValuesAndDoesNotBlock) {
    expect_sharing_versions(all(40), {{"library fills", "times ten"}}, __FILE__, [](sharing_run& run) {
        const producer::array t = theirs(run.library, 1);
        array result = ours(0);
        run.hold_library();
        array a;
        if (run.declares()) {
            a = import(run.library, t);  // to declare the library's work, the program has to have it by then
        }
        run.by_library({}, {a}, run.at("library fills"), [&] { run.library->fill(t, 4); });
        if (!run.declares()) {
            a = import(run.library, t);
        }
        run.enter_by_hand();
        const completion done = times_ten(run.s, result, a, run.at("times ten"));
        run.exit_by_hand();
        if (run.is_ordered_by_weir()) {
            EXPECT_FALSE(done.done()) << "the host is here, and the library has not begun";
        }
        run.finish();
        return values(result);
    });
}

WEIR_CONFORMANCE(A3, OperandsOfSeveralLibrariesAndQueuesAreAllOrdered) {
    for (const bool hold_first : {true, false}) {
        const std::vector<test::race_names> races = {
            {"first fills", "sum"}, {"other fills", "sum"}, {"sum", "first fills again"}, {"sum", "other fills again"}};
        expect_sharing_versions(all(3), races, __FILE__, [&](sharing_run& run) {
            const auto other = std::make_shared<producer>(run.device);
            const producer::array x = theirs(run.library, 0);
            const producer::array y = theirs(other, 0);
            array a = import(run.library, x);
            array b = import(other, y);
            array result = ours(0);
            run.hold_library(hold_first ? run.library : other);
            run.by_library({}, {a}, run.at("first fills"), [&] { run.library->fill(x, 1); });
            run.by_library(other, {}, {b}, run.at("other fills"), [&] { other->fill(y, 2); });
            const std::vector<stream> both = {stream::adopt(*run.library->current()), stream::adopt(*other->current())};
            for (const stream& one : both) {
                run.by_hand(run.s, one);
            }
            parallel_for(
                on(run.s, run.at("sum")), n,
                [](auto i, auto to, auto from, auto more) { store(to[i], load(from[i]) + load(more[i])); },
                out(result.view<double>()), in(a.view<double>()), in(b.view<double>()));
            for (const stream& one : both) {
                run.by_hand(one, run.s);
            }
            run.by_library({}, {a}, run.at("first fills again"), [&] { run.library->fill(x, 100); });
            run.by_library(other, {}, {b}, run.at("other fills again"), [&] { other->fill(y, 100); });
            run.finish();
            other->drain();
            return values(result);
        });
    }
}

WEIR_CONFORMANCE(A4, WhatALibraryDidOnSeveralQueuesIsTheLibrarysToJoinOrToSay) {
    enum class duty { none, joined, said };
    for (const duty done : {duty::none, duty::joined, duty::said}) {
        const auto library = std::make_shared<producer>(here());
        const stream s(here());
        const producer::queue q1 = library->make_queue();
        const producer::queue q2 = library->make_queue();
        const producer::array t = theirs(library, 0);
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
        array a = import(library, t);
        if (done == duty::said) {
            used_on(a.buffer(), stream::adopt(*q1));
            used_on(a.buffer(), stream::adopt(*q2));
        }
        array result = ours(0);
        const completion end = times_ten(s, result, a);
        if (done == duty::none) {
            end.synchronize();  // Weir knows only the library's current queue
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

/// The library works on a queue that is no longer current, and that it no longer owns, when Weir reads.
numbers read_after_the_queue_is_gone(ordering_mode mode) {
    const ordering_scope scope(mode);
    const auto library = std::make_shared<producer>(here());
    const stream s(here());
    const producer::array t = theirs(library, 1);
    const auto held = make_latch();
    producer::queue first = library->make_queue();
    const std::weak_ptr<thread_queue> watch = first;
    library->push_current(first);
    first->hold(held);
    library->fill(t, 5);
    array a = import(library, t);
    library->pop_current();
    first.reset();
    EXPECT_FALSE(watch.expired()) << "Weir has work there";
    array result = ours(0);
    const completion done = times_ten(s, result, a);
    if (mode == ordering_mode::automatic) {
        EXPECT_FALSE(done.done()) << "what the library did before the import comes first, wherever it did it";
    } else {
        done.synchronize();
    }
    held->open();
    const numbers seen = values(result);
    while (!watch.expired()) {
        std::this_thread::yield();
    }
    return seen;
}

WEIR_CONFORMANCE(A5, TheQueueThatWasCurrentAtTheImportMayGoBeforeTheUse) {
    EXPECT_EQ(read_after_the_queue_is_gone(ordering_mode::automatic), all(50));
    EXPECT_EQ(read_after_the_queue_is_gone(ordering_mode::manual), all(10)) << "control: nobody waits for that queue";
}

/// A stream of Weir's is dropped while busy, and the library goes on with the memory.
numbers doubled_after_our_stream_is_gone(ordering_mode mode) {
    const ordering_scope scope(mode);
    const auto library = std::make_shared<producer>(here());
    const producer::array t = theirs(library, 1);
    array a = import(library, t);
    testing::gate held;
    completion done;
    {
        const stream s(here());
        held.hold(s);
        done = add(s, a, 1);
    }
    library->update(t.elements(), 2, 0);
    if (mode == ordering_mode::manual) {
        library->drain();
    }
    held.open();
    done.synchronize();
    return library->values(t);
}

WEIR_CONFORMANCE(A5, OurStreamMayGoBeforeTheLibraryTouchesTheDataAgain) {
    EXPECT_EQ(doubled_after_our_stream_is_gone(ordering_mode::automatic), all(4));
    EXPECT_EQ(doubled_after_our_stream_is_gone(ordering_mode::manual), all(3)) << "control: the library is too early";
}

// Under manual ordering, so that only the owner keeps the library from reusing the memory.
numbers read_by_a_late_operation(bool keeps_owner, bool library_drops_first) {
    const ordering_scope manual(ordering_mode::manual);
    const auto library = std::make_shared<producer>(here());
    const stream s(here());
    testing::gate held;
    array result = ours(0);
    producer::array t = theirs(library, 1);
    std::shared_ptr<void> owner = keeps_owner ? t.owner() : nullptr;
    array view(import_live(t.data(), t.bytes(), here(), library, std::move(owner)), dtype::float64, {n});
    const void* const where = t.data();
    if (library_drops_first) {
        t = {};
    }
    held.hold(s);
    times_ten(s, result, view);
    view = {};
    t = {};
    // Of the same size, at once: at the old address if the library has the memory back.
    const producer::array next = library->empty(n);
    EXPECT_EQ(next.data() == where, !keeps_owner);
    library->fill(next, 9);
    library->drain();
    held.open();
    s.synchronize();
    EXPECT_EQ(library->values(next), all(9));
    return values(result);
}

WEIR_CONFORMANCE(A6, AViewThatIsDroppedWhileInUseKeepsTheLibrarysMemory) {
    EXPECT_EQ(read_by_a_late_operation(true, false), all(10));
    EXPECT_NE(read_by_a_late_operation(false, false), all(10)) << "control: memory without an owner";
}

WEIR_CONFORMANCE(A7, TheLibraryDropsItsArrayFirstAndTheViewIsUsedAndDropped) {
    EXPECT_EQ(read_by_a_late_operation(true, true), all(10));
    EXPECT_NE(read_by_a_late_operation(false, true), all(10)) << "control: memory without an owner";
}

WEIR_CONFORMANCE(A10, WhatChangesAnImmutableImportComesAfterTheLibrarysReaders) {
    expect_sharing_versions(all(1), {{"library reads", "add"}}, __FILE__, [](sharing_run& run) {
        const producer::array t = theirs(run.library, 1);
        const producer::array copied = theirs(run.library, 0);
        array a = import(run.library, t, package_use::reads);
        run.hold_library();
        run.by_library({a}, {}, run.at("library reads"),
                       [&] { run.library->copy(copied.elements(), t.elements(), 0); });
        run.enter_by_hand();
        add(run.s, a, 1, run.at("add"));
        run.exit_by_hand();
        run.finish();
        return run.library->values(copied);
    });
}

WEIR_CONFORMANCE(A11, TheLibrarysCurrentQueueIsAskedForAtEachCall) {
    for (const auto mode : {ordering_mode::automatic, ordering_mode::manual}) {
        const ordering_scope scope(mode);
        const auto library = std::make_shared<producer>(here());
        const stream s(here());
        const producer::array t = theirs(library, 1);
        array a = import(library, t);
        array first = ours(0);
        array second = ours(0);
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

}  // namespace
}  // namespace weir
