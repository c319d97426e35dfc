#pragma once

namespace weir::runtime::cuda_simulation {

/// The largest number of simulated devices.
inline constexpr int most_devices = 16;

/// How many simulated devices stand for the CUDA devices of the process; 0: none, the devices are real. Decided once: by `choose`, or
/// else by the first call, which reads WEIR_SIMULATE. Throws argument_error, at each call, if that value is invalid.
[[nodiscard]] int devices();

/// Makes `count` simulated devices stand for them, whatever WEIR_SIMULATE says. Throws argument_error (the number), state_error
/// (another number was decided before).
void choose(int count);

}  // namespace weir::runtime::cuda_simulation
