#pragma once

namespace weir::runtime::cuda_simulation {

/// At most so many devices are simulated.
inline constexpr int most_devices = 16;

/// How many simulated devices stand for the CUDA devices of the process; 0: none, they are real. Decided once: here, by
/// WEIR_SIMULATE, unless `choose` came before. Throws argument_error, at each call, if that says nothing sensible.
[[nodiscard]] int devices();

/// So many stand for them, whatever WEIR_SIMULATE says. Throws argument_error (the number), state_error (it was decided
/// otherwise).
void choose(int count);

}  // namespace weir::runtime::cuda_simulation
