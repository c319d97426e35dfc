// The behaviour of a simulated accelerator. Layer: base.
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

/// The behaviour of a device `sim:N`.
struct sim_settings {
    int engines = 4;                            ///< operations that run at the same time; at least 1
    int copy_engines = 2;                       ///< copies that run at the same time, in addition; at least 1
    std::size_t memory = std::size_t{1} << 30;  ///< bytes
    std::uint64_t seed = 0;                     ///< all random choices depend on it
    /// The operation that runs next is chosen from the ready ones by `seed`, and some are held back so that other ready operations,
    /// including later ones of other streams, overtake them. None is held back for ever: each is overtaken a bounded number of times, and
    /// no engine stays idle because of it.
    bool adversarial = false;
    /// Time is simulated, and nothing runs in the background: operations run one at a time, on the threads that wait (for a stream, an
    /// event, an array, of whatever device) or ask whether something is done. By the device's clock they overlap, as many as it has
    /// engines; host tasks always overlap. `seed` decides which operation starts next and how long each takes: a program of one thread
    /// behaves the same each time it runs with the same seed. Code that runs must not wait for anything but Weir's own streams and
    /// events, as operations that meet would. A trace shows the device's time.
    bool virtual_clock = false;
    /// The duration of an operation under the virtual clock; empty: 1 to 1000 microseconds, by `seed`. Must not throw, and must not call
    /// Weir.
    std::function<std::chrono::nanoseconds(const sim_operation&)> cost = {};
};

}  // namespace weir::testing
