#pragma once

#include <array>
#include <span>
#include <string>

#include "random_programs/kernels.hpp"
#include "random_programs/oracle.hpp"
#include "random_programs/program.hpp"
#include "weir/device.hpp"

namespace random_programs {

struct run_options {
    /// The program races, or may: its elements are accessed by atomic operations, so that it goes wrong without being
    /// undefined, and nothing that Weir itself does touches them.
    bool racing = false;
    /// Memory is freed as other pools free it (memory::allocating_stream).
    bool forget_frontiers = false;
    /// The devices whose operations are kernels. If there are any, only programs of one device may race.
    std::span<const kernels> by_kernels{};
    /// The program's devices.
    std::array<weir::device, most_devices> on{weir::cpu(), weir::sim(4), weir::sim(5)};
};

struct outcome {
    std::string wrong;  ///< what was found first; empty if everything is as expected
    int reuses = 0;  ///< arrays whose memory had been used by another stream before; not counted beside other threads

    [[nodiscard]] bool ok() const noexcept { return wrong.empty(); }
};

/// Runs a completed program on Weir's public interface, and compares what the host sees and which operations run with what is
/// expected. Calls and operations carry the step's number as their line. Returns once everything is complete. Accelerators
/// beside the host behave adversarially, by the program's seed.
[[nodiscard]] outcome run(const program& completed, const expectation& wanted, run_options options = {});

}  // namespace random_programs
