// Shared by the tests of two threads in one CUDA stream: three streams, arrays whose digits show which operations ran and in
// which order, and what must hold again once everything is complete.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/beside.hpp"
#include "support/effort.hpp"
#include "support/time_limit.hpp"
#include "unit/cuda_support.hpp"

namespace weir::test::two_threads {

/// Kernels that append a digit to each element: x = 10 x + digit; y = 10 x + digit; x = 10 x + z.
struct digit_kernels {
    kernel append = kernel::from_source(R"(
extern "C" __global__ void append(double* x, int digit) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < 64; i += gridDim.x * blockDim.x) {
        x[i] = x[i] * 10 + digit;
    }
}
)",
                                        "append");
    kernel take = kernel::from_source(R"(
extern "C" __global__ void take(const double* x, double* y, int digit) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < 64; i += gridDim.x * blockDim.x) {
        y[i] = x[i] * 10 + digit;
    }
}
)",
                                      "take");
    kernel append_from = kernel::from_source(R"(
extern "C" __global__ void append_from(double* x, const double* z) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < 64; i += gridDim.x * blockDim.x) {
        x[i] = x[i] * 10 + z[i];
    }
}
)",
                                             "append_from");

    static const digit_kernels& instance() {
        static const auto* const one = new digit_kernels;
        return *one;
    }
};

inline completion append(const on& where, array x, int digit) {
    return launch(where, digit_kernels::instance().append, {2, 32}, inout<double>(x), digit);
}
inline completion take(const on& where, array& y, const array& x, int digit) {
    return launch(where, digit_kernels::instance().take, {2, 32}, in<double>(x), out<double>(y), digit);
}
inline completion append_from(const on& where, array& x, const array& z) {
    return launch(where, digit_kernels::instance().append_from, {2, 32}, inout<double>(x), in<double>(z));
}

/// Three streams and their arrays, which all are 0. `s` is the stream in which the two threads meet.
struct world {
    std::optional<stream> s = stream(cuda());
    std::optional<stream> waits = stream(cuda());
    std::optional<stream> other = stream(cuda());
    array x = make(*s, 0);      ///< of `s`
    array y = make(*waits, 0);  ///< of `waits`
    array z = make(*other, 0);  ///< of `other`
    array u = make(*other, 0);  ///< of `other`
    device_flag
        foreign;  ///< work that the program itself puts into `s` once it has the handle: it waits until the end of the test
    std::optional<fake_gate> held;
    std::atomic<bool> has_foreign{false};
    bool is_shared = false;
    std::atomic<unsigned long long> launches{0};

    world() { cuda().synchronize(); }

    /// Takes the handle and puts work of the program's own into the stream at once.
    void hand_out(const stream& of) {
        foreign.hold(static_cast<gpu::stream_handle>(of.handle()));
        has_foreign = true;
    }
};

/// Objects that the driver has, and calls that it got, before and after.
class balance {
public:
    balance() {
        static_cast<void>(digit_kernels::instance());
        cuda().synchronize();
        streams_ = fake_cuda::live(fake_thing::streams);
        events_ = cuda_context().events.size();
        fake_cuda::forget_calls();
    }

    /// All streams of the test are dropped. No cell makes more than so many operations, each with one wait and one event.
    void expect_even(unsigned long long launches, unsigned long long streams) const {
        constexpr unsigned long long most_records = 16;
        constexpr unsigned long long most_waits = 8;
        constexpr std::size_t most_events = 16;
        EXPECT_TRUE(streams_get_down_to(streams_)) << "a stream was not let go of";
        EXPECT_EQ(fake_cuda::live(fake_thing::streams), streams_);
        EXPECT_EQ(fake_cuda::calls("cuStreamDestroy_v2"), streams) << "each stream is destroyed once";
        EXPECT_EQ(fake_cuda::calls("cuLaunchKernelEx"), launches) << "each operation is enqueued once";
        EXPECT_LE(fake_cuda::calls("cuEventRecord"), most_records);
        EXPECT_LE(fake_cuda::calls("cuStreamWaitEvent"), most_waits);
        EXPECT_LE(cuda_context().events.size(), events_ + most_events) << "events are used again";
    }

private:
    std::size_t streams_ = 0;
    std::size_t events_ = 0;
};

inline std::vector<double> all_of(double value) {
    return std::vector<double>(static_cast<std::size_t>(elements), value);
}

/// What a call of the one thread does while the other thread is stopped in the driver.
enum class meets : std::uint8_t {
    nothing,  ///< it returns
    a,        ///< it waits for the other thread
    either,   ///< both are right
};

}  // namespace weir::test::two_threads
