#pragma once

#include <memory>

#include "calls/call.hpp"
#include "calls/fft/fft_call.hpp"
#include "weir/device.hpp"

namespace weir::calls {

/// The library of cpu_fft_provider(), for devices on whose memory host code computes.
struct host_fft_provider {
    [[nodiscard]] bool serves(const device& on) const noexcept { return on.kind() != device_kind::cuda; }
    [[nodiscard]] std::unique_ptr<const call_plan> plan(const fft_call& call, const call_layout& layout) const;
};

}  // namespace weir::calls
