// Thread A, as the last owner of a stream, is inside the driver's call that destroys it. That call may wait for the device: so A
// holds no lock then, and thread B can do anything with all other streams (rules S1, S4).
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <thread>

#include "backend/cuda/streams/driver_stream.hpp"
#include "backend/cuda/streams/submission_queues.hpp"
#include "unit/cuda_two_threads.hpp"

namespace weir::test::two_threads {
namespace {

constexpr const char* destroys = "cuStreamDestroy_v2";

/// What B does; each digit that it appends is in `z`, of the stream `other`.
struct deed {
    const char* name;
    void (*act)(world&);
    int appended;
    unsigned long long launches;
    unsigned long long streams;  ///< that it makes
};

const std::array deeds{
    deed{"UsesAnotherStream",
         [](world& with) {
             append(*with.other, with.z, 2);
             with.other->synchronize();
         },
         2, 1, 0},
    deed{"UsesTheStreamThatWaited",
         [](world& with) {
             static_cast<void>(with.waits->done());
             append(*with.waits, with.u, 2);
         },
         0, 1, 0},
    deed{"HasOneStreamWaitForAnother",
         [](world& with) {
             append(*with.other, with.z, 2);
             with.waits->wait(*with.other);
         },
         2, 1, 0},
    deed{"MakesAStreamAndDropsIt",
         [](world& with) {
             const stream fresh(cuda());
             append(fresh, with.z, 2);
             fresh.synchronize();
         },
         2, 1, 1},
    deed{"HandsOut",
         [](world& with) {
             static_cast<void>(with.other->handle());
             append(*with.other, with.z, 2);
         },
         2, 1, 0},
    deed{"SynchronizesTheDevice", [](world& /*with*/) { cuda().synchronize(); }, 0, 0, 0},
};

bool is_watched(const stream& one) {
    const gpu::submission_queues::place* const place =
        gpu::submission_queues::find_place(one.state(detail::key).timeline());
    return place != nullptr && place->on->watched;
}

/// Waits until the watcher has stopped watching the stream, which is idle, and no longer owns it: it has left another one since.
void wait_until_left(const stream& one, const stream& another, const array& of_another) {
    while (is_watched(one)) {
        std::this_thread::yield();
    }
    append(another, of_another, 7);
    another.synchronize();
    while (is_watched(another)) {
        std::this_thread::yield();
    }
}

class CudaTwoThreadsAtTheEnd : public ::testing::TestWithParam<std::size_t> {
protected:
    [[nodiscard]] const deed& what() const { return deeds[GetParam()]; }

    /// B acts while A is in the destruction of a stream, then A goes on. `is_behind_a`: B waits for what A is enqueuing.
    void meet(beside& first, world& with, bool is_behind_a = false) const {
        beside second([&] { what().act(with); });
        if (is_behind_a) {
            EXPECT_TRUE(second.waits()) << "B waits for the device, and A's operation is not there yet";
        } else {
            EXPECT_TRUE(second.returns_within(std::chrono::seconds(5))) << "a lock is held while a stream is destroyed";
        }
        fake_cuda::go_on();
        first.join();
        second.join();
    }
};

TEST_P(CudaTwoThreadsAtTheEnd, S4DroppingTheLastOwnerHoldsNoLock) {
    WEIR_NEEDS_FAKE();
    const time_limit limit(sanitized ? 240 : 60, std::string("A drops a stream and B ") + what().name);
    const balance before;
    {
        world with;
        fake_cuda::forget_calls();
        std::optional<stream> never_used(cuda());
        beside first([&] {
            fake_cuda::stop(destroys);
            never_used.reset();  // so that the watcher has no share in it
        });
        ASSERT_TRUE(first.comes_to(fake_cuda::is_stopped)) << "A does not destroy the stream";
        meet(first, with);
        cuda().synchronize();
        EXPECT_EQ(values_of<double>(with.z), all_of(what().appended));
    }
    before.expect_even(what().launches, 4 + what().streams);
}

/// Appends to y the digits of two other arrays.
completion append_both(const on& where, array& y, const array& p, const array& q) {
    static const auto* const both = new kernel(kernel::from_source(R"(
extern "C" __global__ void append_both(double* y, const double* p, const double* q) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < 64; i += gridDim.x * blockDim.x) {
        y[i] = y[i] * 10 + p[i] + q[i];
    }
}
)",
                                                                   "append_both"));
    return launch(where, *both, {2, 32}, inout<double>(y), in<double>(p), in<double>(q));
}

// `waits` has waited for the stream `s`, and keeps what it needs for the next wait of that kind. A later operation of `waits` must wait
// for two streams, the second of which has not got its work yet: what was prepared for the first is of no use.
TEST_P(CudaTwoThreadsAtTheEnd, S1AStreamThatAnAbandonedWaitKeptIsDestroyedUnderNoLock) {
    WEIR_NEEDS_FAKE();
    const time_limit limit(sanitized ? 240 : 60, std::string("A abandons a wait and B ") + what().name);
    const balance before;
    {
        world with;
        const stream first_of_two(cuda());
        const stream second_of_two(cuda());
        array p = make(first_of_two, 0);
        array q = make(second_of_two, 0);
        cuda().synchronize();
        fake_cuda::forget_calls();
        {
            fake_gate held(handle_of(*with.s));
            append(*with.s, with.x, 1);
            take(*with.waits, with.y, with.x, 2);  // y is 12
        }
        cuda().synchronize();
        const std::size_t streams = fake_cuda::live(fake_thing::streams);
        wait_until_left(*with.s, *with.other, with.u);
        with.s.reset();
        EXPECT_EQ(fake_cuda::live(fake_thing::streams), streams) << "the other stream keeps it";

        const stream host(cpu());
        testing::gate late;
        late.hold(host);
        second_of_two.wait(host);
        append(second_of_two, q, 2);  // is not in the driver's stream before the gate is open
        std::optional<fake_gate> held(handle_of(first_of_two));
        append(first_of_two, p, 1);
        beside first([&] {
            fake_cuda::stop(destroys);
            append_both(*with.waits, with.y, p, q);  // y is 123
        });
        const bool stands = first.comes_to(fake_cuda::is_stopped);
        held.reset();
        late.open();
        if (stands) {
            meet(first, with, what().act == deeds.back().act);
        } else {
            first.join();
            what().act(with);  // a thread of Weir's destroyed it
        }
        cuda().synchronize();
        EXPECT_TRUE(streams_get_down_to(streams - 1)) << "the stream is kept although no wait is to come for it";
        EXPECT_EQ(values_of<double>(with.y), all_of(123));
    }
    before.expect_even(6 + what().launches, 5 + what().streams);
}

INSTANTIATE_TEST_SUITE_P(WhileAStreamIsDestroyedB, CudaTwoThreadsAtTheEnd,
                         ::testing::Range<std::size_t>(0, deeds.size()),
                         [](const auto& one) { return std::string(deeds[one.param].name); });

}  // namespace
}  // namespace weir::test::two_threads
