// Shared by the benchmarks on CUDA devices: a device, kernels, and the driver itself, to compare with.
#pragma once

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>

#include "backend/cuda/api/driver_api.hpp"
#include "backend/cuda/device/context.hpp"
#include "backend/cuda/device/driver.hpp"
#include "runtime/devices/device_state.hpp"
#include "weir/weir.hpp"

namespace weir::bench {

namespace driver = backend::cuda;

/// Throws std::runtime_error, so that the contestant is left out, where there is no CUDA device.
inline device cuda_device() {
    try {
        return cuda(0);
    } catch (const device_error& why) {
        throw std::runtime_error(why.what());
    }
}

inline const driver::context& context_of(const device& of) {
    return driver::context_of(of.state(detail::key).driver());
}

/// A source of its own, so that a compiler for the host accepts it, too (`./run bench cuda-host`).
inline const std::string empty_source = R"(extern "C" __global__ void empty(double* x) {})";

inline const std::string spin_source = R"(
extern "C" __global__ void spin(double* x, long long nanoseconds) {
    long long start, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    } while (now - start < nanoseconds);
}
)";

/// An operation with nothing in it.
struct empty_task {
    void operator()(detail::queue_handle /*into*/) const noexcept {}
};

/// A stream as a program without Weir makes it.
class raw_stream {
public:
    explicit raw_stream(const driver::context& in) : in_(&in) {
        const driver::in_context here(in);
        in.expect(in.api().stream_create(&handle_, driver::stream_non_blocking, 0), "cuStreamCreate");
    }
    ~raw_stream() {
        const driver::in_context here(*in_);
        in_->api().stream_destroy(handle_);
    }
    raw_stream(const raw_stream&) = delete;
    raw_stream& operator=(const raw_stream&) = delete;

    [[nodiscard]] driver::stream_handle handle() const noexcept { return handle_; }
    template <std::size_t N>
    void launch(const kernel& what, void* const (&arguments)[N]) const {
        in_->api().launch(static_cast<driver::function_handle>(what.handle()), 1, 1, 1, 32, 1, 1, 0, handle_,
                          const_cast<void**>(arguments), nullptr);
    }
    /// The same by the driver's later function, which is a little faster, if it has that.
    template <std::size_t N>
    void launch_as(const kernel& what, void* const (&arguments)[N]) const {
        if (in_->api().launch_as == nullptr) {
            launch(what, arguments);
            return;
        }
        const driver::launch_shape settings{{1, 1, 1}, {32, 1, 1}, 0, handle_};
        in_->api().launch_as(&settings, static_cast<driver::function_handle>(what.handle()),
                             const_cast<void**>(arguments), nullptr);
    }
    void synchronize() const { in_->api().stream_synchronize(handle_); }

private:
    const driver::context* in_;
    driver::stream_handle handle_ = nullptr;
};

class raw_event {
public:
    explicit raw_event(const driver::context& in) : in_(&in) {
        const driver::in_context here(in);
        in.expect(in.api().event_create(&handle_, driver::event_disable_timing), "cuEventCreate");
    }
    ~raw_event() { in_->api().event_destroy(handle_); }
    raw_event(const raw_event&) = delete;
    raw_event& operator=(const raw_event&) = delete;

    void record(const raw_stream& on) const { in_->api().event_record(handle_, on.handle()); }
    void hold(const raw_stream& waiter) const { in_->api().stream_wait_event(waiter.handle(), handle_, 0); }

private:
    const driver::context* in_;
    driver::event_handle handle_ = nullptr;
};

/// The context is current on the thread that measures, as it is in every program that uses the driver itself.
inline void make_current(const driver::context& in) { in.api().context_set_current(in.handle()); }

/// What it takes to launch an empty kernel that changes one array, with Weir and by hand.
struct launch_setting {
    device on = cuda_device();
    const driver::context* in = &context_of(on);
    kernel empty_kernel = kernel::from_source(empty_source, "empty", {}, on);
    stream s1{on};
    array x = empty(64, dtype::float64, s1);
    raw_stream r1{*in};
    void* address = x.device_data();

    launch_setting() { make_current(*in); }
    void synchronize() const {
        s1.synchronize();
        r1.synchronize();
    }
};

/// `times` times a launch on each of two streams, which wait for each other: `put(stream)` launches; `first()` and `second()` return the
/// events that each stream records next.
template <class Put, class First, class Second>
void alternate_by_hand(std::size_t times, const raw_stream& r1, const raw_stream& r2, const Put& put,
                       const First& first, const Second& second) {
    for (std::size_t i = 0; i < times; ++i) {
        put(r1);
        const raw_event& e1 = first();
        e1.record(r1);
        e1.hold(r2);
        put(r2);
        const raw_event& e2 = second();
        e2.record(r2);
        e2.hold(r1);
    }
}

}  // namespace weir::bench
