#pragma once

#include <functional>
#include <vector>

#include "cli/demo/pipeline.hpp"

namespace weir::demo {

/// One stage of one block.
struct step {
    stage which = stage::load;
    std::int64_t block = 0;
};

/// A delayed stream: it stands still while the others go on for some blocks.
struct delay {
    std::size_t stream = 0;   ///< its index among the pipeline's streams
    std::int64_t from = 0;    ///< the first block of the delay
    std::int64_t blocks = 0;  ///< length of the delay
};

/// Six delays, spread over the recording, of different stages if there are enough streams: as may happen to a
/// program on a busy machine.
[[nodiscard]] std::vector<delay> six_delays(const pipeline& of);

/// An order in which all steps of a pipeline may run if its streams are not ordered: each stream keeps its own order, and
/// a delayed stream continues when the others have finished the blocks of the delay.
[[nodiscard]] std::vector<step> schedule_with(const pipeline& of, const std::vector<delay>& delays);

/// Enqueues everything, as pipeline::enqueue does, but with a gate before each step, and then opens the gates in the order
/// of `schedule`, each when the step before is complete. So the schedule is the same on any machine, with any number of cores.
/// The program must leave its streams unordered, otherwise this waits for ever. Blocks until everything is complete.
void replay(pipeline& program, const std::vector<step>& schedule, const std::function<void(double done)>& progress);

}  // namespace weir::demo
