// The folder backend/capability/ declares what only some devices can do (beyond memory, queues and time). Each capability is one
// interface, which a driver implements or not. Code above backend/ asks driver::can for it, and names no backend.
#pragma once

namespace weir::backend {

namespace capability {
class copies;
class kernels;
class libraries;
class shared_memory;
class stream_memory;
}  // namespace capability

/// The capabilities of a device; null where it lacks one. A driver sets them when it is made, and never changes them. Each lives as
/// long as the driver.
struct capabilities {
    const capability::kernels* kernels = nullptr;        ///< the device's own code: compiled, loaded, launched
    const capability::copies* copies = nullptr;          ///< copies that the device's queues carry out themselves
    const capability::libraries* libraries = nullptr;    ///< third-party libraries that use the device
    capability::shared_memory* shared_memory = nullptr;  ///< pinned and managed memory
    capability::stream_memory* stream_memory = nullptr;  ///< an allocator in the order of queues
};

}  // namespace weir::backend
