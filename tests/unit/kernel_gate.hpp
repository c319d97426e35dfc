// Holds a stream by a kernel that waits for another stream, so that an order is certain on a GPU as well as on the fake driver.
#pragma once

#include <cstdint>

#include "weir/array.hpp"
#include "weir/kernel.hpp"
#include "weir/ordering.hpp"
#include "weir/stream.hpp"

namespace weir::test {

/// What is behind `hold` in the stream runs once `open` is called, which is to be before anybody waits for it. The kernels are
/// loaded and the memory is there from the start, since either may wait for the device.
class kernel_gate {
public:
    void hold(const stream& which) const {
        // The flag is not declared: what sets it is to run beside.
        const auto flag = static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(flag_.device_data()));
        launch(which, wait_, {1, 1, 0, true}, flag);
    }
    void open() const {
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
    stream beside_{cuda()};  // which no other stream holds up
    array flag_ = closed();
};

}  // namespace weir::test
