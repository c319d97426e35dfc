#pragma once

#include <functional>

namespace weir::runtime {

/// Copies of arrays that the host makes (host_views::begin_copy). A thread that enqueues a conflicting operation waits until the copy
/// ends; otherwise some of the copied elements would be from before the operation and some from after it. A copy never waits for a
/// thread that enqueues.
class host_copies {
public:
    /// A copy has ended. Must be called under no lock.
    static void ended() noexcept;
    /// Blocks while `goes_on()`, which may lock resources. The caller must hold no lock of a resource.
    static void wait_while(const std::function<bool()>& goes_on);
    /// The number of threads in `wait_while`.
    [[nodiscard]] static int waiting() noexcept;
};

}  // namespace weir::runtime
