// The context breaks while thread A is inside a call of the driver for a CUDA stream. Thread B finds that out in one of several
// ways; then A goes on. Each lost operation is reported once, all epochs complete, and the stream's owners are released (rule K4).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

#include "backend/cuda/streams/driver_stream.hpp"
#include "backend/cuda/streams/submission_queues.hpp"
#include "backend/timeline.hpp"
#include "observe/observers.hpp"
#include "runtime/streams/stream_registry.hpp"
#include "unit/cuda_two_threads.hpp"

namespace weir::test::two_threads {
namespace {

constexpr int trap = 719;

/// How often each operation was reported as failed.
class failures_told final : public observe::observer {
public:
    failures_told() { observe::observers::add(*this); }
    ~failures_told() override { observe::observers::remove(*this); }
    failures_told(const failures_told&) = delete;
    failures_told& operator=(const failures_told&) = delete;
    void failed(frontiers::point which) noexcept override {
        const std::lock_guard lock(mutex_);
        ++times_[{which.timeline, which.at}];
    }
    [[nodiscard]] int times(const completion& one) const {
        const std::lock_guard lock(mutex_);
        const auto found = times_.find({one.timeline(detail::key), one.epoch(detail::key)});
        return found == times_.end() ? 0 : found->second;
    }
    [[nodiscard]] int most() const {
        const std::lock_guard lock(mutex_);
        int most = 0;
        for (const auto& [which, times] : times_) {
            most = std::max(most, times);
        }
        return most;
    }

private:
    mutable std::mutex mutex_;
    std::map<std::pair<frontiers::timeline_id, frontiers::epoch>, int> times_;
};

std::size_t streams_registered() {
    std::size_t count = 0;
    runtime::stream_registry::each([&](const runtime::stream_state&) { ++count; });
    return count;
}

/// For calls that may or may not throw in a broken context.
template <class Call>
void try_to(Call&& call) {
    try {
        call();
    } catch (const error&) {
        // Their operations report the failure.
    }
}

/// The call in which A stops, and what A has enqueued, if anything.
struct stand {
    const char* name;
    const char* call;
    void (*prepare)(world&);
    completion (*act)(world&, const stream& s);
    bool is_done_by_an_owner =
        true;  ///< else A, which does not own the stream, asks for an operation that was in it before
};

const std::array stands{
    stand{"ALaunch", "cuLaunchKernelEx", [](world&) {},
          [](world& with, const stream& s) { return append(s, with.x, 1); }},
    stand{"TheWaitBeforeALaunch", "cuStreamWaitEvent", [](world& with) { append(*with.other, with.z, 1); },
          [](world& with, const stream& s) { return append_from(s, with.x, with.z); }},
    stand{"ARecordForAnotherStream", "cuEventRecord", [](world&) {},
          [](world& with, const stream& /*s*/) { return take(*with.waits, with.y, with.x, 3); }},
    stand{"AQuestionForTheStream", "cuStreamQuery", [](world&) {},
          [](world&, const stream& s) {
              static_cast<void>(s.done());
              return completion();
          }},
    stand{"AQuestionForAnEvent", "cuEventQuery", [](world& with) { take(*with.waits, with.y, with.x, 3); },
          [](world&, const stream& s) {
              static_cast<void>(s.done());
              return completion();
          }},
    stand{"HandingOut", "cuEventRecord", [](world&) {},
          [](world&, const stream& s) {
              static_cast<void>(s.handle());
              return completion();
          }},
    stand{"ALaunchInASharedStream", "cuLaunchKernelEx", [](world& with) { static_cast<void>(with.s->handle()); },
          [](world& with, const stream& s) { return append(s, with.x, 1); }},
    // A has found out first, and is about to report what was lost. Only B keeps the stream.
    stand{"TheTextOfTheError", "cuGetErrorString", [](world&) {}, [](world&, const stream&) { return completion(); },
          false},
};

struct deed {
    const char* name;
    void (*act)(world&);
};

const std::array deeds{
    deed{"Asks", [](world& with) { static_cast<void>(with.s->done()); }},
    deed{"Synchronizes", [](world& with) { with.s->synchronize(); }},
    deed{"Launches", [](world& with) { append(*with.s, with.x, 2); }},
    deed{"HasAnotherStreamRead", [](world& with) { take(*with.other, with.u, with.x, 5); }},
    deed{"HandsOut", [](world& with) { static_cast<void>(with.s->handle()); }},
    deed{"AsksAndDrops",
         [](world& with) {
             static_cast<void>(with.s->done());
             with.s.reset();
         }},
};

/// In a process of its own: a broken context stays broken. Returns what is wrong; nothing if all is right.
std::string meet(const stand& where, const deed& what) {
    std::string wrong;
    const auto expect = [&](bool holds, const char* sentence) { wrong += holds ? "" : std::string(sentence) + "; "; };
    static_cast<void>(digit_kernels::instance());
    cuda().synchronize();
    const std::size_t streams = streams_registered();
    {
        const failures_told told;
        completion before;
        completion of_a;
        std::optional<world> with(std::in_place);
        const frontiers::timeline_id line = with->s->state(detail::key).timeline();
        frontiers::epoch last = 0;
        const fake_gate held;
        before = append(*with->s, with->x, 4);
        where.prepare(*with);
        {
            beside first([&, s = where.is_done_by_an_owner ? with->s : std::nullopt]() mutable {
                if (!s) {
                    fake_cuda::stop_any(where.call);  // the watcher may stop there instead, if it polls at that moment
                    fake_cuda::break_contexts(trap);
                    static_cast<void>(before.done());
                    return;
                }
                fake_cuda::stop(where.call);
                try_to([&] { of_a = where.act(*with, *s); });
                last = s->state(detail::key).tail().at.at;
                s.reset();
            });
            while (!where.is_done_by_an_owner && !fake_cuda::is_stopped()) {
                std::this_thread::yield();  // A or the watcher reaches the call
            }
            if (!first.comes_to(fake_cuda::is_stopped)) {
                return std::string("A does not call ") + where.call;
            }
            fake_cuda::break_contexts(trap);
            beside second([&] { try_to([&] { what.act(*with); }); });
            static_cast<void>(second.waits());
            fake_cuda::go_on();
        }
        try_to([&] { cuda().synchronize(); });
        expect(before.done(), "what was in the stream is not over");
        expect(of_a.epoch(detail::key) == 0 || of_a.done(), "what A enqueued is not over");
        expect(told.times(before) == 1, "what was in the stream is not told of once");
        expect(of_a.epoch(detail::key) == 0 || told.times(of_a) == 1, "what A enqueued is not told of once");
        expect(told.most() <= 1, "an operation is told of twice");
        expect(backend::timeline_table::instance().completed(line) >= last, "an epoch is not complete");
        with.reset();
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (streams_registered() > streams && std::chrono::steady_clock::now() < end) {
        std::this_thread::yield();
    }
    expect(streams_registered() == streams, "a stream is not let go of");
    return wrong;
}

class CudaTwoThreadsBroken : public ::testing::TestWithParam<std::tuple<std::size_t, std::size_t>> {};

TEST_P(CudaTwoThreadsBroken, K4EachLostOperationIsToldOfOnceAndNothingIsLeft) {
    WEIR_NEEDS_FAKE();
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const stand& where = stands[std::get<0>(GetParam())];
    const deed& what = deeds[std::get<1>(GetParam())];
    EXPECT_EXIT(
        {
            const time_limit limit(sanitized ? 120 : 30, std::string("A stands in ") + where.name);
            const std::string wrong = meet(where, what);
            std::fprintf(stderr, "%s\n", wrong.empty() ? "all is right" : wrong.c_str());
            std::exit(wrong.empty() ? 0 : 1);
        },
        ::testing::ExitedWithCode(0), "all is right");
}

INSTANTIATE_TEST_SUITE_P(AStandsIn, CudaTwoThreadsBroken,
                         ::testing::Combine(::testing::Range<std::size_t>(0, stands.size()),
                                            ::testing::Range<std::size_t>(0, deeds.size())),
                         [](const auto& one) {
                             return std::string(stands[std::get<0>(one.param)].name) + "B" +
                                    deeds[std::get<1>(one.param)].name;
                         });

/// Returns what is wrong; nothing if all is right.
std::string break_at_a_launch() {
    const failures_told told;
    const stream s(cuda());
    array x = make(s, 0);
    cuda().synchronize();
    const fake_gate held(handle_of(s));
    const completion before = append(s, x, 1);
    fake_cuda::break_at("cuLaunchKernelEx", 1, trap);
    const completion refused = append(on(s).label("the refused one"), x, 2);
    try_to([&] { s.synchronize(); });
    std::string why;
    try {
        refused.synchronize();
    } catch (const error& one) {
        why = one.what();
    }
    std::string wrong;
    wrong += told.times(before) == 1 && told.times(refused) == 1 ? "" : "not each operation is told of once; ";
    wrong += why.find("cuLaunchKernelEx failed") != std::string::npos ? "" : "the reason is another one: " + why;
    return wrong;
}

TEST(CudaTwoThreadsBrokenAlone, K4AnOperationThatTheDriverRefusedIsNotLostOnceMore) {
    WEIR_NEEDS_FAKE();
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            const time_limit limit(sanitized ? 120 : 30, "a process whose context breaks at a launch");
            const std::string wrong = break_at_a_launch();
            std::fprintf(stderr, "%s\n", wrong.empty() ? "all is right" : wrong.c_str());
            std::exit(wrong.empty() ? 0 : 1);
        },
        ::testing::ExitedWithCode(0), "all is right");
}

/// An owner of a driver stream that stays in `lost` until another thread has polled the driver stream, too.
class owner_that_is_busy_with_a_loss final : public backend::queue_events {
public:
    void failed(backend::epoch, const runtime::site&, std::exception_ptr) noexcept override {}
    void lost(backend::epoch first, backend::epoch last, std::exception_ptr) noexcept override {
        ++told;
        operations += static_cast<int>(last - first + 1);
        ++inside;
        meanwhile();
        --inside;
    }
    void executed(backend::epoch, std::chrono::steady_clock::time_point,
                  std::chrono::steady_clock::time_point) noexcept override {}
    [[nodiscard]] bool comes_after(backend::point, backend::point) noexcept override { return false; }
    void busy() noexcept override { ++owners; }
    void idle() noexcept override { was_gone_inside = (--owners == 0 && inside != 0) || was_gone_inside; }

    std::function<void()> meanwhile = [] {};
    std::atomic<int> told{0};
    std::atomic<int> operations{0};
    std::atomic<int> owners{0};
    std::atomic<int> inside{0};  ///< threads
    std::atomic<bool> was_gone_inside{false};

private:
    bool examine(backend::epoch) noexcept override { return true; }
    void heal(backend::epoch) noexcept override {}
};

/// One thread reports what was lost, and another one polls at the same time.
std::string look_while_another_tells() {
    auto& in = const_cast<gpu::device_context&>(cuda_context());
    backend::timeline_table& table = backend::timeline_table::instance();
    const backend::timeline_id id = table.acquire(&cuda().state(detail::key).driver());
    owner_that_is_busy_with_a_loss owner;
    const detail::owner<gpu::driver_stream> driver_stream(new gpu::driver_stream(
        in, table.at(id), owner, gpu::submission_queues::lock_of(id), 0, gpu::stream_non_blocking));
    const backend::epoch first = driver_stream->line().completed() + 1;
    for (backend::epoch at = first; at != first + 3; ++at) {
        driver_stream->enqueued(at);
        driver_stream->submitted(at);
    }
    owner.meanwhile = [&] {
        if (owner.told == 1) {
            std::thread([&] { driver_stream->look(); }).join();
        }
    };
    fake_cuda::break_contexts(trap);
    in.note_error(trap);
    driver_stream->look();
    std::string wrong;
    wrong += owner.operations == 3 ? "" : "so many operations are told of: " + std::to_string(owner.operations) + "; ";
    wrong += owner.was_gone_inside ? "the owner is let go of while it is told; " : "";
    wrong += driver_stream->line().completed() == first + 2 ? "" : "not all is complete; ";
    wrong += owner.owners == 0 ? "" : "the owner is kept; ";
    return wrong;
}

TEST(CudaTwoThreadsBrokenStream, K4OneThreadTellsWhatIsLostAndTheOwnerStaysMeanwhile) {
    WEIR_NEEDS_FAKE();
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            const time_limit limit(sanitized ? 120 : 30, "a look at a lane");
            const std::string wrong = look_while_another_tells();
            std::fprintf(stderr, "%s\n", wrong.empty() ? "all is right" : wrong.c_str());
            std::_Exit(wrong.empty() ? 0 : 1);
        },
        ::testing::ExitedWithCode(0), "all is right");
}

}  // namespace
}  // namespace weir::test::two_threads
