// Ordering modes: Weir or the program orders operations. Layer: order.
#pragma once

#include <cstdint>

#include "weir/export.hpp"

namespace weir {

/// Rule O5. `automatic`: Weir inserts the device-side waits that accesses need and that are not implied yet. `manual`: the program orders
/// its operations itself; Weir still keeps histories, so that a return to `automatic` is safe at once, and still protects reused memory.
enum class ordering_mode : std::uint8_t {
    automatic,  ///< Weir inserts the missing waits
    manual,     ///< the program orders its operations
};

/// Sets the mode of the whole process, which applies unless an array, a stream or a scope sets another. Never blocks.
WEIR_EXPORT void set_ordering(ordering_mode mode) noexcept;

/// Sets the mode of the calling thread while the object lives, then restores the former mode. Nests. Must be destroyed on the thread that
/// made it, innermost first (like a local variable). Never blocks.
class WEIR_EXPORT ordering_scope {
public:
    /// `mode` applies to what this thread enqueues from now on.
    [[nodiscard]] explicit ordering_scope(ordering_mode mode) noexcept;
    /// Restores the former mode.
    ~ordering_scope();
    ordering_scope(const ordering_scope&) = delete;
    ordering_scope& operator=(const ordering_scope&) = delete;

private:
    std::uint8_t previous_;
};

}  // namespace weir
