// Which call reports which failure (rule K4): the table of docs/when-something-fails.md, and the reports that several callers get.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/devices.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::here;

constexpr std::int64_t count = 16;

completion write_ones(const on& where, array& to) {
    return parallel_for(
        where, count, [](std::size_t i, std::span<double> x) { x[i] = 1; }, out(to.view<double>()));
}
completion duplicate(const on& where, const array& from, array& to) {
    return parallel_for(
        where, count, [](std::size_t i, std::span<const double> x, std::span<double> y) { y[i] = x[i]; },
        in(from.view<double>()), out(to.view<double>()));
}

/// A stream with an operation that fails, an independent one behind it, and one that reads its result. All are
/// enqueued before the first one runs.
struct program {
    program() {
        testing::gate held;
        held.hold(s);
        before = s.record();
        failed_line = __LINE__ + 2;
        failed = parallel_for(
            on(s).label("divide"), count, [](std::size_t, std::span<double>) { throw std::runtime_error("no number"); },
            out(x.view<double>()));
        independent = write_ones(s, y);
        dependent = duplicate(s, x, z);
        after_it = write_ones(on(other).after(failed), w);
        other.wait(event(failed));
        behind_the_wait = write_ones(other, v);
        tail = s.record();
        again = event(independent);
        again.record(s);
        held.open();
    }
    program(const program&) = delete;
    program& operator=(const program&) = delete;
    ~program() {
        // So that this failure is not reported to a later program.
        for (const stream& one : {s, other}) {
            try {
                one.synchronize();
            } catch (const operation_error&) {  // NOLINT(bugprone-empty-catch): the calls under test have looked at it
            }
        }
    }

    /// Waits without a report.
    void run_to_its_end() const {
        while (!s.done() || !other.done()) {
            std::this_thread::yield();
        }
    }

    stream s{here()};
    stream other{here()};
    array x = zeros(count, dtype::float64, s);
    array y = zeros(count, dtype::float64, s);
    array z = zeros(count, dtype::float64, s);
    array v = zeros(count, dtype::float64, other);
    array w = zeros(count, dtype::float64, other);
    unsigned failed_line = 0;
    completion failed;
    completion independent;
    completion dependent;
    completion after_it;
    completion behind_the_wait;
    event before;
    event tail;
    event again;
};

/// Whether the call raises the program's failure; nothing else may be raised.
bool raises(const std::function<void(program&)>& call, program& on) {
    try {
        call(on);
        return false;
    } catch (const operation_error& told) {
        EXPECT_EQ(told.label(), "divide");
        EXPECT_EQ(told.where().line, on.failed_line);
        return true;
    }
}

enum class told { never, once, each_time };

struct row {
    const char* call;
    told expected;
    std::function<void(program&)> make;
};

const std::vector<row>& table() {
    static const std::vector<row> rows = {
        // The operation itself, and its dependents.
        {"event(failed).synchronize()", told::each_time, [](program& p) { event(p.failed).synchronize(); }},
        {"failed.synchronize()", told::each_time, [](program& p) { p.failed.synchronize(); }},
        {"event(dependent).wait()", told::each_time, [](program& p) { event(p.dependent).wait(); }},
        {"dependent.synchronize()", told::each_time, [](program& p) { p.dependent.synchronize(); }},
        {"event(after_it).wait()", told::each_time, [](program& p) { event(p.after_it).wait(); }},
        {"x.read()", told::each_time, [](program& p) { static_cast<void>(p.x.read<double>()); }},
        {"z.read()", told::each_time, [](program& p) { static_cast<void>(p.z.read<double>()); }},
        {"copy(x).synchronize()", told::each_time, [](program& p) { copy(p.s, p.y, p.x).synchronize(); }},
        // Independent work.
        {"event(independent).wait()", told::never, [](program& p) { event(p.independent).wait(); }},
        {"independent.synchronize()", told::never, [](program& p) { p.independent.synchronize(); }},
        {"event(behind_the_wait).wait()", told::never, [](program& p) { event(p.behind_the_wait).wait(); }},
        {"before.wait()", told::never, [](program& p) { p.before.wait(); }},
        {"y.read()", told::never, [](program& p) { EXPECT_EQ(p.y.read<double>()[0], 1); }},
        {"v.read()", told::never, [](program& p) { EXPECT_EQ(p.v.read<double>()[0], 1); }},
        {"fill(x).synchronize()", told::never, [](program& p) { fill(p.s, p.x, 3).synchronize(); }},
        {"copy(y).synchronize()", told::never, [](program& p) { copy(p.s, p.v, p.y).synchronize(); }},
        // Streams and devices.
        {"tail.wait()", told::once, [](program& p) { p.tail.wait(); }},
        {"again.wait()", told::once, [](program& p) { p.again.wait(); }},
        {"s.synchronize()", told::once, [](program& p) { p.s.synchronize(); }},
        {"device.synchronize()", told::once, [](program& p) { p.s.device().synchronize(); }},
        // Calls that never report.
        {"failed.done()", told::never,
         [](program& p) {
             while (!p.failed.done()) {
             }
         }},
        {"tail.done()", told::never,
         [](program& p) {
             while (!p.tail.done()) {
             }
         }},
        {"s.done()", told::never,
         [](program& p) {
             while (!p.s.done()) {
             }
         }},
        {"other.wait(event(failed))", told::never, [](program& p) { p.other.wait(event(p.failed)); }},
        {"keep_alive(failed)", told::never, [](program& p) { keep_alive(p.failed, std::make_shared<int>(1)); }},
        {"duplicate(x)", told::never, [](program& p) { duplicate(p.s, p.x, p.z); }},
    };
    return rows;
}

WEIR_CONFORMANCE(K4Reports, EachCallTellsOfTheFailuresThatTheTableSays) {
    for (const bool is_over : {false, true}) {
        for (const row& one : table()) {
            SCOPED_TRACE(std::string(one.call) + (is_over ? ", behind the whole program" : ", as early as can be"));
            program p;
            if (is_over) {
                p.run_to_its_end();
            }
            EXPECT_EQ(raises(one.make, p), one.expected != told::never) << "the first time";
            EXPECT_EQ(raises(one.make, p), one.expected == told::each_time) << "the second time";
            if (one.expected == told::never) {
                EXPECT_THROW(p.s.synchronize(), operation_error) << "the call has swallowed the failure";
            } else if (is_over && one.expected == told::once) {
                EXPECT_NO_THROW(p.s.synchronize()) << "told twice";
            }
        }
    }
}

WEIR_CONFORMANCE(K4Reports, AStreamDoesNotTellAgainOfWhatTheOperationHasTold) {
    program p;
    p.run_to_its_end();
    EXPECT_THROW(event(p.failed).wait(), operation_error);
    EXPECT_NO_THROW(p.tail.wait());
    EXPECT_NO_THROW(p.s.synchronize());
}

WEIR_CONFORMANCE(K4Reports, AStreamThatWaitedForAnotherTellsOfItsOwnOperationsAlone) {
    const stream s{here()};
    const stream other{here()};
    host_task(on(s).label("divide"), [] { throw std::runtime_error("no number"); });
    other.wait(s);
    const event tail = other.record();
    EXPECT_NO_THROW(tail.wait());
    EXPECT_NO_THROW(other.synchronize());
    EXPECT_THROW(s.synchronize(), operation_error);
}

WEIR_CONFORMANCE(K4Reports, EachStreamTellsOnceOfItsOwnOperationsThatFailedForOneReason) {
    program p;
    const event other_tail = p.other.record();
    EXPECT_THROW(other_tail.wait(), operation_error) << "one of the other stream's operations did not run";
    EXPECT_NO_THROW(other_tail.wait());
    EXPECT_NO_THROW(p.other.synchronize());
    EXPECT_THROW(p.s.synchronize(), operation_error);
    EXPECT_NO_THROW(p.s.synchronize());
}

WEIR_CONFORMANCE(K4Reports, AnOperationTellsAlsoAfterItsStreamHasTold) {
    program p;
    EXPECT_THROW(p.tail.wait(), operation_error);
    EXPECT_THROW(event(p.failed).wait(), operation_error);
    EXPECT_THROW(event(p.dependent).wait(), operation_error);
    EXPECT_NO_THROW(event(p.independent).wait());
}

WEIR_CONFORMANCE(K4Reports, EveryThreadThatWaitsForTheOperationIsToldAndNoneThatWaitsForAnother) {
    program p;
    std::atomic<int> of_failed{0};
    std::atomic<int> of_independent{0};
    const auto wait = [](const event& what, std::atomic<int>& told) {
        try {
            what.wait();
        } catch (const operation_error&) {
            ++told;
        }
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] { wait(p.failed, of_failed); });
        threads.emplace_back([&] { wait(p.independent, of_independent); });
    }
    for (std::thread& one : threads) {
        one.join();
    }
    EXPECT_EQ(of_failed, 4);
    EXPECT_EQ(of_independent, 0);
}

}  // namespace
}  // namespace weir
