// Programs that use CUDA devices in different ways. Each returns whether its results are right, or throws an error of Weir's.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <string>
#include <vector>

#include "unit/cuda_support.hpp"

namespace weir::test::sweep {

inline bool all_are(const array& x, double wanted) {
    const std::vector<double> found = values_of<double>(x);
    return std::all_of(found.begin(), found.end(), [wanted](double each) { return each == wanted; });
}

/// Two streams, waits, times, copies of the host's memory, a host task, work that is dropped while it runs, a reduction.
inline bool uses_the_pool() {
    const stream a(cuda(), {.priority = -1});
    const stream b(cuda());
    const stream host(cpu());
    array x = full(elements, 1.0, dtype::float64, a);
    array y = empty(elements, dtype::float64, b);
    array there = full(elements, 5.0, dtype::float64, host);
    step_in_place(a, x);
    step(b, y, x);
    const event reached = b.record({.timing = true});
    a.wait(reached);
    copy(a, x, there);
    step_in_place(a, x);
    host_task(
        b, [](auto...) {}, in<double>(y));
    compute(b, binary_operation::add, x, y, y);
    step_in_place(b, make(b, 1));  // dropped at once
    array back = empty(elements, dtype::float64, host);
    copy(b, back, y);
    array half = x[{slice{{}, {}, 2}}];
    const bool is_right = all_are(back, 51 + 111) && all_are(half, 51) && a.priority() == -1;
    a.synchronize();
    b.synchronize();
    return is_right && reached.done();
}

inline bool uses_the_drivers_pool() {
    const memory::use scope(memory::driver_pool());
    const stream a(cuda());
    const stream b(cuda());
    array x = full(elements, 1.0, dtype::float64, a);
    array y = empty(elements, dtype::float64, b);
    step_in_place(a, x);
    step(b, y, x);
    x = full(elements, 2.0, dtype::float64, a);
    step_in_place(a, x);
    return all_are(y, 111) && all_are(x, 21);
}

inline bool uses_memory_of_both() {
    const stream a(cuda());
    const stream host(cpu());
    array pinned = [&] {
        const memory::use scope(memory::pinned());
        return full(elements, 1.0, dtype::float64, host);
    }();
    array managed = [&] {
        const memory::use scope(memory::managed());
        return full(elements, 3.0, dtype::float64, a);
    }();
    array x = make(a, 0);
    copy(a, x, pinned);
    step_in_place(a, x);
    step_in_place(a, managed);
    copy(a, pinned, x);
    return all_are(pinned, 11) && all_are(managed, 31);
}

/// A stream of others. The calls that make it are no part of the program.
inline gpu::stream_handle of_others = nullptr;
inline void makes_a_stream_of_others() {
    const gpu::in_context here(cuda_context());
    cuda_context().expect(cuda_context().api().stream_create(&of_others, gpu::stream_default, 0),
                          "cuStreamCreateWithPriority");
}
inline bool uses_streams_of_others() {
    const stream theirs = stream::adopt(native_stream{of_others}, cuda());
    const stream legacy = stream::adopt(native_stream{nullptr}, cuda());
    const stream own(cuda());
    array x = make(theirs, 1);
    array y = make(own, 0);
    step_in_place(theirs, x);
    step(own, y, x);
    step_in_place(legacy, x);
    const stream again = stream::adopt(native_stream{own.handle()}, cuda());
    step_in_place(again, y);
    theirs.wait(again);
    static_cast<void>(theirs.done());
    const bool are_known =
        theirs.blocking() && again == own && stream::adopt(native_stream{of_others}, cuda()) == theirs;
    return all_are(x, 111) && all_are(y, 1111) && are_known;
}

inline bool uses_two_devices() {
    const stream a(cuda(0));
    const stream b(cuda(1));
    array x = make(a, 1);
    array y = make(b, 0);
    copy(b, y, x);
    step_in_place(a, x);
    array z = make(a, 0);
    copy(a, z, y);
    const bool is_right = all_are(x, 11) && all_are(y, 1) && all_are(z, 1);
    return is_right;
}

inline bool transforms() {
    const stream a(cuda());
    array x = full(8, 1, dtype::complex128, a);
    fft_plan plan(x);
    plan.plan(a);
    array result = plan.execute(a, fft_direction::forward);
    array back = plan.execute(a, fft_direction::inverse);
    const std::complex<double> first = values_of<std::complex<double>>(result).front();
    static_cast<void>(values_of<std::complex<double>>(back));
    return std::abs(first - 8.0) < 1e-9;
}

inline bool loads_kernels() {
    const stream a(cuda());
    array x = make(a, 1);
    for (const char* name : {"adds_one", "adds_two"}) {
        const std::string more = name == std::string("adds_one") ? "1" : "2";
        const kernel one =
            kernel::from_source(std::string("extern \"C\" __global__ void ") + name +
                                    "(double* x, int n) { if (threadIdx.x < n) { x[threadIdx.x] += " + more + "; } }",
                                name);
        launch(a, one, {1, 64}, inout<double>(x), static_cast<int>(elements));
        a.synchronize();
    }
    return all_are(x, 4);
}

}  // namespace weir::test::sweep
