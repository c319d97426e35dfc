// Memory of Weir's that another library uses as well (rules X7, L5; scenarios A6, A9, A10, A14, A16), on every device.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "support/devices.hpp"
#include "support/sharing_versions.hpp"
#include "support/stuck_host.hpp"
#include "weir/borrow.hpp"
#include "weir/testing.hpp"
#include "weir/trace.hpp"

namespace weir {
namespace {

using namespace test::sharing;  // NOLINT(google-build-using-namespace): the words of these tests
using test::expect_sharing_versions;
using test::library_without_queues;
using test::producer;
using test::sharing_run;
using test::stuck_host;
using test::thread_queue;
using test::with_queue;

/// A library that works on the device under test.
class LiveExport {
protected:
    const device here = test::here();
    const stream s{here, {0, "s"}};
    const std::shared_ptr<producer> library = std::make_shared<producer>(here);
};

WEIR_CONFORMANCE(A14, TheConsumerWritesAfterWeirAndWeirReadsAfterTheConsumer) {
    // Our work comes late.
    expect_sharing_versions(all(40), {{"add", "library multiplies"}}, __FILE__, [](sharing_run& run) {
        array x = ours(1);
        const live_export shared(x, run.library);
        run.hold_stream();
        run.enter_by_hand();
        add(run.s, x, 1, run.at("add"));
        run.exit_by_hand();
        run.by_library({}, {x}, run.at("library multiplies"), [&] { run.library->update(elements(x), 20, 0); });
        run.finish();
        return values(x);
    });
    // The library's work comes late.
    expect_sharing_versions(all(20), {{"library adds", "times ten"}}, __FILE__, [](sharing_run& run) {
        array x = ours(1);
        array result = ours(0);
        const live_export shared(x, run.library);
        run.hold_library();
        run.by_library({}, {x}, run.at("library adds"), [&] { run.library->add(elements(x), 1); });
        run.enter_by_hand();
        const completion read = times_ten(run.s, result, x, run.at("times ten"));
        run.exit_by_hand();
        if (run.is_ordered_by_weir()) {
            EXPECT_FALSE(read.done());
        }
        run.finish();
        return values(result);
    });
}

WEIR_CONFORMANCE_F(LiveExport, A14_AnotherQueueOfTheConsumersNeedsUsedOn) {
    for (const bool is_said : {true, false}) {
        array x = ours(0, here);
        array result = ours(0, here);
        live_export shared(x, library);
        const producer::queue other = library->make_queue();
        const auto latch = make_latch();
        {
            const with_queue on_other(library, other);
            other->hold(latch);
            library->add(elements(x), 5);
        }
        if (is_said) {
            shared.used_on(stream::adopt(*other));
        }
        const completion read = times_ten(s, result, x);
        if (!is_said) {
            read.synchronize();  // Weir does not know of the use
        } else {
            EXPECT_FALSE(read.done());
        }
        latch->open();
        EXPECT_EQ(values(result), all(is_said ? 50 : 0));
        other->drain();
    }
}

WEIR_CONFORMANCE_F(LiveExport, X7_AnExclusiveUseEndsTheExportAndItsCurrentStreamDoesNotMatterAnyMore) {
    array x = ours(1, here);
    array result = ours(0, here);
    live_export shared(x, library);
    library->add(elements(x), 1);
    const event used = stream::adopt(*library->current()).record();
    shared.used_on(used, true);
    const auto latch = make_latch();
    library->current()->hold(latch);  // other work, which does not use the memory
    const int before = library->current()->submitted;
    times_ten(s, result, x).synchronize();
    EXPECT_EQ(library->current()->submitted, before);
    EXPECT_EQ(values(result), all(20));
    latch->open();
}

WEIR_CONFORMANCE(A9, AnArrayExportedTwiceIsOrderedWithBothConsumers) {
    const std::vector<numbers> right = {all(20), all(2), all(102)};
    const std::vector<test::race_names> races = {{"first library writes", "times ten"},
                                                 {"first library writes", "second library reads"},
                                                 {"first library writes", "add"},
                                                 {"second library reads", "add"}};
    expect_sharing_versions(right, races, __FILE__, [](sharing_run& run) {
        const auto second = std::make_shared<producer>(run.device);
        const stream on_first = stream::adopt(*run.library->current());
        const stream on_second = stream::adopt(*second->current());
        array x = ours(1);
        array before = ours(0);
        array copy = ours(0);
        const live_export to_first(x, run.library);
        const live_export to_second(x, second);
        run.hold_library();
        run.by_library({}, {x}, run.at("first library writes"), [&] { run.library->add(elements(x), 1); });
        run.by_hand(run.s, on_first);
        times_ten(run.s, before, x, run.at("times ten"));  // Weir reads
        run.by_hand(on_first, run.s);
        run.by_hand(on_second, run.s);
        // The second library reads what the first one wrote.
        run.by_library(second, {x}, {copy}, run.at("second library reads"),
                       [&] { second->copy(elements(copy), elements(x), 0); });
        run.by_hand(run.s, on_second);
        add(run.s, x, 100, run.at("add"));  // and Weir writes after both
        run.by_hand(on_first, run.s);
        run.by_hand(on_second, run.s);
        run.finish();
        second->drain();
        return std::vector{values(before), values(copy), values(x)};
    });
}

WEIR_CONFORMANCE_F(LiveExport, A10_AnImmutableExportIsOrderedWithWhatWeirWritesAndCostsReadersNothing) {
    for (const auto& [mode, by_const] :
         {std::pair(ordering_mode::automatic, false), std::pair(ordering_mode::automatic, true),
          std::pair(ordering_mode::manual, false), std::pair(ordering_mode::manual, true)}) {
        const ordering_scope scope(mode);
        array x = ours(1, here);
        array theirs = ours(0, here);
        array result = ours(0, here);
        const live_export shared = by_const ? live_export(std::as_const(x), library)  // what a const array says
                                            : live_export(x, library, package_use::reads);
        const auto latch = make_latch();
        library->current()->hold(latch);
        library->copy(elements(theirs), elements(x), 0);
        const int before = library->current()->submitted;
        times_ten(s, result, x).synchronize();  // both only read
        EXPECT_EQ(library->current()->submitted, before);
        const completion write = add(s, x, 1);
        if (mode == ordering_mode::manual) {
            write.synchronize();
        } else {
            EXPECT_FALSE(write.done());
        }
        latch->open();
        s.synchronize();
        library->drain();
        if (mode == ordering_mode::automatic) {
            EXPECT_EQ(values(theirs), all(1));
        } else {
            EXPECT_NE(values(theirs), all(1)) << "control";
        }
        EXPECT_EQ(values(x), all(2));
    }
}

/// DLPack's argument `stream` is a request of the program's, which holds in every mode.
WEIR_CONFORMANCE_F(LiveExport, O5_AStreamThatAnArrayIsHandedToWaitsAlsoWhereTheProgramOrders) {
    const ordering_scope manual(ordering_mode::manual);
    for (const bool is_handed_over : {true, false}) {
        array x = ours(1, here);
        array other = ours(0, here);
        const stream consumer(here);
        testing::gate gate;
        gate.hold(s);
        add(s, x, 1);
        const trace_scope heard;
        if (is_handed_over) {
            exchange::hand_over(consumer, x);
        }
        const completion next = fill(consumer, other, 5);
        EXPECT_EQ(heard.summary().waits_issued, is_handed_over ? 1U : 0U);
        if (!is_handed_over) {
            next.synchronize();  // the control
        }
        EXPECT_EQ(next.done(), !is_handed_over);
        gate.open();
        next.synchronize();
        s.synchronize();
        EXPECT_EQ(values(x), all(2));
    }
}

WEIR_CONFORMANCE_F(LiveExport, X2_AStreamThatIsToReadWaitsForNoReader) {
    const ordering_scope manual(ordering_mode::manual);
    array x = ours(1, here);
    array result = ours(0, here);
    array other = ours(0, here);
    const stream reads(here);
    const stream writes(here);
    testing::gate gate;
    gate.hold(s);
    times_ten(s, result, x);
    const trace_scope heard;
    exchange::hand_over(reads, x);
    EXPECT_EQ(heard.summary().waits_issued, 0U);
    exchange::hand_over(writes, x, package_use::writes);
    EXPECT_NE(heard.summary().waits_issued, 0U);
    const completion next = fill(writes, other, 5);
    EXPECT_FALSE(next.done());
    gate.open();
    for (const stream& each : {s, reads, writes}) {
        each.synchronize();
    }
    EXPECT_EQ(values(result), all(10));
    EXPECT_EQ(values(other), all(5));
}

WEIR_CONFORMANCE_F(LiveExport, X7_OnlyTheSharedPartIsOrdered) {
    array x = ours(1, here);
    const live_export shared(x.slice(0, n / 2), library);
    const int before = library->current()->submitted;
    fill(s, x.slice(n / 2, n), 2);
    EXPECT_EQ(library->current()->submitted, before);
    fill(s, x.slice(0, n / 2), 3);
    EXPECT_EQ(library->current()->submitted, before + 2);
    s.synchronize();
    library->drain();
}

/// Every use that Weir makes of memory of a held consumer. Returns the results of the consumer's work.
numbers beside_a_held_consumer(const device& here, const std::shared_ptr<producer>& library, bool reads_on_the_host,
                               const std::function<void()>& let_go) {
    const stream s(here);
    array result = ours(0, here);
    {
        array x = ours(1, here);
        live_export shared(x, library);
        library->add(elements(x), 1);
        times_ten(s, result, x);
        add(s, x, 1);
        if (reads_on_the_host) {
            EXPECT_EQ(values(x), all(3));
        }
        shared = {};
        x = {};
        const buffer next(n * sizeof(double), s);
    }
    const stream unrelated(here);
    array other = ours(0, here);
    add(unrelated, other, 1).synchronize();
    let_go();
    return values(result);
}

WEIR_CONFORMANCE_F(LiveExport, A16_NothingBlocksOnAConsumerThatOnlyLaterHostCodeLetsGoOn) {
    const auto latch = make_latch();
    library->current()->hold(latch);
    EXPECT_EQ(beside_a_held_consumer(here, library, false, [&] { latch->open(); }), all(20));
    library->drain();
}

WEIR_CONFORMANCE_F(LiveExport, A16_ControlAHostThatReadsDoesBlockOnIt) {
    const auto latch = make_latch();
    library->current()->hold(latch);
    const stuck_host waits([&] { latch->open(); });
    EXPECT_EQ(beside_a_held_consumer(here, library, true, [&] { EXPECT_TRUE(waits.was_stuck()); }), all(20));
    library->drain();
}

/// The consumer starts slow work and drops its view; the array is dropped, and one of the same size is made at once.
numbers read_by_a_late_consumer(const device& here, const std::shared_ptr<producer>& library, bool is_control) {
    const stream s(here);
    array theirs = ours(0, here);
    const auto latch = make_latch();
    std::byte* where = nullptr;
    {
        std::optional<memory::use> control;
        if (is_control) {
            control.emplace(memory::allocating_stream());
        }
        array x = full({n}, 1, dtype::float64, s);
        s.synchronize();
        where = x.buffer().device_data();
        live_export shared(x, library);
        library->current()->hold(latch);
        library->copy(elements(theirs), elements(x), 0);
        shared = {};
        x = {};
    }
    array next = full({n}, 9, dtype::float64, s);
    if (is_control) {
        EXPECT_EQ(next.buffer().device_data(), where);
        s.synchronize();
    }
    latch->open();
    library->drain();
    EXPECT_EQ(values(next), all(9));
    return values(theirs);
}

WEIR_CONFORMANCE_F(LiveExport, A6_MemoryThatTheConsumerDroppedWhileInUseIsNotReusedTooEarly) {
    EXPECT_EQ(read_by_a_late_consumer(here, library, false), all(1));
    EXPECT_NE(read_by_a_late_consumer(here, library, true), all(1)) << "control: freed on the allocating stream";
}

WEIR_CONFORMANCE_F(LiveExport, L1_TheNextOwnerOfTheMemoryWaitsForTheConsumerWhereThereIsNoOther) {
    array theirs = ours(0, here);
    cpu().synchronize();
    here.synchronize();
    memory::trim(here);
    const memory::statistics now = memory::stats(here);
    const std::size_t bytes = std::size_t{4} << 20;
    memory::limit(here, now.live + now.pending + now.cached + bytes);
    const auto latch = make_latch();
    completion write;
    {
        buffer x(bytes, s);
        array view(x, dtype::float64, {n});
        add(s, view, 0);
        fill(s, view, 1).synchronize();
        live_export shared(x, library);
        library->current()->hold(latch);
        library->copy(elements(theirs), elements(view), 0);
        shared = {};
    }
    const buffer next(bytes, s);
    write = fill(s, array(next, dtype::float64, {n}), 9);
    EXPECT_FALSE(write.done()) << "waits on the device; the host is here";
    latch->open();
    library->drain();
    EXPECT_EQ(values(theirs), all(1));
    write.synchronize();
    memory::limit(here, now.limit);
}

// The end of an export is a point in the library's queue. If the queue refuses it, the export stays live.
WEIR_CONFORMANCE_F(LiveExport, X7_AQueueThatRefusesTheEndOfAnExportLeavesItAsItWas) {
    array x = ours(1, here);
    live_export shared(x, library);
    library->current()->refusals = 2;
    EXPECT_THROW(shared.end(), operation_error);
    EXPECT_THROW(shared.used_on(stream::adopt(*library->current())), operation_error);
    const auto held = make_latch();
    library->current()->hold(held);
    library->add(elements(x), 1);
    const completion done = add(s, x, 1);
    EXPECT_FALSE(done.done()) << "still shared";
    held->open();
    shared.end();
    library->drain();
    const int before = library->current()->submitted;
    add(s, x, 1).synchronize();
    EXPECT_EQ(library->current()->submitted, before) << "shared no more";
    EXPECT_EQ(values(x), all(4));
}

TEST(X7, AnExportToALibraryWithoutQueuesMakesOperationsBlock) {
    const auto library = std::make_shared<library_without_queues>();
    const stream s;
    array x = ours(1, cpu());
    const live_export shared(x, library);
    EXPECT_TRUE(add(s, x, 1).done());
    EXPECT_EQ(elements(x)[0], 2);
}

TEST(X7, AnExportThatCannotBeEndedKeepsTheMemory) {
    class failing final : public package {
    public:
        [[nodiscard]] std::string_view name() const noexcept override { return "failing"; }
        [[nodiscard]] std::optional<stream> current_stream(device /*of*/) override {
            throw std::runtime_error("shutting down");
        }
    };
    const std::size_t before = memory::stats().live;
    {
        array x = ours(1, cpu());
        live_export shared(x, std::make_shared<failing>());
        EXPECT_THROW(shared.end(), std::runtime_error);
    }
    EXPECT_GT(memory::stats().live, before);
}

TEST(X7, AnExportKeepsTheMemoryAndMovesAndEndsOnce) {
    const auto library = std::make_shared<producer>();
    const std::size_t before = memory::stats().live;
    live_export kept;
    {
        array x = ours(3, cpu());
        live_export shared(x, library);
        kept = std::move(shared);
    }
    EXPECT_GT(memory::stats().live, before);
    kept.end();
    kept.end();
    EXPECT_EQ(memory::stats().live, before);
}

TEST(O10, EntriesAndExitsAreCountedApart) {
    const auto library = std::make_shared<producer>();
    const stream s1;
    const stream s2;
    array x = ours(1, cpu());
    const live_export shared(x, library);
    trace_scope trace;
    const auto latch = make_latch();
    library->current()->hold(latch);  // nothing completes by chance
    add(s1, x, 1);
    add(s2, x, 1);  // after the entry, which comes after the exit of the first: no wait of its own
    latch->open();
    cpu().synchronize();
    const trace_summary sum = trace.summary();
    EXPECT_EQ(sum.waits_for_packages, 4U);
    EXPECT_EQ(sum.waits_issued, 0U);
    EXPECT_EQ(sum.waits_minimal, 0U);
    EXPECT_EQ(sum.operations, 2U);
}

WEIR_CONFORMANCE(O8, EightThreadsAndTheirQueuesShareMemoryWithWeirAndDropItInAnyOrder) {
    const auto library = std::make_shared<producer>(test::here());
    std::vector<std::thread> threads;
    const std::vector<stream> streams = test::streams_here(3);
    array common = ours(0);
    const live_export common_export(common, library);
    for (unsigned t = 0; t < 8; ++t) {
        threads.emplace_back([&, t] {
            std::mt19937 random(t);
            for (int round = 0; round < 30; ++round) {
                const producer::queue first = library->make_queue();
                library->push_current(first);
                producer::array theirs = library->empty(n);
                library->fill(theirs, 1);
                array imported = import(library, theirs);
                array own = ours(0);
                live_export exported(own, library);
                double wanted = 1;
                for (int i = 0; i < 6; ++i) {
                    const stream& s = streams[random() % streams.size()];
                    add(s, imported, 1);
                    library->update(theirs.elements(), 2, 0);
                    times_ten(s, own, imported);
                    library->add(elements(own), 1);
                    add(s, common, 1);
                    wanted = (wanted + 1) * 2;
                    if (random() % 3 == 0) {  // another current queue, which the library orders after the former one
                        const producer::queue next = library->make_queue();
                        producer::join(next, library->current());
                        library->pop_current();
                        library->push_current(next);
                    }
                }
                if (random() % 2 == 0) {
                    theirs = {};
                }
                if (random() % 2 == 0) {
                    exported = {};
                }
                EXPECT_EQ(values(own), all(wanted * 10 + 1));
                EXPECT_EQ(values(imported), all(wanted));
                library->pop_current();
            }
        });
    }
    for (std::thread& one : threads) {
        one.join();
    }
    EXPECT_EQ(values(common), all(8 * 30 * 6));
}

/// The stream of a borrow, and that of one inside of it, which is held when that ends.
struct nested_borrows {
    nested_borrows(exchange::borrowed around, exchange::borrowed inside) {
        const exchange::borrow outer_one(outer, std::move(around));
        {
            const exchange::borrow inner_one(inner, std::move(inside));
            held.hold(inner);  // stands for work of another library
        }
        after = host_task(outer, [] {});  // declares nothing, as that work does
    }

    const stream outer{test::here()};
    const stream inner{test::here()};
    testing::gate held;
    completion after;
};

WEIR_CONFORMANCE(X6, TheStreamOfABorrowComesAfterTheWorkOfOneInsideOfIt) {
    array x = ours(1);
    nested_borrows both({.writes = {x}}, {.writes = {x}});
    EXPECT_FALSE(both.after.done());
    both.held.open();
    both.after.synchronize();
    EXPECT_TRUE(both.inner.record().done());
}

WEIR_CONFORMANCE(X6, ControlBorrowsThatShareNothingOrOnlyReadDoNotWaitForEachOther) {
    array x = ours(1);
    array y = ours(2);
    nested_borrows apart({.writes = {x}}, {.writes = {y}});
    apart.after.synchronize();
    nested_borrows readers({.reads = {x}}, {.reads = {x}});
    readers.after.synchronize();
    apart.held.open();
    readers.held.open();
}

}  // namespace
}  // namespace weir
