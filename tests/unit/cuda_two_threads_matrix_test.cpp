// Two threads in one CUDA stream at once. Thread A is inside a call of the driver, thread B does each of the other things that a
// program can do with the stream; then A goes on. In every combination each operation runs once and in order, and nothing is left.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <thread>
#include <tuple>

#include "backend/timeline.hpp"
#include "unit/cuda_two_threads.hpp"

namespace weir::test::two_threads {
namespace {

/// The call in which A is.
struct stand {
    const char* name;
    const char* call;  ///< of the driver
    void (*prepare)(world&);
    void (*act)(world&, const stream& s);
    int before;    ///< the digit that `prepare` appends to x; 0: none
    int appended;  ///< the digit that `act` appends to x
    int taken;     ///< the digit that y has in the end; 0: none
    bool
        expects_mark;  ///< what Weir put into `s` before its handle is out must not be treated as later than what others put behind it
};

void has_work_on_s(world& with) {
    with.held.emplace(handle_of(*with.s));
    append(*with.s, with.x, 4);
    ++with.launches;
}
void has_work_on_other(world& with) {
    with.held.emplace(handle_of(*with.other));
    append(*with.other, with.z, 1);
    ++with.launches;
}
void appends(world& with, const stream& s) {
    append(s, with.x, 1);
    ++with.launches;
}
void appends_behind_other(world& with, const stream& s) {
    append_from(s, with.x, with.z);
    ++with.launches;
}
void takes(world& with, const stream& /*s*/) {
    take(*with.waits, with.y, with.x, 3);
    ++with.launches;
}

const std::array stands{
    stand{"ALaunch", "cuLaunchKernelEx", [](world&) {}, appends, 0, 1, 0, true},
    // The stream's next operation waits for another stream, and A records the event there.
    stand{"TheRecordBeforeALaunch", "cuEventRecord", has_work_on_other, appends_behind_other, 0, 1, 0, true},
    stand{"TheWaitBeforeALaunch", "cuStreamWaitEvent", has_work_on_other, appends_behind_other, 0, 1, 0, true},
    // Another stream waits for this one, and A records the event here.
    stand{"ARecordForAnotherStream", "cuEventRecord", has_work_on_s, takes, 4, 0, 3, true},
    stand{"TheWaitOfAnotherStream", "cuStreamWaitEvent", has_work_on_s, takes, 4, 0, 3, true},
    stand{"TheLaunchOfAnotherStream", "cuLaunchKernelEx", has_work_on_s, takes, 4, 0, 3, true},
    stand{"AQuestionForTheStream", "cuStreamQuery", has_work_on_s,
          [](world&, const stream& s) { static_cast<void>(s.done()); }, 4, 0, 0, true},
    stand{"AQuestionForAnEvent", "cuEventQuery",
          [](world& with) {
              has_work_on_s(with);
              takes(with, *with.s);
          },
          [](world&, const stream& s) { static_cast<void>(s.done()); }, 4, 0, 3, true},
    stand{"HandingOut", "cuEventRecord", has_work_on_s, [](world& with, const stream& s) { with.hand_out(s); }, 4, 0, 0,
          true},
    stand{"ALaunchInASharedStream", "cuLaunchKernelEx",
          [](world& with) {
              static_cast<void>(with.s->handle());
              with.is_shared = true;
          },
          appends, 0, 1, 0, false},
    stand{"TheMarkInASharedStream", "cuEventRecord",
          [](world& with) {
              static_cast<void>(with.s->handle());
              with.is_shared = true;
          },
          appends, 0, 1, 0, false},
};

/// What B does.
struct deed {
    const char* name;
    void (*act)(world&);
    int appended;  ///< the digit that it appends to x
    bool reads;    ///< it sets `u` to ten times x plus 5
    /// What the call does, by the stands in their order.
    std::array<meets, std::tuple_size_v<decltype(stands)>> goes;
};

constexpr meets no = meets::nothing;
constexpr meets a = meets::a;
constexpr meets or_not = meets::either;

const std::array deeds{
    deed{"Launches",
         [](world& with) {
             append(*with.s, with.x, 2);
             ++with.launches;
         },
         2,
         false,
         {no, no, no, no, no, no, no, no, or_not, a, a}},
    deed{"HasAnotherStreamRead",
         [](world& with) {
             take(*with.other, with.u, with.x, 5);
             ++with.launches;
         },
         0,
         true,
         {no, no, no, no, no, no, no, no, or_not, no, no}},
    deed{"HasAnotherStreamWait",
         [](world& with) {
             with.other->wait(*with.s);
             take(*with.other, with.u, with.x, 5);
             ++with.launches;
         },
         0,
         true,
         {no, no, no, no, no, no, no, no, or_not, a, a}},
    deed{"HasTheStreamWait",
         [](world& with) {
             with.s->wait(*with.waits);
             append(*with.s, with.x, 2);
             ++with.launches;
         },
         2,
         false,
         {no, no, no, no, no, no, no, no, or_not, a, a}},
    deed{"Synchronizes",
         [](world& with) { with.s->synchronize(); },
         0,
         false,
         {a, a, a, no, no, no, no, no, or_not, a, a}},
    deed{"Asks",
         [](world& with) { static_cast<void>(with.s->done()); },
         0,
         false,
         {no, no, no, no, no, no, no, no, or_not, no, no}},
    deed{"RecordsAnEvent",
         [](world& with) { EXPECT_NE(with.s->record().handle(), nullptr); },
         0,
         false,
         {a, a, a, no, no, no, no, no, or_not, a, a}},
    deed{"HandsOut",
         [](world& with) { with.hand_out(*with.s); },
         0,
         false,
         {a, a, a, a, or_not, or_not, a, no, or_not, or_not, or_not}},
    deed{"Closes",
         [](world& with) {
             with.s->close();
             EXPECT_THROW(append(*with.s, with.x, 9), state_error);
         },
         0,
         false,
         {no, no, no, no, no, no, no, no, or_not, no, no}},
    deed{"Drops", [](world& with) { with.s.reset(); }, 0, false, {no, no, no, no, no, no, no, no, no, no, no}},
    deed{"SynchronizesTheDevice",
         [](world& /*with*/) { cuda().synchronize(); },
         0,
         false,
         {a, a, a, a, a, a, no, no, or_not, a, a}},
};

/// Whether the stream completes everything in it in five seconds.
bool gets_empty(const stream& one) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (fake_cuda::pending(handle_of(one)) != 0 && std::chrono::steady_clock::now() < end) {
        std::this_thread::yield();
    }
    return fake_cuda::pending(handle_of(one)) == 0;
}

int with_digit(int number, int digit) { return digit == 0 ? number : 10 * number + digit; }

class CudaTwoThreads : public ::testing::TestWithParam<std::tuple<std::size_t, std::size_t>> {
protected:
    [[nodiscard]] const stand& where() const { return stands[std::get<0>(GetParam())]; }
    [[nodiscard]] const deed& what() const { return deeds[std::get<1>(GetParam())]; }

    void meet(world& with) const;
    void expect_nothing_behind_foreign_work(world& with) const;
    void expect_values(const world& with) const;
};

/// Runs the two threads against each other. Both have returned afterwards.
void CudaTwoThreads::meet(world& with) const {
    beside first([&, s = std::optional<stream>(*with.s)]() mutable {
        fake_cuda::stop(where().call);
        where().act(with, *s);
        s.reset();
    });
    ASSERT_TRUE(first.comes_to(fake_cuda::is_stopped)) << "A does not call " << where().call;
    with.held.reset();
    beside second([&] { what().act(with); });
    const meets expected = what().goes[std::get<0>(GetParam())];
    const bool waits = expected == meets::nothing ? !second.returns_within(std::chrono::seconds(5)) : second.waits();
    EXPECT_TRUE(expected == meets::either || waits == (expected == meets::a))
        << (waits ? "B waits for A" : "B does not wait for A");
    fake_cuda::go_on();
    first.join();
    if (std::string(what().name) == "HandsOut") {
        second.join();  // it had to wait for A, and only now has put its own work in
    }
    if (with.has_foreign && where().expects_mark) {
        expect_nothing_behind_foreign_work(with);
    }
    with.foreign.raise();
    second.join();
}

/// The program's own work is in the stream, behind Weir's: an operation that waits for Weir's does not wait for the program's.
void CudaTwoThreads::expect_nothing_behind_foreign_work(world& with) const {
    if (what().appended != 0) {
        return;  // its event may stand behind the program's own work
    }
    take(*with.waits, with.u, with.x, 5);
    ++with.launches;
    for (const std::optional<stream>* const one : {&with.waits, &with.other}) {
        EXPECT_TRUE(gets_empty(**one))
            << "waits for what the program put in behind the operation: an event was recorded too late";
    }
}

void CudaTwoThreads::expect_values(const world& with) const {
    const int of_a = with_digit(where().before, where().appended);
    EXPECT_EQ(values_of<double>(with.x), all_of(with_digit(of_a, what().appended)));
    EXPECT_EQ(values_of<double>(with.y), all_of(where().taken == 0 ? 0 : with_digit(where().before, where().taken)));
    const bool is_read = what().reads || (with.has_foreign && where().expects_mark && what().appended == 0);
    EXPECT_EQ(values_of<double>(with.u), all_of(is_read ? 10 * of_a + 5 : 0));
}

TEST_P(CudaTwoThreads, EachOperationRunsOnceAndInOrderAndNothingIsLeft) {
    WEIR_NEEDS_FAKE();
    const time_limit limit(sanitized ? 240 : 60, std::string("A stands in ") + where().name + " and B " + what().name);
    const balance before;
    unsigned long long launches = 0;
    {
        world with;
        fake_cuda::forget_calls();
        where().prepare(with);
        const frontiers::timeline_id line = with.s->state(detail::key).timeline();
        meet(with);
        if (HasFatalFailure()) {
            return;
        }
        cuda().synchronize();
        if (with.s) {
            EXPECT_TRUE(with.s->done());
            EXPECT_EQ(backend::timeline_table::instance().completed(line), with.s->state(detail::key).tail().at.at);
        }
        expect_values(with);
        launches = with.launches;
    }
    before.expect_even(launches, 3);
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<std::size_t, std::size_t>>& one) {
    return std::string(stands[std::get<0>(one.param)].name) + "B" + deeds[std::get<1>(one.param)].name;
}

INSTANTIATE_TEST_SUITE_P(AStandsIn, CudaTwoThreads,
                         ::testing::Combine(::testing::Range<std::size_t>(0, stands.size()),
                                            ::testing::Range<std::size_t>(0, deeds.size())),
                         name_of);

}  // namespace
}  // namespace weir::test::two_threads
