#pragma once

#include <cstddef>
#include <vector>

#include "backend/cuda/context.hpp"
#include "backend/cuda/driver_api.hpp"

namespace weir::backend::cuda {

/// Large pieces of a device's memory, for the pool.
///
/// cuMemFree waits for all work of the device, whether it uses the memory or not. So, where the device can, a piece is a range
/// of addresses with memory mapped there: to unmap it waits for nothing. Whoever gives a piece back knows that nothing uses
/// it, and other devices of the process that can reach it may do so.
class pieces {
public:
    explicit pieces(const context& of) noexcept;
    pieces(const pieces&) = delete;
    pieces& operator=(const pieces&) = delete;
    ~pieces() = default;

    /// Memory at an address of 256 bytes' alignment or more; changes `made` only if it answers success. In the context.
    [[nodiscard]] result allocate(device_pointer& made, std::size_t bytes) const noexcept;
    /// Gives back what `allocate` made of `bytes` bytes. In the context.
    void deallocate(device_pointer memory, std::size_t bytes) const noexcept;

    /// Whether pieces are mapped: else giving one back waits for the device.
    [[nodiscard]] bool are_mapped() const noexcept { return granularity_ != 0; }

private:
    [[nodiscard]] std::size_t rounded(std::size_t bytes) const noexcept;
    [[nodiscard]] result map(device_pointer at, std::size_t bytes) const noexcept;
    void find_peers();

    const context* of_;
    allocation_properties properties_;
    std::size_t granularity_ = 0;           ///< 0: cuMemAlloc
    std::vector<access_permission> those_;  ///< who may use the memory; the device itself first
};

}  // namespace weir::backend::cuda
