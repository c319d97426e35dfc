// How a simulated accelerator behaves. Layer: base.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "weir/detail/site.hpp"

namespace weir::testing {

/// What is known of an operation before it runs.
struct sim_operation {
    runtime::site from;                                    ///< its label and the call that enqueued it
    runtime::work_kind kind = runtime::work_kind::device;  ///< a kernel, a copy, a host task
};

/// How a device `sim:N` behaves.
struct sim_settings {
    int engines = 4;                            ///< operations that run at once; at least 1
    int copy_engines = 2;                       ///< copies that run at once, besides; at least 1
    std::size_t memory = std::size_t{1} << 30;  ///< bytes
    std::uint64_t seed = 0;                     ///< what is chosen, is chosen by this
    /// Which of the operations that are ready runs next is chosen by seed, and some are held back so that others which
    /// are ready, also later ones of other streams, overtake them. None for ever: each is overtaken a bounded number of
    /// times, and no engine stays idle for it.
    bool adversarial = false;
    /// Nothing runs by itself, and time is only told: operations run one at a time, on the threads that wait (for a stream,
    /// an event, an array, whatever the device) or ask whether something is done. In the device's time they overlap, as
    /// many as it has engines; host tasks always do. Which one starts next is chosen by seed, and so is how long each
    /// takes: a program of one thread takes the same course each time it runs with the same seed. Code that runs must not
    /// wait for anything but Weir's own streams and events, as operations that meet do. A trace shows the device's time.
    bool virtual_clock = false;
    /// How long an operation takes under the virtual clock; empty: 1 to 1000 microseconds by seed. Must not throw, nor call
    /// Weir.
    std::function<std::chrono::nanoseconds(const sim_operation&)> cost = {};
};

}  // namespace weir::testing
