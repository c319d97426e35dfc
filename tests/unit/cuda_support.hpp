// What the tests of CUDA streams have in common.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "backend/cuda/driver.hpp"
#include "runtime/device_state.hpp"
#include "runtime/stream_state.hpp"
#include "support/arrays.hpp"
#include "support/fake_cuda.hpp"
#include "weir/weir.hpp"

namespace weir::test {

namespace gpu = backend::cuda;

#define WEIR_NEEDS_FAKE()                                                 \
    if (!fake_cuda::in_use()) {                                           \
        GTEST_SKIP() << "needs the gates or counters of the fake driver"; \
    }

inline const gpu::device_context& cuda_context() { return gpu::context_of(cuda().state().driver()); }

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

/// Holds back what is put into a stream from some place on, where a gate of the fake driver holds all that has not begun.
class device_flag {
public:
    /// For streams of that device.
    explicit device_flag(const gpu::context& in = cuda_context()) : in_(in) {
        static_cast<void>(step_kernel());  // to load a kernel may take until nothing is held
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

    /// What comes into the stream behind this waits until the flag is raised.
    void hold(gpu::stream_handle stream) const {
        const gpu::in_context here(in_);
        in_.expect(in_.api().stream_wait_value(stream, reinterpret_cast<gpu::device_pointer>(memory_), 1,
                                               gpu::wait_value_greater_or_equal),
                   "cuStreamWaitValue64");
    }
    void raise() { word_->store(1); }
    /// Where it is for the device: 1 once it is raised.
    [[nodiscard]] std::uint64_t address() const noexcept { return reinterpret_cast<std::uint64_t>(memory_); }

private:
    const gpu::context& in_;
    void* memory_ = nullptr;
    std::atomic<std::uint64_t>* word_ = nullptr;
};

/// An operation of the stream that changes `x` and is over once the flag is raised, which outlives it. It is no work of others, before
/// which there would be an event (rule O7).
inline completion hold(const stream_ref& s, const device_flag& until, const array& x) {
    const auto put = [&until](detail::queue_handle into) { until.hold(static_cast<gpu::stream_handle>(into.value)); };
    return detail::submit_work(s, runtime::work_kind::device, detail::native_task{put}, inout<double>(x));
}
/// One with nothing in it.
inline completion nothing(const stream_ref& s, const array& x) {
    return detail::submit_work(s, runtime::work_kind::device, detail::native_task{[] {}}, inout<double>(x));
}

/// Whether the operation gets over in five seconds: for tests in which it would never, if they failed.
inline bool gets_over(const completion& one) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (!one.done() && std::chrono::steady_clock::now() < end) {
        std::this_thread::yield();
    }
    return one.done();
}

/// Whether the fake driver's streams get down to so many in ten seconds: somebody looks now and then for what is over.
inline bool streams_get_down_to(std::size_t count) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (fake_cuda::live(fake_thing::streams) > count && std::chrono::steady_clock::now() < end) {
        std::this_thread::yield();
    }
    return fake_cuda::live(fake_thing::streams) <= count;
}

/// The driver's handle, without telling the stream that others have it.
inline void* handle_of(const stream_ref& s) { return s.state().queue->native_handle(); }

inline constexpr std::int64_t elements = 64;

inline completion step(const on& where, const array& to, const array& from) {
    return launch(where, step_kernel(), {2, 32}, in<double>(from), out<double>(to), static_cast<int>(elements));
}
inline completion step_in_place(const on& where, const array& x) {
    return launch(where, step_kernel(), {2, 32}, inout<double>(x), inout<double>(x), static_cast<int>(elements));
}

inline array make(const stream_ref& s, double value) { return full(elements, value, dtype::float64, s); }

}  // namespace weir::test
