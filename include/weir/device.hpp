// Devices. Layer: runtime.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weir/export.hpp"
#include "weir/source_location.hpp"

namespace weir {

/// The kinds of device that this build knows.
enum class device_kind : std::uint8_t {
    cpu,  ///< the host's memory, with asynchronous streams run by threads
};

namespace runtime {
class device_state;
}

/// One device. A small value: copies are the same device. Valid until the process ends.
class WEIR_EXPORT device {
public:
    [[nodiscard]] device_kind kind() const noexcept;
    /// The number among the devices of its kind, from 0.
    [[nodiscard]] int id() const noexcept;
    /// "cpu".
    [[nodiscard]] std::string name() const;

    /// Blocks until everything that was enqueued before the call, on every stream of this device, is over (scenario C9).
    /// Throws operation_error if any of it failed and nobody was told yet.
    void synchronize(source_location where = source_location::current()) const;

    friend bool operator==(const device&, const device&) = default;

    /// For Weir's own use.
    explicit device(runtime::device_state& state) noexcept : state_(&state) {}
    [[nodiscard]] runtime::device_state& state() const noexcept { return *state_; }

private:
    runtime::device_state* state_;
};

/// The CPU: memory of the host, asynchronous in-order streams run by a small pool of threads (`WEIR_CPU_THREADS`, else
/// one for each core). Never fails.
[[nodiscard]] WEIR_EXPORT device cpu();

/// All devices, the CPU first.
[[nodiscard]] WEIR_EXPORT std::vector<device> devices();

}  // namespace weir
