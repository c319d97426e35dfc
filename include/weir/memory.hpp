// The pools behind buffers: what they hold, how much they may hold. Layer: memory.
#pragma once

#include <cstddef>

#include "weir/device.hpp"
#include "weir/export.hpp"

namespace weir::memory {

/// Where the bytes of a device's pool are, as the pool rounds them. live + pending + cached is what it has from the driver.
struct statistics {
    std::size_t live = 0;     ///< owned by buffers
    std::size_t pending = 0;  ///< dropped, but operations may still use them
    std::size_t cached = 0;   ///< dropped, and over: free to use, or to give back to the driver
    std::size_t peak = 0;     ///< the most that was live and pending at once, seen when memory was handed out
    std::size_t limit = 0;    ///< the most that live, pending and cached may be together (rule L6)
};

/// The figures of this moment. Never blocks on work of a device.
[[nodiscard]] WEIR_EXPORT statistics stats(device of = cpu());

/// Limits what the pool may take from the driver, live, pending and cached together (rule L6). At first the limit is the
/// device's memory, and it is never more. What is beyond a lower limit stays until it is dropped and trimmed.
WEIR_EXPORT void limit(device of, std::size_t bytes);

/// Gives cached memory back to the driver, as far as whole pieces of it are free. Never waits for work of a device.
WEIR_EXPORT void trim(device of = cpu());

/// For tests, as a negative control of rule L1: while it lives, buffers that the calling thread makes are freed as other
/// pools free them, on the stream on which they were allocated. Of all that may still use the memory, the pool then
/// remembers only what that stream had been given when the last owner went: uses on other streams, and those of earlier
/// owners, are forgotten, and the memory is reused too early. Destroy on the thread that made it, innermost first.
class WEIR_EXPORT allocating_stream {
public:
    allocating_stream() noexcept;
    ~allocating_stream();
    allocating_stream(const allocating_stream&) = delete;
    allocating_stream& operator=(const allocating_stream&) = delete;

private:
    bool previous_;
};

}  // namespace weir::memory
