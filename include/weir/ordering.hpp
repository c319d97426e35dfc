// Who orders operations: Weir or the program. Layer: order.
#pragma once

#include <cstdint>

#include "weir/export.hpp"

namespace weir {

/// Rule O5. `automatic`: Weir inserts the device-side waits that accesses need and that are not implied yet.
/// `manual`: the program orders its operations itself; Weir still keeps histories, so that returning to
/// `automatic` is safe at once, and still protects memory that is reused.
enum class ordering_mode : std::uint8_t {
    automatic,  ///< Weir inserts the waits that are missing
    manual,     ///< the program does
};

/// Sets the mode of the whole process, which holds where no array, stream or scope says otherwise. Never blocks.
WEIR_EXPORT void set_ordering(ordering_mode mode) noexcept;

/// Sets the mode of the calling thread for as long as the object lives, then restores what was there before. Nests.
/// Must be destroyed on the thread that made it, innermost first (as a local variable is). Never blocks.
class WEIR_EXPORT ordering_scope {
public:
    /// `mode` holds for what this thread enqueues from now on.
    explicit ordering_scope(ordering_mode mode) noexcept;
    /// Restores the mode that was there before.
    ~ordering_scope();
    ordering_scope(const ordering_scope&) = delete;
    ordering_scope& operator=(const ordering_scope&) = delete;

private:
    std::uint8_t previous_;
};

}  // namespace weir
