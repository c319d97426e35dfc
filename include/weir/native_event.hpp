// The driver's events that other libraries recorded. Layer: exchange.
#pragma once

#include <memory>

#include "weir/buffer.hpp"
#include "weir/device.hpp"
#include "weir/export.hpp"
#include "weir/package.hpp"
#include "weir/source_location.hpp"

namespace weir::exchange {

/// States that another library has used `memory` up to an event that it recorded on `of`: the driver's handle, a CUevent (which is a
/// cudaEvent_t). What is enqueued through Weir later, or gets the memory later, comes after that; the wait is device-side. The event must
/// live until the wait has been submitted to the driver, which may be after the call if rule O9 delays it: `owner` is kept until then. Does
/// not block, unless rule O9 says so. Throws exchange_error for a device whose driver has no events, device_error if the driver does not
/// accept the handle as an event. Rules X4, X7.
WEIR_EXPORT void used_up_to(const buffer& memory, void* native_event, device of, package_use use = package_use::writes,
                            std::shared_ptr<void> owner = {}, source_location where = source_location::current());

}  // namespace weir::exchange
