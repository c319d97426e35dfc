// The fake driver of the tests, except that the calls that order a stream of empty operations do nothing, at the price of a call.
// An event is complete a millisecond after it was recorded, whatever it waits for. So the time of a benchmark on this driver is Weir's
// own. For `./run bench cuda-host`.
//
// With WEIR_IDLE_CUDA=sweep a launch goes through more data and more code than the first caches hold, as a driver's does: what Weir
// needs for the next operation is not there then.
#include <dlfcn.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "../code_lines.hpp"

namespace {

using result = int;
constexpr result success = 0;
constexpr result not_ready = 600;

using nanoseconds = std::chrono::steady_clock::rep;
constexpr nanoseconds lasts = 1'000'000;

/// The time of the last query whether an event is complete. The watcher makes one every millisecond.
std::atomic<nanoseconds> asked_last{0};

struct event {
    std::atomic<nanoseconds> recorded{0};
};

thread_local void* current = nullptr;  ///< the thread's context

constexpr std::size_t swept_bytes = std::size_t{64} * 1024;
constexpr std::size_t swept_code_lines = 640;
const bool sweeps = [] {
    const char* const asked = std::getenv("WEIR_IDLE_CUDA");
    return asked != nullptr && std::string_view(asked) == "sweep";
}();

void sweep() {
    static thread_local std::array<volatile char, swept_bytes> data;
    static thread_local std::array<std::uint64_t, 8> numbers{};
    for (std::size_t i = 0; i < data.size(); i += 64) {
        data[i] = static_cast<char>(data[i] + 1);
    }
    weir::bench::run_code_lines<swept_code_lines>(numbers);
}

event& event_of(void* handle) { return *static_cast<event*>(handle); }

}  // namespace

#define WEIR_IDLE_CALL extern "C" __attribute__((visibility("default"))) result

WEIR_IDLE_CALL cuEventCreate(void** made, unsigned /*flags*/) {
    *made = new event;
    return success;
}

WEIR_IDLE_CALL cuEventDestroy_v2(void* handle) {
    delete &event_of(handle);
    return success;
}

WEIR_IDLE_CALL cuEventRecord(void* handle, void* /*stream*/) {
    event_of(handle).recorded.store(asked_last.load(std::memory_order_relaxed), std::memory_order_relaxed);
    return success;
}

WEIR_IDLE_CALL cuEventQuery(void* handle) {
    const nanoseconds now = std::chrono::steady_clock::now().time_since_epoch().count();
    asked_last.store(now, std::memory_order_relaxed);
    return now - event_of(handle).recorded.load(std::memory_order_relaxed) > lasts ? success : not_ready;
}

WEIR_IDLE_CALL cuEventSynchronize(void* handle) {
    while (cuEventQuery(handle) != success) {
    }
    return success;
}

WEIR_IDLE_CALL cuEventElapsedTime(float* milliseconds, void* /*start*/, void* /*end*/) {
    *milliseconds = 0;
    return success;
}

WEIR_IDLE_CALL cuStreamWaitEvent(void* /*stream*/, void* /*event*/, unsigned /*flags*/) { return success; }
WEIR_IDLE_CALL cuLaunchKernel(void* /*function*/, unsigned /*grid_x*/, unsigned /*grid_y*/, unsigned /*grid_z*/,
                              unsigned /*block_x*/, unsigned /*block_y*/, unsigned /*block_z*/, unsigned /*shared*/,
                              void* /*stream*/, void** /*parameters*/, void** /*more*/) {
    if (sweeps) {
        sweep();
    }
    return success;
}

WEIR_IDLE_CALL cuLaunchKernelEx(const void* /*as*/, void* /*function*/, void** /*parameters*/, void** /*more*/) {
    if (sweeps) {
        sweep();
    }
    return success;
}

WEIR_IDLE_CALL cuStreamSynchronize(void* /*stream*/) { return success; }
WEIR_IDLE_CALL cuThreadExchangeStreamCaptureMode(int* /*mode*/) { return success; }

WEIR_IDLE_CALL cuCtxGetCurrent(void** context) {
    *context = current;
    return success;
}

WEIR_IDLE_CALL cuCtxSetCurrent(void* context) {
    static auto* const of_fake = reinterpret_cast<result (*)(void*)>(::dlsym(RTLD_NEXT, "cuCtxSetCurrent"));
    current = context;
    return of_fake(context);  // the fake driver's own calls read it there
}
