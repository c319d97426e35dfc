// Holds a stream by a kernel that waits for another stream, so that an order is certain on a GPU as well as on the fake driver.
#pragma once

#include <cstdint>

#include "weir/array.hpp"
#include "weir/kernel.hpp"
#include "weir/ordering.hpp"
#include "weir/stream.hpp"

namespace weir::test {

/// Work behind `hold` in the stream runs once `open` is called, which must happen before any thread waits for that work. The kernels are
/// loaded and the memory is allocated from the start, since either may wait for the device.
class kernel_gate {
public:
    void hold(const stream& which) const {
        // The flag is not declared: the kernel that sets it must run at the same time.
        const auto flag = static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(flag_.device_data()));
        launch(which, wait_, {1, 1, 0, true}, flag);
    }
    void open() {
        const ordering_scope manual(ordering_mode::manual);
        launch(beside_, open_, {1, 1}, inout<std::int32_t>(flag_));
    }

private:
    [[nodiscard]] array closed() const {
        array flag = full({1}, 0, dtype::int32, beside_);
        beside_.synchronize();
        return flag;
    }
    static constexpr const char* source_ = R"(
extern "C" __global__ void wait(unsigned long long flag) {
    while (*(volatile int*)flag == 0) {
        __nanosleep(100);
    }
}
extern "C" __global__ void open(int* flag) { flag[0] = 1; }
)";
    kernel wait_ = kernel::from_source(source_, "wait");
    kernel open_ = kernel::from_source(source_, "open");
    stream beside_{cuda()};  // no other stream holds it up
    array flag_ = closed();
};

}  // namespace weir::test
