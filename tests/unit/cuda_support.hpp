// Shared by the tests of CUDA streams.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "backend/cuda/device/driver.hpp"
#include "runtime/devices/device_state.hpp"
#include "runtime/streams/stream_state.hpp"
#include "support/arrays.hpp"
#include "support/fake_cuda.hpp"
#include "weir/weir.hpp"

namespace weir::test {

namespace gpu = backend::cuda;

#define WEIR_NEEDS_FAKE()                                                 \
    if (!fake_cuda::in_use()) {                                           \
        GTEST_SKIP() << "needs the gates or counters of the fake driver"; \
    }

inline const gpu::device_context& cuda_context() { return gpu::context_of(cuda().state(detail::key).driver()); }

/// y = x * 10 + 1, elementwise.
inline const kernel& step_kernel() {
    static const auto* const one = new kernel(kernel::from_source(R"(
extern "C" __global__ void step(const double* x, double* y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        y[i] = x[i] * 10 + 1;
    }
}
)",
                                                                  "step"));
    return *one;
}

/// Holds what is put into a stream behind a certain place; a gate of the fake driver holds everything that has not begun.
class device_flag {
public:
    /// For streams of that device.
    explicit device_flag(const gpu::context& in = cuda_context()) : in_(in) {
        static_cast<void>(step_kernel());  // loading a kernel may have to wait until nothing is held
        const gpu::in_context here(in_);
        in_.expect(in_.api().host_alloc(&memory_, sizeof *word_, gpu::host_alloc_mapped), "cuMemHostAlloc");
        word_ = ::new (memory_) std::atomic<std::uint64_t>(0);
    }
    ~device_flag() {
        const gpu::in_context here(in_);
        in_.api().host_free(memory_);
    }
    device_flag(const device_flag&) = delete;
    device_flag& operator=(const device_flag&) = delete;

    /// Work that enters the stream behind this waits until the flag is raised.
    void hold(gpu::stream_handle stream) const {
        const gpu::in_context here(in_);
        in_.expect(in_.api().stream_wait_value(stream, reinterpret_cast<gpu::device_pointer>(memory_), 1,
                                               gpu::wait_value_greater_or_equal),
                   "cuStreamWaitValue64");
    }
    void raise() { word_->store(1); }
    /// The flag's address on the device: it holds 1 once the flag is raised.
    [[nodiscard]] std::uint64_t address() const noexcept { return reinterpret_cast<std::uint64_t>(memory_); }

private:
    const gpu::context& in_;
    void* memory_ = nullptr;
    std::atomic<std::uint64_t>* word_ = nullptr;
};

/// An operation of the stream that changes `x` and is complete once the flag is raised; the flag outlives it. It is no foreign work, before
/// which Weir would record an event (rule O7).
inline completion hold(const stream_ref& s, const device_flag& until, array x) {
    const auto put = [&until](detail::queue_handle into) { until.hold(static_cast<gpu::stream_handle>(into.value)); };
    return detail::submit_work(s, runtime::work_kind::device, detail::native_task{put}, inout<double>(x));
}
/// An operation that does nothing.
inline completion nothing(const stream_ref& s, array x) {
    return detail::submit_work(s, runtime::work_kind::device, detail::native_task{[] {}}, inout<double>(x));
}

/// Whether the operation completes in five seconds: for tests that would wait for ever if they failed.
inline bool gets_over(const completion& one) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (!one.done() && std::chrono::steady_clock::now() < end) {
        std::this_thread::yield();
    }
    return one.done();
}

/// Whether the number of the fake driver's streams falls to `count` in ten seconds: the watcher polls now and then.
inline bool streams_get_down_to(std::size_t count, fake_thing which = fake_thing::streams) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (fake_cuda::live(which) > count && std::chrono::steady_clock::now() < end) {
        std::this_thread::yield();
    }
    return fake_cuda::live(which) <= count;
}

/// The driver's handle; the stream does not learn that others have it.
inline void* handle_of(const stream_ref& s) { return s.state(detail::key).queue->handle(); }

inline constexpr std::int64_t elements = 64;

inline completion step(const on& where, array to, const array& from) {
    return launch(where, step_kernel(), {2, 32}, in<double>(from), out<double>(to), static_cast<int>(elements));
}
inline completion step_in_place(const on& where, array x) {
    return launch(where, step_kernel(), {2, 32}, inout<double>(x), inout<double>(x), static_cast<int>(elements));
}

inline array make(const stream_ref& s, double value) { return full(elements, value, dtype::float64, s); }

}  // namespace weir::test
