// Devices of kinds that are not part of this library: the program registers their drivers.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.hpp"
#include "runtime/devices/device_state.hpp"

namespace weir::runtime {

/// A registered kind of device. Its devices are "NAME:0" to "NAME:<count - 1>".
struct registered_kind {
    std::string name;
    int count = 1;
    /// Makes the driver of one device when the device is first asked for. Its exceptions pass through device::from_name. The driver's
    /// name is the device's name. The driver is never destroyed.
    std::unique_ptr<backend::driver> (*make)(int number) = nullptr;
};

/// Adds a kind: from now on device::from_name finds its devices, and their kind is device_kind::registered. Throws argument_error if
/// the name is taken. Any thread.
void register_kind(registered_kind what);

/// The device of that name, made at the first call; null if no registered kind has it.
[[nodiscard]] device_state* find_registered(std::string_view name);
/// The registered devices made so far. Throws std::bad_alloc.
[[nodiscard]] std::vector<device_state*> registered_devices();

}  // namespace weir::runtime
