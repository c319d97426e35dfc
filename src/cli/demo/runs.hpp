#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "cli/demo/audio.hpp"
#include "cli/demo/placement.hpp"
#include "weir/weir.hpp"

namespace weir::demo {

/// The three ways in which the program of pipeline.cpp is run.
enum class way : std::uint8_t {
    unordered,  ///< ordering_mode::manual and no events: the streams are not ordered
    by_hand,    ///< ordering_mode::manual and the author's events
    by_weir,    ///< ordering_mode::automatic and no events
};

/// Called now and then with the fraction that is done, from 0 to 1.
using progress_report = std::function<void(double done)>;
inline void nobody_looks(double /*done*/) {}

/// Runs the program, and returns its result. Blocks until it is complete.
[[nodiscard]] recording run(const recording& sound, const placement& placed, way how,
                            const progress_report& progress = nobody_looks);

/// Runs the unordered program in a schedule in which one stream is late six times: see schedule.hpp.
[[nodiscard]] recording run_delayed(const recording& sound, const placement& placed,
                                    const progress_report& progress = nobody_looks);

struct checked_run {
    recording result;
    weir::report report;
};
/// The same as `run`, with Weir's checks enabled.
[[nodiscard]] checked_run run_checked(const recording& sound, const placement& placed, way how);

/// The same as `run`, and writes a trace to files: see trace_scope.
[[nodiscard]] recording run_traced(const recording& sound, const placement& placed, way how,
                                   std::initializer_list<std::filesystem::path> files);

/// The number of waits in a run. All streams are held until everything is enqueued, so that no wait is saved by work that
/// happens to be complete: the numbers are the same on each machine and in each run.
[[nodiscard]] trace_summary count_waits(const recording& sound, const placement& placed, way how);

/// Seconds from the first call that enqueues to the completion of all work, without set-up.
struct times {
    double one_stream = 0;
    double by_hand = 0;
    double by_weir = 0;
};
/// The medians of several runs. The variants take turns, so that all meet the same conditions on the machine.
[[nodiscard]] times measure(const recording& sound, const placement& placed,
                            const progress_report& progress = nobody_looks);

}  // namespace weir::demo
