// Ends a wait of the host's from within. Layer: backend.
#pragma once

#include "weir/export.hpp"

namespace weir::detail {

/// While it lives, the waits of the calling thread call `asked` some twenty times a second, under no lock: what it throws
/// ends the wait, and the call that waited throws it. For languages whose users end a program that waits. Nests: the
/// innermost counts. Waits in which the thread itself drives a device with a virtual clock are left alone.
class WEIR_EXPORT interruptible {
public:
    using question = void (*)();  ///< what is called

    /// Null: waits are not ended.
    explicit interruptible(question asked) noexcept;
    /// As before.
    ~interruptible();
    interruptible(const interruptible&) = delete;
    interruptible& operator=(const interruptible&) = delete;

    /// For Weir's own use: the calling thread's; null if there is none.
    [[nodiscard]] static question check() noexcept;

private:
    question before_;
};

}  // namespace weir::detail
