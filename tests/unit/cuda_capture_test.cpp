// While other libraries capture CUDA graphs: no call of Weir's ends a capture, and nothing of Weir's becomes part of one (rule G1).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "memory/device_memory.hpp"
#include "support/effort.hpp"
#include "support/messages.hpp"
#include "support/stream_capture.hpp"
#include "support/time_limit.hpp"
#include "unit/cuda_support.hpp"

namespace weir::test {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

struct program {
    const char* name;
    std::function<void()> run;
};

std::int64_t fresh_number() {
    static std::int64_t last = 1000;
    return ++last;
}

/// A kernel that no other test uses.
kernel fresh_kernel() {
    const std::string name = "adds_" + std::to_string(fresh_number());
    return kernel::from_source(
        "extern \"C\" __global__ void " + name + "(double* x, double more) { x[threadIdx.x] += more; }", name);
}

void use_and_trim(const device& where, const memory::resource_ptr& from) {
    {
        const memory::use scope(from);
        const stream s(where);
        array x = full(1 << 19, 2, dtype::float64, s);
        s.synchronize();
        EXPECT_THAT(values_of<double>(x), Each(2));
    }
    where.synchronize();
    memory::trim(where);
}

/// Makes a plan of a length that no other test uses. The real cuFFT ends captures then, in every mode: docs/cuda.md.
void transforms() {
    const stream s(cuda());
    array a = full(fresh_number(), 1, dtype::complex128, s);
    fft_plan plan(a);
    plan.plan(s);
    array result = plan.execute(s, fft_direction::forward);
    EXPECT_NEAR(values_of<std::complex<double>>(result).front().real(), static_cast<double>(a.size()), 1e-9);
}

std::vector<program> programs() {
    std::vector<program> all = {
        {"streams and events",
         [] {
             const stream s(cuda(), {.priority = -1});
             const stream b(cuda(), {.blocking = true});
             array x = make(s, 1);
             step_in_place(s, x);
             b.wait(s.record());
             step_in_place(b, x);
             EXPECT_FALSE(b.done() && !x.ready());
             EXPECT_THAT(values_of<double>(x), Each(111));
         }},
        {"times",
         [] {
             const stream s(cuda());
             array x = make(s, 1);
             const event start = s.record({.timing = true});
             step_in_place(s, x);
             const event end = s.record({.timing = true});
             end.wait();
             EXPECT_GE(start.elapsed_ms(end), 0);
         }},
        {"a trace",
         [] {
             const trace_scope trace;
             const stream s(cuda());
             array x = make(s, 1);
             step_in_place(s, x);
             s.synchronize();
         }},
        {"the pool grows and is trimmed", [] { use_and_trim(cuda(), {}); }},
        {"the driver's pool", [] { use_and_trim(cuda(), memory::driver_pool()); }},
        {"managed memory",
         [] {
             use_and_trim(cuda(), memory::managed());
             memory::shared_pool_of(cuda().state(detail::key)).source().await_given_back();
         }},
        {"pinned memory",
         [] {
             use_and_trim(cpu(), memory::pinned());
             memory::shared_pool_of(cpu().state(detail::key)).source().await_given_back();
         }},
        {"copies of the host's memory",
         [] {
             const stream s(cuda());
             const stream host(cpu());
             array there = full(1 << 20, 3, dtype::float64, host);
             array x = empty(1 << 20, dtype::float64, s);
             copy(s, x, there);
             array back = empty(1 << 20, dtype::float64, host);
             copy(s, back, x);
             EXPECT_THAT(values_of<double>(back), Each(3));
             array half = x[{slice{{}, {}, 2}}];
             EXPECT_THAT(values_of<double>(half), Each(3)) << "read by way of a kernel";
             array list = make_array(s, {4}, std::vector<double>{4, 4, 4, 4});
             EXPECT_THAT(values_of<double>(list), Each(4));
         }},
        {"kernels are loaded and unloaded",
         [] {
             const stream s(cuda());
             array x = make(s, 1);
             launch(s, fresh_kernel(), {1, static_cast<std::size_t>(elements)}, inout<double>(x), 1.0);
             s.synchronize();
             launch(s, fresh_kernel(), {1, static_cast<std::size_t>(elements)}, inout<double>(x), 1.0);
             EXPECT_THAT(values_of<double>(x), Each(3));
         }},
        {"a host task, which the watcher waits for",
         [] {
             const stream s(cuda());
             array x = make(s, 1);
             host_task(
                 s, [](auto...) {}, inout<double>(x));
             step_in_place(s, x);
             host_task(
                 s, [](auto...) {}, inout<double>(x));
             EXPECT_THAT(values_of<double>(x), Each(11));
         }},
        {"a stream that was handed out",
         [] {
             const stream s(cuda());
             array x = make(s, 1);
             const stream same = stream::adopt(native_stream{s.handle()}, cuda());
             step_in_place(same, x);
             EXPECT_FALSE(same.done() && !x.ready());
             EXPECT_THAT(values_of<double>(x), Each(11));
         }},
        {"what there is to know", [] { static_cast<void>(memory::stats(cuda())); }},
    };
    if (fake_cuda::in_use()) {
        all.push_back({"transforms", transforms});
    }
    return all;
}

void run(const program& one) {
    const time_limit limit(sanitized ? 120 : 10, one.name);
    EXPECT_NO_THROW(one.run());
    cuda().synchronize();
}

/// With the kernel that all these tests use.
class G1Cuda : public ::testing::Test {
protected:
    void SetUp() override {
        static_cast<void>(step_kernel());
        limit.emplace(sanitized ? 120 : 10, "a test of captures");
    }
    std::optional<time_limit> limit;
};

TEST_F(G1Cuda, NothingThatWeirDoesEndsACaptureOfTheSameThread) {
    limit.reset();  // each program has its own
    for (const capture_mode mode : {capture_mode::global, capture_mode::of_thread}) {
        for (const unsigned flags : {gpu::stream_non_blocking, gpu::stream_default}) {
            for (const program& one : programs()) {
                SCOPED_TRACE(one.name);
                stream_capture theirs(cuda_context(), mode, flags);
                run(one);
                EXPECT_TRUE(theirs.goes_on());
                EXPECT_TRUE(theirs.end());
            }
        }
    }
}

TEST_F(G1Cuda, NothingThatWeirDoesEndsACaptureOfAnotherThread) {
    limit.reset();  // each program has its own
    for (const program& one : programs()) {
        SCOPED_TRACE(one.name);
        EXPECT_TRUE(while_another_thread_captures(cuda_context(), capture_mode::global, gpu::stream_non_blocking,
                                                  [&](stream_capture&) { run(one); }));
    }
}

TEST_F(G1Cuda, MemoryThatIsNotMappedIsTakenAndGivenBackDuringOne) {
    WEIR_NEEDS_FAKE();  // which has a second device
    constexpr int virtual_memory_management = 102;
    fake_cuda::set_attribute(virtual_memory_management, 0);
    static_cast<void>(cuda(1));
    fake_cuda::set_attribute(virtual_memory_management, 1);
    fake_cuda::forget_calls();
    stream_capture theirs(cuda_context());
    EXPECT_NO_THROW(use_and_trim(cuda(1), {}));
    EXPECT_GE(fake_cuda::calls("cuMemAlloc_v2"), 1U);
    EXPECT_GE(fake_cuda::calls("cuMemFree_v2"), 1U);
    EXPECT_TRUE(theirs.end());
}

// --- streams that are captured themselves --------------------------------------------------------------------------

/// Every way to put something into the stream, or to ask for its progress, is refused, and has no effect.
void expect_refused(const stream_ref& captured, array& x, const char* why) {
    const stream other(cuda());
    const auto is_refused = [why](const char* what, const std::function<void()>& call) {
        EXPECT_THAT(message_of<state_error>(call), HasSubstr(why)) << what;
    };
    is_refused("launch", [&] { step_in_place(captured, x); });
    is_refused("fill", [&] { fill(captured, x, 7); });
    is_refused("host task", [&] {
        host_task(
            captured, [](auto...) {}, in<double>(x));
    });
    is_refused("access", [&] {
        access(
            captured, [](native_stream, auto) {}, inout<double>(x));
    });
    is_refused("record", [&] { static_cast<void>(captured.record()); });
    is_refused("record a time", [&] { static_cast<void>(captured.record({.timing = true})); });
    is_refused("wait of it", [&] { other.wait(captured); });
    is_refused("its wait", [&] { captured.wait(other); });
    is_refused("synchronize", [&] { captured.synchronize(); });
    is_refused("done", [&] { static_cast<void>(captured.done()); });
    is_refused("gate", [&] { testing::gate().hold(captured); });
    is_refused("allocate", [&] {
        const memory::use scope(memory::driver_pool());
        static_cast<void>(make(captured, 1));
    });
}

constexpr const char* is_captured = "is being captured into a CUDA graph";

TEST_F(G1Cuda, AStreamThatIsBeingCapturedIsNotAdopted) {
    for (const unsigned flags : {gpu::stream_non_blocking, gpu::stream_default}) {
        stream_capture theirs(cuda_context(), capture_mode::relaxed, flags);
        EXPECT_THAT(
            message_of<state_error>([&] { static_cast<void>(stream::adopt(native_stream{theirs.handle()}, cuda())); }),
            HasSubstr(is_captured));
        EXPECT_TRUE(theirs.goes_on());
        EXPECT_TRUE(theirs.end());
        // Afterwards the stream is like any other.
        const stream adopted = stream::adopt(native_stream{theirs.handle()}, cuda());
        EXPECT_THAT(values_of<double>(make(adopted, 1)), Each(1));
        adopted.synchronize();
    }
}

TEST_F(G1Cuda, NothingEntersAnAdoptedStreamWhileItIsCaptured) {
    for (const unsigned flags : {gpu::stream_non_blocking, gpu::stream_default}) {
        stream_capture once(cuda_context(), capture_mode::global, flags);
        once.end();
        const stream adopted = stream::adopt(native_stream{once.handle()}, cuda());
        array x = make(adopted, 1);
        adopted.synchronize();
        {
            stream_capture theirs(cuda_context(), once.handle());
            expect_refused(adopted, x, is_captured);
            EXPECT_TRUE(theirs.goes_on());
            EXPECT_TRUE(theirs.end());
        }
        step_in_place(adopted, x);
        EXPECT_THAT(values_of<double>(x), Each(11));
        adopted.synchronize();
    }
}

TEST_F(G1Cuda, NothingEntersAStreamThatWasHandedOutWhileItIsCaptured) {
    const stream own(cuda());
    array x = make(own, 1);
    own.synchronize();
    {
        stream_capture theirs(cuda_context(), own.handle());
        expect_refused(own, x, is_captured);
        EXPECT_TRUE(theirs.goes_on());
        EXPECT_TRUE(theirs.end());
    }
    step_in_place(own, x);
    EXPECT_THAT(values_of<double>(x), Each(11));
}

TEST_F(G1Cuda, WhatIsInAStreamIsWaitedForByOthersWhileItIsCaptured) {
    WEIR_NEEDS_FAKE();
    const stream own(cuda());
    const stream other(cuda());
    array x = make(own, 1);
    array y = make(other, 0);
    cuda().synchronize();
    void* const handle = own.handle();
    fake_gate held(handle);
    step_in_place(own, x);
    {
        stream_capture theirs(cuda_context(), handle);
        step(other, y, x);
        EXPECT_TRUE(theirs.goes_on());
        held.open();
        EXPECT_THAT(values_of<double>(y), Each(111));
        EXPECT_TRUE(theirs.end());
    }
}

/// The event could not be recorded when it was due, and is not recorded in the capture instead.
TEST_F(G1Cuda, NoEventIsMadeUpForInACapture) {
    WEIR_NEEDS_FAKE();
    stream_capture once(cuda_context());
    once.end();
    const stream adopted = stream::adopt(native_stream{once.handle()}, cuda());
    const stream other(cuda());
    array x = make(adopted, 1);
    array y = make(other, 0);
    cuda().synchronize();
    fake_cuda::fail("cuEventRecord", 1, 1, true);
    step_in_place(adopted, x);
    fake_cuda::fail_no_more();
    {
        stream_capture theirs(cuda_context(), once.handle());
        EXPECT_FALSE(x.ready());
        cuda().state(detail::key).driver().look_at_all();
        EXPECT_TRUE(theirs.goes_on());
        EXPECT_TRUE(theirs.end());
    }
    step(other, y, x);
    EXPECT_THAT(values_of<double>(y), Each(111));
    adopted.synchronize();
}

TEST_F(G1Cuda, TheLegacyStreamIsNotUsedWhileABlockingOneIsCaptured) {
    const stream legacy = stream::adopt(native_stream{nullptr}, cuda());
    array x = make(legacy, 1);
    legacy.synchronize();
    constexpr const char* why = "a stream that is ordered with it";
    {
        stream_capture theirs(cuda_context(), capture_mode::global, gpu::stream_default);
        EXPECT_THAT(message_of<state_error>([] { static_cast<void>(stream::adopt(native_stream{nullptr}, cuda())); }),
                    HasSubstr(why));
        expect_refused(legacy, x, why);
        EXPECT_TRUE(theirs.goes_on());
        EXPECT_TRUE(theirs.end());
    }
    step_in_place(legacy, x);
    EXPECT_THAT(values_of<double>(x), Each(11));
    legacy.synchronize();
}

}  // namespace
}  // namespace weir::test
