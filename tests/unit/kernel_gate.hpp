// Holds a stream by a kernel that waits for another stream, so that an order is certain on a GPU as well as on the fake driver.
#pragma once

#include <atomic>
#include <cstdint>

#include "weir/buffer.hpp"
#include "weir/device.hpp"
#include "weir/kernel.hpp"
#include "weir/launch.hpp"
#include "weir/memory_resource.hpp"
#include "weir/stream.hpp"

namespace weir::test {

/// Work behind `hold` in the stream runs once `open` is called. The host opens the gate itself, by memory that the kernel reads: another
/// stream might share one of the device's queues with the stream that is held. The kernel is loaded and the memory is allocated from the
/// start, since either may wait for the device.
class kernel_gate {
public:
    kernel_gate() {
        static_cast<void>(wait_kernel());
        std::atomic_ref(word()).store(0);
    }
    /// Opens the gate, and waits until no kernel reads it.
    ~kernel_gate() {
        open();
        cuda().synchronize();
    }
    kernel_gate(const kernel_gate&) = delete;
    kernel_gate& operator=(const kernel_gate&) = delete;

    void hold(const stream& which) const {
        // The word is not declared: the host changes it while the kernel runs.
        const auto address = static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(memory_.device_data()));
        launch(which, wait_kernel(), {1, 1, 0, true}, address);
    }
    void open() { std::atomic_ref(word()).store(1); }

private:
    /// Never unloaded: that may wait for the device, and hold up other threads' calls of the driver meanwhile.
    static const kernel& wait_kernel() {
        static const auto* const one = new kernel(kernel::from_source(R"(
extern "C" __global__ void wait(unsigned long long flag) {
    while (*(volatile int*)flag == 0) {
        __nanosleep(100);
    }
}
)",
                                                                      "wait"));
        return *one;
    }
    static buffer pinned_word() {
        const memory::use scope(memory::pinned());
        return buffer(sizeof(int), stream(cpu()));
    }
    [[nodiscard]] int& word() const { return *reinterpret_cast<int*>(memory_.device_data()); }

    buffer memory_ = pinned_word();
};

}  // namespace weir::test
