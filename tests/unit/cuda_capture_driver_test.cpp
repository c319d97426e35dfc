// What the driver refuses while a stream is captured, and what it allows. The fake driver answers as a real one does, on which this test
// runs as well.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "support/stream_capture.hpp"
#include "unit/cuda_support.hpp"

namespace weir::test {
namespace {

constexpr gpu::result refused = 900;
constexpr std::size_t bytes = 4096;

/// One object of each kind, and a stream that is being captured.
struct things {
    const gpu::context& in = cuda_context();
    const gpu::driver_api& api = in.api();
    gpu::in_context here{in};
    gpu::stream_handle stream = made_stream(gpu::stream_non_blocking);
    gpu::stream_handle captured = nullptr;
    gpu::event_handle event = made_event();
    gpu::event_handle other = made_event();
    gpu::device_pointer memory = allocated();
    gpu::device_pointer target = allocated();
    gpu::device_pointer ordered = 0;
    void* pinned = nullptr;
    gpu::pool_handle pool = nullptr;

    things() {
        in.expect(api.event_record(event, stream), "cuEventRecord");
        in.expect(api.memory_alloc_async(&ordered, bytes, stream), "cuMemAllocAsync");
        in.expect(api.host_alloc(&pinned, bytes, gpu::host_alloc_portable), "cuMemHostAlloc");
        in.expect(api.device_default_pool(&pool, in.device()), "cuDeviceGetDefaultMemPool");
        in.expect(api.stream_synchronize(stream), "cuStreamSynchronize");
    }
    ~things() {
        api.event_destroy(event);
        api.event_destroy(other);
        api.memory_free(target);
        if (memory != 0) {
            api.memory_free(memory);
        }
        if (pinned != nullptr) {
            api.host_free(pinned);
        }
        if (ordered != 0) {
            api.memory_free_async(ordered, stream);
        }
        api.stream_destroy(stream);
    }
    things(const things&) = delete;
    things& operator=(const things&) = delete;

    [[nodiscard]] gpu::stream_handle made_stream(unsigned flags) const {
        gpu::stream_handle made = nullptr;
        in.expect(api.stream_create(&made, flags, 0), "cuStreamCreateWithPriority");
        return made;
    }
    [[nodiscard]] gpu::event_handle made_event() const {
        gpu::event_handle made = nullptr;
        in.expect(api.event_create(&made, 0), "cuEventCreate");
        return made;
    }
    [[nodiscard]] gpu::device_pointer allocated() const {
        gpu::device_pointer made = 0;
        in.expect(api.memory_alloc(&made, bytes), "cuMemAlloc");
        return made;
    }
};

/// Which threads are refused a call while a stream is captured.
enum class refused_to {
    nobody,
    who_is_not_relaxed,  ///< threads that the capture concerns and that are not in relaxed mode
    all,
};

struct driver_call {
    const char* name;
    refused_to whom;
    std::function<gpu::result(things&)> make;
    gpu::result answer = refused;
};

/// Each call gives back what it takes, as far as it is allowed.
const std::vector<driver_call>& calls() {
    using t = things;
    static const std::vector<driver_call> all = {
        {"cuMemFree", refused_to::who_is_not_relaxed,
         [](t& a) {
             const gpu::result answer = a.api.memory_free(a.memory);
             a.memory = answer == gpu::success ? 0 : a.memory;
             return answer;
         }},
        {"cuMemAlloc", refused_to::who_is_not_relaxed,
         [](t& a) {
             gpu::device_pointer made = 0;
             const gpu::result answer = a.api.memory_alloc(&made, bytes);
             return answer == gpu::success ? a.api.memory_free(made) : answer;
         }},
        {"cuMemAllocManaged", refused_to::who_is_not_relaxed,
         [](t& a) {
             gpu::device_pointer made = 0;
             const gpu::result answer = a.api.memory_alloc_managed(&made, bytes, gpu::memory_attach_global);
             return answer == gpu::success ? a.api.memory_free(made) : answer;
         }},
        {"cuMemHostAlloc", refused_to::who_is_not_relaxed,
         [](t& a) {
             void* made = nullptr;
             const gpu::result answer = a.api.host_alloc(&made, bytes, gpu::host_alloc_portable);
             return answer == gpu::success ? a.api.host_free(made) : answer;
         }},
        {"cuMemAllocAsync", refused_to::who_is_not_relaxed,
         [](t& a) {
             gpu::device_pointer made = 0;
             const gpu::result answer = a.api.memory_alloc_async(&made, bytes, a.stream);
             return answer == gpu::success ? a.api.memory_free_async(made, a.stream) : answer;
         }},
        {"cuMemFreeAsync", refused_to::who_is_not_relaxed,
         [](t& a) {
             const gpu::result answer = a.api.memory_free_async(a.ordered, a.stream);
             a.ordered = answer == gpu::success ? 0 : a.ordered;
             return answer;
         }},
        {"cuMemPoolTrimTo", refused_to::who_is_not_relaxed, [](t& a) { return a.api.pool_trim(a.pool, 0); }},
        {"cuMemPoolGetAttribute", refused_to::who_is_not_relaxed,
         [](t& a) {
             std::uint64_t found = 0;
             return a.api.pool_get_attribute(a.pool, gpu::pool_attribute::used_now, &found);
         }},
        {"cuStreamQuery", refused_to::who_is_not_relaxed, [](t& a) { return a.api.stream_query(a.stream); }},
        {"cuStreamSynchronize", refused_to::who_is_not_relaxed,
         [](t& a) { return a.api.stream_synchronize(a.stream); }},
        {"cuEventQuery", refused_to::who_is_not_relaxed, [](t& a) { return a.api.event_query(a.event); }},
        {"cuEventSynchronize", refused_to::who_is_not_relaxed, [](t& a) { return a.api.event_synchronize(a.event); }},
        {"cuMemGetInfo", refused_to::nobody,
         [](t& a) {
             std::size_t free = 0;
             std::size_t total = 0;
             return a.api.memory_info(&free, &total);
         }},
        {"cuEventCreate", refused_to::nobody,
         [](t& a) {
             gpu::event_handle made = nullptr;
             const gpu::result answer = a.api.event_create(&made, 0);
             return answer == gpu::success ? a.api.event_destroy(made) : answer;
         }},
        {"cuStreamCreate", refused_to::nobody,
         [](t& a) {
             gpu::stream_handle made = nullptr;
             const gpu::result answer = a.api.stream_create(&made, gpu::stream_non_blocking, 0);
             return answer == gpu::success ? a.api.stream_destroy(made) : answer;
         }},
        {"cuEventRecord", refused_to::nobody, [](t& a) { return a.api.event_record(a.event, a.stream); }},
        {"cuEventElapsedTime", refused_to::nobody,
         [](t& a) {
             float found = 0;
             return a.api.event_elapsed(&found, a.event, a.event);
         }},
        {"cuStreamWaitEvent", refused_to::nobody, [](t& a) { return a.api.stream_wait_event(a.stream, a.event, 0); }},
        {"cuMemsetD8Async", refused_to::nobody, [](t& a) { return a.api.fill8_async(a.target, 1, bytes, a.stream); }},
        {"cuCtxSynchronize", refused_to::all, [](t& a) { return a.api.context_synchronize(); }},
        {"cuCtxRecordEvent", refused_to::all,
         [](t& a) {
             return a.api.context_record_event != nullptr ? a.api.context_record_event(a.in.handle(), a.other)
                                                          : a.api.context_synchronize();
         }},
        // The captured stream itself.
        {"cuStreamIsCapturing", refused_to::nobody,
         [](t& a) {
             int status = 0;
             return a.api.stream_is_capturing(a.captured, &status);
         }},
        {"cuStreamGetCtx", refused_to::nobody,
         [](t& a) {
             gpu::context_handle found = nullptr;
             return a.api.stream_context(a.captured, &found);
         }},
        {"cuMemsetD8Async there", refused_to::nobody,
         [](t& a) { return a.api.fill8_async(a.target, 1, bytes, a.captured); }},
        {"cuEventRecord there", refused_to::nobody, [](t& a) { return a.api.event_record(a.other, a.captured); }},
        {"cuStreamGetId there", refused_to::all,
         [](t& a) {
             unsigned long long found = 0;
             return a.api.stream_id != nullptr ? a.api.stream_id(a.captured, &found) : a.api.stream_query(a.captured);
         }},
        {"cuStreamGetFlags there", refused_to::all,
         [](t& a) {
             unsigned found = 0;
             return a.api.stream_flags(a.captured, &found);
         }},
        {"cuStreamQuery there", refused_to::all, [](t& a) { return a.api.stream_query(a.captured); }},
        {"cuEventQuery of one recorded there", refused_to::all,
         [](t& a) {
             const gpu::result answer = a.api.event_record(a.other, a.captured);
             return answer == gpu::success ? a.api.event_query(a.other) : answer;
         },
         907},
        {"cuStreamWaitEvent there", refused_to::all,
         [](t& a) { return a.api.stream_wait_event(a.captured, a.event, 0); }, 905},
    };
    return all;
}

void expect_as_told(const driver_call& call, stream_capture& theirs, things& with, bool is_relaxed, bool is_meant) {
    with.captured = theirs.handle();
    int mode = is_relaxed ? gpu::capture_mode_relaxed : 0;
    with.api.exchange_capture_mode(&mode);
    const gpu::result answer = call.make(with);
    with.api.exchange_capture_mode(&mode);
    const bool is_refused =
        call.whom == refused_to::all || (call.whom == refused_to::who_is_not_relaxed && !is_relaxed && is_meant);
    EXPECT_EQ(answer, is_refused ? call.answer : gpu::success);
    EXPECT_EQ(theirs.goes_on(), !is_refused);
}

TEST(CudaCapture, ControlTheDriverRefusesWhatIsNotMadeInRelaxedModeAndEndsTheCapture) {
    for (const driver_call& call : calls()) {
        for (const capture_mode mode : {capture_mode::global, capture_mode::of_thread, capture_mode::relaxed}) {
            for (const bool is_relaxed : {false, true}) {
                SCOPED_TRACE(std::string(call.name) + (is_relaxed ? ", relaxed" : "") + ", mode " +
                             std::to_string(static_cast<int>(mode)));
                {
                    things with;
                    stream_capture theirs(with.in, mode);
                    expect_as_told(call, theirs, with, is_relaxed, mode != capture_mode::relaxed);
                    theirs.end();
                }
                things with;
                while_another_thread_captures(with.in, mode, gpu::stream_non_blocking, [&](stream_capture& theirs) {
                    expect_as_told(call, theirs, with, is_relaxed, mode == capture_mode::global);
                });
            }
        }
    }
}

TEST(CudaCapture, ControlTheLegacyStreamIsRefusedWhileABlockingOneIsCaptured) {
    constexpr gpu::result implicit = 906;
    const things with;
    for (const unsigned flags : {gpu::stream_default, gpu::stream_non_blocking}) {
        const bool is_refused = flags == gpu::stream_default;
        {
            stream_capture theirs(with.in, capture_mode::relaxed, flags);
            int status = 0;
            EXPECT_EQ(with.api.stream_is_capturing(nullptr, &status), is_refused ? implicit : gpu::success);
            EXPECT_TRUE(theirs.goes_on()) << "asking harms nothing";
            EXPECT_EQ(with.api.fill8_async(with.target, 1, bytes, gpu::legacy_stream()),
                      is_refused ? implicit : gpu::success);
            EXPECT_EQ(theirs.goes_on(), !is_refused);
        }
    }
}

}  // namespace
}  // namespace weir::test
