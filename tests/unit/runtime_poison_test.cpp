// Rule K4 in detail: which bytes are poisoned, and how long the slow path must check for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "backend/backend.hpp"
#include "runtime/failures/poison.hpp"
#include "runtime/streams/stream_state.hpp"
#include "support/tracked.hpp"
#include "weir/error.hpp"
#include "weir/testing.hpp"

namespace weir {
namespace {

using order::footprint;
using order::level;
using runtime::failure;
using runtime::failure_ptr;
using runtime::poison;
using test::enqueue;
using test::tracked;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

bool has_pending_failures() { return backend::queue_events::has_pending_failures(); }

runtime::access_request overwrites(tracked& x, const footprint& where) {
    return {&x, where, order::access_mode::write, true};
}
runtime::access_request overwrites(tracked& x) { return overwrites(x, {0, x.size()}); }

/// A random footprint within a matrix of `rows` rows and `columns` columns of bytes.
footprint tile(std::mt19937& random, std::int64_t rows, std::int64_t columns) {
    const auto pick = [&](std::int64_t first, std::int64_t last) {
        return std::uniform_int_distribution<std::int64_t>(first, last)(random);
    };
    const std::int64_t top = pick(0, rows - 1);
    const std::int64_t left = pick(0, columns - 1);
    const std::int64_t step = pick(1, 3);
    const std::array levels{level{columns * step, 1 + pick(0, rows - 1 - top) / step}};
    return order::strided(static_cast<std::uint64_t>(top * columns + left), levels,
                          static_cast<std::uint64_t>(pick(1, columns - left)));
}

TEST(K4Ranges, RandomTilesAgreeWithAListOfBytes) {
    constexpr std::int64_t rows = 12;
    constexpr std::int64_t columns = 10;
    std::mt19937 random(5);
    for (int program = 0; program < 300; ++program) {
        tracked x(rows * columns);
        std::vector<failure_ptr> bytes(rows * columns);
        for (int step = 0; step < 12; ++step) {
            const footprint where = tile(random, rows, columns);
            const bool adds = random() % 2 == 0;
            const failure_ptr why = failure::make({1, static_cast<frontiers::epoch>(step)}, {}, nullptr);
            for (std::size_t i = 0; i < bytes.size(); ++i) {
                if (order::overlap(where, {i, i + 1})) {
                    bytes[i] = adds ? why : nullptr;
                }
            }
            if (adds) {
                poison::add(x.lifetime(), x.id(), where, why);
            } else {
                poison::heal(x.id(), where);
            }
            for (std::size_t i = 0; i < bytes.size(); ++i) {
                ASSERT_EQ(poison::find(x.id(), {i, i + 1}), bytes[i]) << "byte " << i;
            }
            const footprint asked = tile(random, rows, columns);
            bool poisoned = false;
            for (std::size_t i = 0; i < bytes.size(); ++i) {
                poisoned = poisoned || (bytes[i] && order::overlap(asked, {i, i + 1}));
            }
            ASSERT_EQ(poison::find(x.id(), asked) != nullptr, poisoned);
        }
        poison::heal(x.id(), {0, x.size()});
    }
    EXPECT_FALSE(has_pending_failures());
}

TEST(K4Ranges, OneResourceIsNotAnother) {
    tracked x;
    tracked y;
    poison::add(x.lifetime(), x.id(), {0, 8}, failure::make({1, 1}, {}, nullptr));
    EXPECT_FALSE(poison::find(y.id(), {0, 8}));
    poison::heal(y.id(), {0, 8});
    EXPECT_TRUE(poison::find(x.id(), {7, 9}));
    poison::heal(x.id(), {0, 8});
}

/// Whether no failures are pending any more after some waits of the host's, which check for that now and then.
bool trouble_ends(const stream& s) {
    for (int i = 0; i < 64 && has_pending_failures(); ++i) {
        s.synchronize();
    }
    return !has_pending_failures();
}

class K4Columns : public ::testing::Test {
protected:
    static constexpr std::uint64_t width = 16;
    static footprint column(std::uint64_t which) {
        const std::array levels{level{width, 8}};
        return order::strided(which, levels, 1);
    }
    completion fail(const footprint& where) {
        return enqueue(s, {overwrites(x, where)}, [] { throw std::runtime_error("overflow"); });
    }

    stream s;
    tracked x{width * 8};
    int ran = 0;
};

TEST_F(K4Columns, TheFailureOfOneColumnDoesNotConcernTheNext) {
    fail(column(3));
    enqueue(s, {{&x, column(4), order::access_mode::read}}, [&] { ++ran; });
    enqueue(s, {{&x, column(3), order::access_mode::read}}, [&] { ran = 100; });
    EXPECT_THROW(s.synchronize(), operation_error);
    EXPECT_EQ(ran, 1);
    enqueue(s, {overwrites(x, column(3))}, [] {});
    enqueue(s, {x.reads()}, [&] { ++ran; }).synchronize();
    EXPECT_EQ(ran, 2);
    EXPECT_TRUE(trouble_ends(s));
}

TEST_F(K4Columns, AMatrixIsHealedColumnByColumn) {
    fail({0, x.size()});
    for (std::uint64_t i = 0; i < width; ++i) {
        enqueue(s, {{&x, column(width - 1), order::access_mode::read}}, [&] { ++ran; });
        enqueue(s, {overwrites(x, column(i))}, [] {});
    }
    EXPECT_THROW(s.synchronize(), operation_error);
    EXPECT_EQ(ran, 0);
    enqueue(s, {x.reads()}, [&] { ++ran; }).synchronize();
    EXPECT_EQ(ran, 1);
}

TEST_F(K4Columns, AnOverwriteThatFailsHealsNothing) {
    fail({0, x.size()});
    fail(column(0));
    EXPECT_THROW(s.synchronize(), operation_error);
    enqueue(s, {{&x, column(0), order::access_mode::read}}, [&] { ++ran; });
    EXPECT_THROW(s.synchronize(), operation_error);
    EXPECT_EQ(ran, 0);
}

TEST_F(K4Columns, WhatReadsAndOverwritesTheSameBytesDependsOnThem) {
    fail(column(0));
    enqueue(s, {overwrites(x), {&x, column(0), order::access_mode::read}}, [&] { ++ran; });
    EXPECT_THROW(s.synchronize(), operation_error);
    EXPECT_EQ(ran, 0);
}

TEST(K4PendingFailure, IsOverOnceTheResourceIsGoneAndNothingPendingUsesIt) {
    testing::gate held;
    const stream s;
    const stream other;
    {
        tracked x;
        enqueue(s, {overwrites(x)}, [] { throw std::runtime_error("overflow"); });
        EXPECT_THROW(s.synchronize(), operation_error);
        held.hold(other);
        enqueue(other, {x.reads()}, [] { FAIL() << "ran on what was not valid"; });
    }
    s.synchronize();
    EXPECT_TRUE(has_pending_failures()) << "the other stream's operation has not run yet";
    held.open();
    EXPECT_THROW(other.synchronize(), operation_error);
    EXPECT_TRUE(trouble_ends(s));
}

TEST(K4PendingFailure, IsOverOnceNothingPendingDependsOnTheOperation) {
    testing::gate held;
    const stream s;
    const stream other;
    const completion failed = enqueue(s, {}, [] { throw std::runtime_error("overflow"); });
    EXPECT_THROW(s.synchronize(), operation_error);
    s.synchronize();
    EXPECT_FALSE(has_pending_failures());
    held.hold(other);
    bool ran = false;
    const completion late = enqueue(other, {}, [&] { ran = true; }, {failed});
    EXPECT_TRUE(has_pending_failures());
    for (int i = 0; i < 5; ++i) {
        s.synchronize();
        EXPECT_TRUE(has_pending_failures());
    }
    held.open();
    EXPECT_THROW(late.synchronize(), operation_error);
    EXPECT_FALSE(ran);
    EXPECT_TRUE(trouble_ends(s));
}

TEST(K4PendingFailure, FailuresAreKeptForThousandsOfOperationsAndNotForEver) {
    const stream s;
    std::vector<completion> failed;
    const auto payload = std::make_shared<int>(0);
    struct carries : std::runtime_error {
        explicit carries(std::shared_ptr<int> what) : std::runtime_error("overflow"), kept(std::move(what)) {}
        std::shared_ptr<int> kept;
    };
    for (int i = 0; i < 20000; ++i) {
        failed.push_back(enqueue(s, {}, [payload] { throw carries(payload); }));
        if (i % 1000 == 999) {
            EXPECT_THROW(s.synchronize(), operation_error);
        }
    }
    for (std::size_t i = failed.size() - 4000; i < failed.size(); ++i) {
        ASSERT_THROW(failed[i].synchronize(), operation_error) << i;
    }
    EXPECT_LT(payload.use_count(), 12000);
}

/// A process in which an operation fails, another one because of it, and that exits. `asks` queries the stream before the exit.
/// `drops`: the stream is dropped before the exit.
[[noreturn]] void end_with_failures(bool drops, void (*asks)(const stream&)) {
    static auto* const s = new stream;
    static auto* const x = new tracked;
    enqueue(*s, {x->writes()}, [] { throw std::runtime_error("disk on fire"); });
    enqueue(*s, {x->reads()}, [] {});
    while (!s->state(detail::key).has_one_owner()) {
        std::this_thread::yield();  // its queue is a second owner while it has work
    }
    asks(*s);
    if (drops) {
        delete s;
    }
    std::exit(0);
}
void ask_nothing(const stream&) {}
void ask(const stream& s) {
    try {
        s.synchronize();
    } catch (const operation_error&) {
        return;
    }
    std::_Exit(1);
}

TEST(K4UntoldDeathTest, AFailureThatNoCallAsksAboutIsNotedInTheDebugLog) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const ::testing::ExitedWithCode well(0);
    EXPECT_EXIT(end_with_failures(true, ask_nothing), well, Not(HasSubstr("no call asked"))) << "unless it is wanted";
    ::setenv("WEIR_LOG", "debug", 1);
    EXPECT_EXIT(end_with_failures(true, ask_nothing), well,
                AllOf(HasSubstr("weir: no call asked until the stream was gone: the operation \"test\""),
                      HasSubstr("disk on fire"), HasSubstr(", and 1 more"), Not(HasSubstr("until the exit"))));
    EXPECT_EXIT(end_with_failures(false, ask_nothing), well,
                AllOf(HasSubstr("weir: no call asked until the exit of the process: the operation \"test\""),
                      HasSubstr("disk on fire"), HasSubstr(", and 1 more")));
    for (const bool drops : {false, true}) {
        EXPECT_EXIT(end_with_failures(drops, ask), well, Not(HasSubstr("no call asked"))) << "it was told";
    }
    ::unsetenv("WEIR_LOG");
}

}  // namespace
}  // namespace weir
