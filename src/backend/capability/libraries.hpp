#pragma once

#include <functional>

namespace weir::backend::capability {

/// A device that third-party libraries use through the same driver, as cuFFT does: they expect the device's context to be current
/// on the calling thread. Any thread; lives as long as the driver.
class libraries {
public:
    libraries() = default;
    libraries(const libraries&) = delete;
    libraries& operator=(const libraries&) = delete;

    /// The number by which libraries know the device.
    [[nodiscard]] virtual int number() const noexcept = 0;
    /// The version of the driver, in the form in which libraries state their requirements: 13000 for CUDA 13.0. Throws device_error.
    [[nodiscard]] virtual int version() const = 0;
    /// Runs `calls` with the device's context current on the calling thread; driver calls within disturb no capture of other code
    /// (rule G1). Throws what `calls` throws; device_error if the context cannot be made current, since what is made then would
    /// belong to another context.
    virtual void run_in_context(const std::function<void()>& calls) const = 0;
    /// Runs `work(with)`, which puts work into one of the device's queues, with the context current, at the least cost: a capture of other
    /// code would see its calls. Throws as run_in_context does.
    virtual void run_work(void (*work)(const void* with), const void* with) const = 0;

protected:
    ~libraries() = default;
};

}  // namespace weir::backend::capability
