#pragma once

#include <cstddef>
#include <vector>

#include "backend/cuda/api/driver_api.hpp"
#include "backend/cuda/device/context.hpp"

namespace weir::backend::cuda {

/// Large chunks of a device's memory, for the pool.
///
/// cuMemFree waits for all work of the device, whether it uses the memory or not. So, where the device can, a chunk is a range
/// of addresses with memory mapped there: unmapping it waits for nothing. Code that gives a chunk back must ensure that nothing
/// uses it, including other devices of the process that can reach it.
class chunks {
public:
    explicit chunks(const context& of) noexcept;
    chunks(const chunks&) = delete;
    chunks& operator=(const chunks&) = delete;
    ~chunks() = default;

    /// Memory at an address aligned to 256 bytes or more; changes `made` only if it returns success. In the context.
    [[nodiscard]] result allocate(device_pointer& made, std::size_t bytes) const noexcept;
    /// Gives back what `allocate` made with `bytes` bytes. In the context.
    void deallocate(device_pointer memory, std::size_t bytes) const noexcept;

    /// Whether chunks are mapped: otherwise giving one back waits for the device.
    [[nodiscard]] bool are_mapped() const noexcept { return granularity_ != 0; }

private:
    [[nodiscard]] std::size_t rounded(std::size_t bytes) const noexcept;
    [[nodiscard]] result map(device_pointer at, std::size_t bytes) const noexcept;
    void find_peers();

    const context* of_;
    allocation_properties properties_;
    std::size_t granularity_ = 0;           ///< 0: cuMemAlloc
    std::vector<access_permission> those_;  ///< devices that may use the memory; the device itself is the first
};

}  // namespace weir::backend::cuda
