#pragma once

#include <cstddef>

#include "backend/cuda/api/driver_api.hpp"
#include "backend/cuda/device/device_context.hpp"

namespace weir::backend::cuda::transfer {

/// Copies between a device and host memory of any kind, through memory that the device reaches itself. Blocks
/// until the copy is done. Nothing may be using either side. Throws device_error, out_of_memory.
void to_host(device_context& in, std::byte* host, const std::byte* device, std::size_t bytes);
void to_device(device_context& in, std::byte* device, const std::byte* host, std::size_t bytes);

/// An address in the memory of a device.
struct place {
    const context* in = nullptr;  ///< context of the device
    device_pointer address = 0;
};

/// Puts a copy of `bytes` bytes between the memory of two devices into a stream of one of them. Does not block. In the context
/// `here` of the stream. Throws device_error.
void between(const context& here, stream_handle stream, place to, place from, std::size_t bytes);

}  // namespace weir::backend::cuda::transfer
