// Rule K4: what depends on a failed operation does not run, and its results are refused; everything else goes on.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/devices.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::here;
using testing::gate;

constexpr std::int64_t count = 64;

/// Calls `wait` and expects the failure of the operation that is labelled "source" and enqueued at `line`. Returns the
/// message.
template <class Wait>
std::string expect_refused(unsigned line, Wait&& wait) {
    try {
        wait();
    } catch (const operation_error& told) {
        EXPECT_EQ(told.label(), "source");
        EXPECT_EQ(told.where().line, line) << told.what();
        EXPECT_NE(std::string(told.what()).find("out of range"), std::string::npos) << told.what();
        return told.what();
    }
    ADD_FAILURE() << "a result that is not valid was handed out";
    return "";
}

class K4Poison {
protected:
    K4Poison() { held.hold(s); }
    ~K4Poison() {
        held.open();
        here().synchronize();  // every test has queried its failure
    }

    /// The operation that fails, from here on.
    on source(const stream& on_stream, source_location where = source_location::current()) {
        line = where.line;
        return on(on_stream, where).label("source");
    }
    /// Should write x, and fails.
    completion fail(array x, const stream& on_stream) {
        return parallel_for(source(on_stream), 1, failing, out(x.view<double>()));
    }
    completion fail(array x) { return fail(std::move(x), s); }
    static void failing(std::size_t, std::span<double>) { throw std::out_of_range("out of range"); }

    /// to = from + 1, elementwise; counts how often it ran.
    completion add_one(const stream& on_stream, array to, const array& from) {
        return access(
            on(on_stream).label("dependent"),
            [this](native_stream, std::span<const double> source, std::span<double> target) {
                ++ran;
                for (std::size_t i = 0; i < target.size(); ++i) {
                    target[i] = source[i] + 1;
                }
            },
            in(from.view<double>()), out(to.view<double>()));
    }
    static array make(const stream& on_stream, double value = 0) {
        return full(count, value, dtype::float64, on_stream);
    }
    void expect_refused(const array& x) {
        weir::expect_refused(line, [&] { static_cast<void>(x.read<double>()); });
    }
    /// Synchronises until no more failures are reported.
    static void tell_all() {
        for (;;) {
            try {
                return here().synchronize();
            } catch (const operation_error&) {
            }
        }
    }

    stream s{here()};
    stream other{here()};
    gate held;
    unsigned line = 0;
    std::atomic<int> ran{0};
};

WEIR_CONFORMANCE_F(K4Poison, AChainBehindAFailureDoesNotRunAndEachOfItsResultsNamesTheFirst) {
    array x = make(s);
    array y = make(s);
    array z = make(s);
    const auto owned = std::make_shared<int>(0);
    fail(x);
    add_one(s, y, x);
    access(
        s, [this, owned](auto...) { ++ran; }, in(y.view<double>()), out(z.view<double>()));
    add_one(s, make(s), make(s));
    held.open();
    expect_refused(x);
    expect_refused(y);
    expect_refused(z);
    tell_all();
    EXPECT_EQ(ran, 1) << "only what depends on nothing that failed runs, also on the same stream";
    EXPECT_EQ(owned.use_count(), 1) << "what did not run is let go of all the same";
    const std::string message = weir::expect_refused(line, [&] { static_cast<void>(y.read<double>()); });
    EXPECT_NE(message.find("\"dependent\" enqueued at"), std::string::npos) << message;
    EXPECT_NE(message.find("did not run"), std::string::npos) << message;
}

WEIR_CONFORMANCE_F(K4Poison, ControlWithoutAFailureTheSameChainRuns) {
    array x = make(s);
    array y = make(s);
    add_one(s, y, x);
    add_one(s, x, y);
    held.open();
    EXPECT_EQ(x.read<double>()[0], 2);
    EXPECT_EQ(ran, 2);
}

WEIR_CONFORMANCE_F(K4Poison, ADiamondOverFourStreamsIsPoisonedThroughOneOfItsSides) {
    const stream left{here()};
    const stream right{here()};
    const stream join{here()};
    array a = make(s);
    array b = make(s);
    array from_left = make(left);
    array from_right = make(right);
    array result = make(join);
    fail(a);
    add_one(s, b, make(s));
    add_one(left, from_left, a);
    add_one(right, from_right, b);
    access(
        join, [this](auto...) { ran = 100; }, in(from_left.view<double>()), in(from_right.view<double>()),
        inout(result.view<double>()));
    held.open();
    EXPECT_EQ(from_right.read<double>()[0], 2);
    expect_refused(from_left);
    expect_refused(result);
    EXPECT_EQ(ran, 2);
    tell_all();
}

WEIR_CONFORMANCE_F(K4Poison, OnlyTheBytesThatWereToBeWrittenArePoisoned) {
    array x = make(s);
    array low = x.slice(0, count / 2);
    array high = x.slice(count / 2, count);
    array y = empty(count / 2, dtype::float64, s);
    fail(low);
    add_one(s, y, high);
    held.open();
    EXPECT_EQ(y.read<double>()[0], 1);
    EXPECT_EQ(high.read<double>()[0], 0);
    expect_refused(low);
    expect_refused(x);
    expect_refused(x.slice(count / 2 - 1, count));
    tell_all();
}

WEIR_CONFORMANCE_F(K4Poison, WritingAnewHealsPieceByPieceAndChangingInPlaceDoesNot) {
    array x = make(s);
    fail(x);
    parallel_for(
        s, 1, [this](auto...) { ++ran; }, inout(x.view<double>()));
    for (std::int64_t i = 0; i < count; i += 16) {
        fill(s, x.slice(i, i + 16), 7);
    }
    add_one(s, x.slice(0, 8), x.slice(8, 16));
    held.open();
    EXPECT_EQ(x.read<double>()[count - 1], 7);
    EXPECT_EQ(x.read<double>()[0], 8);
    EXPECT_EQ(ran, 1);
    tell_all();
}

WEIR_CONFORMANCE_F(K4Poison, AHostThatWritesHeals) {
    array x = make(s);
    array y = make(s);
    fail(x);
    held.open();
    expect_refused(x);
    x.write<double>()[0] = 3;
    add_one(s, y, x);
    EXPECT_EQ(y.read<double>()[0], 4);
    tell_all();
}

WEIR_CONFORMANCE_F(K4Poison, ACopyOfWhatIsPoisonedIsPoisoned) {
    array x = make(s);
    array y = make(other);
    fail(x);
    copy(other, y, x);
    held.open();
    expect_refused(y);
    tell_all();
}

WEIR_CONFORMANCE_F(K4Poison, TheOrderThatTheProgramMakesItselfCarriesItToo) {
    array x = make(s);
    array y = make(other);
    const ordering_scope manual(ordering_mode::manual);
    const event failed = fail(x);
    other.wait(failed);
    add_one(other, y, x);
    held.open();
    weir::expect_refused(line, [&] { other.synchronize(); });
    expect_refused(y);
    EXPECT_EQ(ran, 0);
    tell_all();
}

WEIR_CONFORMANCE_F(K4Poison, AfterCarriesItAndAWaitDoesNot) {
    array x = make(s);
    const event failed = fail(x);
    const completion waited = parallel_for((other.wait(failed), on(other)), 1, [this](auto) { ++ran; });
    const completion depends = parallel_for(on(other).after(failed), 1, [this](auto) { ran = 100; });
    const completion depends_on_that = parallel_for(on(s).after(event(depends)), 1, [this](auto) { ran = 100; });
    held.open();
    EXPECT_NO_THROW(waited.synchronize());
    weir::expect_refused(line, [&] { depends.synchronize(); });
    weir::expect_refused(line, [&] { depends_on_that.synchronize(); });
    // D7: the failed operation has been over for a long time.
    const completion late = parallel_for(on(other).after(failed), 1, [this](auto) { ran = 100; });
    weir::expect_refused(line, [&] { late.synchronize(); });
    EXPECT_EQ(ran, 1);
    tell_all();
}

WEIR_CONFORMANCE_F(K4Poison, D7AfterAnEventNeverRecordedIsNoDependency) {
    const event never;
    parallel_for(on(other).after(never), 1, [this](auto) { ++ran; }).synchronize();
    EXPECT_EQ(ran, 1);

    // Control: a recorded event is a dependency, and its stream is held.
    parallel_for(s, 1, [](auto) {});
    const completion late = parallel_for(on(other).after(s.record()), 1, [this](auto) { ++ran; });
    EXPECT_FALSE(late.done());
    EXPECT_EQ(ran, 1);
    held.open();
    late.synchronize();
    EXPECT_EQ(ran, 2);
}

WEIR_CONFORMANCE_F(K4Poison, WhoeverWaitsForTheOperationIsToldEachTimeAndForTheStreamOnce) {
    array x = make(s);
    array y = make(other);
    const completion failed = fail(x);
    const completion depends = add_one(other, y, x);
    const event of_operation = depends;
    const event of_stream = other.record();
    held.open();
    for (int i = 0; i < 2; ++i) {
        weir::expect_refused(line, [&] { failed.synchronize(); });
        weir::expect_refused(line, [&] { depends.synchronize(); });
        weir::expect_refused(line, [&] { of_operation.wait(); });
    }
    EXPECT_NO_THROW(of_stream.wait()) << "told already";
    EXPECT_NO_THROW(other.synchronize());
    add_one(other, y, x);
    weir::expect_refused(line, [&] { other.synchronize(); });
    EXPECT_NO_THROW(other.synchronize());
    EXPECT_NO_THROW(s.synchronize());
}

WEIR_CONFORMANCE_F(K4Poison, SynchronizingTheDeviceTellsOnceOfAllStreams) {
    array x = make(s);
    fail(x);
    add_one(other, make(other), x);
    held.open();
    weir::expect_refused(line, [&] { here().synchronize(); });
    EXPECT_NO_THROW(here().synchronize());
    EXPECT_NO_THROW(other.synchronize());
}

WEIR_CONFORMANCE_F(K4Poison, AnArrayThatWasDroppedStillCarriesItAndItsMemoryDoesNot) {
    array x = make(s);
    array y = make(s);
    const std::byte* const place = x.data();
    fail(x);
    add_one(s, y, x);
    x = {};
    array next = make(s, 5);
    ASSERT_EQ(next.data(), place) << "the memory was to be used again";
    held.open();
    EXPECT_EQ(next.read<double>()[0], 5);
    expect_refused(y);
    EXPECT_EQ(ran, 0);
    tell_all();
}

WEIR_CONFORMANCE_F(K4Poison, HostTasksFailAndDependAsOperationsDo) {
    array x = make(s);
    array y = make(other);
    host_task(
        source(s), [](auto) { throw std::out_of_range("out of range"); }, out(x.view<double>()));
    host_task(
        other, [this](auto...) { ++ran; }, in(x.view<double>()), out(y.view<double>()));
    held.open();
    expect_refused(y);
    EXPECT_EQ(ran, 0);
    tell_all();
}

WEIR_CONFORMANCE_F(K4Poison, ATransformOfWhatIsPoisonedIsPoisoned) {
    array x = full(count, 1, dtype::complex128, s);
    access(
        source(s), [](auto...) { throw std::out_of_range("out of range"); }, out(x));
    array y = fft::fft(other, x);
    held.open();
    weir::expect_refused(line, [&] { static_cast<void>(y.read<std::complex<double>>()); });
    tell_all();
}

WEIR_CONFORMANCE_F(K4Poison, WhatIsThrownNeedNotBeAnException) {
    array x = make(s);
    access(
        source(s), [](auto...) { throw 7; }, out(x));  // NOLINT: on purpose
    held.open();
    EXPECT_THROW(static_cast<void>(x.read<double>()), operation_error);
    tell_all();
}

WEIR_CONFORMANCE_F(K4Poison, ItIsToldHoweverMuchHasHappenedSince) {
    array x = make(s);
    array first = x.slice(0, 1);
    fail(first);
    held.open();
    weir::expect_refused(line, [&] { s.synchronize(); });
    // More accesses than a history keeps, all complete.
    for (int round = 0; round < 10; ++round) {
        for (std::int64_t i = 1; i < count; ++i) {
            array element = x.slice(i, i + 1);
            parallel_for(
                s, 1, [](auto, auto e) { e[0] += 1; }, inout(element.view<double>()));
        }
        s.synchronize();
    }
    EXPECT_EQ(x.slice(1, count).read<double>()[0], 10);
    expect_refused(first);
    expect_refused(x);
}

/// The failure is on the first device, the dependent work on the second.
class K4Devices : public ::testing::TestWithParam<std::pair<const char*, const char*>> {
protected:
    void SetUp() override {
        if (!why_not_.empty()) {
            GTEST_SKIP() << why_not_;
        }
    }

private:
    /// The CPU where there is no such device, and the test is skipped.
    device found(const char* name) { return test::find_device(name, why_not_).value_or(cpu()); }

    std::string why_not_;

protected:
    const device first_device = found(GetParam().first);
    const device second_device = found(GetParam().second);
};

TEST_P(K4Devices, WhatDependsOnAFailureOnAnotherDeviceDoesNotRun) {
    const stream first(first_device);
    const stream second(second_device);
    array x = full(count, 1, dtype::float64, first);
    array y = full(count, 2, dtype::float64, second);
    array z = full(count, 3, dtype::float64, second);
    const on failing = on(first).label("source");
    const unsigned line = failing.site(detail::key).where.line;
    access(
        failing, [](auto...) { throw std::out_of_range("out of range"); }, out(x.view<double>()));
    std::atomic<bool> ran{false};
    const event failed = first.record();
    copy(second, y, x);
    access(
        second, [&](auto...) { ran = true; }, inout(y.view<double>()));
    const completion after_it = parallel_for(on(second).after(failed), 1, [&](auto) { ran = true; });
    expect_refused(line, [&] { static_cast<void>(y.read<double>()); });
    expect_refused(line, [&] { after_it.synchronize(); });
    EXPECT_FALSE(ran);
    EXPECT_EQ(z.read<double>()[0], 3);
    fill(second, y, 4);
    EXPECT_EQ(y.read<double>()[0], 4);
}

/// The second device reads what the first one writes; a gate holds the first one if the device has queues. Returns what it saw.
int seen_by_the_second(const device& first_device, const device& second_device, bool is_after) {
    const stream first(first_device);
    const stream second(second_device);
    std::atomic<int> steps{0};
    gate back;
    if (first_device != cpu_inline()) {
        back.hold(first);
    }
    const completion done = parallel_for(first, 1, [&](auto) { steps = 1; });
    std::atomic<int> seen{-1};
    on where(second);
    if (is_after) {
        where.after(done);
    }
    std::thread opener;
    if (is_after) {
        // A device without queues keeps the caller until then.
        opener = std::thread([&] { back.open(); });
    }
    parallel_for(where, 1, [&](auto) { seen = steps.load(); }).synchronize();
    if (opener.joinable()) {
        opener.join();
    }
    back.open();
    first.synchronize();
    return seen;
}

TEST_P(K4Devices, D7AfterWorkOfAnotherDeviceOrdersAndGoesOnIfItDoesNotFail) {
    EXPECT_EQ(seen_by_the_second(first_device, second_device, true), 1);
    if (first_device != cpu_inline()) {  // if nothing can be held, nothing can come too early
        EXPECT_EQ(seen_by_the_second(first_device, second_device, false), 0) << "control";
    }
}

INSTANTIATE_TEST_SUITE_P(Pairs, K4Devices,
                         ::testing::Values(std::pair("cpu", "sim:5"), std::pair("sim:5", "cpu"),
                                           std::pair("sim:5", "sim:6"), std::pair("cpu:inline", "sim:5"),
                                           std::pair("sim:5", "cpu:inline"), std::pair("cpu", "cpu:inline"),
                                           std::pair("cpu", "cuda:0"), std::pair("cuda:0", "cpu"),
                                           std::pair("sim:5", "cuda:0"), std::pair("cuda:0", "sim:5"),
                                           std::pair("cuda:0", "cuda:1")));

WEIR_CONFORMANCE_F(K4Poison, EightThreadsFailAndGoOnBesideEachOther) {
    held.open();
    constexpr int threads = 8;
    constexpr int rounds = 200;
    std::vector<std::thread> all;
    std::atomic<int> wrong{0};
    const stream shared{here()};
    for (int t = 0; t < threads; ++t) {
        all.emplace_back([&, t] {
            const stream mine{here()};
            array x = make(mine);
            array y = make(shared);
            for (int i = 0; i < rounds; ++i) {
                const bool fails = (i * 7 + t) % 5 == 0;
                const double value = i * threads + t;
                parallel_for(
                    mine, x.size(),
                    [fails, value](auto e, auto to) {
                        if (fails && e == 3) {
                            throw std::out_of_range("out of range");
                        }
                        to[e] = value;
                    },
                    out(x.view<double>()));
                // A temporary, and a stream that all of them use.
                array between = empty(count, dtype::float64, shared);
                const completion last = [&] {
                    add_one(shared, between, x);
                    return add_one(mine, y, between);
                }();
                bool told = false;
                try {
                    wrong += y.read<double>()[5] == value + 2 ? 0 : 1;
                } catch (const operation_error&) {
                    told = true;
                }
                bool told_of_it = false;
                try {
                    last.synchronize();
                } catch (const operation_error&) {
                    told_of_it = true;
                }
                wrong += told == fails ? 0 : 1;
                wrong += told_of_it || !fails ? 0 : 1;
            }
            try {
                mine.synchronize();
            } catch (const operation_error&) {
            }
        });
    }
    for (std::thread& one : all) {
        one.join();
    }
    EXPECT_EQ(wrong, 0);
    tell_all();
}

}  // namespace
}  // namespace weir
