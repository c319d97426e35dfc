#pragma once

#include <functional>

namespace weir::runtime {

/// Copies that the host makes of arrays (host_views::begin_copy), for who enqueues what conflicts with one: it waits until that is over,
/// or the copy would have some of its elements from before and some from after the operation. A copy waits for nobody who enqueues.
class host_copies {
public:
    /// One is over. Under no lock.
    static void ended() noexcept;
    /// Blocks while `goes_on()`, which may take the locks of resources. Under none of these.
    static void wait_while(const std::function<bool()>& goes_on);
    /// So many threads do.
    [[nodiscard]] static int waiting() noexcept;
};

}  // namespace weir::runtime
