// Tools for tests of programs that use streams. Layer: runtime.
#pragma once

#include <atomic>
#include <cstdint>

#include "weir/detail/simulation.hpp"
#include "weir/export.hpp"
#include "weir/stream.hpp"

namespace weir::testing {

/// Holds streams back until it is opened: makes a race certain that would otherwise depend on timing. Device-side: a held stream keeps no
/// thread busy, and neither `hold` nor `open` blocks. Destroying a gate opens it. If all memory that a call could get is behind closed
/// gates, the call throws out_of_memory and waits for none of them. Any thread may hold streams and open it.
class WEIR_EXPORT gate {
public:
    /// Closed. Throws std::bad_alloc.
    [[nodiscard]] gate();
    /// Opens it.
    ~gate();
    gate(const gate&) = delete;
    gate& operator=(const gate&) = delete;

    /// What is enqueued on `stream` from now on does not start before the gate is open. Does not block. Throws state_error if the stream is
    /// closed, or is of `cpu:inline`, which runs operations in the call; std::bad_alloc.
    void hold(const stream_ref& stream, source_location where = source_location::current());
    /// Opens the gate: all held streams continue. Idempotent.
    void open() noexcept;

private:
    std::uint32_t timeline_;
    std::uint64_t opening_;
    std::atomic<bool> is_open_{false};
};

/// Makes code of the host stand for work of a CUDA device from now on: `parallel_for` with a plain C++ body is then work of the stream, at
/// the place that the driver's own events and waits give it, run by a thread of the host. New memory of the device is pinned host memory,
/// which both reach. For tests of order on a real device without a compiler for the device; slow. Must be called before anything is done
/// with the device; a second call has no effect. Throws argument_error (not a CUDA device), device_error. A simulated device that stands
/// for a CUDA device runs host code anyway.
WEIR_EXPORT void run_host_code_on(device of);

/// Makes `devices` simulated devices, 1 to 16, stand for the CUDA devices of the process, as WEIR_SIMULATE=cuda:N does (see `cuda`); the
/// variable then has no effect. Must be called before anything asks for a CUDA device or for the list of all devices: later it throws
/// state_error, unless the same number stands for them already. Throws argument_error.
WEIR_EXPORT void simulate_cuda(int devices);

/// While it lives, a simulated device behaves as `settings` say; then as before.
///
/// \code
/// weir::testing::simulated hostile(weir::sim(0), {.seed = 7, .adversarial = true});
/// \endcode
class WEIR_EXPORT simulated {
public:
    /// Throws argument_error (not a simulated device, no engines) and state_error (operations are pending on it).
    [[nodiscard]] simulated(device of, const sim_settings& settings);
    /// Blocks until what is pending on the device is complete, then restores the former settings.
    ~simulated();
    simulated(const simulated&) = delete;
    simulated& operator=(const simulated&) = delete;
    /// Blocks until what is pending on the device is complete.
    void await_idle() const;

private:
    runtime::device_state* device_;
    sim_settings before_;
};

}  // namespace weir::testing
