#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "backend/cuda/api/driver_api.hpp"

namespace weir::backend::cuda {

/// Properties of a device that the driver reports without a context on it.
struct description {
    std::string model;
    std::size_t memory_bytes = 0;
    int major = 0;  ///< of the compute capability
    int minor = 0;
    std::string pci_id;
    std::vector<int> peers;  ///< the numbers of the devices whose memory its work can reach
};

/// Describes the device of that number, one of `devices`. Makes no context. Throws device_error.
[[nodiscard]] description describe(const driver_api& api, int id, int devices);

}  // namespace weir::backend::cuda
