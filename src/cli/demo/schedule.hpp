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

/// A stream that comes late: it stands still while the others go on for some blocks.
struct delay {
    std::size_t stream = 0;   ///< its place among the pipeline's streams
    std::int64_t from = 0;    ///< the first block that it leaves to the others
    std::int64_t blocks = 0;  ///< how many
};

/// Six delays, spread over the recording, each of another stage where streams allow: what a busy machine does to a
/// program now and then.
[[nodiscard]] std::vector<delay> six_delays(const pipeline& of);

/// An order in which all steps of a pipeline may run if nothing orders its streams: each stream keeps its own order, and
/// a stream that is delayed goes on when the others are through with the blocks of the delay.
[[nodiscard]] std::vector<step> schedule_with(const pipeline& of, const std::vector<delay>& delays);

/// Enqueues everything, as pipeline::enqueue does, but with a gate before each step, and then opens the gates in the order
/// of `schedule`, each when the step before is over. So the schedule happens on any machine, however many cores it has.
/// The program must leave its streams unordered, or this waits for ever. Blocks until everything is over.
void replay(pipeline& program, const std::vector<step>& schedule, const std::function<void(double done)>& progress);

}  // namespace weir::demo
