#pragma once

#include <cstddef>

#include "backend/cuda/device_context.hpp"

namespace weir::backend::cuda::transfer {

/// Copies between a device and memory of the host of any kind, by way of memory that the device can reach itself. Blocks
/// until it is done. Nothing may be using either side. Throws device_error, out_of_memory.
void to_host(device_context& in, std::byte* host, const std::byte* device, std::size_t bytes);
void to_device(device_context& in, std::byte* device, const std::byte* host, std::size_t bytes);

}  // namespace weir::backend::cuda::transfer
