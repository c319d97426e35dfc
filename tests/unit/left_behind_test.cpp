// Streams that were made, used and dropped leave nothing behind in the lists and registries of the process (rule S4), with and without
// an observer. Counts the bytes of all allocations that were not given back.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "observe/observers.hpp"
#include "runtime/devices/device_state.hpp"
#include "runtime/lifetime/reaper.hpp"
#include "runtime/streams/stream_registry.hpp"
#include "runtime/streams/stream_state.hpp"
#include "support/fake_cuda.hpp"
#include "support/scarce_memory.hpp"
#include "support/time_limit.hpp"
#include "unit/cuda_support.hpp"
#include "weir/detail/current_stream.hpp"
#include "weir/weir.hpp"

namespace weir::test {
namespace {

constexpr int many = 10000;
/// Less than a byte for each stream.
constexpr long slack = 4096;
/// For growth_of_each.
constexpr int fewer = 5000;
/// The smallest object on the heap for each of these.
constexpr long one_for_each = 24L * fewer;

/// Waits until the process has at most `wanted` bytes, for at most five seconds: threads of Weir's may not be idle yet.
long bytes_left(long wanted) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (live_bytes() > wanted && std::chrono::steady_clock::now() < end) {
        std::this_thread::yield();
    }
    return live_bytes();
}

/// Calls `act` once with `first` and once with `count`. Returns how many bytes more there are after the second call. The first call makes
/// what is made once, or is kept for reuse, as events are.
long growth(int first, int count, const std::function<void(int)>& act) {
    act(first);
    const long before = live_bytes();
    act(count);
    return bytes_left(before + slack) - before;
}

/// A stream that the device orders with the legacy default stream.
stream blocking() { return stream(cuda(), {.name = "b", .blocking = true}); }

/// Calls `work` on `fewer` streams one after the other, each dropped before the next is made. Returns how many bytes more there are.
///
/// A dropped stream is destroyed some time later, by another thread. What is kept for reuse grows with the number of streams that exist at
/// once, so no more than 64 do, whenever that thread runs.
long growth_of_each(const std::function<void(const stream&)>& work) {
    constexpr fake_thing streams = fake_thing::streams_with_destroyed;
    const std::size_t first = fake_cuda::live(streams);
    const auto call = [&](int count) {
        for (int i = 0; i < count; ++i) {
            if (i % 64 == 0) {
                EXPECT_TRUE(streams_get_down_to(first, streams));
            }
            work(blocking());
        }
        EXPECT_TRUE(streams_get_down_to(first, streams));
        runtime::reaper::wait_until_empty();
    };
    call(500);  // what is made once, or is kept for reuse
    const long before = live_bytes();
    call(fewer);
    return live_bytes() - before;
}

void work_on_streams(const device& on, int count) {
    for (int i = 0; i < count; ++i) {
        const stream s(on);
        array x = full({4}, 1.0, dtype::float64, s);
        s.synchronize();
    }
    on.synchronize();
}

class LeftBehind : public ::testing::TestWithParam<const char*> {
protected:
    [[nodiscard]] static device on() { return device::from_name(GetParam()); }
};

TEST_P(LeftBehind, S4StreamsThatWereDroppedLeaveNothing) {
    EXPECT_LT(growth(500, many, [](int count) { work_on_streams(on(), count); }), slack);
}

TEST_P(LeftBehind, V1StreamsThatWereCheckedLeaveNothingAfterTheCheck) {
    EXPECT_LT(growth(500, many,
                     [](int count) {
                         const check_scope check;
                         for (int i = 0; i < count; ++i) {
                             const stream s(on());
                             parallel_for(s, 1, [](auto) {}).synchronize();
                         }
                         EXPECT_EQ(check.report().size(), 0U);
                     }),
              slack);
}

TEST_P(LeftBehind, V2StreamsThatWereTracedLeaveNothingAfterTheTrace) {
    EXPECT_LT(growth(500, many,
                     [](int count) {
                         const trace_scope trace;
                         for (int i = 0; i < count; ++i) {
                             const stream s(on());
                             parallel_for(s, 1, [](auto) {}).synchronize();
                         }
                     }),
              slack);
}

/// How many streams there are whose names begin like that.
std::size_t streams_named(std::string_view start) {
    std::size_t count = 0;
    runtime::stream_registry::each([&](const runtime::stream_state& one) {
        count += std::string_view(one.info().name).starts_with(start) ? 1U : 0U;
    });
    return count;
}

TEST_P(LeftBehind, S4AStreamThatIsGoneLeavesNoSideStreamBehind) {
    const time_limit limit(10, "the end of a side stream");
    {
        const stream owner(on(), {.name = "owner"});
        {
            const parallel several(3, owner);
            for (std::size_t i = 0; i < several.size(); ++i) {
                parallel_for(several[i], 1, [](auto) {});
            }
        }
        owner.synchronize();
        EXPECT_EQ(streams_named("owner / "), 3U) << "they are kept for the next use by the same owner";
    }
    while (streams_named("owner") != 0) {  // the queues let go of their streams once their work is complete
        std::this_thread::yield();
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, LeftBehind, ::testing::Values("cpu", "sim:0"),
                         [](const auto& one) { return std::string(one.param).substr(0, 3); });

// As the Python package does: what the thread holds at its end was made before the thread's first use of Weir, so it goes last.
TEST_P(LeftBehind, S4ThreadsThatEndWithACurrentStreamLeaveNothing) {
    const stream s(on());
    EXPECT_LT(growth(50, 1000,
                     [&](int count) {
                         for (int i = 0; i < count; ++i) {
                             std::thread([&] {
                                 thread_local std::optional<detail::resumed_use> held;
                                 held.emplace(s);
                                 EXPECT_EQ(current_stream(on()), s);
                             }).join();
                         }
                     }),
              slack);
}

/// An observer that keeps nothing.
class silent_observer final : public observe::observer {
public:
    silent_observer() { observe::observers::add(*this); }
    ~silent_observer() override { observe::observers::remove(*this); }
    silent_observer(const silent_observer&) = delete;
    silent_observer& operator=(const silent_observer&) = delete;
};

TEST_P(LeftBehind, AnObserverThatKeepsNothingCostsNothingForEachStream) {
    const silent_observer one;
    EXPECT_LT(growth(500, many,
                     [](int count) {
                         for (int i = 0; i < count; ++i) {
                             const stream s(on());
                             parallel_for(s, 1, [](auto) {}).synchronize();
                         }
                     }),
              slack);
}

class LeftBehindCuda : public ::testing::Test {
protected:
    void SetUp() override {
        WEIR_NEEDS_FAKE();
        static_cast<void>(step_kernel());
    }
    /// The legacy default stream, which the device orders with each blocking stream.
    [[nodiscard]] static stream legacy() { return stream::adopt({reinterpret_cast<void*>(1)}, cuda()); }
};

TEST_F(LeftBehindCuda, S6StreamsThatOthersCameAfterLeaveNothing) {
    const stream first = legacy();
    array x = make(first, 1);
    EXPECT_LT(growth_of_each([&](const stream& s) {
                  fake_gate held(handle_of(s));
                  step_in_place(s, x);
                  step_in_place(first, x);
                  held.open();
                  cuda().synchronize();
              }),
              one_for_each);
}

TEST_F(LeftBehindCuda, S6TheSameWhereAnObserverListens) {
    const stream first = legacy();
    array x = make(first, 1);
    const silent_observer one;
    EXPECT_LT(growth_of_each([&](const stream& s) {
                  step_in_place(s, x);
                  step_in_place(first, x);
                  cuda().synchronize();
              }),
              one_for_each);
}

TEST_F(LeftBehindCuda, S5AStreamThatCannotBeAdoptedLeavesNothing) {
    const gpu::device_context& in = cuda_context();
    const gpu::in_context here(in);
    EXPECT_LT(growth(500, many,
                     [&](int count) {
                         for (int i = 0; i < count; ++i) {
                             gpu::stream_handle raw = nullptr;
                             in.expect(in.api().stream_create(&raw, gpu::stream_non_blocking, 0), "cuStreamCreate");
                             fake_cuda::fail_own("cuStreamGetFlags", 1);
                             EXPECT_THROW(static_cast<void>(stream::adopt({raw}, cuda())), error);
                             in.api().stream_destroy(raw);
                         }
                     }),
              slack);
}

/// A driver's stream, and whether a thread that adopts it has returned.
class adopted_by_another_thread {
public:
    adopted_by_another_thread() {
        in_.expect(in_.api().stream_create(&raw, gpu::stream_non_blocking, 0), "cuStreamCreateWithPriority");
        thread_ = std::thread([this] {
            fake_cuda::stop("cuStreamGetFlags");
            made.emplace(stream::adopt({raw}, cuda()));
        });
        while (!fake_cuda::is_stopped()) {
            std::this_thread::yield();
        }
    }
    ~adopted_by_another_thread() {
        made.reset();
        in_.api().stream_destroy(raw);
    }
    adopted_by_another_thread(const adopted_by_another_thread&) = delete;
    adopted_by_another_thread& operator=(const adopted_by_another_thread&) = delete;
    void go_on() {
        fake_cuda::go_on();
        thread_.join();
    }
    gpu::stream_handle raw = nullptr;
    std::optional<stream> made;

private:
    const gpu::device_context& in_ = cuda_context();
    const gpu::in_context here_{in_};
    std::thread thread_;
};

using S5CudaAdoption = LeftBehindCuda;

TEST_F(S5CudaAdoption, AThreadThatTheDriverHoldsUpHoldsUpNoOtherOne) {
    const time_limit limit(20, "the adoption of another stream");
    gpu::stream_handle other = nullptr;
    {
        const gpu::in_context here(cuda_context());
        ASSERT_EQ(cuda_context().api().stream_create(&other, gpu::stream_non_blocking, 0), gpu::success);
    }
    adopted_by_another_thread first;
    EXPECT_TRUE(stream::adopt({other}, cuda()));
    first.go_on();
    cuda_context().api().stream_destroy(other);
}

TEST_F(S5CudaAdoption, TwoThreadsThatAdoptAStreamAtTheSameTimeGetTheSameOne) {
    const time_limit limit(20, "the adoption of the same stream");
    adopted_by_another_thread first;
    const stream second = stream::adopt({first.raw}, cuda());
    first.go_on();
    EXPECT_EQ(*first.made, second);
    EXPECT_EQ(&first.made->state(detail::key), &second.state(detail::key));
}

TEST_P(LeftBehind, V1AWaitForTheDeviceCoversStreamsThatAreGone) {
    for (const bool waits : {false, true}) {
        const check_scope check;
        const ordering_scope manual(ordering_mode::manual);
        const stream second(on());
        array x = full({4}, 1.0, dtype::float64, second);
        second.synchronize();
        {
            const stream first(on());
            const completion written = access(
                first, [](auto...) {}, inout(x));
            // Idle by chance, which check does not know: the program has not asked.
            while (backend::timeline_table::instance().completed(written.timeline(detail::key)) <
                   written.epoch(detail::key)) {
                on().state(detail::key).driver().look_at_all();
                std::this_thread::yield();
            }
        }
        if (waits) {
            on().synchronize();
        }
        access(
            second, [](auto...) {}, inout(x));
        second.synchronize();
        EXPECT_EQ(check.report().size(), waits ? 0U : 1U) << (waits ? "" : "control");
    }
}

}  // namespace
}  // namespace weir::test
